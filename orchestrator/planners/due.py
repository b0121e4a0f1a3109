"""Due runs of jobs: one run for all missed scheduled times, and which due runs are served or dropped.

A job has at most one due run; later scheduled times join it, unless a run for the first is already going on. An anchor per job
holds the time up to which all are handled, so nothing must be recorded while nothing happens.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import assert_never

from orchestrator.domain.age import is_over
from orchestrator.domain.due import BY_STOP_AT, Calendar, Downtime, DueRun, JobHistory, ScheduleAnchor
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.run import Outcome
from orchestrator.domain.schedule import (
    AttachSchedule,
    CronSchedule,
    DailySchedule,
    IntervalSchedule,
    parse_normal_schedule,
)

# Source: cron(8) of Debian: a clock that is set back by less than 3 hours does not repeat jobs at a fixed time; a larger change
# is treated as a correction, and the new time is valid at once.
SET_BACK = timedelta(hours=3)
LATE = timedelta(minutes=2)
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(minutes=1), timedelta(minutes=30)
CHAINED = "after others"


@dataclass(frozen=True, slots=True, kw_only=True)
class DueFacts:
    """Remembered facts by job name. `arrived`: when the job's target was plugged in, if it is present.

    `grace`: how long after its scheduled time a run is not called late yet.
    """

    anchors: Mapping[str, ScheduleAnchor]
    due: Mapping[str, DueRun]
    past: Mapping[str, JobHistory]
    absences: tuple[Downtime, ...] = ()
    arrived: Mapping[str, datetime] | None = None
    grace: timedelta = LATE


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledRun:
    """A job whose run is no longer due."""

    job: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DueChanges:
    """Changes to record; an empty value means no change."""

    due: tuple[DueRun, ...]
    over: tuple[SettledRun, ...]
    anchors: tuple[ScheduleAnchor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PassedTimes:
    """Scheduled times since the anchor, and the new anchor; `anchor` None: it stays."""

    first: datetime | None = None
    newest: datetime | None = None
    count: int = 0
    anchor: ScheduleAnchor | None = None


_NONE, _NO_PAST = _PassedTimes(), JobHistory()


def decide_due(jobs: Sequence[Job], facts: DueFacts, now: datetime, calendar: Calendar) -> DueChanges:
    """Decide which runs are due at `now`."""
    due_run: list[DueRun] = []
    over: list[SettledRun] = []
    anchors: list[ScheduleAnchor] = []
    for job in jobs:
        before, past = facts.due.get(job.name), facts.past.get(job.name, _NO_PAST)
        after = _concluded(before, past, now) if before else None
        came = _came(job, facts, past, now, calendar)
        if isinstance(after, SettledRun):
            over.append(after)
            after = None
        served = job.schedule is not None and came.newest is not None and _served(past, came.newest, now)
        if came.first and not served:
            after = _joined(job, after, came, past, facts, now, calendar)
        if after and after != before:
            due_run.append(after)
            over = [each for each in over if each.job != job.name]
        anchors += [came.anchor] if came.anchor else []
    known = {job.name for job in jobs if job.schedule or job.after}
    over += [SettledRun(job=name, why="it has no schedule any more") for name in facts.due if name not in known]
    return DueChanges(due=tuple(due_run), over=tuple(over), anchors=tuple(anchors))


def schedule_text(job: Job) -> str:
    """Describe a job's schedule in words."""
    chained = f"after {' and '.join(job.after)}" if job.after else ""
    if job.schedule is None:
        return chained or "only by hand"
    return f"{parse_normal_schedule(job.schedule)}" + (f", {chained}" if chained else "")


# Scheduled times that have passed.


def _came(job: Job, facts: DueFacts, past: JobHistory, now: datetime, calendar: Calendar) -> _PassedTimes:
    form = job.schedule or (CHAINED if job.after else None)
    if form is None:
        return _NONE
    anchor = facts.anchors.get(job.name)
    if anchor is None:
        return _first_seen(form, _here(job, form, past, now), past, now)
    if anchor.schedule == form:
        return _by_schedule(job, facts, anchor, past, now, calendar)
    clocked = anchor.schedule.startswith(("cron ", "daily "))  # scheduled times of the old schedule until now are due
    came = _by_schedule(job, facts, anchor, past, now, calendar) if clocked else _NONE
    return replace(came, anchor=_here(job, form, past, now))


def _here(job: Job, form: str, past: JobHistory, now: datetime) -> ScheduleAnchor:
    return ScheduleAnchor(job=job.name, at=now, schedule=form, run=past.last.id if past.last else 0)


def _by_schedule(
    job: Job, facts: DueFacts, anchor: ScheduleAnchor, past: JobHistory, now: datetime, calendar: Calendar
) -> _PassedTimes:
    if anchor.schedule == CHAINED:
        return _chained(job, facts, anchor, past)
    schedule = parse_normal_schedule(anchor.schedule)
    match schedule:
        case CronSchedule() | DailySchedule():
            return _by_clock(schedule, anchor, now, calendar)
        case IntervalSchedule():
            return _by_period(schedule, anchor, past, now)
        case AttachSchedule():
            return _by_arrival(job, facts, past, now)
    assert_never(schedule)


def _first_seen(form: str, here: ScheduleAnchor, past: JobHistory, now: datetime) -> _PassedTimes:
    """Return the first scheduled times of a new job: an `every` job is due at once, others wait for their time."""
    if form.startswith("every ") and past.last is None:
        return _PassedTimes(first=now, newest=now, count=1, anchor=here)
    return _PassedTimes(anchor=here)


def _by_clock(
    schedule: CronSchedule | DailySchedule, anchor: ScheduleAnchor, now: datetime, calendar: Calendar
) -> _PassedTimes:
    if anchor.at > now:
        fixed = isinstance(schedule, DailySchedule) or not schedule.follows_the_clock
        return _NONE if fixed and anchor.at - now < SET_BACK else _PassedTimes(anchor=replace(anchor, at=now))
    first = calendar.next_after(schedule, anchor.at)
    if first is None or first > now:
        return _NONE
    newest = calendar.last_until(schedule, anchor.at, now) or first
    count = calendar.count(schedule, anchor.at, now)
    return _PassedTimes(first=first, newest=newest, count=count, anchor=replace(anchor, at=newest))


def _by_period(schedule: IntervalSchedule, anchor: ScheduleAnchor, past: JobHistory, now: datetime) -> _PassedTimes:
    """Return the times of an `every` job. Why the anchor: a run dated after now had a wrong clock, perhaps by years."""
    last, moved = past.last, None
    if last is not None and last.begun <= now:
        base = last.begun
    elif anchor.at <= now and anchor.run == (last.id if last else 0):
        base = anchor.at
    else:
        base, moved = now, replace(anchor, at=now, run=last.id if last else 0)
    scheduled_at = base + timedelta(seconds=schedule.period) if last else base
    return (
        _PassedTimes(first=scheduled_at, newest=scheduled_at, count=1, anchor=moved)
        if scheduled_at <= now
        else _PassedTimes(anchor=moved)
        if moved
        else _NONE
    )


def _by_arrival(job: Job, facts: DueFacts, past: JobHistory, now: datetime) -> _PassedTimes:
    came, last = (facts.arrived or {}).get(job.name), past.last
    if came is None or (last is not None and came <= last.begun <= now):
        return _NONE
    rested = last is None or is_over(last.begun, timedelta(seconds=job.min_interval or 0), now)
    return _PassedTimes(first=came, newest=came, count=1) if rested else _PassedTimes()


def _chained(job: Job, facts: DueFacts, anchor: ScheduleAnchor, past: JobHistory) -> _PassedTimes:
    """Return one scheduled time when all named jobs have ended well since this job's last run began."""
    last = past.last
    number, begun = (max(last.id, anchor.run), last.begun) if last else (anchor.run, anchor.at)
    ends: list[datetime] = []
    for name in job.after:
        well = facts.past.get(name, _NO_PAST).last_well
        # The number counts too: it gives the order when the clock was set between the two runs.
        if well is None or well.ended is None or (well.id <= number and well.ended <= begun):
            return _NONE
        ends.append(well.ended)
    return _PassedTimes(first=max(ends), newest=max(ends), count=1)


# The due run that follows from them.


def _served(past: JobHistory, newest: datetime, now: datetime) -> bool:
    """Return True when a run since the scheduled time ended well. A run dated after now had a wrong clock."""
    well = past.last_well
    return well is not None and newest <= well.begun <= now


def _joined(
    job: Job, before: DueRun | None, came: _PassedTimes, past: JobHistory, facts: DueFacts, now: datetime, calendar: Calendar
) -> DueRun | None:  # fmt: skip
    """Add the new scheduled times to the due run; return it unchanged when none of them is new."""
    first, newest = came.first or now, came.newest or now
    if before is not None and came.anchor is None and newest <= before.newest:
        return before
    going_on = any(run.outcome is None for run in past.since)
    first, count = (
        (before.scheduled_at, before.slots + came.count) if before is not None and not going_on else (first, came.count)
    )
    fresh = DueRun(
        job=job.name, scheduled_at=first, newest=newest, slots=count, noted=now, after_run=_last_before(past, newest, now),
        why=_why(job, first, newest, count, facts, now, calendar),
    )  # fmt: skip
    if before is None or going_on:
        return fresh
    return replace(
        fresh, noted=before.noted, tries=before.tries, tried=max(before.tried, fresh.after_run), not_before=before.not_before,
        told=before.told, why=before.why if before.why.startswith("late: ") else fresh.why,
    )  # fmt: skip


def _last_before(past: JobHistory, scheduled_at: datetime, now: datetime) -> int:
    """Return the newest run that cannot serve a scheduled time. A manual run still going on since then may serve it."""
    last = past.last
    if last is None:
        return 0
    return last.id - 1 if last.outcome is None and scheduled_at <= last.begun <= now else last.id


def _why(
    job: Job, scheduled_at: datetime, newest: datetime, count: int, facts: DueFacts, now: datetime, calendar: Calendar
) -> str:  # fmt: skip
    more = f" and {count - 1} more until {calendar.show(newest)}" if count > 1 else ""
    told = f"{schedule_text(job)}; due {calendar.show(scheduled_at)}{more}"
    if job.schedule is None or now - scheduled_at < facts.grace:
        return told
    gone = next((each for each in facts.absences if each.begun <= scheduled_at <= each.ended), None)
    if gone is None:
        return f"late: noticed at {calendar.show(now)}; {told}"
    return f"late: {gone.away} from {calendar.show(gone.begun)} to {calendar.show(gone.ended)}; {told}"


def _concluded(due_run: DueRun, past: JobHistory, now: datetime) -> DueRun | SettledRun:
    """Return the due run after later runs, or that it is settled; any run that ended well serves it."""
    for run in past.since:
        if run.well:
            return SettledRun(job=due_run.job, why=f"run {run.id} served it")
        if run.outcome is not None and run.id > due_run.tried and run.begun_why == due_run.why:
            if run.outcome in (Outcome.FAILED, Outcome.REFUSED) or BY_STOP_AT in run.why:
                return SettledRun(job=due_run.job, why=f"run {run.id} {run.outcome}: {run.why}")
            due_run = postpone_due_run(due_run, run.ended or now, run.why, run=run.id)
    if due_run.not_before is not None and due_run.not_before - now > _LONGEST_PAUSE:  # the clock was set back meanwhile
        return replace(due_run, not_before=now)
    return due_run


def postpone_due_run(due_run: DueRun, ended: datetime, told: str, *, run: int | None = None) -> DueRun:
    """Return the due run after a failed try; the pause before the next try grows from a minute to half an hour."""
    pause = min(_FIRST_PAUSE * 2 ** min(due_run.tries, 10), _LONGEST_PAUSE)
    return replace(due_run, tries=due_run.tries + 1, tried=run or due_run.tried, not_before=ended + pause, told=told)
