"""One check of the clock: its facts, its decisions, and its records. The daemon and `schedule` share it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.app.hotplug import find_arrivals, find_held_sets
from orchestrator.domain.due import Calendar, Downtime, DueRun, JobHistory
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import IntervalSchedule, parse_normal_schedule
from orchestrator.history.due_runs import DueRunHistory, DueRunWriter
from orchestrator.planners.due import LATE, DueChanges, DueFacts, SettledRun, decide_due, postpone_due_run
from orchestrator.planners.queue import QueueDecision, RunQueue, decide_queue


@dataclass(frozen=True, slots=True, kw_only=True)
class DueCheckResult:
    """The result of one clock check. `over`: runs that are no longer due, `fresh`: runs that are newly due."""

    due: Mapping[str, DueRun]
    past: Mapping[str, JobHistory]
    over: tuple[SettledRun, ...]
    fresh: tuple[DueRun, ...]
    turn: QueueDecision


class JobHistoryCache:
    """The past of all jobs, read again only after history was written."""

    def __init__(self, due_history: DueRunHistory) -> None:
        self._due_jobs = due_history
        self._version = -1
        self._key: object = None
        self._past: dict[str, JobHistory] = {}

    def past(self, jobs: Iterable[str], due_runs: dict[str, DueRun]) -> dict[str, JobHistory]:
        """Return the known runs of each job."""
        names = tuple(jobs)
        version = self._due_jobs.version()
        key = (names, tuple((name, each.after_run) for name, each in due_runs.items()))
        if (version, key) != (self._version, self._key):
            self._past = self._due_jobs.past(names, due_runs)
            self._version, self._key = version, key
        return self._past

    def forget(self) -> None:
        """Drop the cached past after a write through this same connection."""
        self._version = -1


def check_due(
    jobs: Sequence[Job],
    due_history: DueRunHistory,
    memory: JobHistoryCache,
    *,
    now: datetime,
    calendar: Calendar,
    parallel: int,
    running: Collection[str] = (),
    abandoned: Collection[str] = (),
    patient: Collection[str] = (),
    absences: tuple[Downtime, ...] = (),
    book: DueRunWriter | None = None,
    grace: timedelta = LATE,
    state: str | None = None,
) -> DueCheckResult:
    """Return the due runs and the jobs that may start now. `running`: jobs whose runs we began; a `book` records it.

    `abandoned`: jobs with a run that cannot even be killed: it keeps its own place, but no other job waits for it. `patient`: those of
    `running` that wait for a permit. `state`: the state directory; without it visits and leases of disks are not looked for.
    """
    due_runs = due_history.due()
    past = memory.past((job.name for job in jobs), due_runs)
    due = decide_due(
        jobs,
        DueFacts(
            anchors=due_history.anchors(),
            due=due_runs,
            past=past,
            absences=absences,
            arrived=find_arrivals(jobs, state=state or ""),
            grace=grace,
        ),
        now,
        calendar,
    )
    if book is not None and (due.due or due.over or due.anchors):
        book.write(due_runs=due.due, over=(over.job for over in due.over), anchors=due.anchors)
    after = _after(due_runs, due)
    by_name = {job.name: job for job in jobs}
    going = [
        name for name in dict.fromkeys((*running, *due_history.going_on(compose.is_process_alive))) if name in by_name
    ]
    queue = RunQueue(
        jobs=by_name, due=tuple(after.values()), running={name: by_name[name].target.name for name in going},
        paused=due_history.pauses(), past=past,
        held=find_held_sets((by_name[name] for name in after if name in by_name), state, now) if state else {},
        patient=frozenset(patient), parallel=parallel + sum(name in abandoned and name not in running for name in going),
    )  # fmt: skip
    fresh = tuple(
        each for each in due.due if each.job not in due_runs or due_runs[each.job].scheduled_at != each.scheduled_at
    )
    return DueCheckResult(due=after, past=past, over=due.over, fresh=fresh, turn=decide_queue(queue, now, calendar))


def _after(due_runs: Mapping[str, DueRun], due: DueChanges) -> dict[str, DueRun]:
    gone = {over.job for over in due.over}
    left = {name: each for name, each in due_runs.items() if name not in gone}
    return left | {each.job: each for each in due.due}


def retry_unrecorded(due_runs: DueRun, past: JobHistory, why: str, now: datetime) -> DueRun | None:
    """Return the due run after a try that history did not record, so that it is tried again; None: it was recorded."""
    if any(run.begun_why == due_runs.why and run.id > due_runs.tried for run in past.since):
        return None
    return postpone_due_run(due_runs, now, f"it {why}")


def next_scheduled_time(job: Job, past: JobHistory | None, calendar: Calendar, now: datetime) -> datetime | None:
    """Return the next time at which the job is due, as far as it is known."""
    if job.schedule is None:
        return None
    schedule = parse_normal_schedule(job.schedule)
    if isinstance(schedule, IntervalSchedule):
        last = past.last if past else None
        return now if last is None else max(now, calendar.next_after(schedule, min(last.begun, now)) or now)
    return calendar.next_after(schedule, now)


def next_scheduled_times(
    job: Job, past: JobHistory | None, calendar: Calendar, now: datetime, number: int
) -> tuple[datetime, ...]:
    """Return the next runs of a schedule."""
    found: list[datetime] = []
    scheduled_at = next_scheduled_time(job, past, calendar, now)
    while scheduled_at is not None and len(found) < number and job.schedule is not None:
        found.append(scheduled_at)
        scheduled_at = calendar.next_after(parse_normal_schedule(job.schedule), scheduled_at)
    return tuple(found)
