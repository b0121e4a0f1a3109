"""The survey of what came into a dataset, in one command; and the look whether what was destroyed is gone."""

from functools import partial

from orchestrator.domain.answers import understand
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import SourceMissing, VerificationFailed
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.engines.prune import commands
from orchestrator.engines.prune.errors import explain
from orchestrator.engines.prune.model import PruneSurvey, SnapshotsGone, is_folder, parse_folder, parse_survey
from orchestrator.process.executor import Reader
from orchestrator.process.moved_dataset import explain_missing_source
from orchestrator.process.pipeline import pipeline_failure

_PATIENCE = Seconds(1800)  # for a list of very many snapshots on a busy disk; a pool without its disks never answers
_ALSO = ", the same into `receives` of its gate, and into targets.toml of the machines that send here"


def survey_source(job: Job, reader: Reader, *, known: str = "") -> PruneSurvey:
    """Return what came to the job's source. `known`: its identity at the last good run; empty: none. Raises: OrchestratorError."""
    try:
        return survey(job.source, reader)
    except SourceMissing as error:
        if is_folder(job.source):
            raise
        raise explain_missing_source(job, known, error, reader, also=_ALSO) from error


def survey(root: Location, reader: Reader) -> PruneSurvey:
    """Return all snapshots of the root and of what lies below it, or the points in a folder. Raises: OrchestratorError."""
    folder = is_folder(root)
    command = commands.find_points_command(root) if folder else commands.survey_command(root)
    pipeline = Pipeline(stages=(command,))
    result = reader.read(pipeline, timeout=_PATIENCE)
    if not result.well:
        raise explain(pipeline_failure(pipeline, result, reader.ssh_options))
    if folder:
        return understand("find", command, result.stdout, partial(parse_folder, root=root))
    return understand("zfs", command, result.stdout, partial(parse_survey, root=root))


def confirm_gone(confirmation: SnapshotsGone, reader: Reader) -> None:
    """Check that the snapshots, or the points, are gone. Raises: VerificationFailed."""
    there = {(point.series, point.identity): point for point in survey(confirmation.root, reader).points}
    if left := sorted(there.keys() & confirmation.guids):
        point = there[left[0]]
        shows = f"ls -l {quoted(point.series)}/points" if point.tree else f"zfs list -t snapshot {quoted(point.series)}"
        raise VerificationFailed(
            f"{point.tree or f'{point.series}@{point.name}'} is still there ({len(left)} of them)",
            hint=f"`{shows}` shows what is there",
        )
