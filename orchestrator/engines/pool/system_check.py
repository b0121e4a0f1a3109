"""The checks of `check --system` for a job that watches a pool."""

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.pool.health_checks import judge_health
from orchestrator.engines.pool.options import options_of
from orchestrator.engines.pool.plan import describe_sound_pool
from orchestrator.engines.pool.survey import survey
from orchestrator.process.executor import Reader


def check_system(job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
    """Return one line for the program, and one for the pool or for each finding; none stops a run."""
    where = f"on {job.source.host}" if job.source.host else "here"
    subject = f"pool {job.source}"
    try:
        world = survey(job, reader)
    except OrchestratorError as error:
        return (SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}"),)
    version = SystemCheckResult(
        good=True, subject=f"zpool {where}", text=f"version {'.'.join(map(str, world.version))}"
    )
    found = judge_health(world, options_of(job))
    if not found:
        return version, SystemCheckResult(good=True, subject=subject, text=describe_sound_pool(world))
    return version, *(SystemCheckResult(good=False, subject=subject, text=str(each), hinders=False) for each in found)
