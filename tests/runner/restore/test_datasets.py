"""Datasets on their way back, part after part: what is done, proved, recorded and told; by an engine that says what it is told."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest
from orchestrator.domain.job import Job
from orchestrator.domain.kit import KitContents
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Effect, NothingToDo, Plan, Refusal, Step, single_command
from orchestrator.domain.point import Finding, RestorePoint, Verdict
from orchestrator.domain.run import Outcome
from orchestrator.domain.source_identity import RESTORE_BEGUN, RESTORED
from orchestrator.engines.contract.comparison import ComparisonPlan
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs import ZfsEngine
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.process.executor import Reader
from orchestrator.process.stop import StopRequest
from orchestrator.runner.context import RunContext
from orchestrator.runner.locks import lock_job
from orchestrator.runner.restore.request import RestoreOptions
from orchestrator.runner.restore.restore import plan_restore, run_restore

JOB = Job(
    name="photos", file="", engine="zfs", source=Location(path="tank/photos"),
    target=Place(name="vault", location=Location(path="vault/photos")), options=ZfsOptions(),
)  # fmt: skip
WISH = RestoreOptions(to=Location(path="tank/photos"))
REFUSED = Refusal(why="it is there", evidence=(), hint="another name")


def step(folder: Path, name: str, **more: Any) -> Step:
    work = single_command("touch", str(folder / name), effect=Effect.WRITES)
    return Step(action=name, why="", worker="main", work=work, expected=None, **more)


class Coming(ZfsEngine):
    """The engine, but each look finds the next of the parts."""

    def __init__(self, *parts: DatasetRestorePlan, findings: tuple[Finding, ...] = ()) -> None:
        self.parts = list(parts)
        self.findings = findings
        self.dataset_request: list[DatasetRestoreRequest] = []
        self.contents: list[bool] = []
        self.confirmations = 0
        self.allowed: list[frozenset[str]] = []
        self.remembered: list[str] = []

    def survey_dataset_restore(
        self, job: Job, dataset_request: DatasetRestoreRequest, requested: RunRequest, reader: Reader, *, content: bool
    ) -> Any:
        self.dataset_request.append(dataset_request)
        self.contents.append(content)

    def plan_dataset_restore(self, seen: Any, requested: RunRequest) -> DatasetRestorePlan:
        self.allowed.append(requested.allowed)
        self.remembered.append(requested.remembered.get(RESTORED, ""))
        return self.parts.pop(0) if len(self.parts) > 1 else self.parts[0]

    def plan_restore_verification(self, seen: Any, requested: RunRequest) -> ComparisonPlan | Refusal:
        self.confirmations += 1
        return ComparisonPlan(point="b", checked=3, datasets=2, findings=self.findings)

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        return plan

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return ()


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[RunContext]:
    where = compose.Directories(config=str(tmp_path), state=str(tmp_path / "state"))
    with compose.open_history(where) as history:
        made = compose.make_run_context(
            JOB, where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        yield replace(made, lock_wait=0.2)


def told(tools: RunContext, *parts: DatasetRestorePlan, **more: Any) -> tuple[RunContext, Coming]:
    engine = Coming(*parts, **more)
    given: Any = engine
    return replace(tools, engine=given), engine


def parts(folder: Path) -> tuple[DatasetRestorePlan, ...]:
    """Data, properties, and the end; nothing makes a point."""
    carry = Plan(summary="carry", stages=((step(folder, "data"),),), again=True, warnings=("mind",))
    settle = Plan(summary="settle", stages=((step(folder, "quota"),),), again=True)
    end = Plan(summary="end", stages=((step(folder, "mount"),),), warnings=("a key",))
    then = ((step(folder, "quota"),), (step(folder, "mount"),))
    return (
        DatasetRestorePlan(decision=carry, then=then),
        DatasetRestorePlan(decision=settle, whole=True),
        DatasetRestorePlan(decision=end, whole=True),
    )


def test_part_after_part_and_proved_once(tools: RunContext, tmp_path: Path) -> None:
    tools, engine = told(tools, *parts(tmp_path))
    report = run_restore(JOB, tools, WISH)
    assert report.outcome is Outcome.DONE, report
    assert [each.action for each in report.steps] == ["data", "quota", "mount"]
    assert report.why == "tank/photos is back: 3 snapshots of 2 datasets, as the copy by guid"
    assert (report.warnings, engine.confirmations, report.points) == (("mind", "a key"), 1, ())
    assert engine.contents == [False, False, False], "the look that finds all data there proves them too"
    assert tools.history.views.points("photos") == ()


def test_one_that_is_cut_after_its_last_deed_is_the_same_when_it_is_said_again(
    tools: RunContext, tmp_path: Path
) -> None:
    """The power went before its end was recorded, and the job ran since: it was refused, with `--aside` for what had just come back."""

    class Cut(Coming):
        """The last part is carried out, and then the power goes."""

        def plan_dataset_restore(self, seen: Any, requested: RunRequest) -> DatasetRestorePlan:
            if len(self.remembered) == 3:
                raise KeyboardInterrupt
            return super().plan_dataset_restore(seen, requested)

    end = Plan(summary="end", stages=((step(tmp_path, "mount"),),), again=True)
    given: Any = Cut(*parts(tmp_path)[:2], DatasetRestorePlan(decision=end, whole=True))
    with pytest.raises(KeyboardInterrupt):
        run_restore(JOB, replace(tools, engine=given), WISH)
    history, now = tools.history, tools.clock()
    assert history.recall("photos", RESTORE_BEGUN), "before the first deed"
    history.remember("photos", RESTORED, "")  # as a run that ended well does
    after, engine = told(tools, DatasetRestorePlan(decision=NothingToDo(why="it holds all", current=None)))
    for begun, counts in (
        (now - timedelta(days=2), False), (now + timedelta(days=2), False), (now - timedelta(minutes=5), True), (None, False),
    ):  # fmt: skip
        history.remember("photos", RESTORED, "")
        if begun is not None:
            history.remember("photos", RESTORE_BEGUN, f"{begun.isoformat()} tank/photos")
        assert run_restore(JOB, after, WISH).outcome is Outcome.DONE
        assert engine.remembered.pop() == ("tank/photos" if counts else ""), begun
    assert run_restore(JOB, after, WISH).warnings == ()
    (said,) = run_restore(JOB, after, replace(WISH, aside=True)).warnings
    assert "--aside sets nothing aside" in said, "who asked for that is not left to believe it"
    history.remember("photos", RESTORED, "")
    history.remember("photos", RESTORE_BEGUN, f"{now.isoformat()} tank/photos")
    run_restore(JOB, after, replace(WISH, to=Location(path="tank/other")))
    assert engine.remembered.pop() == "", "another place"


def test_a_copy_whose_pool_takes_no_hold_comes_back_all_the_same(tools: RunContext, tmp_path: Path) -> None:
    """Before, nothing came back from a full pool, or from one that was imported read-only, and the hint was an option that restores do not have."""
    says = "echo \"cannot hold snapshot 'vault/photos@a': out of space\" >&2; exit 1"
    hold = step(tmp_path, "hold")
    full = replace(hold, work=single_command("sh", "-c", says, effect=Effect.WRITES))
    first = DatasetRestorePlan(decision=Plan(summary="hold", stages=((full,),), again=True))
    tools, engine = told(tools, first, *parts(tmp_path))
    report = run_restore(JOB, tools, WISH)
    assert report.outcome is Outcome.DONE, report
    assert engine.allowed == [frozenset(), *[frozenset({"no-bookmarks"})] * 3]
    assert report.warnings[0].startswith("the pool of vault/photos takes no hold")
    again, _ = told(tools, first)
    report = run_restore(JOB, again, WISH)
    assert (report.outcome, "no space left" in report.why) == (Outcome.FAILED, True), report


def test_contents_are_looked_at_where_that_was_asked_for(tools: RunContext, tmp_path: Path) -> None:
    tools, engine = told(tools, *parts(tmp_path))
    run_restore(JOB, tools, replace(WISH, content=True))
    assert engine.contents.count(True) == 1


def test_what_is_not_as_the_copy_is_not_settled(tools: RunContext, tmp_path: Path) -> None:
    found = Finding(path=b"@b", verdict=Verdict.MISSING, detail="not there")
    tools, _ = told(tools, *parts(tmp_path), findings=(found,))
    report = run_restore(JOB, tools, WISH)
    assert (report.outcome, "tank/photos is not as the copy: 1 missing" in report.why) == (Outcome.FAILED, True)
    assert [each.action for each in report.steps] == ["data"]


def test_what_is_refused_and_what_waits(tools: RunContext) -> None:
    refused, _ = told(tools, DatasetRestorePlan(decision=REFUSED))
    assert run_restore(JOB, refused, WISH).outcome is Outcome.REFUSED
    assert plan_restore(JOB, refused, WISH) == REFUSED
    waits = NothingToDo(why="all is there", current=None, warnings=("load the key",))
    waiting, _ = told(tools, DatasetRestorePlan(decision=waits, whole=True, waits=("tank/photos/x",)))
    report = run_restore(JOB, waiting, WISH)
    assert (report.outcome, report.warnings, report.hint) == (Outcome.WAITING, ("load the key",), "load the key")
    assert report.why.endswith(", except that tank/photos/x waits")
    assert report.evidence == ("tank/photos/x",)


def test_less_than_was_asked_for_is_not_done(tools: RunContext) -> None:
    nothing = NothingToDo(why="all is there", current=None)
    partial, _ = told(
        tools, DatasetRestorePlan(decision=nothing, whole=True, short={"tank/photos/x": "tank/photos/x is as of @a"})
    )
    report = run_restore(JOB, partial, WISH)
    assert (report.outcome, report.evidence) == (Outcome.FAILED, ("tank/photos/x is as of @a",))
    assert report.why.endswith("1 dataset of it as of an earlier point, or not at all: the copy is partial")


class Partial(Coming):
    """A copy with three points; the newest lacks two datasets, by the copy alone."""

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        tree = Location(path="vault/photos")
        dated = {name: datetime(2026, 11, day, tzinfo=UTC) for day, name in enumerate("abc", 1)}
        return tuple(RestorePoint(name=name, taken=taken, tree=tree, manifest=None) for name, taken in dated.items())

    def partial_points(self, job: Job, kit: str | None, reader: Reader) -> dict[str, tuple[str, ...]]:
        return {"c": ("tank/photos/x", "tank/photos/y")}


def partial(tools: RunContext) -> tuple[RunContext, Partial]:
    engine = Partial(DatasetRestorePlan(decision=NothingToDo(why="all is there", current=None)))
    given: Any = engine
    return replace(tools, engine=given), engine


@pytest.mark.parametrize(
    ("request_", "point", "command"),
    [
        (WISH, "b", "--to tank/photos --point c"),
        (replace(WISH, point="latest", aside=True, content=True), "b", "--to tank/photos --point c --aside --content"),
        (replace(WISH, path=b"x", lost_keys=("tank/x",)), "b", "--to tank/photos --path x --point c --lost-key tank/x"),
        (replace(WISH, path=b"z"), None, ""),
        (replace(WISH, point="c"), "c", ""),
        (replace(WISH, at=datetime(2026, 11, 2, tzinfo=UTC)), "b", ""),
        (replace(WISH, at=datetime(2026, 11, 4, tzinfo=UTC)), "b", "--to tank/photos --point c"),
    ],
)
def test_the_newest_whole_point_is_restored_unless_another_one_is_named(
    tools: RunContext, request_: RestoreOptions, point: str | None, command: str
) -> None:
    tools, engine = partial(tools)
    report = run_restore(JOB, tools, request_)
    (found,) = engine.dataset_request
    assert (found.until and found.until.name, report.outcome) == (point, Outcome.DONE)
    lacking = (
        "1 dataset lacks it: tank/photos/x." if request_.path else "2 datasets lack it: tank/photos/x, tank/photos/y."
    )
    told = f"{lacking} To restore what there is of it: poolferry restore run photos {command}"
    assert [line.endswith(told) for line in report.warnings if "nothing aside" not in line] == (
        [True] if command else []
    )
    assert ("as of b, the newest whole point" in report.why) is bool(command)
    plan = plan_restore(JOB, tools, request_)
    assert isinstance(plan, Plan)
    assert list(plan.warnings) == [*report.warnings, "all is there"]


def test_what_history_knows_of_a_point_goes_before_what_the_copy_shows(tools: RunContext) -> None:
    """A dataset that the source snapshots no more looks like one that the copy lacks; one that vanished looks like nothing."""
    tools, engine = partial(tools)
    run = run_restore(JOB, tools, replace(WISH, point="a")).run
    for name in ("b", "c"):
        tools.history.points_seen("photos", "vault", {name: tools.clock()}, tools.clock())
        tools.history.point_verified("photos", "vault", name, run, tools.clock())
    run_restore(JOB, tools, WISH)
    tools.history.remember("photos", "missing on vault c", '["tank/photos/z"]')
    tools.history.remember("photos", "missing on vault b", '["tank/photos/z"]')
    report = run_restore(JOB, tools, WISH)
    assert [each.until.name if each.until else None for each in engine.dataset_request[1:]] == [None, "a"]
    (line,) = report.warnings
    assert "tank/photos/z (1 more point between them and a is partial, too). To restore" in line


def test_a_part_that_is_left_out_is_no_end(tools: RunContext, tmp_path: Path) -> None:
    first, *rest = parts(tmp_path)
    assert isinstance(first.decision, Plan)
    partly = replace(first, decision=replace(first.decision, refusals=(REFUSED,)))
    tools, _ = told(tools, partly, *rest)
    report = run_restore(JOB, tools, WISH)
    assert (report.outcome, report.why) == (Outcome.FAILED, "all else is done, but it is there")


def test_a_run_of_the_job_is_waited_for(tools: RunContext, tmp_path: Path) -> None:
    """It would meet a source that is not whole, or change the copy under the restore."""
    tools, engine = told(tools, *parts(tmp_path))
    with lock_job(JOB, tools.state, wait=tools.stop.wait, patience=0):
        assert run_restore(JOB, tools, WISH).outcome is Outcome.WAITING
    assert engine.dataset_request == []
    assert run_restore(JOB, tools, WISH).outcome is Outcome.DONE


def test_the_plan_shows_all_that_will_follow(tools: RunContext, tmp_path: Path) -> None:
    tools, _ = told(tools, *parts(tmp_path))
    plan = plan_restore(JOB, tools, WISH)
    assert isinstance(plan, Plan)
    assert [each.action for each in plan.steps] == ["data", "quota", "mount"]
    assert not (tmp_path / "data").exists()


def test_it_does_not_look_for_ever(tools: RunContext, tmp_path: Path) -> None:
    again = DatasetRestorePlan(decision=Plan(summary="again", stages=((step(tmp_path, "x"),),), again=True), whole=True)
    tools, engine = told(tools, again)
    job = replace(JOB, retry=replace(JOB.retry, attempts=1))
    assert run_restore(job, tools, WISH).outcome is Outcome.FAILED
    assert len(engine.dataset_request) < 20


def test_whose_files_would_come_back_as_another_ones_is_told(tools: RunContext, tmp_path: Path) -> None:
    """This machine's own accounts, and a kit in which one had another number."""
    content = json.dumps({"users": {"0": "root", "987654321": "anna"}, "groups": {}})
    warning = "user anna had the number 987654321, which is nobody now: `useradd -u 987654321 anna`"
    tools.history.kits.keep("photos", KitContents(content=content, layout="", recovery="", guids=""), tools.clock())
    planning, _ = told(tools, *parts(tmp_path))
    plan = plan_restore(JOB, planning, WISH)
    assert isinstance(plan, Plan)
    assert plan.warnings == ("mind", warning)
    running, _ = told(tools, *parts(tmp_path))
    assert run_restore(JOB, running, WISH).warnings == (warning, "mind", "a key")
    compared, _ = told(tools, *parts(tmp_path))
    assert warning not in run_restore(JOB, compared, replace(WISH, owners=False)).warnings
