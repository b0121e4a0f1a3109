"""One run from start to end: record, lock, survey, act on the survey (`execute.py`), and survey again after a failure.

The lock comes before the survey, the record before the action, the verification before the success. A failed step leads back to
the survey, never to the step.

Why modules are imported during the survey: a run that finds nothing to do should cost only its survey. Half of our start is the
import of modules that act on its result; while the survey waits for its programs that costs nothing.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from functools import partial

from orchestrator.domain.errors import (
    EntriesRefused,
    NamesExhausted,
    NotNow,
    OrchestratorError,
    SourceRenamed,
    Stopped,
)
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import point_name
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.source_identity import OWED, SOURCE_IDENTITY
from orchestrator.domain.units import Seconds, show_duration
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext, begin_bare_look
from orchestrator.runner.locks import lock_job
from orchestrator.runner.meanwhile import import_meanwhile
from orchestrator.runner.run_recorder import ENDS_A_RUN, RunRecorder, begin_run, continue_run

_SHORT_WAIT = 10.0  # seconds between two attempts, for which a permit is kept


def run_job(
    job: Job,
    tools: RunContext,
    *,
    why: str,
    allowed: frozenset[str] = frozenset(),
    absent: NotNow | None = None,
    begun: RunRecorder | None = None,
) -> RunReport:
    """Execute one complete run. All errors are in the report; only a lost history raises.

    `absent`: why no disk of the job's rotation set can be used; a job that is not placed on a disk waits. `begun`: it has begun by
    `wait_for_permit`, before its disk was attached.
    """
    journal = begin_run(job, tools, why) if begun is None else continue_run(begun, job, tools)
    try:
        if job.target.rotates:
            raise absent or NotNow(f"no disk of the set {job.target.name} is here")
        _require_locks(journal)
        with (
            _permits(journal),
            lock_job(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit,
        ):
            healed = tools.history.heal(tools.alive, journal.now)
            if journal.run not in healed and healed:
                found = f"run {', '.join(map(str, healed))} ended without a record: killed, crashed, or the state directory was full"
                journal.say(f"{found}; it is recorded as interrupted")
            if job.hooks.of("snapshot-after"):
                from orchestrator.runner.source_freeze import release_left

                release_left(journal)
            if job.target.disk:
                _call_hooks("disk-arrived", journal)
            _call_hooks("before", journal)
            with _timed(journal):
                report = _attempts_and_after(journal, tools.writer(inherit), allowed)
    except ENDS_A_RUN as error:
        report = _ended_by(error, journal)
    _call_hooks(report.outcome.value, journal, report)
    return report


def wait_for_permit(job: Job, tools: RunContext, *, why: str) -> tuple[RunRecorder, RunReport | None]:
    """Begin the run of a job that is not placed on a disk yet, and wait for its permit, which is kept for the rest of it.

    Return its record, and its report where it has ended: it was stopped, or has no more patience.
    """
    journal = begin_run(job, tools, why)
    try:
        if tools.permit is not None:
            _require_locks(journal)
            tools.permit.obtain(journal)
    except ENDS_A_RUN as error:
        report = _ended_by(error, journal)
        _call_hooks(report.outcome.value, journal, report)
        return journal, report
    return journal, None


def _ended_by(error: OrchestratorError | OSError, journal: RunRecorder) -> RunReport:
    """End the run by an error; of several that waited for the same thing only the first is kept."""
    if isinstance(error, SourceRenamed):
        from orchestrator.domain.source_state import SourceState
        from orchestrator.runner.source_state import remember_state

        remember_state(journal, SourceState.RENAMED, error.why, journal.said_hint(error.hint))
    report = journal.ended_by(error, continues="the next run continues from here")
    if (journal.job.target.rotates or journal.job.permit) and isinstance(error, NotNow):
        journal.tools.history.fold_waits(report)
    return report


def _permits(journal: RunRecorder) -> AbstractContextManager[None]:
    """Return the context of a run's permit, which comes before its locks: while it waits, others may have them."""
    permit = journal.tools.permit
    return nullcontext() if permit is None else permit.hold(journal)


def _require_locks(journal: RunRecorder) -> None:
    """Check that a job could have its locks now, before it asks for a permit. Raises: NotNow.

    Why: who is lent a permit and then waits for another run of this host holds up all hosts.
    """
    if journal.tools.permit is not None:
        tools = journal.tools
        with lock_job(journal.job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait):
            pass


def _timed(journal: RunRecorder) -> AbstractContextManager[None]:
    """Return the context of a copy, which warns when it is too slow for its disk's visit."""
    within = journal.job.target.within
    if not within:  # as in most jobs
        return nullcontext()
    from orchestrator.runner.disk.slow_fill import warn_when_slow

    return warn_when_slow(journal, within)


def _call_hooks(event: str, journal: RunRecorder, report: RunReport | None = None) -> None:
    """Call the job's hooks for the event; most jobs have none, and then nothing more is imported."""
    if journal.job.hooks.of(event):
        from orchestrator.runner.hooks import call_hooks

        call_hooks(event, journal, report)


def _attempts_and_after(journal: RunRecorder, writer: Writer, allowed: frozenset[str]) -> RunReport:
    """Make the attempts; where they did not copy all, say what that leaves at the source."""
    try:
        report = _attempts(journal, writer, allowed)
    except OrchestratorError as error:
        if journal.tools.snapshotter is not None and not isinstance(error, NotNow | Stopped):
            _note_unpruned(journal, writer)
        raise
    if journal.tools.snapshotter is not None and report.outcome is Outcome.REFUSED:
        _note_unpruned(journal, writer)
    return report


def _note_unpruned(journal: RunRecorder, writer: Writer) -> None:
    from orchestrator.runner.snapshots import note_unpruned

    note_unpruned(journal, writer)


def _attempts(journal: RunRecorder, writer: Writer, allowed: frozenset[str]) -> RunReport:
    """Make attempts until one succeeds, or until another one makes no sense."""
    tools, rules = journal.tools, journal.job.retry
    fruitless, seen = 0, list[str]()
    while True:
        moved = journal.moved
        journal.attempt_begun(looking=True)
        try:
            return _attempt(journal, writer, allowed)
        except OrchestratorError as error:
            from orchestrator.planners.retry import RetryAfter, decide_retry, failure_key

            journal.attempt_ended(error)
            journal.names_exhausted |= isinstance(error, NamesExhausted)
            if isinstance(error, EntriesRefused):
                journal.refused |= error.entries
                journal.unnamed += error.unnamed
            fruitless = 0 if journal.moved > moved else fruitless + 1
            again = decide_retry(
                error, attempt=journal.attempt, fruitless=fruitless, rules=rules, jitter=tools.chance(),
                repeats=seen.count(failure_key(error)), least=Seconds(0),
            )  # fmt: skip
            if not isinstance(again, RetryAfter):
                raise
            seen.append(failure_key(error))
            journal.warn(f"attempt {journal.attempt}: {error.why}; again in {show_duration(again.wait)} ({again.why})")
            if _waited_in_vain(journal, again.wait):
                raise Stopped(tools.stop.reason or "the run was asked to stop") from error


def _waited_in_vain(journal: RunRecorder, wait: Seconds) -> bool:
    """Wait for the next attempt; return True where the run was asked to stop. A permit is given back meanwhile: others copy while this run rests.

    Why not for a short wait: who gives back stands last in the queue again. Raises: as the permit.
    """
    tools = journal.tools
    if tools.permit is None or wait < _SHORT_WAIT:
        return tools.stop.wait(wait)
    with tools.permit.give_back_meanwhile(journal):
        return tools.stop.wait(wait)


def _attempt(journal: RunRecorder, writer: Writer, allowed: frozenset[str]) -> RunReport:
    """Make one survey, and act on it."""
    job, tools = journal.job, journal.tools
    if tools.snapshotter is not None and not journal.snapshots_taken:
        from orchestrator.runner.snapshots import take_snapshots

        take_snapshots(journal, writer, allowed)
        journal.snapshots_taken = True
    request = replace(
        _run_request(job, tools, allowed), again=journal.attempt > 1, crowded=journal.names_exhausted, refused=journal.refused,
        unnamed=journal.unnamed,
    )  # fmt: skip
    journal.notes = request.notes
    if request.remembered.get(OWED):
        from orchestrator.runner.source_freeze import give_up_left

        give_up_left(journal)
    with import_meanwhile(writer, *tools.engine.later(request), "orchestrator.runner.execute"):
        world = _survey(job, tools, request, writer)
    from orchestrator.runner.execute import execute_decision

    return execute_decision(journal, writer, world, request)


def _survey(job: Job, tools: RunContext, request: RunRequest, writer: Writer) -> object:
    """Return the survey. One that fails at the target is recorded as a look that did not see the copies."""
    try:
        return tools.engine.survey(job, request, writer)
    except OrchestratorError as error:
        from orchestrator.runner.last_look import note_failed_survey

        note_failed_survey(job, tools, error)
        raise


def _unnamed(job: Job, tools: RunContext, now: datetime) -> datetime:
    """Return the time, or the next second whose name no point has had: one that vanished may be moved back."""
    while tools.history.was_named(job.name, job.target.name, point_name(now)):
        now += timedelta(seconds=1)
    return now


def _run_request(job: Job, tools: RunContext, allowed: frozenset[str]) -> RunRequest:
    """Return the request for the survey and the decision."""
    notes = f"{tools.state}/notes/{job.name}"
    os.makedirs(f"{notes}/empty", mode=0o700, exist_ok=True)
    remembered = tools.history.memory(job.name)
    if tools.engine.needs_datasets and SOURCE_IDENTITY not in remembered:
        from orchestrator.runner.source_state import remembered_facts

        remembered = remembered_facts(job, tools)
    looks = f"{tools.state}/notes/look-{job.name}"
    request = RunRequest(
        now=tools.clock(), notes=notes, allowed=allowed, remembered=remembered, looks=looks, bare=begin_bare_look
    )
    if tools.engine.stays:
        from orchestrator.runner.arrivals import arrival_judge

        judge = arrival_judge(job, tools.engine, remembered, state=tools.state, now=request.now, allowed=allowed)
        request = replace(request, judge=judge)
    if not tools.engine.needs_datasets:
        missed = partial(tools.history.problems.missed_points, job.name, job.target.name)
        return replace(request, now=_unnamed(job, tools, request.now), missed=missed)
    from orchestrator.runner.decide import brought_points, retention_filter

    brought = partial(brought_points, job, tools.history)
    return replace(request, retain=retention_filter(job, request.now), brought=brought)
