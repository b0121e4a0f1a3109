"""The checks of `check --system` for a job that prunes what came here."""

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.prune.model import is_folder
from orchestrator.engines.prune.survey import survey
from orchestrator.process.executor import Reader


def check_system(job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
    """Return one line for what came into the dataset or the folder."""
    folder = is_folder(job.source)
    subject = f"{'folder' if folder else 'dataset'} {job.source}"
    try:
        world = survey(job.source, reader)
    except OrchestratorError as error:
        return (SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}"),)
    if folder:
        return (SystemCheckResult(good=True, subject=subject, text=show_count(len(world.points), "point")),)
    series = {point.series for point in world.points}
    there = f"{show_count(len(world.points), 'snapshot')} of {show_count(len(series), 'dataset')}"
    return (SystemCheckResult(good=True, subject=subject, text=there),)
