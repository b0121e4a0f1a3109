"""What the next copy to each disk will be, told before it is plugged in; the sources are looked at for it."""

from collections.abc import Callable, Sequence

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Base, Disk
from orchestrator.history.views import Views
from orchestrator.planners.rotation import forecast

Log = Callable[[str], None]


def forecast_of(disk: Disk, jobs: Sequence[Job], views: Views, log: Log) -> str:
    """The forecast for a disk in words. `jobs`: of its set."""
    known = [job for job in jobs if any(point.place == disk.name for point in views.points(job.name))]
    if disk.content != "zfs":
        return forecast(disk, (), new=len(known) < len(jobs))
    try:
        bases = tuple(base for job in known for base in _bases(disk, job, log))
    except OrchestratorError as error:
        return f"unknown: {error.why}"
    return forecast(disk, bases)


def _bases(disk: Disk, job: Job, log: Log) -> tuple[Base, ...]:
    from orchestrator.engines.contract import Forecaster
    from orchestrator.engines.registry import engine

    found = engine(job.engine)
    if not isinstance(found, Forecaster):
        return ()
    with compose.reader(job, compose.stop_for(None), log) as reader:
        return found.bases(job, int(disk.inside or disk.identity), reader)
