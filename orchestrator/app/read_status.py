"""Reading of copies: what was read again of each job at each place, as history remembers it."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.read_status import PACE_SPAN, USUAL_LIMIT, ReadStatus, judge_reading

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.job import Job


_LONGEST_S = 100 * 365 * 86400.0  # nothing was read earlier


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
    since = {name: now - timedelta(seconds=min(_limit(job), _LONGEST_S)) for name, job in known.items()}
    with settings.views() as views, views.glance():
        totals = views.read_totals(since)
        read = views.bytes_read_between(now - timedelta(seconds=PACE_SPAN), now)
    found = [
        PlaceReading(
            job=name, place=place, limit=_limit(known[name]), promised=bool(known[name].verify.every),
            status=judge_reading(each, read=Bytes(read.get((name, place), 0))),
        )
        for name, places in totals.items()
        for place, each in places
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda each: (each.status.oldest or now, each.job, each.place)))


def _limit(job: "Job") -> Seconds:
    return job.verify.every or USUAL_LIMIT
