"""The way to a copy on this machine, looked at once more before its manifest is written.

Modules that only a run with a copy needs are imported in the call.
"""

from orchestrator.domain.plan import ManifestRecording
from orchestrator.process.executor import Writer
from orchestrator.runner.run_recorder import RunRecorder, run_small


def require_own_way(work: ManifestRecording, journal: RunRecorder, writer: Writer) -> None:
    """Check that a tree here is reached through no link of another user, who may have exchanged a folder during the copy.

    Where we may not list a folder above, the script that sweeps the tree looks instead. Raises: OrchestratorError.
    """
    if work.tree.host is not None:
        return
    from orchestrator.process.pipeline import PipelineResult, pipeline_failure
    from orchestrator.trees.beneath import Folder, Untrusted
    from orchestrator.verify.pipelines import settle_pipeline

    try:
        with Folder.at_place(work.tree.path):
            return
    except Untrusted as error:
        failed = PipelineResult(exits=(1,), last_output=(f"{error.filename} {error.strerror}",))
        raise journal.tools.engine.explain(pipeline_failure(settle_pipeline(work.tree), failed)) from error
    except OSError:
        if work.sweep is not None:
            run_small(work.sweep, journal, writer)
