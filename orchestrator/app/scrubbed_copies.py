"""Scrubs count as readings: a clean scrub of a pool read every copy of datasets that lay there when it began.

Why not for copies of files: their manifests are compared with what is read, and a scrub knows no manifest.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.place import Location
from orchestrator.domain.scrub import covered_until, parse_sighting, see_scrub
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.pools import PoolRebuilder, ScrubWatcher
from orchestrator.engines.registry import load_engine
from orchestrator.runner.disk.state import SCRUBBED

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.history.store import History
    from orchestrator.process.executor import Reader

_SEEN, _LOOKED = "scrub seen on ", "scrub looked for on "
_SOME_TIME = timedelta(days=1)  # between two looks at a pool that nobody watches


def note_watched_scrub(
    history: "History", watch: "Job", jobs: "Iterable[Job]", reader: "Reader", now: datetime
) -> None:
    """Record the newest scrub of a watched pool for each copy of datasets on it. Raises: OrchestratorError."""
    copies = [job for job in jobs if _holds_datasets(job) and _pool_of(job) == watch.source]
    note_scrub(history, watch.source, copies, reader, now)


def note_unwatched_scrub(
    history: "History", job: "Job", jobs: "Iterable[Job]", reader: "Reader", now: datetime
) -> None:
    """Record once a day the newest scrub of the pool that a job copied datasets to, where no job watches it.

    Why on this machine alone: there it costs no login. Raises: OrchestratorError.
    """
    if job.target.rotates or job.target.disk or not _holds_datasets(job):
        return
    pool = _pool_of(job)
    if pool.host is not None or any(not each.copies and each.source == pool for each in jobs):
        return
    looked = history.recall(job.name, _LOOKED + job.target.name) or ""
    if looked and timedelta() <= now - datetime.fromisoformat(looked) < _SOME_TIME:
        return
    history.remember(job.name, _LOOKED + job.target.name, now.isoformat())
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
            until = covered_until(scrub, sighting, now)
            history.remember(job.name, SCRUBBED + place, until.isoformat())
            read += history.place_read(job.name, place, began=until, counted=True)
    return read


def _holds_datasets(job: "Job") -> bool:
    return job.copies and not job.target.rotates and implements(load_engine(job.engine), PoolRebuilder)


def _pool_of(job: "Job") -> Location:
    place = job.target.location
    return Location(path=place.path.partition("/")[0], host=place.host)
