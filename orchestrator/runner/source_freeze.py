"""The source held still for the instant of a snapshot, by the hooks snapshot-before and snapshot-after.

That snapshot-after is owed is recorded before snapshot-before begins: a run that is killed in between leaves the record, and the
next run, or the daemon's start, calls it first.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.domain.errors import NotNow, OrchestratorError, Stopped
from orchestrator.domain.job import Job
from orchestrator.domain.source_identity import OWED
from orchestrator.domain.units import Seconds
from orchestrator.history.store import History
from orchestrator.runner.hooks import call_hooks, call_line
from orchestrator.runner.run_recorder import RunRecorder

BEFORE, AFTER = "snapshot-before", "snapshot-after"


@contextmanager
def hold_still(journal: RunRecorder) -> Iterator[Seconds]:
    """Call snapshot-before, then the body, then snapshot-after, which is called whatever happened; yield the body's time limit.

    Raises: NotNow · OutsideError: snapshot-before did not agree, or snapshot-after failed; Stopped: before anything was held.
    """
    if reason := journal.tools.stop.reason:
        raise Stopped(reason)
    if journal.job.hooks.of(AFTER):
        told = json.dumps({"run": journal.run, "since": f"{journal.now:%Y-%m-%d %H:%M:%S} UTC"})
        journal.tools.history.remember(journal.job.name, OWED, told)
    try:
        _hold(journal)
        yield journal.job.hooks.timeout
    except BaseException:
        _release(journal)
        raise
    if failed := _release(journal):
        raise _still_held(journal, failed)


def release_left(journal: RunRecorder) -> None:
    """Call the snapshot-after that a killed run owes. Raises: OrchestratorError when it fails: it is owed on."""
    left = _owed(journal.job, journal.tools.history)
    if left is None:
        return
    journal.say(f"run {left[0]} was cut while its source was held still, since {left[1]}: {AFTER} is called first")
    if failed := _release(journal):
        raise _still_held(journal, failed)


def give_up_left(journal: RunRecorder) -> None:
    """Warn once of a source that a killed run may have left held still, where the job names no snapshot-after any more."""
    left = _owed(journal.job, journal.tools.history)
    if left is None:
        return
    journal.warn(
        f"run {left[0]} was cut while its source was held still, since {left[1]}, and this job names no hook {AFTER} now: see whether "
        "what its hook held is still held"
    )
    journal.tools.history.remember(journal.job.name, OWED, "")


def owing_run(job: Job, history: History) -> int | None:
    """Return the killed run that owes its snapshot-after; None: none does."""
    left = _owed(job, history)
    return left[0] if left else None


def _owed(job: Job, history: History) -> tuple[int, str] | None:
    """Return the run that owes it, and since when. Raises: HistoryError for a damaged record."""
    return history.fact(job.name, OWED, _parse_owed)


def _parse_owed(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    told = json.loads(text)
    return int(told["run"]), str(told["since"])


def _hold(journal: RunRecorder) -> None:
    try:
        call_hooks(BEFORE, journal)
    except NotNow:
        raise
    except OrchestratorError as error:
        rules = journal.job.snapshots
        if rules is None or rules.needs_hook:
            raise
        journal.warn(f"{error.why}; the snapshot is taken all the same (needs-hook = false)")


def _release(journal: RunRecorder) -> tuple[str, ...]:
    """Call snapshot-after, and end its debt when all of it succeeded; return what failed."""
    failed = call_hooks(AFTER, journal)
    if not failed and journal.job.hooks.of(AFTER):
        journal.tools.history.remember(journal.job.name, OWED, "")
    return failed


def _still_held(journal: RunRecorder, failed: tuple[str, ...]) -> OrchestratorError:
    lines = " && ".join(call_line(AFTER, argv, journal) for argv in journal.job.hooks.of(AFTER))
    return OrchestratorError(
        f"what {BEFORE} held still may be held still yet: {'; '.join(failed)}",
        hint=f"{lines}; the next run calls it first, too",
    )
