"""Schedules: their meaning as text, the next runs, the due runs and why they wait, as lines and as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.due import Calendar, DueRun, Heartbeat, JobPause
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.units import show_duration
from orchestrator.planners.due import schedule_text
from orchestrator.views.format import format_ago, format_iso, indent


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSchedule:
    """The schedule of one job. `waits`: why the due run does not begin; empty: it may begin."""

    job: Job
    next: tuple[datetime, ...]
    due: DueRun | None
    waits: str
    pause: JobPause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReport:
    """The schedules of all jobs. `beat`: the daemon's heartbeat; None: no daemon has ever run. `read`: the history could be read."""

    jobs: tuple[JobSchedule, ...]
    beat: Heartbeat | None
    now: datetime
    calendar: Calendar
    read: bool = True

    def only(self, names: Sequence[str]) -> "ScheduleReport":
        """Return the schedules of these jobs only."""
        return replace(self, jobs=tuple(each for each in self.jobs if each.job.name in names))


def describe_schedule(job: Job) -> str:
    """Render a job's schedule as text."""
    window = f", only within {job.window}" if job.window else ""
    rests = f", not again within {show_duration(job.min_interval)}" if job.min_interval else ""
    stops = f", stopped at {job.stop_at:%H:%M}" if job.stop_at else ""
    first = f", priority {job.priority}" if job.priority else ""
    where = f", onto the disk of the set {job.target.name} that is plugged in" if job.target.rotates else ""
    return f"{schedule_text(job)}{where}{window}{rests}{stops}{first}"


def schedule_lines(found: ScheduleReport) -> list[str]:
    """Render the schedules for people."""
    lines = [line for each in found.jobs for line in _lines(each, found)]
    return [
        *lines,
        daemon_line(found.beat, found.now)
        if found.read
        else "which runs are due, and what is paused, is not known: no history can be read",
    ]


def _lines(each: JobSchedule, found: ScheduleReport) -> list[str]:
    show = found.calendar.show
    told = []
    if each.next:
        told.append("next: " + ", ".join(show(scheduled_at) for scheduled_at in each.next))
    if each.pause and not each.waits:
        until = f" until {show(each.pause.until)}" if each.pause.until else ""
        told.append(f"paused{until}" + (f": {each.pause.why}" if each.pause.why else ""))
    if each.due:
        told.append(f"due: {each.due.why}")
        told.append(f"waits: {each.waits}" if each.waits else "begins as soon as the daemon looks")
    return [f"{each.job.name}: {describe_schedule(each.job)}", *indent(told)]


def daemon_line(beat: Heartbeat | None, now: datetime) -> str:
    """Render whether a daemon starts runs at these times."""
    if beat is None:
        said = "no daemon has ever run here"
    elif beat.orderly:
        said = f"the daemon was ended {format_ago(beat.seen, now=now)}"
    else:
        said = f"the daemon was last seen {format_ago(beat.seen, now=now)} (it says every 5 min that it is there)"
    return f"{said}: `poolferry daemon` keeps these times, or cron or a timer calls `poolferry run`"


def schedule_value(found: ScheduleReport) -> dict[str, Any]:
    """Render the schedules for JSON."""
    beat = found.beat
    return {
        "at": format_iso(found.now),
        **(
            {"daemon": {"seen": format_iso(beat.seen), "pid": beat.pid, "ended": beat.orderly} if beat else None}
            if found.read
            else {}
        ),
        "jobs": [_value(each, read=found.read) for each in found.jobs],
    }


def _value(each: JobSchedule, *, read: bool) -> dict[str, Any]:
    due_run, pause = each.due, each.pause
    declared = {
        "job": each.job.name,
        "schedule": each.job.schedule,
        "meaning": describe_schedule(each.job),
        "next": [format_iso(scheduled_at) for scheduled_at in each.next],
    }
    if not read:
        return declared
    return {
        **declared,
        "due": {
            "since": format_iso(due_run.scheduled_at), "newest": format_iso(due_run.newest), "slots": due_run.slots, "why": due_run.why, "tries": due_run.tries,
            "waits": each.waits or None,
        } if due_run else None,
        "paused": {"since": format_iso(pause.since), "until": format_iso(pause.until), "why": pause.why} if pause else None,
    }  # fmt: skip
