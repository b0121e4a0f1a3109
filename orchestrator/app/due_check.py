"""One check of the clock: its facts, its decisions, and its records. The daemon and `schedule` share it.

Reads, and writes through the book it is given.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.app.hotplug import arrived
from orchestrator.domain.due import Absence, Calendar, JobPast, Owed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.schedule import Every, parse_normal
from orchestrator.history.due_runs import Owing, OwingBook
from orchestrator.planners.due import LATE, Due, Facts, Over, decide_due, tried_again
from orchestrator.planners.queue import Queue, Turn, decide_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The result of one clock check. `over`: runs that are no longer due, `fresh`: runs that are newly due."""

    owed: Mapping[str, Owed]
    past: Mapping[str, JobPast]
    over: tuple[Over, ...]
    fresh: tuple[Owed, ...]
    turn: Turn


class Memory:
    """The past of all jobs, read again only after history was written."""

    def __init__(self, owing: Owing) -> None:
        self._owing = owing
        self._version = -1
        self._key: object = None
        self._past: dict[str, JobPast] = {}

    def past(self, jobs: Iterable[str], owed: dict[str, Owed]) -> dict[str, JobPast]:
        """Return the known runs of each job."""
        names = tuple(jobs)
        version = self._owing.version()
        key = (names, tuple((name, each.after_run) for name, each in owed.items()))
        if (version, key) != (self._version, self._key):
            self._past = self._owing.past(names, owed)
            self._version, self._key = version, key
        return self._past

    def forget(self) -> None:
        """Drop the cached past after a write through this same connection."""
        self._version = -1


def look(
    jobs: Sequence[Job],
    owing: Owing,
    memory: Memory,
    *,
    now: datetime,
    calendar: Calendar,
    parallel: int,
    running: Collection[str] = (),
    abandoned: Collection[str] = (),
    absences: tuple[Absence, ...] = (),
    book: OwingBook | None = None,
    grace: timedelta = LATE,
) -> Seen:
    """Return what is due now and which jobs may start. `running`: jobs whose runs we began; a `book` records it.

    `abandoned`: jobs of which a run cannot even be killed: it keeps its own place, but nobody else waits for it.
    """
    owed = owing.owed()
    past = memory.past((job.name for job in jobs), owed)
    due = decide_due(
        jobs,
        Facts(anchors=owing.anchors(), owed=owed, past=past, absences=absences, arrived=arrived(jobs), grace=grace),
        now,
        calendar,
    )
    if book is not None and (due.owed or due.over or due.anchors):
        book.write(owed=due.owed, over=(over.job for over in due.over), anchors=due.anchors)
    after = _after(owed, due)
    by_name = {job.name: job for job in jobs}
    going = [name for name in dict.fromkeys((*running, *owing.going_on(compose.alive))) if name in by_name]
    queue = Queue(
        jobs=by_name, owed=tuple(after.values()), running={name: by_name[name].target.name for name in going},
        paused=owing.pauses(), past=past,
        parallel=parallel + sum(name in abandoned and name not in running for name in going),
    )  # fmt: skip
    fresh = tuple(each for each in due.owed if each.job not in owed or owed[each.job].slot != each.slot)
    return Seen(owed=after, past=past, over=due.over, fresh=fresh, turn=decide_turn(queue, now, calendar))


def _after(owed: Mapping[str, Owed], due: Due) -> dict[str, Owed]:
    gone = {over.job for over in due.over}
    left = {name: each for name, each in owed.items() if name not in gone}
    return left | {each.job: each for each in due.owed}


def unrecorded(owed: Owed, past: JobPast, why: str, now: datetime) -> Owed | None:
    """Return the due run after a try that history did not record, to try it again; None: it was recorded."""
    if any(run.begun_why == owed.why and run.id > owed.tried for run in past.since):
        return None
    return tried_again(owed, now, f"it {why}")


def next_slot(job: Job, past: JobPast | None, calendar: Calendar, now: datetime) -> datetime | None:
    """Return the next time at which the job is due, as far as it is known."""
    if job.schedule is None:
        return None
    schedule = parse_normal(job.schedule)
    if isinstance(schedule, Every):
        last = past.last if past else None
        return now if last is None else max(now, calendar.next_after(schedule, min(last.begun, now)) or now)
    return calendar.next_after(schedule, now)


def next_slots(job: Job, past: JobPast | None, calendar: Calendar, now: datetime, number: int) -> tuple[datetime, ...]:
    """Return the next runs of a schedule."""
    found: list[datetime] = []
    slot = next_slot(job, past, calendar, now)
    while slot is not None and len(found) < number and job.schedule is not None:
        found.append(slot)
        slot = calendar.next_after(parse_normal(job.schedule), slot)
    return tuple(found)
