"""The survey of what came into a dataset, in one command; and the look whether what was destroyed is gone."""

from functools import partial

from orchestrator.domain.answers import understand
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.engines.prune import commands
from orchestrator.engines.prune.errors import explain
from orchestrator.engines.prune.model import PruneSurvey, SnapshotsGone, parse_survey
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import pipeline_failure

_PATIENCE = Seconds(1800)  # for a list of very many snapshots on a busy disk; a pool without its disks never answers


def survey(root: Location, reader: Reader) -> PruneSurvey:
    """Return all snapshots of the root and of what lies below it. Raises: OrchestratorError."""
    command = commands.survey_command(root)
    pipeline = Pipeline(stages=(command,))
    result = reader.read(pipeline, timeout=_PATIENCE)
    if not result.well:
        raise explain(pipeline_failure(pipeline, result, reader.ssh_options))
    return understand("zfs", command, result.stdout, partial(parse_survey, root=root))


def confirm_gone(confirmation: SnapshotsGone, reader: Reader) -> None:
    """Check that the snapshots are gone. Raises: VerificationFailed."""
    there = {(point.series, point.identity): point for point in survey(confirmation.root, reader).points}
    if left := sorted(there.keys() & confirmation.guids):
        point = there[left[0]]
        raise VerificationFailed(
            f"{point.series}@{point.name} is still there ({len(left)} of them)",
            hint=f"`zfs list -t snapshot {quoted(point.series)}` shows what is there",
        )
