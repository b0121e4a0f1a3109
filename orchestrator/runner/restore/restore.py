"""`restore`: choose a point, survey the destination, copy, verify."""

import contextlib
import os
from collections.abc import Iterator
from typing import assert_never

from orchestrator.domain.dataset_restore import Shown
from orchestrator.domain.errors import NotNow, OrchestratorError, Stopped
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.point import Point
from orchestrator.domain.run import Kind, Outcome, RunReport
from orchestrator.domain.units import Seconds, show_size
from orchestrator.engines.contract import DestinationSeen, Wanted
from orchestrator.planners.restore import (
    Absent,
    Found,
    Fresh,
    Holds,
    MoveAside,
    NotDirectory,
    Resume,
    Unfinished,
    choose_point,
    decide_destination,
    refuse_mounts,
)
from orchestrator.planners.retry import Again, decide_retry
from orchestrator.process.executor import Writer
from orchestrator.runner.context import Tools
from orchestrator.runner.locks import bringing_back, locked
from orchestrator.runner.locks import reading as held
from orchestrator.runner.restore import snapshot_files as showing
from orchestrator.runner.restore.datasets import attempt, comes_as_datasets, plan_return
from orchestrator.runner.restore.request import Wish, restore_reason
from orchestrator.runner.run_recorder import Journal, begin, evidence_of
from orchestrator.runner.steps import Hands


def plan_restore(job: Job, tools: Tools, wish: Wish) -> Plan | Refusal:
    """Return the plan of `restore run`; nothing is changed."""
    if comes_as_datasets(tools, wish):
        return plan_return(job, tools, wish, tools.writer(()))
    if tools.engine.wants_datasets:
        shown = showing.look(job, tools, wish, tools.writer(()))
        return shown if isinstance(shown, Refusal) else showing.plan_files(shown, wish)
    decided = _decide(job, tools, wish, tools.writer(()))
    return decided if isinstance(decided, Refusal) else decided[1]


def run_restore(job: Job, tools: Tools, wish: Wish) -> RunReport:
    """Restore data and verify them. Resumable: the same command continues after an interruption."""
    journal = begin(job, tools, restore_reason(wish.path, wish.to), Kind.RESTORE)
    journal.attempt_begun()
    try:
        with _locked(job, tools, wish) as inherit:
            report = _attempts(journal, tools.writer(inherit), wish)
    except NotNow as error:
        report = journal.ended(Outcome.WAITING, error.why, cure=error.cure)
    except Stopped as error:
        report = journal.ended(
            Outcome.INTERRUPTED, tools.stop.reason or error.why, cure="the same command goes on from here"
        )
    except OrchestratorError as error:
        report = journal.ended(Outcome.FAILED, error.why, cure=error.cure, evidence=evidence_of(error))
    return report


@contextlib.contextmanager
def _locked(job: Job, tools: Tools, wish: Wish) -> Iterator[tuple[int, ...]]:
    """Hold the lock of the destination; for datasets also of the copy, or a run would use an incomplete source."""
    with contextlib.ExitStack() as held:
        wait, patience = tools.stop.wait, tools.lock_wait
        inherit = held.enter_context(bringing_back(wish.to, tools.state, wait=wait, patience=patience))
        if comes_as_datasets(tools, wish):
            inherit += held.enter_context(locked(job, tools.state, wait=wait, patience=patience))
        yield inherit


def _attempts(journal: Journal, writer: Writer, wish: Wish) -> RunReport:
    once = _files_attempt if journal.tools.engine.wants_datasets else _attempt
    if comes_as_datasets(journal.tools, wish):
        once = attempt
    fruitless, seen = 0, set[str]()
    while True:
        moved = journal.moved
        try:
            return once(journal, writer, wish)
        except OrchestratorError as error:
            journal.attempt_ended(error)
            fruitless = 0 if journal.moved > moved else fruitless + 1
            again = decide_retry(
                error,
                attempt=journal.attempt,
                fruitless=fruitless,
                rules=journal.job.retry,
                jitter=journal.tools.chance(),
                seen_before=error.why in seen,
                least=Seconds(0),
            )
            if not isinstance(again, Again):
                raise
            seen.add(error.why)
            journal.warn(f"attempt {journal.attempt}: {error.why}; again ({again.why})")
            if journal.tools.stop.wait(again.wait):
                raise Stopped(journal.tools.stop.reason or "the restore was asked to stop") from error
        journal.attempt_begun()


def _attempt(journal: Journal, writer: Writer, wish: Wish) -> RunReport:
    job, tools = journal.job, journal.tools
    decided = _decide(job, tools, wish, writer)
    if isinstance(decided, Refusal):
        return _refused(journal, decided)
    point, plan, _ = decided
    _do(journal, writer, point, plan)
    return _done(journal, point, plan)


def _files_attempt(journal: Journal, writer: Writer, wish: Wish) -> RunReport:
    """Run one attempt to restore files from a snapshot that is mounted for it."""
    shown = showing.look(journal.job, journal.tools, wish, writer)
    if isinstance(shown, Refusal):
        return _refused(journal, shown)
    with showing.showing(journal, writer, shown) as tools:
        wanted = showing.as_point(journal, writer, shown, wish)
        decided = _decide_for(journal.job, tools, wanted, wish)
        if not isinstance(decided, Refusal):
            point, plan = _with_comparison(decided, wanted, shown, wish)
            _do(journal, writer, point, plan)
    return _refused(journal, decided) if isinstance(decided, Refusal) else _done(journal, point, plan)


def _with_comparison(
    decided: tuple[Point, Plan, Location], wanted: Wanted, shown: Shown, wish: Wish
) -> tuple[Point, Plan]:
    """Return the plan with our own summary; a single file without a manifest entry is compared at its end."""
    point, plan, to = decided
    compared = showing.compared(wanted, to)
    plan = replace(plan, summary=showing.plan_files(shown, wish).summary)
    if not compared:
        return point, plan
    stages = (*plan.stages, *((step,) for step in compared))
    return replace(point, manifest=point.tree), replace(plan, stages=stages, warnings=())


def _refused(journal: Journal, refusal: Refusal) -> RunReport:
    journal.decided(refusal)
    return journal.ended(Outcome.REFUSED, refusal.why, cure=refusal.cure, evidence=refusal.evidence)


def _do(journal: Journal, writer: Writer, point: Point, plan: Plan) -> None:
    job, tools = journal.job, journal.tools
    journal.decided(plan)
    notes = f"{tools.state}/notes/restore-{job.name}-{journal.run}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    with held(job, tools.state, point.name):
        for stage in plan.stages:
            Hands(journal, writer, notes).do(stage)


def _done(journal: Journal, point: Point, plan: Plan) -> RunReport:
    return journal.ended(
        Outcome.DONE,
        f"{plan.summary}: done and proved, {show_size(journal.moved)} moved"
        if point.manifest
        else f"{plan.summary}: done, not proved",
    )


def _decide(job: Job, tools: Tools, wish: Wish, writer: Writer) -> tuple[Point, Plan, Location] | Refusal:
    point = choose_point(tools.engine.points(job, writer), point=wish.point, at=wish.at)
    if isinstance(point, Refusal):
        return point
    if point.tree.host is not None and wish.to.host is not None:
        return Refusal(
            why="the point lies on a host, and so does the destination: nothing is carried between two hosts",
            evidence=(str(point.tree), str(wish.to)),
            cure=f"restore to a path of this machine, or run poolferry on {point.tree.host.name}",
        )
    return _decide_for(job, tools, Wanted(point=point, path=wish.path, to=wish.to), wish)


def _decide_for(job: Job, tools: Tools, wanted: Wanted, wish: Wish) -> tuple[Point, Plan, Location] | Refusal:
    """Decide from the point and the destination's state; also return the destination, with the name of a single file."""
    point = wanted.point
    seen = _without_stays(tools.engine.survey_restore(job, wanted, tools.writer(())), wish.stays)
    if seen.wanted == "absent":
        return Refusal(
            why=f"point {point.name} holds no {show_name(wanted.path)}",
            evidence=(),
            cure=f"look below {point.tree}, or choose another --point",
        )
    beginning = decide_destination(
        _found(seen), job=job.name, point=point.name, destination=seen.to.path, aside=wish.aside, now=tools.clock()
    )
    match beginning:
        case Refusal():
            return beginning
        case MoveAside():
            return point, tools.engine.plan_restore(job, wanted, seen, aside=beginning.path), seen.to
        case Fresh() | Resume():
            filling = seen.filling if isinstance(beginning, Resume) else ()
            if refusal := refuse_mounts(seen.mounts, filling, destination=seen.to.path):
                return refusal
            return point, tools.engine.plan_restore(job, wanted, seen, aside=None), seen.to
    assert_never(beginning)


def _without_stays(seen: DestinationSeen, stays: tuple[str, ...]) -> DestinationSeen:
    """Return the same survey, as if the point had no data for mounts that stay unchanged."""
    if not stays:
        return seen
    front = os.fsencode(os.path.realpath(seen.to.path).rstrip("/")) + b"/"
    kept = {os.fsencode(path) for path in stays}
    mounts = (replace(one, wanted=one.wanted and front + one.path not in kept) for one in seen.mounts)
    return replace(seen, mounts=tuple(mounts))


def _found(seen: DestinationSeen) -> Found:
    """Convert the survey to the planner's type. An empty folder counts as absent; our marker shows an unfinished restore."""
    if seen.kind == "absent":
        return Absent()
    if seen.kind != "folder":
        return NotDirectory(kind="a file")
    if seen.unfinished:
        return Unfinished(job=seen.unfinished[0], point=seen.unfinished[1])
    return Holds(entries=seen.entries, examples=seen.examples) if seen.entries else Absent()
