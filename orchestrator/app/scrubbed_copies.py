"""Scrubs count as readings: a clean scrub of a pool read every copy of datasets that lies on it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.pools import PoolRebuilder, ScrubWatcher
from orchestrator.engines.registry import load_engine

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.history.store import History
    from orchestrator.process.executor import Reader


def note_scrub(history: "History", watch: "Job", jobs: "Iterable[Job]", reader: "Reader") -> None:
    """Record the newest clean scrub of a watched pool for each copy of datasets on it. Raises: OrchestratorError.

    Why not for copies of files on it: their manifests are compared with what is read, and a scrub knows no manifest.
    """
    engine = load_engine(watch.engine)
    copies = [job for job in jobs if _lies_on(job, watch)]
    if not copies or not implements(engine, ScrubWatcher):
        return
    if (began := engine.find_clean_scrub(watch, reader)) is not None:
        for job in copies:
            history.place_read(job.name, job.target.name, began=began, counted=True)


def _lies_on(job: "Job", watch: "Job") -> bool:
    """Return True for a copy of datasets on the pool that a job watches, on the same host."""
    place, pool = job.target.location, watch.source
    if not job.copies or job.target.rotates or place.host != pool.host or place.path.partition("/")[0] != pool.path:
        return False
    return implements(load_engine(job.engine), PoolRebuilder)
