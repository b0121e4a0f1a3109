"""The result of an import as tests look at it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator import compose
from orchestrator.app.job_import import write_import
from orchestrator.config.load import load_configuration
from orchestrator.config.machine import load_machine_config
from orchestrator.config.migrate.result import ImportResult

ENGINES = compose.EngineSections()


@dataclass(frozen=True)
class ImportedFiles:
    """Files that were written, and loaded as a run loads them; and what was said."""

    jobs: Mapping[str, dict[str, Any]]
    places: Mapping[str, str]
    notices: Mapping[str, Any]
    told: list[str]
    lost: list[str]


def imported(found: ImportResult, folder: Path) -> ImportedFiles:
    """Write a result and load it: what is written passes `check`."""
    write_import(found, str(folder))
    if found.files:
        load_configuration(str(folder), ENGINES)
        load_machine_config(str(folder))
    tables = {name: tomllib.loads(text) for name, text in found.files.items() if name.endswith(".toml")}
    jobs = {name[5:-5]: table for name, table in tables.items() if name.startswith("jobs/")}
    places = {name: next(iter(keys.values())) for name, keys in tables.get("targets.toml", {}).get("place", {}).items()}
    lines = [(each.lost, f"{each.where}: {each.text}") for each in found.told]
    return ImportedFiles(
        jobs=jobs, places=places, notices=tables.get("poolferry.toml", {}).get("notice", {}),
        told=[text for lost, text in lines if not lost], lost=[text for lost, text in lines if lost],
    )  # fmt: skip
