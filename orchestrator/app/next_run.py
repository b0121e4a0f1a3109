"""Next run of each job as a short text, and whether a daemon or a timer starts it."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.age import is_over
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import ON_ATTACH
from orchestrator.views.format import format_brief
from orchestrator.views.status import NextRun, NextRuns

if TYPE_CHECKING:  # only jobs that run by themselves need it, and the calendar behind it
    from orchestrator.domain.due import Calendar, DueRun, Heartbeat, JobPause
    from orchestrator.history.due_runs import DueRunHistory
    from orchestrator.history.views import HistoryReader

# A daemon records a heartbeat every 5 min; a timer instead of it calls every 15 min, and ends in order.
_SEEN, _CALLED = timedelta(minutes=11), timedelta(hours=1)
_LONGEST = 20


def find_next_runs(
    jobs: Sequence[Job], views: "HistoryReader", *, now: datetime, running: Collection[str] = ()
) -> NextRuns:
    """Return the next runs. `jobs`: all declared ones, as one may wait for another; `running`: those that run now."""
    manual = {
        job.name: NextRun(at=None, due=None, words="manual") for job in jobs if job.schedule is None and not job.after
    }
    if len(manual) == len(jobs):
        return NextRuns(jobs=manual, nobody="")
    with views.glance():
        found, nobody = _by_the_clock(jobs, views.due_runs, now, running)
    return NextRuns(jobs={**manual, **found}, nobody=nobody)


def _by_the_clock(
    jobs: Sequence[Job], due_runs: "DueRunHistory", now: datetime, running: Collection[str]
) -> tuple[dict[str, NextRun], str]:
    from orchestrator.app import local_clock as timekeeping
    from orchestrator.app.due_check import JobHistoryCache, check_due, next_scheduled_time

    calendar, pauses = timekeeping.local_calendar(), due_runs.pauses()
    seen = check_due(jobs, due_runs, JobHistoryCache(due_runs), now=now, calendar=calendar, parallel=1)
    found = {}
    for job in jobs:
        if job.schedule or job.after:
            scheduled_at = next_scheduled_time(job, seen.past.get(job.name), calendar, now)
            due_run = None if job.name in running else seen.due.get(job.name)
            found[job.name] = _next(job, scheduled_at, due_run, pauses.get(job.name), calendar, now)
    return found, _nobody(due_runs.last_beat(), now)


def _next(
    job: Job,
    scheduled_at: datetime | None,
    due_run: "DueRun | None",
    pause: "JobPause | None",
    calendar: "Calendar",
    now: datetime,
) -> NextRun:
    since = due_run.scheduled_at if due_run else None
    if pause is not None and pause.until is None:
        return NextRun(at=None, due=since, words="when resumed")
    rests = pause.until if pause is not None and pause.until is not None and now < pause.until else None
    if due_run and rests is None:
        return NextRun(at=None, due=since, words=f"due since {format_brief(since, now=now).removeprefix('today ')}")
    at = (
        rests if due_run or (rests and scheduled_at and scheduled_at < rests) else scheduled_at
    )  # runs that become due in a pause begin at its end
    if at is None:
        return NextRun(at=None, due=since, words="with the next disk" if job.schedule == ON_ATTACH else _after(job))
    if job.window and not calendar.is_open(job.window, at):
        at = calendar.opens(job.window, at)
    return NextRun(at=at, due=since, words=format_brief(at, now=now))


def _after(job: Job) -> str:
    told = f"after {' and '.join(job.after)}"
    return (
        told if len(told) <= _LONGEST else f"after {len(job.after)} others" if len(job.after) > 1 else "after another"
    )


def _nobody(beat: "Heartbeat | None", now: datetime) -> str:
    if beat is not None and not is_over(beat.seen, _CALLED if beat.orderly else _SEEN, now):
        return ""
    from orchestrator.views.schedule import daemon_line

    return daemon_line(beat, now)
