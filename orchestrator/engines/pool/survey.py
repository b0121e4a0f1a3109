"""The survey of a pool, in one command, and that of its newest scrub."""

from functools import partial

from orchestrator.domain.answers import understand
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import NotNow, SourceMissing, SourceRenamed, VerificationFailed
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.scrub import PoolScrub
from orchestrator.domain.units import Seconds
from orchestrator.engines.pool import commands, parse
from orchestrator.engines.pool.errors import explain
from orchestrator.engines.pool.model import PoolSurvey, ScrubState
from orchestrator.engines.pool.options import options_of
from orchestrator.process.executor import Reader
from orchestrator.process.moved_dataset import explain_missing_source
from orchestrator.process.pipeline import pipeline_failure

_PATIENCE = Seconds(180)  # some commands wait for ever on a pool that lost its disks


def survey(job: Job, reader: Reader, *, known: str = "") -> PoolSurvey:
    """Return all data that a health check needs. `known`: the identity of the pool at the last good run; empty: none.

    Raises: OrchestratorError when the pool cannot be surveyed; NotNow when it does not exist, and may be away.
    """
    try:
        return survey_pool(job.source, reader)
    except SourceMissing as error:
        told = explain_missing_source(job, known, error, reader)
        if options_of(job).may_be_away and not isinstance(told, SourceRenamed):
            raise NotNow(error.why, hint="plug it in, or `zpool import` it") from error
        raise told from error


def survey_pool(root: Location, reader: Reader) -> PoolSurvey:
    """Return the present state of the pool. Raises: OrchestratorError."""
    command = commands.survey_command(root)
    return understand("zpool", command, _run(reader, command), partial(parse.parse_survey, root=root))


def survey_scrub(pool: Location, reader: Reader) -> PoolScrub | None:
    """Return the newest scrub of a pool; None: the newest scan was none. Raises: OrchestratorError."""
    command = commands.status_command(pool)
    return understand("zpool", command, _run(reader, command), parse.parse_scrub)


def _run(reader: Reader, command: Command) -> bytes:
    pipeline = Pipeline(stages=(command,))
    result = reader.read(pipeline, timeout=_PATIENCE)
    if not result.well:
        raise explain(pipeline_failure(pipeline, result, reader.ssh_options))
    return result.stdout


def confirm_scrub(confirmation: ScrubState, reader: Reader) -> None:
    """Check that the scrub is as the step left it; on a small pool it may have ended already. Raises: VerificationFailed."""
    world = survey_pool(confirmation.root, reader)
    scan = world.status.scan
    if scan is not None and scan.kind == "scrub":
        if scan.state == ("paused" if confirmation.paused else "running"):
            return
        if scan.state == "finished" and scan.ended is not None and scan.ended >= confirmation.since:
            return
    told = f"a {scan.kind} that is {scan.state}" if scan else "no scan"
    raise VerificationFailed(
        f"expected: {confirmation}; found: {told}", hint=f"see `zpool status {quoted(confirmation.root.path)}`"
    )
