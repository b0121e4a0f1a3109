"""Restore points by day: the state of each day's points, for a calendar and for a table."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import show_count
from orchestrator.history.values import PointRecord
from orchestrator.views.run_history import PointTable

WEEKS = 53


class PointCheck(StrEnum):
    """The knowledge of a point, the gravest first."""

    DAMAGED = "damaged"
    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    READ = "read"


CHECK_WORDS = {
    PointCheck.READ: "verified, and read again",
    PointCheck.VERIFIED: "verified",
    PointCheck.UNVERIFIED: "not verified",
    PointCheck.DAMAGED: "damaged, or without a manifest",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PointDay:
    """The restore points of one day at one place. `check`: of a damaged one if there is one, else of the best."""

    day: date
    check: PointCheck
    points: tuple[PointRecord, ...]

    @property
    def words(self) -> str:
        """Return the day as one line."""
        return f"{self.day:%a %Y-%m-%d}: {show_count(len(self.points), 'point')}, {CHECK_WORDS[self.check]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCalendar:
    """The days of one place, newest first, from `first` to `last`. `before`, `after`: years that have points outside of these."""

    place: str
    first: date
    last: date
    days: tuple[PointDay, ...]
    total: int


def check_point(table: PointTable, point: PointRecord) -> PointCheck:
    """Return how far a point is known to be right."""
    if point.sound is False or table.has_bad_manifest(point):
        return PointCheck.DAMAGED
    if point.sound and point.whole_at is not None:
        return PointCheck.READ
    return PointCheck.VERIFIED if point.verified_at else PointCheck.UNVERIFIED


def point_years(points: Iterable[PointRecord]) -> tuple[int, ...]:
    """Return the years that have points, newest first."""
    return tuple(sorted({each.taken_at.astimezone().year for each in points if each.taken_at}, reverse=True))


def calendar_span(today: date, year: int | None) -> tuple[date, date]:
    """Return the first and the last day to show: of a year, or of the weeks that end with today's; whole weeks."""
    last = today if year is None or year == today.year else date(year, 12, 31)
    first = last - timedelta(weeks=WEEKS - 1)
    return first - timedelta(days=first.weekday()), last


def point_calendars(table: PointTable, job: str, span: tuple[date, date]) -> tuple[PointCalendar, ...]:
    """Return one calendar for each place that holds points of a job."""
    places: dict[str, list[PointRecord]] = {}
    for point in table.known[job]:
        places.setdefault(point.place, []).append(point)
    return tuple(_calendar(table, place, points, span) for place, points in places.items())


def _calendar(table: PointTable, place: str, points: Sequence[PointRecord], span: tuple[date, date]) -> PointCalendar:
    days: dict[date, list[PointRecord]] = {}
    for point in points:
        if point.taken_at is not None and span[0] <= (day := point.taken_at.astimezone().date()) <= span[1]:
            days.setdefault(day, []).append(point)
    found = tuple(_day(table, day, days) for day in sorted(days, reverse=True))
    return PointCalendar(place=place, first=span[0], last=span[1], days=found, total=len(points))


def _day(table: PointTable, day: date, days: Mapping[date, Sequence[PointRecord]]) -> PointDay:
    checks = [check_point(table, point) for point in days[day]]
    order = list(PointCheck)
    worst = PointCheck.DAMAGED if PointCheck.DAMAGED in checks else max(checks, key=order.index)
    return PointDay(day=day, check=worst, points=tuple(days[day]))
