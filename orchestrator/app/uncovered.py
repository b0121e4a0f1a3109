"""The look at what no job copies: datasets of the sources' pools, and folders beside the sources, of this machine.

The daemon looks once an hour and remembers it for the status page, which may not look itself.
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.answers import parse_instant, parse_json, text_lines
from orchestrator.domain.errors import OutsideError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Effect, single_command
from orchestrator.planners.uncovered import DatasetMount, find_uncovered_datasets, find_uncovered_folders
from orchestrator.process.executor import Reader

if TYPE_CHECKING:
    from orchestrator.domain.job import Job

FACT = "uncovered"  # a small fact of no job
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UncoveredReport:
    """Datasets and folders that no job copies. `trouble`: why datasets could not be listed; empty: they were."""

    datasets: tuple[str, ...]
    folders: tuple[str, ...]
    looked_at: datetime
    trouble: str = ""


def survey_uncovered(settings: Settings) -> UncoveredReport:
    """Look at the datasets and folders beside the sources of this machine. Raises: DeclarationError."""
    known = settings.configuration()
    copying = [job for job in known.jobs if job.copies and job.source.host is None]
    paths = [each.path for job in copying if job.source.path.startswith("/") for each in job.tree.folders]
    targets = [str(each.location.path) for each in known.places if each.location.host is None]
    datasets, trouble = _datasets(copying, paths, targets)
    own = (settings.where.state, settings.where.config, *(path for path in targets if path.startswith("/")))
    folders = find_uncovered_folders([*_beside(paths)], copied=paths, others=own)
    return UncoveredReport(datasets=datasets, folders=folders, looked_at=compose.now(), trouble=trouble)


def _datasets(copying: "list[Job]", paths: list[str], targets: list[str]) -> tuple[tuple[str, ...], str]:
    sources = [job for job in copying if not job.source.path.startswith("/")]
    pools = sorted({job.source.path.partition("/")[0] for job in sources})
    if not pools:
        return (), ""
    command = single_command(
        "zfs", "list", "-H", "-o", "name,mountpoint", "-t", "filesystem,volume", "-r", *pools, effect=Effect.READS
    )
    try:
        result = Reader().read(command)
    except OutsideError as error:
        return (), error.why
    if not result.well:
        return (), " ".join(result.last_output).strip()[:300] or "zfs list failed"
    lines = text_lines(result.stdout)
    there = [DatasetMount(name=name, mountpoint=at) for name, _, at in (line.partition("\t") for line in lines) if name]
    whole = [job.source.path for job in sources if getattr(job.options, "recursive", True)]
    alone = [job.source.path for job in sources if job.source.path not in whole]
    holding = [path for path in targets if not path.startswith("/")]
    sends_all = [job.source.path for job in sources if getattr(job.options, "set_aside", False)]
    return find_uncovered_datasets(
        there, copied=whole, alone=alone, paths=paths, targets=holding, with_aside=sends_all
    ), ""


def _beside(paths: list[str]) -> Iterator[str]:
    """Yield the folders beside the sources; links and other files are none. What cannot be listed has nothing to show."""
    for parent in sorted({os.path.dirname(path) for path in paths}):
        try:
            with os.scandir(parent) as found:
                names = [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        yield from (os.path.join(parent, name) for name in names if name != "lost+found")


def remember_uncovered(settings: Settings) -> None:
    """Look, and remember it for who may not look. Raises: DeclarationError · HistoryError."""
    found = survey_uncovered(settings)
    value = {
        "datasets": found.datasets[:_MOST], "folders": [os.fsencode(each).hex() for each in found.folders[:_MOST]],
        "at": found.looked_at.isoformat(), "trouble": found.trouble,
    }  # fmt: skip
    with compose.open_history(settings.where) as history:
        history.remember("", FACT, json.dumps(value))


def recall_uncovered(settings: Settings) -> UncoveredReport | None:
    """Return what was remembered; None: nobody has looked yet. Raises: HistoryError."""
    with settings.views() as views:
        return views.fact("", FACT, _parse)


def _parse(text: str) -> UncoveredReport:
    told = parse_json(text)
    return UncoveredReport(
        datasets=tuple(map(str, told["datasets"])), folders=tuple(os.fsdecode(bytes.fromhex(each)) for each in told["folders"]),
        looked_at=parse_instant(told["at"]), trouble=str(told["trouble"]),
    )  # fmt: skip
