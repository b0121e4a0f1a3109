"""Scratch copies by an engine that says what it is told: recorded, dropped by name, or once their time is over."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Effect, Plan, Refusal, Step, single_command
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.drills import ScratchClone
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs import ZfsEngine
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.process.executor import Reader
from orchestrator.process.stop import StopRequest
from orchestrator.runner.context import RunContext
from orchestrator.runner.scratch_clones import ScratchRequest, drop_scratch_clones, run_try

JOB = Job(
    name="photos", file="", engine="zfs", source=Location(path="tank/photos"),
    target=Place(name="vault", location=Location(path="vault/photos")), options=ZfsOptions(),
)  # fmt: skip
NOW = datetime(2026, 1, 2, tzinfo=UTC)
A, B = (RestorePoint(name=name, taken=NOW - timedelta(days=days), tree=Location(path=f"vault/photos@{name}"), manifest=None)
        for name, days in (("a", 9), ("b", 1)))  # fmt: skip


class Trying(ZfsEngine):
    """The engine, but each scratch copy is a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.until: dict[str, datetime | None] = {}

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return (A, B)

    def plan_try(
        self, job: Job, below: str, until: RestorePoint, keep: datetime | None, requested: RunRequest, reader: Reader
    ) -> Plan | Refusal:
        name = f"{until.name}{len(self.until)}"
        self.until[name] = keep
        return Plan(summary=f"try {until.name}", stages=((self._step("touch", name),),))

    def survey_scratch(self, job: Job, reader: Reader) -> tuple[ScratchClone, ...]:
        return tuple(
            ScratchClone(
                name=path.name, at=Location(path=str(path)), job="photos", of="a", until=self.until[path.name], used=0,
                mountpoint="none",
            )
            for path in sorted(self.folder.iterdir())
        )  # fmt: skip

    def drop_scratch(self, job: Job, scratch: ScratchClone) -> Step:
        return self._step("rm", scratch.name)

    def _step(self, action: str, name: str) -> Step:
        work = single_command(action, str(self.folder / name), effect=Effect.DESTROYS)
        return Step(action=action, why="", worker="try", work=work, expected=None)


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[RunContext]:
    (tmp_path / "there").mkdir()
    where = compose.Directories(config=str(tmp_path), state=str(tmp_path / "state"))
    with compose.open_history(where) as history:
        made = compose.make_run_context(
            JOB, where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        engine: Any = Trying(tmp_path / "there")
        yield replace(made, engine=engine, clock=lambda: NOW)


def names(tools: RunContext) -> list[str]:
    engine: Any = tools.engine
    return [path.name for path in sorted(engine.folder.iterdir())]


def test_a_point_is_tried_and_recorded(tools: RunContext) -> None:
    report = run_try(JOB, tools, ScratchRequest(at=NOW - timedelta(days=5)))
    assert (report.outcome, names(tools)) == (Outcome.DONE, ["a0"])
    assert run_try(JOB, tools, ScratchRequest()).outcome is Outcome.DONE
    assert names(tools) == ["a0", "b1"]
    assert run_try(JOB, tools, ScratchRequest(point="nope")).outcome is Outcome.REFUSED
    (newest, *_) = tools.history.views.runs("photos", limit=3)
    assert newest.begun_why == "try a point"


def test_one_is_dropped_by_name_and_no_other(tools: RunContext) -> None:
    run_try(JOB, tools, ScratchRequest())
    run_try(JOB, tools, ScratchRequest())
    assert drop_scratch_clones(JOB, tools, "b0").outcome is Outcome.DONE
    assert names(tools) == ["b1"]
    gone = drop_scratch_clones(JOB, tools, "b0")
    assert (gone.outcome, gone.evidence) == (Outcome.REFUSED, ("b1",))


def test_what_is_over_goes_and_the_rest_stays(tools: RunContext) -> None:
    run_try(JOB, tools, ScratchRequest(keep=Seconds(60)))
    run_try(JOB, tools, ScratchRequest(keep=Seconds(7200)))
    run_try(JOB, tools, ScratchRequest())
    assert drop_scratch_clones(JOB, tools, None).outcome is Outcome.NOTHING
    assert (
        drop_scratch_clones(JOB, replace(tools, clock=lambda: NOW + timedelta(hours=1)), None).outcome is Outcome.DONE
    )
    assert names(tools) == ["b1", "b2"]
