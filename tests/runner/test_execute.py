"""After the look: what keeps a chain alive comes before what removes snapshots. Real programs and a real history."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import (
    Evidence,
    OrchestratorError,
    PartlyRefused,
    PermissionDenied,
    SourceMissing,
    StreamBroken,
    VerificationFailed,
)
from orchestrator.domain.job import Job, KeepRules, SnapshotRules
from orchestrator.domain.plan import COMMON, Decision, NothingToDo, Plan, Refusal, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.run import Outcome
from orchestrator.domain.source_identity import SOURCE_IDENTITY, SOURCE_STATE
from orchestrator.domain.source_state import SourceState, SourceStateRecord
from orchestrator.engines.contract.engine import RunRequest, StageResults
from orchestrator.engines.sanoid import SanoidEngine
from orchestrator.engines.zfs import ENGINE, ZfsEngine
from orchestrator.engines.zfs.model import SnapshotPresent
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import Reader, Writer
from orchestrator.runner.execute import execute_decision
from orchestrator.runner.problems import see_points
from orchestrator.runner.snapshots import take_snapshots
from orchestrator.runner.steps import gravest_error
from tests.engines.zfs.sides import ASKED, COPY, job, world
from tests.runner.journals import journal, small


class Keeps(ZfsEngine):
    """Decides what it is told to."""

    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    def plan(self, job: Job, world: Any, requested: RunRequest) -> Decision:
        return self._decision

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return ()


class Full(Keeps):
    """Has no room for whatever it decides."""

    def check_space(self, job: Job, world: Any, plan: Plan, requested: RunRequest, reader: Reader) -> Plan | Refusal:
        return Refusal(why=f"no room to {plan.summary}", evidence=("so much",), hint="less", guard="target-room")


class Prunes(SanoidEngine):
    """Prunes by one step of its own."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def survey_snapshots(self, job: Job, reader: Reader) -> Any:
        return None

    def prune_source(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        return (self._step,)

    def prune_target(self, job: Job, folder: str) -> tuple[Step, ...]:
        return (self._step,)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


@pytest.mark.parametrize("kind", [NothingToDo, Plan])
@pytest.mark.parametrize("fails", [False, True])
def test_the_source_is_pruned_only_once_its_bookmarks_are_there(
    history: History, tmp_path: Path, kind: type, *, fails: bool
) -> None:
    told = tmp_path / "told"
    keep = small(f"echo keep >>{told}; {'false' if fails else 'true'}")
    stages = ((keep,),)
    decision = (
        NothingToDo(why="", current=None, stages=stages) if kind is NothingToDo else Plan(summary="", stages=stages)
    )
    made = journal(history, tmp_path)
    made.job = replace(job(), snapshots=SnapshotRules(daily=1))
    prunes = Prunes(small(f"echo prune >>{told}"))
    made.tools = replace(made.tools, engine=Keeps(decision), snapshotter=prunes)
    (tmp_path / "notes").mkdir()
    requested = replace(ASKED, notes=str(tmp_path / "notes"))
    if fails:
        with pytest.raises(Exception, match="ended with 1"):
            execute_decision(made, Writer(), world(), requested)
        assert told.read_text().split() == ["keep"]
    else:
        ended = execute_decision(made, Writer(), world(), requested)
        assert ended.outcome is (Outcome.NOTHING if kind is NothingToDo else Outcome.DONE)
        assert told.read_text().split() == ["keep", "prune"]


def test_a_source_that_takes_no_bookmark_and_has_nothing_to_send_is_copied_all_the_same(
    history: History, tmp_path: Path
) -> None:
    """Before, the run failed each night, though the copy was as the source; what prunes still waits for the bookmark."""
    told = "cannot create bookmark of \\'tank/p@a\\': error 95"
    decision = NothingToDo(why="", current=None, stages=((small(f'echo "{told}" >&2; exit 1'),),))
    made = journal(history, tmp_path)
    made.job = replace(job(), snapshots=SnapshotRules(daily=1))
    prunes = Prunes(small(f"touch {tmp_path}/pruned"))
    made.tools = replace(made.tools, engine=Keeps(decision), snapshotter=prunes)
    (tmp_path / "notes").mkdir()
    ended = execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    (warning,) = ended.warnings
    assert (ended.outcome, (tmp_path / "pruned").exists()) == (Outcome.NOTHING, False), ended
    assert "older than bookmarks" in warning
    assert f"poolferry run {made.job.name} --allow no-bookmarks" in warning


def test_a_plan_for_which_there_is_no_room_is_refused_before_its_first_step(history: History, tmp_path: Path) -> None:
    told = tmp_path / "told"
    decision = Plan(summary="send", stages=((small(f"echo sent >>{told}"),),))
    made = journal(history, tmp_path)
    made.job = job()
    made.tools = replace(made.tools, engine=Full(decision))
    ended = execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert (ended.outcome, ended.why, ended.hint, ended.evidence) == (
        Outcome.REFUSED, "no room to send", "less", ("so much",),
    )  # fmt: skip
    assert not told.exists()


class FullUntil(Full):
    """Has no room before something was pruned."""

    def __init__(self, decision: Decision, pruned: Path) -> None:
        super().__init__(decision)
        self._pruned = pruned

    def check_space(self, job: Job, world: Any, plan: Plan, requested: RunRequest, reader: Reader) -> Plan | Refusal:
        return plan if self._pruned.exists() else super().check_space(job, world, plan, requested, reader)


@pytest.mark.parametrize("keeps", [False, True])
def test_what_keep_lets_go_makes_room_before_a_full_target_is_refused(
    history: History, tmp_path: Path, *, keeps: bool
) -> None:
    told, pruned = tmp_path / "told", tmp_path / "pruned"
    made = journal(history, tmp_path)
    made.job = replace(job(), keep=KeepRules(daily=1) if keeps else KeepRules())
    prunes = Prunes(small(f"echo prune >>{told}; touch {pruned}"))
    engine = FullUntil(Plan(summary="send", stages=((small(f"echo sent >>{told}"),),)), pruned)
    made.tools = replace(made.tools, engine=engine, snapshotter=prunes)
    (tmp_path / "notes").mkdir()
    ended = execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    if keeps:
        assert ended.outcome is Outcome.DONE
        assert told.read_text().split()[:2] == ["prune", "sent"]
    else:
        assert (ended.outcome, told.exists()) == (Outcome.REFUSED, False)


def test_what_an_attempt_before_carried_to_its_end_is_done(history: History, tmp_path: Path) -> None:
    """Its last program was killed after all was there: the next attempt finds nothing left, yet the run did something."""
    made = journal(history, tmp_path)
    made.job, made.moved = job(), 4096
    made.tools = replace(made.tools, engine=Holds(NothingToDo(why="all there", current="c")))
    (tmp_path / "notes").mkdir()
    ended = execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert ended.outcome is Outcome.DONE
    assert ended.why.startswith("an earlier attempt carried all of it")


class Confirms(Keeps):
    """Keeps what it is asked to confirm."""

    def confirm(self, stage: StageResults, reader: Reader) -> None:
        self.asked = stage


def test_what_a_failed_step_promised_is_confirmed_as_uncertain(history: History, tmp_path: Path) -> None:
    one, two = (SnapshotPresent(dataset=COPY, guid=guid, snapshot=f"s{guid}") for guid in (1, 2))
    engine = Confirms(Plan(summary="", stages=((small(confirmation=one), small("false", confirmation=two)),)))
    made = journal(history, tmp_path)
    made.job, made.tools = job(), replace(made.tools, engine=engine)
    (tmp_path / "notes").mkdir()
    with pytest.raises(OrchestratorError, match="ended with 1"):
        execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert (engine.asked.confirmations, engine.asked.uncertain) == ((one,), (two,))


# Of two datasets and one below the first, in three stages: what fails, and what is done all the same.
@pytest.mark.parametrize(
    ("fails", "done"),
    [
        ("v/a", ["keep", "v/b", "v/a b", "v/b more"]),
        ("v/a/c", ["keep", "v/a", "v/b", "v/a b", "v/b more"]),
        ("keep", []),
        ("full v/a", ["keep"]),
    ],
)
def test_what_fails_holds_up_only_what_needs_it(history: History, tmp_path: Path, fails: str, done: list[str]) -> None:
    """An owner may let the stream of one dataset fail each night. What all others need comes first, and the end needs all."""
    told = tmp_path / "told"

    def step(name: str, worker: str) -> Step:
        ends = "echo no space left on device >&2; false" if fails == f"full {name}" else "false"
        copies = worker != COMMON
        return replace(small(ends if fails.endswith(name) else f"echo {name} >>{told}"), worker=worker, copies=copies)

    stages = (
        (step("keep", COMMON),),
        (step("v/a", "v/a"),),
        (step("v/a/c", "v/a/c"), step("v/b", "v/b"), step("v/a b", "v/a b")),
        (step("v/b more", "v/b"),),
        (step("release", COMMON),),
    )
    made = journal(history, tmp_path)
    made.job = job()
    prunes = Prunes(small(f"touch {tmp_path}/pruned"))
    made.tools = replace(
        made.tools, engine=Keeps(Plan(summary="", stages=stages, independent=True)), snapshotter=prunes
    )
    made.job = replace(made.job, keep=KeepRules(daily=1))
    (tmp_path / "notes").mkdir()
    with pytest.raises(OrchestratorError):
        execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert sorted(told.read_text().splitlines() if told.exists() else []) == sorted(done)
    pruned = "v/b" in done or fails.startswith("full")
    assert (tmp_path / "pruned").exists() is pruned, (
        "one that fails each night lets no side fill, and a full one is pruned"
    )


def test_where_all_that_copies_was_held_up_nothing_is_pruned(history: History, tmp_path: Path) -> None:
    stages = tuple((replace(small("false"), worker=name, copies=True),) for name in ("v/a", "v/a/c"))
    made = journal(history, tmp_path)
    made.job = replace(job(), keep=KeepRules(daily=1))
    prunes = Prunes(small(f"touch {tmp_path}/pruned"))
    made.tools = replace(
        made.tools, engine=Keeps(Plan(summary="", stages=stages, independent=True)), snapshotter=prunes
    )
    (tmp_path / "notes").mkdir()
    with pytest.raises(OrchestratorError):
        execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert not (tmp_path / "pruned").exists()


class Loses(Keeps):
    """Finds nothing of what its steps brought."""

    def confirm(self, stage: StageResults, reader: Reader) -> None:
        raise VerificationFailed("what was sent is not there")


@pytest.mark.parametrize("count", [1, 2])
def test_what_is_not_there_ends_the_run_and_prunes_nothing(history: History, tmp_path: Path, count: int) -> None:
    """The copy's old points may be all that there is."""
    sent = SnapshotPresent(dataset=COPY, guid=1, snapshot="s")
    first = tuple(replace(small(confirmation=sent), worker=f"v/{n}", copies=True) for n in range(count))
    next_one = replace(small(f"touch {tmp_path}/next"), worker="v/z", copies=True)
    made = journal(history, tmp_path)
    made.job = replace(job(), keep=KeepRules(daily=1))
    prunes = Prunes(small(f"touch {tmp_path}/pruned"))
    plan = Plan(summary="", stages=((*first,), (next_one,)), independent=True)
    made.tools = replace(made.tools, engine=Loses(plan), snapshotter=prunes)
    (tmp_path / "notes").mkdir()
    with pytest.raises(VerificationFailed):
        execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert not (tmp_path / "next").exists()
    assert not (tmp_path / "pruned").exists()


class PrunesSides(Prunes):
    """Tells of which side it prunes."""

    def prune_target(self, job: Job, folder: str) -> tuple[Step, ...]:
        return (replace(self._step, work=small("true").work),)


def test_the_source_is_not_pruned_where_a_dataset_is_left_out(history: History, tmp_path: Path) -> None:
    """Its points that were never sent are nowhere else."""
    left = Refusal(why="eve does not fit", evidence=(), hint="")
    made = journal(history, tmp_path)
    made.job = replace(job(), keep=KeepRules(daily=1), snapshots=SnapshotRules(daily=1))
    prunes = PrunesSides(small(f"touch {tmp_path}/pruned"))
    plan = Plan(summary="", stages=((small(copies=True),),), independent=True, refusals=(left,))
    made.tools = replace(made.tools, engine=Keeps(plan), snapshotter=prunes)
    (tmp_path / "notes").mkdir()
    with pytest.raises(PartlyRefused):
        execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert not (tmp_path / "pruned").exists()


def test_what_may_pass_is_tried_again_whatever_failed_before_it() -> None:
    """A failure for good of one dataset takes no attempt from the others."""
    nothing = Evidence(lines=(), exits=(1,), last_output=("",))
    good, bad = StreamBroken("cut", evidence=nothing), PermissionDenied("no right", evidence=nothing)
    chosen = gravest_error([bad, good])
    assert (type(chosen), chosen.why) == (StreamBroken, "cut (and 1 more failed beside it)")


class Holds(Keeps):
    """Finds point c at the target."""

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return (RestorePoint(name="c", taken=ASKED.now, tree=COPY, manifest=None),)


class HoldsUntilPruned(Keeps):
    """Finds points b and c at the target, and c alone once b was pruned."""

    def __init__(self, decision: Any, pruned: Path) -> None:
        super().__init__(decision)
        self._pruned = pruned

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        names = ("c",) if self._pruned.exists() else ("b", "c")
        return tuple(RestorePoint(name=name, taken=ASKED.now, tree=COPY, manifest=None) for name in names)


@pytest.mark.parametrize("fails", [False, True])
def test_what_was_pruned_is_no_point_any_more(history: History, tmp_path: Path, *, fails: bool) -> None:
    """Before, `points` and `status` counted what the run itself had removed, until the next run."""
    steps = [replace(small(code, copies=True), worker=f"v/{code}") for code in ("true", "false" if fails else ":")]
    made = journal(history, tmp_path)
    made.job = replace(job(), keep=KeepRules(daily=1))
    engine = HoldsUntilPruned(Plan(summary="", stages=(tuple(steps),), independent=True), tmp_path / "pruned")
    made.tools = replace(made.tools, engine=engine, snapshotter=Prunes(small(f"touch {tmp_path}/pruned")))
    see_points(made, engine.points(made.job, Writer()))
    (tmp_path / "notes").mkdir()
    with pytest.raises(OrchestratorError) if fails else contextlib.nullcontext():
        execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes")))
    assert history.point_names(made.job.name, made.job.target.name) == {"c"}


def test_a_source_that_is_back_is_not_called_gone_where_the_run_is_refused_for_its_target(
    history: History, tmp_path: Path
) -> None:
    """Its identity tells that it is as at the last good run; another one of that name stays called gone."""
    made = journal(history, tmp_path)
    made.job, found = job(), world()
    away = Refusal(why="the pool of the target is not imported", evidence=(), hint="")
    made.tools = replace(made.tools, engine=Keeps(away))
    gone = SourceStateRecord(state=SourceState.GONE, since=made.now, why="not there", hint="import its pool")
    for identity, left in (("1 2 tank/other", str(gone)), (ENGINE.identity(found), "")):
        history.remember(made.job.name, SOURCE_STATE, str(gone))
        history.remember(made.job.name, SOURCE_IDENTITY, identity)
        execute_decision(made, Writer(), found, ASKED)
        assert history.recall(made.job.name, SOURCE_STATE) == left
        made = journal(history, tmp_path)
        made.job, made.tools = job(), replace(made.tools, engine=Keeps(away))
    history.remember(made.job.name, SOURCE_STATE, str(gone))
    execute_decision(made, Writer(), replace(found, source=replace(found.source, datasets={})), ASKED)
    assert history.recall(made.job.name, SOURCE_STATE) == str(gone)


class Misses(SanoidEngine):
    """Does not find the source."""

    def survey_snapshots(self, job: Job, reader: Reader) -> Any:
        raise SourceMissing(
            "the dataset is not there", evidence=Evidence(lines=(), exits=(), last_output=(), host=None)
        )


@pytest.mark.parametrize("copies", [True, False])
def test_a_source_that_is_not_there_is_left_to_the_look_of_a_run_that_copies_it(
    history: History, tmp_path: Path, *, copies: bool
) -> None:
    """It says what brings the source back; snapshots by themselves know of no copy."""
    made = journal(history, tmp_path)
    made.job = replace(job(), snapshots=SnapshotRules(daily=1))
    missing: Any = Misses()
    engine: Any = Keeps(NothingToDo(why="", current=None)) if copies else missing
    made.tools = replace(made.tools, engine=engine, snapshotter=missing)
    if copies:
        take_snapshots(made, Writer(), frozenset())
    else:
        with pytest.raises(SourceMissing):
            take_snapshots(made, Writer(), frozenset())


@pytest.mark.parametrize("cut", [False, True])
def test_a_point_of_many_datasets_is_one_only_once_all_of_them_are_there(
    history: History, tmp_path: Path, *, cut: bool
) -> None:
    """The root comes first. A run that is killed then, or cut, leaves no point that anybody would call verified."""
    known: list[tuple[str, bool]] = []

    class Looks(Holds):
        def confirm(self, stage: StageResults, reader: Reader) -> None:
            known.extend((each.name, each.verified_at is not None) for each in history.views.points("photos"))

    root, rest = (SnapshotPresent(dataset=COPY, guid=guid, snapshot="c") for guid in (1, 2))
    last = small("false" if cut else "true", confirmation=rest)
    plan = Plan(summary="", stages=((small(confirmation=root),), (last,)), current="c", brings=True, taken=ASKED.now)
    made = journal(history, tmp_path)
    made.job, made.tools = job(), replace(made.tools, engine=Looks(plan))
    (tmp_path / "notes").mkdir()
    asked = replace(ASKED, notes=str(tmp_path / "notes"))
    if cut:
        with pytest.raises(OrchestratorError, match="ended with 1"):
            execute_decision(made, Writer(), world(), asked)
        assert (made.points, history.views.points("photos")) == ([], ())
        made.tools = replace(made.tools, engine=Looks(Plan(summary="", stages=((small(),),), current="c")))
    (tmp_path / "notes").mkdir(exist_ok=True)
    execute_decision(made, Writer(), world(), asked)
    assert (known, made.points) == ([], ["c"])
    (point,) = history.views.points("photos")
    assert (point.name, point.taken_at) == ("c", ASKED.now)
    assert point.verified_at is not None


@pytest.mark.parametrize("kind", [NothingToDo, Plan])
@pytest.mark.parametrize(("lacks", "verified"), [("[]", True), ('["tank/photos/x"]', False)])
def test_a_point_that_an_earlier_run_brought_is_verified_once_all_of_it_is_there(
    history: History, tmp_path: Path, kind: type, lacks: str, *, verified: bool
) -> None:
    decision = (
        NothingToDo(why="", current="c") if kind is NothingToDo else Plan(summary="", stages=((small(),),), current="c")
    )
    memory = {"missing on vault c": lacks}
    history.remember("photos", "missing on vault c", lacks)
    made = journal(history, tmp_path)
    made.job, made.tools = job(), replace(made.tools, engine=Holds(decision))
    (tmp_path / "notes").mkdir()
    execute_decision(made, Writer(), world(), replace(ASKED, notes=str(tmp_path / "notes"), remembered=memory))
    (point,) = history.views.points("photos")
    assert (made.points, point.confirmed_at is not None, point.verified_at is not None) == ([], True, verified)
