"""What schedules promise: the next runs, what is owed and why it waits; and jobs that are told to rest."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app import local_clock as timekeeping
from orchestrator.app.due_check import Memory, look, next_slots
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import Cron, Daily, parse_normal
from orchestrator.history.due_runs import Owing
from orchestrator.views.schedule import Promise, Promises

if TYPE_CHECKING:
    from orchestrator.app.settings import Frame
    from orchestrator.domain.units import Seconds

NEXT = 3


def promises(jobs: Sequence[Job], owing: Owing, *, parallel: int, now: datetime) -> Promises:
    """Return the schedules of all jobs at `now`."""
    calendar, memory = timekeeping.calendar(), Memory(owing)
    seen = look(jobs, owing, memory, now=now, calendar=calendar, parallel=parallel)
    waits = {each.owed.job: each.why for each in seen.turn.waiting}
    pauses = owing.pauses()
    found = (
        Promise(
            job=job, next=next_slots(job, seen.past.get(job.name), calendar, now, NEXT), owed=seen.owed.get(job.name),
            waits=waits.get(job.name, ""), pause=pauses.get(job.name),
        )
        for job in jobs
    )  # fmt: skip
    return Promises(jobs=tuple(found), beat=owing.last_beat(), now=now, calendar=calendar)


def next_runs(job: Job, now: datetime) -> tuple[datetime, ...]:
    """Return the next runs at fixed times; nothing where nothing tells them, or cronsim is missing."""
    if job.schedule is None or not isinstance(parse_normal(job.schedule), Cron | Daily):
        return ()
    try:
        return next_slots(job, None, timekeeping.calendar(), now, NEXT)
    except ModuleNotFoundError:
        return ()


def survey_schedule(frame: "Frame", names: Sequence[str], now: datetime) -> Promises:
    """Return what is promised of the jobs of these names; without a name all. Raises: DeclarationError, HistoryError."""
    known, jobs = frame.configuration(), frame.jobs(names)
    with frame.views() as views:
        found = promises(known.jobs, views.owing, parallel=compose.machine(frame.where).clock.parallel, now=now)
    return found.only(tuple(one.name for one in jobs))


def pause_jobs(
    frame: "Frame", names: Sequence[str], span: "Seconds | None", why: str
) -> tuple[tuple[str, ...], datetime | None]:
    """Let jobs rest; return their names and until when. `span` None: until they are resumed. Raises: OverflowError."""
    now = compose.now()
    until = now + timedelta(seconds=span) if span is not None else None
    jobs = tuple(one.name for one in frame.jobs(names))
    with compose.open_history(frame.where) as history:
        for name in jobs:
            history.owing.pause(name, now=now, until=until, why=why)
    return jobs, until


def resume_jobs(frame: "Frame", names: Sequence[str]) -> dict[str, bool]:
    """Let jobs run again; return whether each did rest."""
    jobs = tuple(one.name for one in frame.jobs(names))
    with compose.open_history(frame.where) as history:
        return {name: history.owing.resume(name) for name in jobs}
