"""The line of `check --system` on a source that is not there, by what a run would decide."""

from pathlib import Path

import pytest

from orchestrator.app.config_check import _moved_source
from orchestrator.app.settings import Settings
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Refusal
from orchestrator.domain.renamed_dataset import RenamedDataset
from orchestrator.domain.source_state import SourceState
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.registry import load_engine

ABSENT = SystemCheckResult(
    good=False, subject="source tank/data", text="is not there: correct `source` in the job file"
)


def job() -> Job:
    place = Place(name="vault", location=Location(path="vault/copies/data"))
    return Job(name="a", file="a.toml", engine="zfs", source=Location(path="tank/data"), target=place, options=None)


@pytest.mark.parametrize(("within", "lines"), [("tank/reach", 1), ("", 0)], ids=["behind a gate", "all was seen"])
def test_another_name_that_may_be_behind_a_gate_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str, lines: int
) -> None:
    """The check said only to correct the job file, and the run that its gate hides what it may be called."""
    engine, doubt = type(load_engine("zfs")), RenamedDataset(within=within).doubt
    refusal = Refusal(
        why="the source tank/data is not there",
        evidence=(doubt,) if doubt else (),
        hint="import its pool",
        source=SourceState.GONE,
    )
    monkeypatch.setattr(engine, "survey", lambda *_: None)
    monkeypatch.setattr(engine, "plan", lambda *_: refusal)
    told = _moved_source(Settings(config=str(tmp_path), state=str(tmp_path)), job(), (ABSENT,))
    assert [doubt in each.text and each.subject == ABSENT.subject for each in told] == [True] * lines
