"""`restore`: choose a point, look at the destination, copy, read again. Changes things."""

import os
from datetime import datetime
from typing import assert_never

from orchestrator.domain.errors import NotNow, OrchestratorError, Stopped
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.point import Point
from orchestrator.domain.quick import dataclass
from orchestrator.domain.run import Kind, Outcome, RunReport
from orchestrator.domain.units import Seconds, show_size
from orchestrator.engines.contract import DestinationSeen, Wanted
from orchestrator.planners.restoring import (
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
)
from orchestrator.planners.retry import Again, decide_retry
from orchestrator.process.executor import Writer
from orchestrator.runner.journal import Journal, begin, evidence_of
from orchestrator.runner.locks import bringing_back
from orchestrator.runner.locks import reading as held
from orchestrator.runner.steps import Hands
from orchestrator.runner.tools import Tools


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a person asks a restore for. `path`: below the point, b"" all of it."""

    to: Location
    path: bytes = b""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False


def plan_restore(job: Job, tools: Tools, wish: Wish) -> Plan | Refusal:
    """What `restore run` would do; changes nothing."""
    decided = _decide(job, tools, wish, tools.writer(()))
    return decided if isinstance(decided, Refusal) else decided[1]


def run_restore(job: Job, tools: Tools, wish: Wish) -> RunReport:
    """Brings data back, and proves it. Resumable: the same command goes on after a cut."""
    journal = begin(job, tools, f"restore {show_name(wish.path)} to {wish.to}", Kind.RESTORE)
    journal.attempt_begun()
    try:
        with bringing_back(wish.to, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
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


def _attempts(journal: Journal, writer: Writer, wish: Wish) -> RunReport:
    fruitless, seen = 0, set[str]()
    while True:
        moved = journal.moved
        try:
            return _attempt(journal, writer, wish)
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
        journal.decided(decided)
        return journal.ended(Outcome.REFUSED, decided.why, cure=decided.cure, evidence=decided.evidence)
    point, plan = decided
    journal.decided(plan)
    notes = f"{tools.state}/notes/restore-{job.name}-{journal.run}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    with held(job, tools.state, point.name):
        for stage in plan.stages:
            Hands(journal, writer, notes).do(stage)
    return journal.ended(
        Outcome.DONE,
        f"{plan.summary}: done and proved, {show_size(journal.moved)} moved"
        if point.manifest
        else f"{plan.summary}: done, not proved",
    )


def _decide(job: Job, tools: Tools, wish: Wish, writer: Writer) -> tuple[Point, Plan] | Refusal:
    point = choose_point(tools.engine.points(job, writer), point=wish.point, at=wish.at)
    if isinstance(point, Refusal):
        return point
    if point.tree.host is not None and wish.to.host is not None:
        return Refusal(
            why="the point lies on a host, and so does the destination: nothing is carried between two hosts",
            evidence=(str(point.tree), str(wish.to)),
            cure=f"restore to a path of this machine, or run poolferry on {point.tree.host.name}",
        )
    wanted = Wanted(point=point, path=wish.path, to=wish.to)
    seen = tools.engine.survey_restore(job, wanted, writer)
    if seen.wanted == "absent":
        return Refusal(
            why=f"point {point.name} holds no {show_name(wish.path)}",
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
            return point, tools.engine.plan_restore(job, wanted, seen, aside=beginning.path)
        case Fresh() | Resume():
            return point, tools.engine.plan_restore(job, wanted, seen, aside=None)
    assert_never(beginning)


def _found(seen: DestinationSeen) -> Found:
    """The look in the planner's words. An empty folder is as good as none; our own marker tells an unfinished restore."""
    if seen.kind == "absent":
        return Absent()
    if seen.kind != "folder":
        return NotDirectory(kind="a file")
    if seen.unfinished:
        return Unfinished(job=seen.unfinished[0], point=seen.unfinished[1])
    return Holds(entries=seen.entries, examples=seen.examples) if seen.entries else Absent()
