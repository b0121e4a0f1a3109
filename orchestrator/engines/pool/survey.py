"""The survey of a pool, in one command, and that of its newest scrub."""

import json
from functools import partial

from orchestrator.domain.answers import understand
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import NotNow, SourceMissing, VerificationFailed
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.scrub import PoolScrub
from orchestrator.domain.source_identity import parse_identity
from orchestrator.domain.units import Seconds
from orchestrator.engines.pool import commands, parse
from orchestrator.engines.pool.errors import explain
from orchestrator.engines.pool.model import PoolSurvey, ScrubState
from orchestrator.engines.pool.options import options_of
from orchestrator.process.executor import Reader
from orchestrator.process.moved_dataset import find_moved_dataset
from orchestrator.process.pipeline import pipeline_failure

_PATIENCE = Seconds(180)  # some commands wait for ever on a pool that lost its disks


def survey(job: Job, reader: Reader, *, known: str = "") -> PoolSurvey:
    """Return all data that a health check needs. `known`: the identity of the pool at the last good run; empty: none.

    Raises: OrchestratorError when the pool cannot be surveyed; NotNow when it does not exist, and may be away.
    """
    try:
        return survey_pool(job.source, reader)
    except SourceMissing as error:
        if now := _find_moved(job, known, reader):
            raise _renamed(job, now, error) from error
        if options_of(job).may_be_away:
            raise NotNow(error.why, hint="plug it in, or `zpool import` it") from error
        raise


def _find_moved(job: Job, identity: str, reader: Reader) -> str:
    """Return how the pool of the last good run is called now; empty: it is not imported, or no run has seen it."""
    known = parse_identity(identity)
    if known is None or not known.pool or known.root != str(job.source):
        return ""
    return find_moved_dataset(0, known.pool, job.source.host, reader)


def _renamed(job: Job, now: str, error: SourceMissing) -> SourceMissing:
    source = job.source.path
    export, back = (
        Command(argv=("zpool", *words), effect=Effect.DESTROYS, host=job.source.host)
        for words in (("export", now), ("import", now, source))
    )
    line = f"source = {json.dumps(str(Location(path=now, host=job.source.host)))}"
    return SourceMissing(
        f"the pool {source} is imported as {now} now, by its guid",
        evidence=error.evidence,
        hint=f"to watch it under that name: write {line} into {job.file}; or give the former one back: {export} && {back}",
    )


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
