"""Schedules: their meaning in words, the next runs, the due runs and why they wait, as lines and as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.due import Beat, Calendar, Owed, Pause
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.units import show_duration
from orchestrator.planners.due import words
from orchestrator.views.format import ago, indented, iso


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The schedule of one job. `waits`: why the due run does not begin; empty: it may begin."""

    job: Job
    next: tuple[datetime, ...]
    owed: Owed | None
    waits: str
    pause: Pause | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """The schedules of all jobs. `beat`: the daemon's heartbeat; None: no daemon has ever run."""

    jobs: tuple[Promise, ...]
    beat: Beat | None
    now: datetime
    calendar: Calendar

    def only(self, names: Sequence[str]) -> "Promises":
        """Return the schedules of these jobs only."""
        return replace(self, jobs=tuple(each for each in self.jobs if each.job.name in names))


def meaning(job: Job) -> str:
    """Render in words when a job runs."""
    window = f", only within {job.window}" if job.window else ""
    rests = f", not again within {show_duration(job.min_interval)}" if job.min_interval else ""
    stops = f", stopped at {job.stop_at:%H:%M}" if job.stop_at else ""
    first = f", priority {job.priority}" if job.priority else ""
    where = f", onto the disk of the set {job.target.name} that is plugged in" if job.target.rotates else ""
    return f"{words(job)}{where}{window}{rests}{stops}{first}"


def promises_lines(found: Promises) -> list[str]:
    """Render the schedules for people."""
    lines = [line for each in found.jobs for line in _lines(each, found)]
    return [*lines, daemon_line(found.beat, found.now)]


def _lines(each: Promise, found: Promises) -> list[str]:
    show = found.calendar.show
    told = []
    if each.next:
        told.append("next: " + ", ".join(show(slot) for slot in each.next))
    if each.pause and not each.waits:
        until = f" until {show(each.pause.until)}" if each.pause.until else ""
        told.append(f"paused{until}" + (f": {each.pause.why}" if each.pause.why else ""))
    if each.owed:
        told.append(f"owed: {each.owed.why}")
        told.append(f"waits: {each.waits}" if each.waits else "begins as soon as the daemon looks")
    return [f"{each.job.name}: {meaning(each.job)}", *indented(told)]


def daemon_line(beat: Beat | None, now: datetime) -> str:
    """Render whether a daemon keeps these times."""
    if beat is None:
        return "no daemon has ever run here: `poolferry daemon` keeps these times, or cron or a timer calls `poolferry run`"
    if beat.orderly:
        return f"the daemon was ended {ago(beat.seen, now=now)}"
    return f"the daemon was last seen {ago(beat.seen, now=now)} (it says so every 5 min)"


def promises_value(found: Promises) -> dict[str, Any]:
    """Render the schedules for JSON."""
    beat = found.beat
    return {
        "at": iso(found.now),
        "daemon": {"seen": iso(beat.seen), "pid": beat.pid, "ended": beat.orderly} if beat else None,
        "jobs": [_value(each) for each in found.jobs],
    }


def _value(each: Promise) -> dict[str, Any]:
    owed, pause = each.owed, each.pause
    return {
        "job": each.job.name,
        "schedule": each.job.schedule,
        "meaning": meaning(each.job),
        "next": [iso(slot) for slot in each.next],
        "owed": {
            "since": iso(owed.slot), "newest": iso(owed.newest), "slots": owed.slots, "why": owed.why, "tries": owed.tries,
            "waits": each.waits or None,
        } if owed else None,
        "paused": {"since": iso(pause.since), "until": iso(pause.until), "why": pause.why} if pause else None,
    }  # fmt: skip
