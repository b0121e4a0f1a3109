"""The survey of the source: its datasets, and sanoid's own snapshots of its root, in one command."""

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
    """Return everything that taking and pruning need. Raises: OrchestratorError when the source cannot be read."""
    return parse.parse_look(runner(reader)(commands.look_command(job.source, downward=downward(job))), job.source)


def runner(reader: Reader) -> Callable[[Command], bytes]:
    """Return a function that runs one command and returns its output. It raises OrchestratorError when that fails."""

    def run(command: Command) -> bytes:
        pipeline = Pipeline(stages=(command,))
        result = reader.read(pipeline)
        if not result.well:
            raise explain(broken(pipeline, result, reader.ssh_options))
        return result.stdout

    return run
