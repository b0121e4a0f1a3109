"""Reading of copies: what was read again of each job at each place, as history remembers it."""

from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.read_status import PACE_SPAN, USUAL_LIMIT, PointAge, ReadStatus, judge_reading

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.job import Job
    from orchestrator.history.values import PointAgeRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceReading:
    """One job at one place. `promised`: the job file says how often; else the usual limit is taken."""

    job: str
    place: str
    limit: Seconds
    promised: bool
    status: ReadStatus


def survey_reading(settings: "Settings", now: datetime) -> tuple[PlaceReading, ...]:
    """Return all jobs at all places that hold points, what was not read for longest first. Raises: DeclarationError · HistoryError."""
    known = {job.name: job for job in settings.configuration().jobs if job.copies}
    by_place: defaultdict[tuple[str, str], list[PointAgeRecord]] = defaultdict(list)
    with settings.views() as views, views.glance():
        for point in views.point_ages():
            if point.job in known:
                by_place[point.job, point.place].append(point)
        read = views.bytes_read_between(now - timedelta(seconds=PACE_SPAN), now)
    found = [_place(known[job], place, each, now, read.get((job, place), 0)) for (job, place), each in by_place.items()]
    return tuple(sorted(found, key=lambda each: (each.status.oldest or now, each.job, each.place)))


def _place(job: "Job", place: str, points: "list[PointAgeRecord]", now: datetime, read: int) -> PlaceReading:
    limit = job.verify.every or USUAL_LIMIT
    ages = [
        PointAge(written_at=each.made_at or each.taken_at, read_at=each.whole_at, bytes=each.bytes) for each in points
    ]
    return PlaceReading(
        job=job.name, place=place, limit=limit, promised=bool(job.verify.every),
        status=judge_reading(ages, limit=limit, now=now, read=Bytes(read)),
    )  # fmt: skip
