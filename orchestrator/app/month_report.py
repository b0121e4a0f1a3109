"""The report of one month: what was promised, kept, verified and restored as a test, and who looked at it."""

from datetime import UTC, date, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from orchestrator.app.ended_jobs import stray_copies
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.act import ActRecord
    from orchestrator.domain.job import Job
    from orchestrator.history.monthly import MonthRecords
    from orchestrator.views.status import StrayCopies

_MOST_ACTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class JobMonth:
    """One job in a month. `gap`: the longest time without a run that ended well; None: none did; `kept` None: nothing was promised.

    `begun` False: history knows no run up to the end of the month, so nothing is judged.

    `drills`, `failed_drills`: restore tests; `read_bytes`: read again; `unsound`: readings that found damage.
    """

    job: "Job"
    begun: bool
    well: int
    badly: int
    gap: Seconds | None
    kept: bool | None
    points: int
    moved_bytes: int
    readings: int
    read_bytes: int
    unsound: int
    drills: int
    failed_drills: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthReport:
    """A month, to its end or to now. `acts`: what was asked for on the status page, the newest of many.

    `stray`: copies whose job has no file now; of a month that goes on.
    """

    first: date
    ended: bool
    jobs: tuple[JobMonth, ...]
    acts: "tuple[ActRecord, ...]"
    left_out: int
    made_at: datetime
    stray: "tuple[StrayCopies, ...]" = ()


def report_month(settings: "Settings", year: int, month: int, now: datetime) -> MonthReport:
    """Return the report of a month of the machine's own calendar. Raises: DeclarationError · HistoryError."""
    begin, end = _local(year, month), _local(year + month // 12, month % 12 + 1)
    until = min(end, now)
    known = settings.configuration().jobs
    with settings.views() as views, views.glance():
        records = views.monthly.records([job.name for job in known], begin, until)
        acts = views.acts.between(begin, until)
        stray = stray_copies(known, views) if now < end else ()
    jobs = tuple(_job_month(job, records, begin, until) for job in known if job.copies)
    return MonthReport(
        first=date(year, month, 1), ended=end <= now, jobs=jobs, acts=acts[-_MOST_ACTS:], left_out=max(0, len(acts) - _MOST_ACTS),
        made_at=now, stray=stray,
    )  # fmt: skip


def _local(year: int, month: int) -> datetime:
    return datetime(year, month, 1).astimezone().astimezone(UTC)


def _job_month(job: "Job", records: "MonthRecords", begin: datetime, until: datetime) -> JobMonth:
    counts, ends, begun = records.counts[job.name], records.well[job.name], job.name in records.begun
    gap = longest_gap(ends, records.first_run.get(job.name, begin), until)
    limit = job.late_after
    return JobMonth(
        job=job, begun=begun, well=counts["well"], badly=counts["badly"], gap=gap,
        kept=None if limit is None or not begun else gap is not None and gap <= limit,
        points=counts["points"], moved_bytes=counts["moved"], readings=counts["readings"], read_bytes=counts["read"],
        unsound=counts["unsound"], drills=counts["drills"], failed_drills=counts["failed_drills"],
    )  # fmt: skip


def longest_gap(ends: "tuple[datetime, ...]", first_run: datetime, until: datetime) -> Seconds | None:
    """Return the longest time without a good end up to `until`; None: there was no good end at all.

    `ends`: oldest first, the last one before the span among them, if there is one. `first_run`: of the span; what failed before the
    very first good end counts, too.
    """
    if not ends:
        return None
    instants = [min(first_run, ends[0]), *ends, until]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(instants)]
    return Seconds(max(gaps, default=0.0))
