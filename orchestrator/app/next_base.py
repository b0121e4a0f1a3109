"""Base of the next run: at each target after a restore, and on a disk before it is plugged in.

A target that is here is surveyed; for others the points come from history; for a disk that is away the sources are surveyed.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.dataset_restore import NextBase
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.rotation import Disk, IncrementBase
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.copies import Forecaster
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.engines.contract.restore import DatasetRestorer
from orchestrator.planners.rotation import describe_forecast
from orchestrator.views.restore import TargetNextBase

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.history.values import PointRecord
    from orchestrator.history.views import HistoryReader


def find_next_bases(settings: "Settings", restored: Location) -> tuple[TargetNextBase, ...]:
    """Return the targets of all jobs whose source is the restored place, is inside it, or contains it."""
    jobs = [job for job in settings.configuration().jobs if _touches(job.source, restored)]
    with settings.views() as views:
        return tuple(link for job in jobs for link in _of_job(settings, job, views.points(job.name)))


def _touches(source: Location, restored: Location) -> bool:
    if source.host != restored.host:
        return False
    one, other = f"{source.path}/", f"{restored.path}/"
    return one.startswith(other) or other.startswith(one)


def _of_job(settings: "Settings", job: Job, points: Sequence["PointRecord"]) -> Iterator[TargetNextBase]:
    from orchestrator.engines.registry import load_engine

    found = load_engine(job.engine)
    if not implements(found, DatasetRestorer):
        return
    with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
        try:
            here = {point.name for point in found.points(_at_source(job), reader)}
            world = None if job.target.rotates else found.survey(job, _run_request(settings), reader)
            failure = "its disks are looked at when they are plugged in"
        except OrchestratorError as error:
            here, world, failure = set(), None, error.why
    if world is not None:
        yield _survey_base(job, found.chain(world))
    known = {point.place for point in points} | {job.target.name}
    for place in sorted(known - ({job.target.name} if world is not None else set())):
        yield _recorded_base(job, place, [point for point in points if point.place == place], here, failure)


def _at_source(job: Job) -> Job:
    """Return the job with its source as the target, so that the source's snapshots can be listed."""
    return replace(job, target=Place(name=job.target.name, location=job.source))


def _run_request(settings: "Settings") -> RunRequest:
    return RunRequest(now=compose.now(), notes=settings.where.state)


def _survey_base(job: Job, chain: NextBase) -> TargetNextBase:
    if not chain.datasets:
        why = "it has no copy of it yet"
    elif chain.held == chain.datasets:
        why = f"continues from @{chain.base}" if chain.base else "continues from the newest common snapshot"
    else:
        why = (
            f"of {show_count(chain.datasets, 'dataset')} {chain.held} can go on; the others hold no snapshot in common"
        )
    return TargetNextBase(job=job.name, target=job.target.name, base=chain.base, seen=True, why=why)


def _recorded_base(
    job: Job, place: str, points: Sequence["PointRecord"], here: Collection[str], failure: str
) -> TargetNextBase:
    names = [point.name for point in points]
    back = [name for name in names if name in here]
    base = back[-1] if back else None
    if base is not None:
        why = f"not looked at ({failure}); as history knows it, it continues from @{base}"
    elif names:
        why = f"not looked at ({failure}); of {show_count(len(names), 'point')} that history knows there none was restored"
    else:
        why = f"not looked at ({failure}); history knows no point there"
    return TargetNextBase(job=job.name, target=place, base=base, seen=False, why=why)


# Before a disk is plugged in.


def forecast_next_copy(disk: Disk, jobs: Sequence[Job], views: "HistoryReader", log: Callable[[str], None]) -> str:
    """Return the forecast for a disk as text. `jobs`: of its set."""
    known = [job for job in jobs if any(point.place == disk.name for point in views.points(job.name))]
    if disk.content != "zfs":
        return describe_forecast(disk, (), new=len(known) < len(jobs))
    try:
        bases = tuple(base for job in known for base in _bases(disk, job, log))
    except OrchestratorError as error:
        return f"unknown: {error.why}"
    return describe_forecast(disk, bases)


def _bases(disk: Disk, job: Job, log: Callable[[str], None]) -> tuple[IncrementBase, ...]:
    from orchestrator.engines.registry import load_engine

    found = load_engine(job.engine)
    if not implements(found, Forecaster):
        return ()
    with compose.make_reader(job, compose.make_stop_request(None), log) as reader:
        return found.bases(job, int(disk.inside or disk.identity), reader)
