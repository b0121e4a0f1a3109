"""`plan`: the same look and decision as a run's, and afterwards nothing has changed."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, KeepRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import NothingToDo, Plan, Refusal
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.registry import load_engine
from orchestrator.engines.rsync import RsyncEngine
from orchestrator.process.executor import Reader
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from orchestrator.runner.dry_run import DryRunResult, RememberedFacts, plan_job
from orchestrator.runner.locks import lock_point
from tests.engines.rsync.builders import NOW, job

ENGINE = load_engine("rsync")
UNKNOWN = RememberedFacts(facts={}, sound=())
DAYS = tuple(f"2026-02-0{day}T000000Z" for day in range(1, 5))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A source with one file; a target with four points of it."""
    (tmp_path / "s").mkdir()
    (tmp_path / "s/a").write_text("a")
    (tmp_path / "t/.poolferry").mkdir(parents=True)
    (tmp_path / "t/.poolferry/target.json").write_text('{"job": "photos"}')
    for name in DAYS:
        (tmp_path / "t/points").mkdir(exist_ok=True)
        subprocess.run(["rsync", "-a", f"{tmp_path}/s/", f"{tmp_path}/t/points/{name}/"], check=True)
        (tmp_path / f"t/points/{name}.manifest.gz").touch()
    (tmp_path / "t/latest").symlink_to(f"points/{DAYS[-1]}")
    return tmp_path


def planned(
    place: Path,
    known: RememberedFacts = UNKNOWN,
    *,
    keep: KeepRules | None = None,
    allowed: str = "",
    **options: object,
) -> DryRunResult:
    told = job(source=Location(path=f"{place}/s"), target=Location(path=f"{place}/t"), **options)
    told = replace(told, keep=keep or KeepRules())
    return plan_job(told, ENGINE, Reader(), known, state=f"{place}/state", now=NOW, allowed=frozenset(allowed.split()))


def everything(place: Path) -> list[tuple[str, int]]:
    return sorted(
        (entry, os.lstat(entry).st_mtime_ns)
        for folder, _, names in os.walk(place)
        for entry in [folder, *(f"{folder}/{name}" for name in names)]
    )


def test_nothing_to_do(place: Path) -> None:
    found = planned(place)
    assert isinstance(found.decision, NothingToDo)
    assert (found.decision.current, found.going) == (DAYS[-1], ())


def test_a_change_and_what_keep_will_let_go(place: Path) -> None:
    (place / "s/b").write_text("b")
    before = everything(place)
    found = planned(place, keep=KeepRules(daily=1))
    assert isinstance(found.decision, Plan)
    assert [each.point.name for each in found.going] == list(DAYS[:-1])
    assert everything(place) == before


def test_sound_points_and_those_being_read_stay(place: Path) -> None:
    state = f"{place}/state"
    with lock_point(job(), state, DAYS[1]):
        found = planned(place, RememberedFacts(facts={}, sound=(DAYS[0],)), keep=KeepRules(daily=1))
    assert [each.point.name for each in found.going] == [DAYS[2]]


def test_a_refusal_and_what_may_be_allowed(place: Path) -> None:
    (place / "s/a").unlink()
    found = planned(place)
    assert isinstance(found.decision, Refusal)
    assert found.decision.guard == "source-empty"
    assert isinstance(planned(place, allowed="source-empty max-deleted").decision, Plan)


class Full(RsyncEngine):
    """Has no room for whatever it decides."""

    def check_space(self, job: Job, world: Any, plan: Plan, requested: RunRequest, reader: Reader) -> Plan | Refusal:
        return Refusal(why="no room", evidence=(), hint="less", guard=None)


def test_a_plan_for_which_there_is_no_room_is_refused(place: Path) -> None:
    (place / "s/b").write_text("b")
    told = job(source=Location(path=f"{place}/s"), target=Location(path=f"{place}/t"))
    full: Any = Full()
    found = plan_job(told, full, Reader(), UNKNOWN, state=f"{place}/state", now=NOW, allowed=frozenset())
    assert found.decision == Refusal(why="no room", evidence=(), hint="less")


def test_what_history_knows_counts(place: Path) -> None:
    (place / "t/.poolferry/target.json").unlink()
    subprocess.run(["rm", "-r", place / "t/points"], check=True)
    facts = {"target-used": f"{place}/t"}
    refusal = planned(place, RememberedFacts(facts=facts, sound=())).decision
    assert isinstance(refusal, Refusal)
    assert refusal.guard == "target-new"
    assert isinstance(planned(place).decision, Plan)


def test_patterns_are_no_hindrance_to_a_first_plan(place: Path) -> None:
    subprocess.run(["rm", "-r", place / "t"], check=True)
    (place / "s/b.tmp").write_text("b" * 99)
    before = everything(place)
    found = planned(place, excludes=("*.tmp",)).decision
    assert isinstance(found, Plan)
    assert "of 1 entry, 1 B" in found.summary
    assert everything(place) == before


def test_a_failed_look_is_told() -> None:
    reader = ScriptedExecutor([(lambda _: True, scripted_result(exits=(1,), words="sh: Input/output error"))])
    with pytest.raises(OrchestratorError, match="a disk could not be read"):
        plan_job(job(), ENGINE, reader, UNKNOWN, state="/state", now=NOW, allowed=frozenset())
