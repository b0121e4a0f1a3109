"""Looks at the source: its datasets, and sanoid's own snapshots of its root, in one command. Reads."""

from collections.abc import Callable

from orchestrator.domain.command import Command, Pipeline
from orchestrator.domain.job import Job
from orchestrator.engines.sanoid import commands, parse
from orchestrator.engines.sanoid.failures import explain
from orchestrator.engines.sanoid.options import downward
from orchestrator.engines.sanoid.words import World
from orchestrator.process.executor import Reader
from orchestrator.process.result import broken


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
