"""Reading of copies: what was read again of each job at each place, as history remembers it."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.age import CLOCKS_DIFFER
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.read_deadline import AgedData, DeadlineForecast, forecast_deadline
from orchestrator.planners.read_status import PACE_SPAN, PROMISE_PACE_DAYS, USUAL_LIMIT, ReadStatus, judge_reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.app.settings import Settings
    from orchestrator.domain.job import Job
    from orchestrator.history.values import PointRecord


_LONGEST_S = 100 * 365 * 86400.0  # nothing was read earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceReading:
    """One job at one place. `promised`: the job file says how often; else the usual limit is taken. `promise`: what becomes of
    `read-all-within`, where the job file has it and the sizes are known.
    """

    job: str
    place: str
    limit: Seconds
    promised: bool
    status: ReadStatus
    promise: DeadlineForecast | None = None


def survey_reading(settings: "Settings", now: datetime) -> tuple[PlaceReading, ...]:
    """Return all jobs at all places that hold points, what was not read for longest first. Raises: DeclarationError · HistoryError."""
    known = {job.name: job for job in settings.configuration().jobs if job.copies}
    since = {name: now - timedelta(seconds=min(_limit(job), _LONGEST_S)) for name, job in known.items()}
    with settings.views() as views, views.glance():
        totals = views.read_totals(since, now + CLOCKS_DIFFER)
        read = views.bytes_read_between(now - timedelta(seconds=PACE_SPAN), now)
        lately = views.bytes_read_between(now - timedelta(days=PROMISE_PACE_DAYS), now)
        items = {job.name: _items(views.points(job.name)) for job in known.values() if job.verify.read_all_within}
    found = [
        PlaceReading(
            job=name, place=place, limit=_limit(known[name]), promised=_is_promised(known[name]),
            status=judge_reading(each, read=Bytes(read.get((name, place), 0))),
            promise=_forecast(known[name], items[name].get(place, ()), lately.get((name, place), 0), now) if name in items else None,
        )
        for name, places in totals.items()
        for place, each in places
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: (each.status.oldest or now, each.job, each.place)))


def _limit(job: "Job") -> Seconds:
    return job.verify.read_all_within or job.verify.every or USUAL_LIMIT


def _is_promised(job: "Job") -> bool:
    return bool(job.verify.read_all_within or job.verify.every)


def _items(points: "Iterable[PointRecord]") -> "dict[str, list[PointRecord]]":
    places: dict[str, list[PointRecord]] = {}
    for each in points:
        places.setdefault(each.place, []).append(each)
    return places


def _forecast(job: "Job", points: "Sequence[PointRecord]", lately: int, now: datetime) -> DeadlineForecast | None:
    """Return what becomes of a promise at the pace of the last days; None where sizes are not known."""
    limit = job.verify.read_all_within
    if limit is None or not points or any(each.bytes is None for each in points):
        return None
    items = [
        AgedData(size=Bytes(each.bytes or 0), since=each.whole_at or each.made_at or each.taken_at) for each in points
    ]
    first = min((each.since for each in items if each.since), default=now)
    days = min(max((now - first) / timedelta(days=1), 1.0), PROMISE_PACE_DAYS)
    return forecast_deadline(items, timedelta(seconds=limit), pace=lately / days, now=now)
