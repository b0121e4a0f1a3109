"""Run queue: the due runs that begin now, and why others wait; one run per place, a limit in parallel, then by order.

First the higher priority, then a job whose disk may be unplugged again, then the older scheduled time. A run that cannot begin
does not delay the runs after it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.due import Calendar, DueRun, JobHistory, JobPause
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import ON_ATTACH
from orchestrator.domain.units import show_count


@dataclass(frozen=True, slots=True, kw_only=True)
class RunQueue:
    """Input of the decision. `running`: the jobs that run now, started by anyone, by job with the place's name.

    `held`: why nothing may begin at a place, by its name: somebody else uses the disk. `patient`: those of the running jobs that wait
    for a permit: they copy nothing, so jobs of other places go on meanwhile.
    Why they keep their place: once a permit is lent, a run begins at once, and two would go into the place.
    """

    jobs: Mapping[str, Job]
    due: Sequence[DueRun]
    running: Mapping[str, str]
    paused: Mapping[str, JobPause]
    past: Mapping[str, JobHistory]
    parallel: int
    held: Mapping[str, str] = field(default_factory=dict)
    patient: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun:
    """A due run that does not begin now, and the reason. `until`: when that changes by itself, if it does."""

    due: DueRun
    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDecision:
    """Due runs that begin now, in this order, and those that wait."""

    begin: tuple[DueRun, ...]
    waiting: tuple[WaitingRun, ...]


def decide_queue(queue: RunQueue, now: datetime, calendar: Calendar) -> QueueDecision:
    """Decide the next runs. Call it again when a run has ended or begun, or something else has changed."""
    begin: list[DueRun] = []
    waiting: list[WaitingRun] = []
    running = dict(queue.running)
    for due_run in sorted((each for each in queue.due if each.job in queue.jobs), key=lambda each: _rank(each, queue)):
        job = queue.jobs[due_run.job]
        held = _why_waiting(job, due_run, queue, running, now, calendar)
        if held:
            waiting.append(held)
        else:
            begin.append(due_run)
            running[job.name] = job.target.name
    return QueueDecision(begin=tuple(begin), waiting=tuple(waiting))


def _rank(due_run: DueRun, queue: RunQueue) -> tuple[int, bool, datetime, str]:
    job = queue.jobs[due_run.job]
    return (-job.priority, job.schedule != ON_ATTACH, due_run.scheduled_at, due_run.job)


def _why_waiting(
    job: Job, due_run: DueRun, queue: RunQueue, running: Mapping[str, str], now: datetime, calendar: Calendar
) -> WaitingRun | None:
    """Return why a run does not begin; reasons that only the owner can change come first."""
    pause = queue.paused.get(job.name)
    if pause is not None and (pause.until is None or now < pause.until):
        until = f" until {calendar.show(pause.until)}" if pause.until else ""
        return WaitingRun(
            due=due_run, why=f"paused{until}" + (f": {pause.why}" if pause.why else ""), until=pause.until
        )
    if job.name in running:
        return WaitingRun(due=due_run, why="its run before this one is going on")
    if held := queue.held.get(job.target.name):
        return WaitingRun(due=due_run, why=held)
    if job.window and not calendar.is_open(job.window, now):
        opens = calendar.opens(job.window, now)
        return WaitingRun(due=due_run, why=f"its window opens at {calendar.show(opens)}", until=opens)
    if job.schedule is not None and (before := _unfinished(job, queue, running)):
        return WaitingRun(due=due_run, why=before)
    if due_run.not_before is not None and now < due_run.not_before:
        tried = (
            f"tried {show_count(due_run.tries, 'time')}: {due_run.told}; again at {calendar.show(due_run.not_before)}"
        )
        return WaitingRun(due=due_run, why=tried, until=due_run.not_before)
    if job.target.name in running.values():
        other = next(name for name, place in running.items() if place == job.target.name)
        return WaitingRun(due=due_run, why=f"{other} runs into the same place, {job.target.name}")
    busy = sum(name not in queue.patient for name in running)
    if busy >= queue.parallel:
        return WaitingRun(due=due_run, why=f"{show_count(busy, 'run is', 'runs are')} going on, as many as may at once")
    return None


def _unfinished(job: Job, queue: RunQueue, running: Mapping[str, str]) -> str:
    """Return why a job must wait for the jobs before it; empty when all of them ended well."""
    for name in job.after:
        ended = queue.past[name].last_ended if name in queue.past else None
        if name in running:
            return f"waits for {name}, which is running"
        if any(due_run.job == name for due_run in queue.due):
            return f"waits for {name}, which is due"
        if ended is None:
            return f"waits for {name}, of which history knows no run"
        if not ended.well:
            return f"waits for {name}, whose last run {ended.outcome}: {ended.why}"
    return ""
