"""Counts of a span of time in the history: runs, points, readings and restore tests, by job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run import Outcome
from orchestrator.history.database import Database, Row

_GOOD = (Outcome.DONE, Outcome.NOTHING, Outcome.INCOMPLETE)
_BAD = (Outcome.FAILED, Outcome.REFUSED, Outcome.INTERRUPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthRecords:
    """Counts by job and word; the ends of the good runs by job, oldest first, with the last one before the span; and by job when its
    first run of the span began.
    """

    counts: Mapping[str, Mapping[str, int]]
    well: Mapping[str, tuple[datetime, ...]]
    first_run: Mapping[str, datetime]
    begun: frozenset[str]


class MonthlyHistory:
    """Counts of a span of time. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def records(self, jobs: Sequence[str], first: datetime, last: datetime) -> MonthRecords:
        """Return the counts of jobs from `first` to before `last`."""
        with self._database.understood("the counts of a span of time"):
            return self._counted(jobs, first, last)

    def _counted(self, jobs: Sequence[str], first: datetime, last: datetime) -> MonthRecords:
        counts = {job: Counter[str]() for job in jobs}
        well: dict[str, list[datetime]] = {job: [] for job in jobs}
        first_run: dict[str, datetime] = {}
        for row in self._rows("runs_begun_between", counts, first, last):
            job, good = row["job"], row["outcome"] in _GOOD
            first_run.setdefault(job, row["begun_at"])
            counts[job].update(well=int(good), badly=int(row["outcome"] in _BAD), moved=row["moved_bytes"] or 0)
            well[job] += [row["ended_at"]] if good else []
        for row in self._rows("points_made_between", counts, first, last):
            counts[row["job"]].update(points=1)
        for row in self._rows("readings_between", counts, first, last):
            counts[row["job"]].update(readings=1, read=row["bytes_read"], unsound=int(not row["reading_sound"]))
        for row in self._rows("drills_between", counts, first, last):
            counts[row["job"]].update(drills=1, failed_drills=int(row["outcome"] != Outcome.DONE))
        for job in jobs:
            if before := self._database.first("last_good_end_before", job=job, first=first):
                well[job].append(before["ended_at"])
        ends = {job: tuple(sorted(each)) for job, each in well.items()}
        begun = frozenset(job for job in jobs if job in first_run or ends[job] or self._began_before(job, last))
        return MonthRecords(counts=counts, well=ends, first_run=first_run, begun=begun)

    def _began_before(self, job: str, last: datetime) -> bool:
        first = self._database.first("first_begun", job=job)
        return first is not None and first["begun_at"] < last

    def _rows(self, statement: str, jobs: Mapping[str, object], first: datetime, last: datetime) -> list[Row]:
        return [row for row in self._database.rows(statement, first=first, last=last) if row["job"] in jobs]
