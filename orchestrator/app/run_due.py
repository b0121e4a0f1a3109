"""The clock without a daemon: `run --due` is called every few minutes, and runs what is due, one job after the other."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.app import local_clock as timekeeping
from orchestrator.app.due_check import JobHistoryCache, check_due
from orchestrator.app.pidfile import DaemonPresence, hold_daemon_lock
from orchestrator.domain.due import DowntimeCause, DueRun
from orchestrator.domain.job import Job
from orchestrator.history.store import History

GRACE = timedelta(minutes=16)  # a timer that calls every 15 minutes is not late


@contextlib.contextmanager
def take_due_runs(
    where: compose.Directories, jobs: Sequence[Job], names: Sequence[str], history: History, *, parallel: int
) -> Iterator[Iterable[tuple[Job, str]]]:
    """Yield the due runs one by one, each with its reason; check again after each, and when asked again for more.

    `names`: start only these; none: all.

    Raises: NotNow while a daemon lives, or another such call goes on.
    """
    with hold_daemon_lock(where.state):
        book, who, now = history.due_runs, compose.process_identity(), compose.now()
        before = book.last_beat()
        history.heal(compose.is_process_alive, now)
        presence = DaemonPresence(book, boot=who.boot, pid=who.pid, now=now)
        # A pause between two calls is no absence.
        absences = tuple(
            each for each in presence.absences if each.away is DowntimeCause.OFF or each.ended - each.begun > GRACE
        )
        memory, calendar = JobHistoryCache(book), timekeeping.local_calendar()
        booted = before is not None and before.boot != who.boot

        def look() -> Sequence[DueRun]:
            memory.forget()
            return check_due(
                jobs, book, memory, now=compose.now(), calendar=calendar, parallel=parallel, absences=absences, book=book,
                grace=GRACE, state=where.state,
            ).turn.begin  # fmt: skip

        if booted:
            look()
            book.try_at_once()
        yield _DueRuns(jobs, names, look)
        presence.end(compose.now())


class _DueRuns:
    """The due runs, looked for one by one. `look` returns those that may begin now."""

    def __init__(self, jobs: Sequence[Job], names: Sequence[str], look: Callable[[], Sequence[DueRun]]) -> None:
        self._jobs, self._names, self._look = {job.name: job for job in jobs}, names, look
        self._tried: set[tuple[str, datetime]] = set()

    def __iter__(self) -> Iterator[tuple[Job, str]]:
        """Yield what is due and was not yielded before, each once the run before it has ended."""
        while turn := [
            each
            for each in self._look()
            if (each.job, each.scheduled_at) not in self._tried and (not self._names or each.job in self._names)
        ]:
            self._tried.add((turn[0].job, turn[0].scheduled_at))
            yield self._jobs[turn[0].job], turn[0].why
