"""Counts of a span of time in the history: runs, points, readings and restore tests, by job."""

from collections.abc import Mapping
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.history.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthRecords:
    """Counts by job and word; the ends of the good runs by job, oldest first, with the last one before the span; and by job when its
    first run of the span began.
    """

    counts: Mapping[str, Mapping[str, int]]
    well: Mapping[str, tuple[datetime, ...]]
    first_run: Mapping[str, datetime]


class MonthlyHistory:
    """Counts of a span of time. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def records(self, first: datetime, last: datetime) -> MonthRecords:
        """Return the counts from `first` to before `last`."""
        counts: dict[str, dict[str, int]] = {}
        first_run: dict[str, datetime] = {}
        for statement in ("month_of_runs", "month_of_points", "month_of_readings", "month_of_drills"):
            for row in self._database.rows(statement, first=first, last=last):
                own = counts.setdefault(str(row["job"]), {})
                own |= {name: int(value) for name, value in row.items() if name not in ("job", "begun_at")}
                if "begun_at" in row:
                    first_run[str(row["job"])] = row["begun_at"]
        well: dict[str, list[datetime]] = {}
        for row in self._database.rows("month_of_good_ends", first=first, last=last):
            well.setdefault(str(row["job"]), []).append(row["ended_at"])
        return MonthRecords(
            counts=counts, first_run=first_run, well={job: tuple(sorted(ends)) for job, ends in well.items()}
        )
