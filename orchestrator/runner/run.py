"""The story of one run: lock, record, look, decide, do, prove, record.

The lock before the look, the record before the deed, the proof before the praise. A failed step goes back to the look,
never to the step. Changes things.
"""

import os
import shutil

from orchestrator.domain.errors import NotNow, OrchestratorError, OutsideError, Stopped, TargetFull
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Nothing, Plan, Refusal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import Seconds, show_count, show_duration, show_size
from orchestrator.engines.contract import Asked
from orchestrator.planners.retry import Again, decide_retry
from orchestrator.process.executor import Writer
from orchestrator.runner.aftercare import after_done
from orchestrator.runner.decide import GROUND, USED, decide, ground
from orchestrator.runner.folders import count_folders
from orchestrator.runner.hooks import call_hooks
from orchestrator.runner.journal import Journal, begin, evidence_lines
from orchestrator.runner.locks import locked
from orchestrator.runner.manifests import forget, turn_page
from orchestrator.runner.steps import Hands
from orchestrator.runner.tools import Tools


def run_job(job: Job, tools: Tools, *, why: str, allowed: frozenset[str] = frozenset()) -> RunReport:
    """One run, complete in itself. Everything that can go wrong is in the report; only a lost history raises."""
    journal = begin(job, tools, why)
    try:
        with locked(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
            healed = tools.history.heal(tools.alive, journal.now)
            if journal.run not in healed and healed:
                journal.say(f"run {', '.join(map(str, healed))} had died without an end; it is recorded as interrupted")
            call_hooks("before", journal)
            report = _attempts(journal, tools.writer(inherit), allowed)
    except NotNow as error:
        report = journal.ended(Outcome.WAITING, error.why, cure=error.cure)
    except Stopped as error:
        report = journal.ended(Outcome.INTERRUPTED, f"{tools.stop.reason or error.why}; the next run goes on from here")
    except OrchestratorError as error:
        evidence = evidence_lines(error.evidence) if isinstance(error, OutsideError) else ()
        report = journal.ended(Outcome.FAILED, error.why, cure=error.cure, evidence=evidence)
    call_hooks(report.outcome.value, journal, report)
    return report


def _attempts(journal: Journal, writer: Writer, allowed: frozenset[str]) -> RunReport:
    """Attempts until one ends well, or trying again makes no sense."""
    tools, rules = journal.tools, journal.job.retry
    fruitless, seen = 0, set[str]()
    while True:
        moved = journal.moved
        journal.attempt_begun()
        try:
            report = _attempt(journal, writer, allowed)
        except OrchestratorError as error:
            journal.attempt_ended(error)
            fruitless = 0 if journal.moved > moved else fruitless + 1
            again = decide_retry(
                error, attempt=journal.attempt, fruitless=fruitless, rules=rules, jitter=tools.chance(),
                seen_before=error.why in seen, least=Seconds(0),
            )  # fmt: skip
            if not isinstance(again, Again):
                raise
            seen.add(error.why)
            journal.warn(f"attempt {journal.attempt}: {error.why}; again in {show_duration(again.wait)} ({again.why})")
            if tools.stop.wait(again.wait):
                raise Stopped(tools.stop.reason or "the run was asked to stop") from error
        else:
            journal.attempt_ended(None)
            return report


def _attempt(journal: Journal, writer: Writer, allowed: frozenset[str]) -> RunReport:
    """One look, one decision, and what follows from it."""
    job, tools = journal.job, journal.tools
    asked = _asked_for(job, tools, allowed)
    world = tools.engine.survey(job, asked, writer)
    decision = decide(job, tools.engine, world, asked, count_folders(job, tools.engine, world, writer))
    journal.decided(decision)
    hands = Hands(journal, writer, asked.notes)
    if isinstance(decision, Refusal):
        return journal.ended(Outcome.REFUSED, decision.why, cure=decision.cure, evidence=decision.evidence)
    if isinstance(decision, Plan) and decision.anew:
        forget(asked.notes)
    turn_page(asked.notes)
    _do(decision, hands, tools.engine.room(world))
    _remember(job, tools, ground(*tools.engine.ground(world)))
    if isinstance(decision, Nothing) and decision.current:
        tools.history.point_current(job.name, job.target.name, decision.current, journal.run, journal.now)
    after_done(journal, writer, hands, changed=isinstance(decision, Plan))
    if isinstance(decision, Plan):
        shutil.rmtree(asked.notes, ignore_errors=True)
    return _praise(journal, decision)


def _do(decision: Plan | Nothing, hands: Hands, room: str) -> None:
    """Carries out all stages; a target that is full says how much was missing."""
    try:
        for stage in decision.stages:
            hands.do(stage)
    except TargetFull as error:
        told = f": {room}" if room else ""
        raise TargetFull(f"{error.why}{told}", evidence=error.evidence, cure=error.cure) from error


def _praise(journal: Journal, decision: Plan | Nothing) -> RunReport:
    if isinstance(decision, Nothing):
        return journal.ended(Outcome.NOTHING, decision.why)
    warnings = f", with {show_count(len(journal.warnings), 'warning')}" if journal.warnings else ""
    made = f"made {', '.join(journal.points)}, moved {show_size(journal.moved)}" if journal.points else decision.summary
    return journal.ended(Outcome.DONE, f"{made}{warnings}")


def _asked_for(job: Job, tools: Tools, allowed: frozenset[str]) -> Asked:
    """What a look and a decision are made with."""
    notes = f"{tools.state}/notes/{job.name}"
    os.makedirs(f"{notes}/empty", mode=0o700, exist_ok=True)
    remembered = tools.history.views.memory(job.name)
    return Asked(now=tools.clock(), notes=notes, allowed=allowed, remembered=remembered)


def _remember(job: Job, tools: Tools, lies_on: str) -> None:
    tools.history.remember(job.name, GROUND, lies_on)
    tools.history.remember(job.name, USED, str(job.target.location))
