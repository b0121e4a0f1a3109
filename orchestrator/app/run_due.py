"""The clock without a daemon: `run --due` is called every few minutes, and runs what is due, one job after the other."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.app import local_clock as timekeeping
from orchestrator.app.due_check import JobHistoryCache, check_due
from orchestrator.app.pidfile import DaemonPresence, hold_daemon_lock
from orchestrator.domain.due import DowntimeCause
from orchestrator.domain.job import Job
from orchestrator.history.store import History

GRACE = timedelta(minutes=16)  # a timer that calls every 15 minutes is not late


@contextlib.contextmanager
def take_due_runs(
    where: compose.Directories, jobs: Sequence[Job], names: Sequence[str], history: History, *, parallel: int
) -> Iterator[Iterator[tuple[Job, str]]]:
    """Yield the due runs one by one, each with its reason; check again after each. `names`: start only these; none: all.

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

        def one_by_one() -> Iterator[tuple[Job, str]]:
            tried: set[tuple[str, datetime]] = set()
            at_once = booted
            while True:
                memory.forget()
                seen = check_due(
                    jobs, book, memory, now=compose.now(), calendar=calendar, parallel=parallel, absences=absences, book=book,
                    grace=GRACE, state=where.state,
                )  # fmt: skip
                if at_once:
                    at_once = False
                    book.try_at_once()
                    continue
                turn = [
                    each
                    for each in seen.turn.begin
                    if (each.job, each.scheduled_at) not in tried and (not names or each.job in names)
                ]
                if not turn:
                    return
                tried.add((turn[0].job, turn[0].scheduled_at))
                yield next(job for job in jobs if job.name == turn[0].job), turn[0].why

        yield one_by_one()
        presence.end(compose.now())
