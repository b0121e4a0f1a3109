"""The survey of the source: its datasets, and sanoid's own snapshots of its root, in one command."""

from collections.abc import Callable
from functools import partial

from orchestrator.domain.answers import understand
from orchestrator.domain.errors import SourceMissing, UnreadableAnswer
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.units import Seconds, show_size
from orchestrator.engines.sanoid import commands, parse
from orchestrator.engines.sanoid.errors import explain
from orchestrator.engines.sanoid.model import SanoidSurvey
from orchestrator.engines.sanoid.options import is_recursive, rules_of, snapshots_of
from orchestrator.engines.sanoid.plan import outlived_intervals
from orchestrator.process.executor import Reader
from orchestrator.process.moved_dataset import explain_missing_source
from orchestrator.process.pipeline import pipeline_failure

_PATIENCE = Seconds(600)  # for a list of very many snapshots on a busy disk; a pool without its disks never answers


def survey(job: Job, reader: Reader, *, known: str = "") -> SanoidSurvey:
    """Return everything that taking and pruning need. `known`: the identity of the source at the last good run; empty: none.

    Where an owner gave a mark of ours several lines, each mark is asked for by itself. Raises: OrchestratorError when the source
    cannot be read.
    """
    try:
        return _look(job, reader, apart=False)
    except UnreadableAnswer:
        return _look(job, reader, apart=True)
    except SourceMissing as error:
        use = job.snapshots.use if job.snapshots else None
        also = f", and call it so in {use}/sanoid.conf" if use else ""
        raise explain_missing_source(job, known, error, reader, also=also) from error


def _look(job: Job, reader: Reader, *, apart: bool) -> SanoidSurvey:
    command = commands.survey_command(job.source, downward=is_recursive(job), apart=apart)
    return understand("zfs", command, command_runner(reader)(command), partial(parse.parse_survey, root=job.source))


def survey_unpruned(job: Job, world: SanoidSurvey, reader: Reader) -> str:
    """Return the kinds of which snapshots would go, and the space; empty where none would. Raises: OrchestratorError."""
    snapshots = snapshots_of(job)
    if snapshots is None or not snapshots.autoprune:
        return ""
    kinds = () if snapshots.use else outlived_intervals(rules_of(snapshots), world)
    if not kinds and not snapshots.use:
        return ""
    command = commands.space_command(job.source, downward=is_recursive(job))
    free, taken = understand("zfs", command, command_runner(reader)(command), parse.parse_space)
    what = f"{' and '.join(kinds)} ones would go by [snapshots]" if kinds else f"the rules in {snapshots.use} wait"
    return f"{what}; all its snapshots take {show_size(taken)}, and {show_size(free)} are free in {world.root}"


def command_runner(reader: Reader) -> Callable[[Command], bytes]:
    """Return a function that runs one command and returns its output. It raises OrchestratorError when that fails."""

    def run(command: Command) -> bytes:
        pipeline = Pipeline(stages=(command,))
        result = reader.read(pipeline, timeout=_PATIENCE)
        if not result.well:
            raise explain(pipeline_failure(pipeline, result, reader.ssh_options))
        return result.stdout

    return run
