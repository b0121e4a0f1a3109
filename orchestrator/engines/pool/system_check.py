"""The checks of `check --system` for a job that watches a pool."""

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.engines.contract import Advice
from orchestrator.engines.pool.health_checks import judge
from orchestrator.engines.pool.options import options_of
from orchestrator.engines.pool.plan import well
from orchestrator.engines.pool.survey import survey
from orchestrator.process.executor import Reader


def advise(job: Job, reader: Reader) -> tuple[Advice, ...]:
    """Return one line for the program, and one for the pool or for each finding; none stops a run."""
    where = f"on {job.source.host}" if job.source.host else "here"
    subject = f"pool {job.source}"
    try:
        world = survey(job, reader)
    except OrchestratorError as error:
        return (Advice(good=False, subject=subject, text=f"{error.why}: {error.cure}"),)
    version = Advice(good=True, subject=f"zpool {where}", text=f"version {'.'.join(map(str, world.version))}")
    found = judge(world, options_of(job))
    if not found:
        return version, Advice(good=True, subject=subject, text=well(world))
    return version, *(Advice(good=False, subject=subject, text=str(each), hinders=False) for each in found)
