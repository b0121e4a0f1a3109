"""When each job runs next, in few words, and whether anybody keeps these times."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.job import Job
from orchestrator.domain.schedule import ATTACH
from orchestrator.views.format import brief
from orchestrator.views.status import Next, Upcoming

if TYPE_CHECKING:  # only jobs that run by themselves need it, and the calendar behind it
    from orchestrator.domain.due import Beat, Calendar, Owed, Pause
    from orchestrator.history.due_runs import Owing
    from orchestrator.history.views import Views

# A daemon says every 5 min that it lives; a timer in its stead calls each quarter of an hour, and ends in order.
_SEEN, _CALLED = timedelta(minutes=11), timedelta(hours=1)
_LONGEST = 20


def upcoming(jobs: Sequence[Job], views: "Views", *, now: datetime, running: Collection[str] = ()) -> Upcoming:
    """Return the next runs. `jobs`: all declared ones, as one may wait for another; `running`: those that run now."""
    manual = {
        job.name: Next(at=None, owed=None, words="manual") for job in jobs if job.schedule is None and not job.after
    }
    if len(manual) == len(jobs):
        return Upcoming(jobs=manual, nobody="")
    with views.glance():
        found, nobody = _by_the_clock(jobs, views.owing, now, running)
    return Upcoming(jobs={**manual, **found}, nobody=nobody)


def _by_the_clock(
    jobs: Sequence[Job], owing: "Owing", now: datetime, running: Collection[str]
) -> tuple[dict[str, Next], str]:
    from orchestrator.app import local_clock as timekeeping
    from orchestrator.app.due_check import Memory, look, next_slot

    calendar, pauses = timekeeping.calendar(), owing.pauses()
    seen = look(jobs, owing, Memory(owing), now=now, calendar=calendar, parallel=1)
    found = {}
    for job in jobs:
        if job.schedule or job.after:
            slot = next_slot(job, seen.past.get(job.name), calendar, now)
            owed = None if job.name in running else seen.owed.get(job.name)
            found[job.name] = _next(job, slot, owed, pauses.get(job.name), calendar, now)
    return found, _nobody(owing.last_beat(), now)


def _next(
    job: Job, slot: datetime | None, owed: "Owed | None", pause: "Pause | None", calendar: "Calendar", now: datetime
) -> Next:
    since = owed.slot if owed else None
    if pause is not None and pause.until is None:
        return Next(at=None, owed=since, words="when resumed")
    rests = pause.until if pause is not None and pause.until is not None and now < pause.until else None
    if owed and rests is None:
        return Next(at=None, owed=since, words=f"owed since {brief(since, now=now).removeprefix('today ')}")
    at = rests if owed or (rests and slot and slot < rests) else slot  # what comes due in a pause runs at its end
    if at is None:
        return Next(at=None, owed=since, words="with the next disk" if job.schedule == ATTACH else _after(job))
    if job.window and not calendar.is_open(job.window, at):
        at = calendar.opens(job.window, at)
    return Next(at=at, owed=since, words=brief(at, now=now))


def _after(job: Job) -> str:
    told = f"after {' and '.join(job.after)}"
    return (
        told if len(told) <= _LONGEST else f"after {len(job.after)} others" if len(job.after) > 1 else "after another"
    )


def _nobody(beat: "Beat | None", now: datetime) -> str:
    if beat is not None and now - beat.seen < (_CALLED if beat.orderly else _SEEN):
        return ""
    from orchestrator.views.schedule import daemon_line

    return daemon_line(beat, now)
