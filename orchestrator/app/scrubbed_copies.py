"""Scrubs count as readings: a clean scrub of a pool read every copy of datasets that lay there when it began.

Why not for copies of files: their manifests are compared with what is read, and a scrub knows no manifest.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.domain.place import Location
from orchestrator.domain.scrub import LOOKED, covered_until, parse_sighting, see_scrub
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.pools import PoolRebuilder, ScrubWatcher
from orchestrator.engines.registry import load_engine
from orchestrator.runner.disk.state import SCRUBBED

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.history.store import History
    from orchestrator.process.executor import Reader

_SEEN = "scrub seen on "


def note_watched_scrub(
    history: "History", watch: "Job", jobs: "Iterable[Job]", reader: "Reader", now: datetime
) -> None:
    """Record the newest scrub of a watched pool for each copy of datasets on it. Raises: OrchestratorError."""
    copies = [job for job in jobs if _holds_datasets(job) and _watches(watch, _pool_of(job))]
    note_scrub(history, watch.source, copies, reader, now)


def note_unwatched_scrub(
    history: "History", job: "Job", jobs: "Iterable[Job]", reader: "Reader", now: datetime
) -> None:
    """Record the newest scrub of the pool that a job copied datasets to, where no job watches it. Raises: OrchestratorError."""
    pool = _pool_of(job)
    history.remember(job.name, LOOKED + job.target.name, now.isoformat())
    if not any(_watches(each, pool) for each in jobs):
        note_scrub(history, pool, [job], reader, now)


def note_scrub(history: "History", pool: Location, copies: "Iterable[Job]", reader: "Reader", now: datetime) -> int:
    """Record the newest scrub of a pool for the copies that lie there; return how many points it read anew. Raises: OrchestratorError.

    `copies`: jobs, each placed where its copy is.
    """
    engine = load_engine("pool")
    kept = [job for job in copies if _holds_datasets(job)]
    if not kept or not implements(engine, ScrubWatcher) or (scrub := engine.survey_scrub(pool, reader)) is None:
        return 0
    read = 0
    for job in kept:
        place = job.target.name
        sighting = see_scrub(scrub, history.fact(job.name, _SEEN + place, parse_sighting), now)
        history.remember(job.name, _SEEN + place, sighting.text())
        if scrub.clean:
            until = covered_until(sighting)
            history.remember(job.name, SCRUBBED + place, until.isoformat())
            read += history.place_read(job.name, place, began=until, counted=True)
    return read


def _watches(job: "Job", pool: Location) -> bool:
    return not job.copies and job.source == pool and implements(load_engine(job.engine), ScrubWatcher)


def _holds_datasets(job: "Job") -> bool:
    return job.copies and not job.target.rotates and implements(load_engine(job.engine), PoolRebuilder)


def _pool_of(job: "Job") -> Location:
    place = job.target.location
    return Location(path=place.path.partition("/")[0], host=place.host)
