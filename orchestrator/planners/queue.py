"""Run queue: the due runs that begin now, and why others wait; one run per place, a limit in parallel, then by order.

First the higher priority, then what came with a disk that may leave again, then the older slot. A run that cannot begin
holds up none behind it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.due import Calendar, JobPast, Owed, Pause
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import ATTACH
from orchestrator.domain.units import show_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Input of the decision. `running`: the jobs that run now, started by anyone, by job with the place's name."""

    jobs: Mapping[str, Job]
    owed: Sequence[Owed]
    running: Mapping[str, str]
    paused: Mapping[str, Pause]
    past: Mapping[str, JobPast]
    parallel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A due run that does not begin now, and the reason. `until`: when that changes by itself, if it does."""

    owed: Owed
    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Due runs that begin now, in this order, and those that wait."""

    begin: tuple[Owed, ...]
    waiting: tuple[Waiting, ...]


def decide_turn(queue: Queue, now: datetime, calendar: Calendar) -> Turn:
    """Decide the next runs. Call it again when a run has ended or begun, or something else has changed."""
    begin: list[Owed] = []
    waiting: list[Waiting] = []
    running = dict(queue.running)
    for owed in sorted((each for each in queue.owed if each.job in queue.jobs), key=lambda each: _rank(each, queue)):
        job = queue.jobs[owed.job]
        held = _held_back(job, owed, queue, running, now, calendar)
        if held:
            waiting.append(held)
        else:
            begin.append(owed)
            running[job.name] = job.target.name
    return Turn(begin=tuple(begin), waiting=tuple(waiting))


def _rank(owed: Owed, queue: Queue) -> tuple[int, bool, datetime, str]:
    job = queue.jobs[owed.job]
    return (-job.priority, job.schedule != ATTACH, owed.slot, owed.job)


def _held_back(
    job: Job, owed: Owed, queue: Queue, running: Mapping[str, str], now: datetime, calendar: Calendar
) -> Waiting | None:
    """Return why a run does not begin; reasons that only the owner can change come first."""
    pause = queue.paused.get(job.name)
    if pause is not None and (pause.until is None or now < pause.until):
        until = f" until {calendar.show(pause.until)}" if pause.until else ""
        return Waiting(owed=owed, why=f"paused{until}" + (f": {pause.why}" if pause.why else ""), until=pause.until)
    if job.name in running:
        return Waiting(owed=owed, why="its run before this one is going on")
    if job.window and not calendar.is_open(job.window, now):
        opens = calendar.opens(job.window, now)
        return Waiting(owed=owed, why=f"its window opens at {calendar.show(opens)}", until=opens)
    if job.schedule is not None and (before := _unfinished(job, queue, running)):
        return Waiting(owed=owed, why=before)
    if owed.not_before is not None and now < owed.not_before:
        tried = f"tried {show_count(owed.tries, 'time')}: {owed.told}; again at {calendar.show(owed.not_before)}"
        return Waiting(owed=owed, why=tried, until=owed.not_before)
    if job.target.name in running.values():
        other = next(name for name, place in running.items() if place == job.target.name)
        return Waiting(owed=owed, why=f"{other} runs into the same place, {job.target.name}")
    if len(running) >= queue.parallel:
        return Waiting(
            owed=owed, why=f"{show_count(len(running), 'run is', 'runs are')} going on, as many as may at once"
        )
    return None


def _unfinished(job: Job, queue: Queue, running: Mapping[str, str]) -> str:
    """Return why a job must wait for the jobs before it; empty when all of them ended well."""
    for name in job.after:
        ended = queue.past[name].last_ended if name in queue.past else None
        if name in running:
            return f"waits for {name}, which is running"
        if any(owed.job == name for owed in queue.owed):
            return f"waits for {name}, which owes a run"
        if ended is None:
            return f"waits for {name}, which has never run"
        if not ended.well:
            return f"waits for {name}, whose last run {ended.outcome}: {ended.why}"
    return ""
