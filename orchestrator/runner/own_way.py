"""The folder of ours beside a copy on this machine: what a run writes there by itself lies in the very folder that was looked at.

Modules that only a run with a copy needs are imported in the call.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.domain.place import Location
from orchestrator.domain.plan import ManifestRecording
from orchestrator.engines.contract.engine import ManifestCounts, SkippedEntries
from orchestrator.process.executor import PipelineResult, Writer, pipeline_failure
from orchestrator.runner.run_recorder import RunRecorder

if TYPE_CHECKING:
    from orchestrator.runner.older_point import OlderPointReading


def record_in_own_folder(
    work: ManifestRecording,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    left_out: list[SkippedEntries],
    *,
    began: float,
    older: "OlderPointReading | None",
) -> ManifestCounts:
    """Write a copy's manifest, one here by the open folder. `began`: when the copy did. Raises: OrchestratorError."""
    from orchestrator.runner.manifests import record_manifest

    with _held_manifest(work, journal, notes) as local:
        return record_manifest(work, local, journal, writer, notes, left_out, began=began, older=older)


def begin_older_point(
    work: ManifestRecording | None, journal: RunRecorder, writer: Writer, notes: str
) -> "OlderPointReading | None":
    """Begin to read what a manifest needs of the point before; None where it needs nothing. Raises: OrchestratorError."""
    from orchestrator.runner.manifests import read_older_point

    reading = read_older_point(work, journal, writer, notes) if work is not None else None
    if reading is not None:
        reading.begin()
    return reading


@contextmanager
def _held_manifest(work: ManifestRecording, journal: RunRecorder, notes: str) -> Iterator[str]:
    """Yield where a copy's manifest is to be made: for one here by its open folder, so no exchange of a folder above leads it elsewhere.

    Neither the folder nor the tree is reached through a link of another user. A manifest for a host is made in `notes`.
    Raises: OrchestratorError.
    """
    if work.manifest.host is not None:
        yield f"{notes}/manifest.gz"
        return
    from orchestrator.trees.beneath import Folder

    folder, _, name = work.manifest.path.rpartition("/")
    try:
        with Folder.at_place(work.tree.path):
            opened = Folder.ours_at(folder)
    except OSError as error:
        raise _explained(error, work.tree, journal) from error
    with opened:
        yield f"{opened.held}/{name}"


def _explained(error: OSError, tree: Location, journal: RunRecorder) -> Exception:
    from orchestrator.verify.pipelines import settle_pipeline

    failed = PipelineResult(exits=(1,), last_output=(f"{error.filename or tree.path} {error.strerror}",))
    return journal.tools.engine.explain(pipeline_failure(settle_pipeline(tree), failed))
