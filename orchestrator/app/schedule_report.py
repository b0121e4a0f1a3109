"""Schedules: the next runs, due runs with the reason why they wait, and paused jobs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app import local_clock as timekeeping
from orchestrator.app.due_check import JobHistoryCache, check_due, next_scheduled_times
from orchestrator.app.ended_jobs import names_with_file
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import CronSchedule, DailySchedule, parse_normal_schedule
from orchestrator.history.due_runs import DueRunHistory
from orchestrator.views.schedule import JobSchedule, ScheduleReport

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.units import Seconds

NEXT_RUNS = 3


def report_schedules(jobs: Sequence[Job], due_runs: DueRunHistory, *, parallel: int, now: datetime) -> ScheduleReport:
    """Return the schedules of all jobs at `now`."""
    calendar, memory = timekeeping.local_calendar(), JobHistoryCache(due_runs)
    seen = check_due(jobs, due_runs, memory, now=now, calendar=calendar, parallel=parallel)
    waits = {each.due.job: each.why for each in seen.turn.waiting}
    pauses = due_runs.pauses()
    found = (
        JobSchedule(
            job=job, next=next_scheduled_times(job, seen.past.get(job.name), calendar, now, NEXT_RUNS), due=seen.due.get(job.name),
            waits=waits.get(job.name, ""), pause=pauses.get(job.name),
        )
        for job in jobs
    )  # fmt: skip
    return ScheduleReport(jobs=tuple(found), beat=due_runs.last_beat(), now=now, calendar=calendar)


def next_runs(job: Job, now: datetime) -> tuple[datetime, ...]:
    """Return the next runs at fixed times; none for other schedules, or when cronsim is missing."""
    if job.schedule is None or not isinstance(parse_normal_schedule(job.schedule), CronSchedule | DailySchedule):
        return ()
    try:
        return next_scheduled_times(job, None, timekeeping.local_calendar(), now, NEXT_RUNS)
    except ModuleNotFoundError:
        return ()


def survey_schedule(settings: "Settings", names: Sequence[str], now: datetime) -> ScheduleReport:
    """Return the schedules of the jobs of these names; without a name of all. Raises: DeclarationError, HistoryError."""
    known, jobs = settings.configuration(), settings.jobs(names)
    with settings.views() as views:
        found = report_schedules(
            known.jobs, views.due_runs, parallel=compose.read_machine_config(settings.where).clock.parallel, now=now
        )
    return found.only(tuple(one.name for one in jobs))


def read_schedules(settings: "Settings", names: Sequence[str], now: datetime) -> ScheduleReport:
    """Return the schedules as the job files have them, where no history can be read: which runs are due is not known. Raises: DeclarationError."""
    found = tuple(
        JobSchedule(job=job, next=next_runs(job, now), due=None, waits="", pause=None) for job in settings.jobs(names)
    )
    return ScheduleReport(jobs=found, beat=None, now=now, calendar=timekeeping.local_calendar(), read=False)


def pause_jobs(
    settings: "Settings", names: Sequence[str], span: "Seconds | None", why: str
) -> tuple[tuple[str, ...], datetime | None]:
    """Pause jobs; return their names and until when. `span` None: until they are resumed. Raises: OverflowError, WrongRequest."""
    now = compose.now()
    until = now + timedelta(seconds=span) if span is not None else None
    jobs = names_with_file(settings, names)
    with compose.open_history(settings.where) as history:
        for name in jobs:
            history.due_runs.pause(name, now=now, until=until, why=why)
    return jobs, until


def resume_jobs(settings: "Settings", names: Sequence[str]) -> dict[str, bool]:
    """Resume jobs; return whether each was paused. Raises: WrongRequest."""
    jobs = names_with_file(settings, names)
    with compose.open_history(settings.where) as history:
        return {name: history.due_runs.resume(name) for name in jobs}
