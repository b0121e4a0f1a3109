"""The publication of a point at a target on this machine, whose disk is watched since its copy began.

Modules that only a run with a copy needs are imported in the call.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline, PointPublication
from orchestrator.process.executor import PipelineFailed, PipelineResult, pipeline_failure

if TYPE_CHECKING:
    from orchestrator.trees.local_target import WatchedDisk


class PointPublisher:
    """The publisher of one run's point. `explain`: returns the error for a sync that failed."""

    def __init__(self, explain: Callable[[PipelineFailed], OrchestratorError]) -> None:
        self._explain = explain
        self._disk: WatchedDisk | None = None

    def watch_disk(self, root: str) -> None:
        """Be told of each write there that fails from now on, until `let_go`.

        Why no error: an ordinary user may have no right to list a folder above; then the sync's own word is all that there is.
        """
        from orchestrator.trees.local_target import WatchedDisk

        self.let_go()
        with suppress(OSError):
            self._disk = WatchedDisk(root)

    def let_go(self) -> None:
        """Keep no disk in use any more."""
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def publish(self, work: PointPublication, run: Callable[[Pipeline], None]) -> bool:
        """Publish the point; return False where anything is not plain: its script does it then, or says why not.

        `run`: runs a pipeline, or raises. Raises: OrchestratorError where the disk did not take all.
        """
        from orchestrator.trees.local_target import publish_point
        from orchestrator.verify.pipelines import settle_pipeline

        def sync(folder: int) -> None:
            # Why by /proc: an open folder is the same whoever exchanges its name.
            command = settle_pipeline(Location(path=f"/proc/{os.getpid()}/fd/{folder}"))
            run(command)
            try:
                if self._disk is not None:
                    self._disk.require_written()
            except OSError as error:
                said = f"sync: error syncing '{work.root}': {error.strerror}"
                failed = pipeline_failure(command, PipelineResult(exits=(1,), last_output=(said,)))
                raise self._explain(failed) from error

        return publish_point(work.root.path, work.name, work.manifest, sync)
