"""jobs/README.md tells every key with its true default; its examples, and the example files, load."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.config.decode import TomlFile, declared_fields, decode_section
from orchestrator.config.load import load_configuration
from orchestrator.config.machine import SECTIONS as MACHINE
from orchestrator.config.machine import load_machine_config
from orchestrator.config.models import SECTIONS, JobKeys, PlaceKeys
from orchestrator.config.parse_job import parse_hooks
from orchestrator.config.schema import written_default
from orchestrator.config.sets import SECTIONS as ROTATION
from orchestrator.domain.arrival import ArrivalRules
from orchestrator.domain.fast_dataclass import MISSING
from orchestrator.domain.job import EVENTS, JobHooks
from orchestrator.domain.notice import CHANNEL_TYPES
from orchestrator.domain.units import Seconds
from orchestrator.engines.pool.options import PoolOptions
from orchestrator.engines.sanoid.options import SanoidOptions
from orchestrator.engines.zfs.options import ZfsOptions
from tests.config.given import JOB, TARGETS, written
from tests.config.shipped import RSYNC, SHIPPED

JOBS = Path(__file__).resolve().parents[2] / "jobs"
README = (JOBS / "README.md").read_text()
EXAMPLES = sorted(path.name for path in JOBS.glob("*.toml") if path.name != "targets.example.toml")
BLOCKS = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
TABLES: dict[str, type[Any]] = {
    "targets.toml": PlaceKeys,
    "jobs/NAME.toml": JobKeys,
    **{f"[{kind}.NAME]": model for kind, model in ROTATION.items()},
    "[rsync]": RSYNC["rsync"].options,
    "[zfs]": ZfsOptions,
    "[sanoid]": SanoidOptions,
    "[pool]": PoolOptions,
    "[prune]": ArrivalRules,
    **{f"[{name}]": model for name, model in SECTIONS.items()},
    **{f"[{name}]": model for name, model in MACHINE.items()},
}
SHARED = "jobs", "states", "digest"  # keys of every kind of channel but ping


def rows(title: str) -> dict[str, tuple[str, str]]:
    """The table under a title of the page: example and default by key."""
    part = re.split(rf"^##+ {re.escape(title)}$", README, flags=re.MULTILINE)[1]
    part = re.split(r"^##", part, flags=re.MULTILINE)[0]
    found = re.findall(r"^\| `([a-z-]+)` \| `(.*?)` \| (.*?) ?\| .+ \|$", part, re.MULTILINE)
    return {key: (example, default.strip("`")) for key, example, default in found}


def _required(model: type[Any]) -> set[str]:
    return {name for name, field in declared_fields(model).items() if field.default is MISSING}


@pytest.mark.parametrize("title", TABLES)
def test_the_page_tells_every_key_with_its_default(title: str) -> None:
    fields = declared_fields(TABLES[title])
    told = rows(title)
    assert list(told) == list(fields)
    for name, field in fields.items():
        default = written_default(field)
        wanted = "*required*" if title == "jobs/NAME.toml" and name in ("engine", "target") else ""
        wanted = "*required*" if title == "[disk.NAME]" and name in ("set", "identity") else wanted
        assert told[name][1] == (wanted if default is None else json.dumps(default)), name


@pytest.mark.parametrize("title", [title for title in TABLES if title.startswith("[")])
def test_the_examples_of_the_page_are_good(title: str) -> None:
    for name, (example, default) in rows(title).items():
        toml_file = TomlFile("x", "", {})
        needed = "".join(f"{key} = {rows(title)[key][0]}\n" for key in _required(TABLES[title]) - {name})
        assert decode_section(
            toml_file, TABLES[title], tomllib.loads(f"{needed}{name} = {example}"), (), lambda _: None
        )
        assert toml_file.mistakes == []
        assert example != default, f"{name}: the example shows nothing new"


@pytest.mark.parametrize("kind", CHANNEL_TYPES)
def test_the_page_tells_every_key_of_a_channel(tmp_path: Path, kind: str) -> None:
    fields = declared_fields(CHANNEL_TYPES[kind])
    shared = {} if kind == "ping" else {name: rows("[notice.NAME]")[name] for name in SHARED}
    told = rows(f"Kind {kind}") | shared
    assert list(told) == list(fields)
    for name, field in fields.items():
        default = written_default(field)
        assert told[name][1] == ("*required*" if default is None and field.default is MISSING else
                                 "" if default is None else json.dumps(default)), name  # fmt: skip
        assert told[name][0] != told[name][1]
    keys = {name: example for name, (example, _) in told.items()} | ({"smtp": '"h:1"'} if kind == "mail" else {})
    text = "".join(f"{name} = {example}\n" for name, example in keys.items())
    (tmp_path / "poolferry.toml").write_text(f'[notice.x]\nkind = "{kind}"\n{text}')
    assert load_machine_config(str(tmp_path)).notice[0].name == "x"


def test_the_page_tells_every_event() -> None:
    told = rows("[hooks]")
    assert list(told) == [*EVENTS, "timeout"]
    toml_file = TomlFile("x", "", {})
    parse_hooks(toml_file, tomllib.loads("\n".join(f"{name} = {example}" for name, (example, _) in told.items())))
    assert toml_file.mistakes == []
    assert told["timeout"][1] == '"1m"'
    assert JobHooks().timeout == Seconds(60)


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("\n")[0] for block in BLOCKS])
def test_each_block_of_the_page_loads(tmp_path: Path, block: str) -> None:
    """A block that is only a section stands below the shortest job."""
    files = {"targets.toml": TARGETS, "jobs/photos.toml": JOB.replace("tree", "rsync")}
    if block.startswith("# poolferry.toml"):
        (tmp_path / "poolferry.toml").write_text(block)
        assert load_machine_config(str(tmp_path)).notice
        return
    if block.startswith("# targets.toml"):
        files["targets.toml"] = block
    else:
        files["jobs/photos.toml"] = block if "engine" in block else files["jobs/photos.toml"] + block
    assert load_configuration(written(tmp_path, files), RSYNC).job("photos").engine == "rsync"


def test_the_example_files_load_together(tmp_path: Path) -> None:
    files = {f"jobs/{name}": (JOBS / name).read_text() for name in EXAMPLES}
    targets = (JOBS / "targets.example.toml").read_text()
    configuration = load_configuration(written(tmp_path, {**files, "targets.toml": targets}), SHIPPED)
    assert [f"{job.name}.toml" for job in configuration.jobs] == EXAMPLES
    aimed = {job.target.name for job in configuration.jobs if job.engine not in ("sanoid", "pool")}
    assert {place.name for place in configuration.places} == aimed
    assert {name for name in EXAMPLES if f"[{name}]({name})" in README} == set(EXAMPLES)
