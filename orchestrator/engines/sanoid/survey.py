"""Looks at the source: its datasets, and sanoid's own snapshots of its root, in one command."""

from collections.abc import Callable

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.engines.sanoid import commands, parse
from orchestrator.engines.sanoid.errors import explain
from orchestrator.engines.sanoid.model import World
from orchestrator.engines.sanoid.options import downward
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import broken


def survey(job: Job, reader: Reader) -> World:
    """Everything that taking and pruning need to know. Raises: OrchestratorError when the source cannot be looked at."""
    return parse.parse_look(runner(reader)(commands.look_command(job.source, downward=downward(job))), job.source)


def runner(reader: Reader) -> Callable[[Command], bytes]:
    """Runs one command for its output. Raises: OrchestratorError when it fails."""

    def run(command: Command) -> bytes:
        pipeline = Pipeline(stages=(command,))
        result = reader.read(pipeline)
        if not result.well:
            raise explain(broken(pipeline, result, reader.ssh_options))
        return result.stdout

    return run
