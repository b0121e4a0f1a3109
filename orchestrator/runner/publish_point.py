"""The publication of a point, or of a mirror, at a target on this machine, whose disk is watched since its copy began.

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
    """The publisher of one run's point, or of its mirror. `explain`: returns the error for a sync that failed."""

    def __init__(self, explain: Callable[[PipelineFailed], OrchestratorError]) -> None:
        self._explain = explain
        self._disk: WatchedDisk | None = None
        self.lost = False  # a write failed: the kernel tells it once

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

    def publish(self, work: PointPublication, run: Callable[[Pipeline], None]) -> None:
        """Publish the point; where anything is not plain, its script does it, or says why not.

        `run`: runs a pipeline, or raises. Raises: OrchestratorError, also where the disk did not take all · OSError.

        Why in the folder that was watched since the copy began: who owns a folder above may have put another target of ours in its
        place, and what lies half-copied there would become a point.
        """
        from orchestrator.trees.beneath import Folder
        from orchestrator.trees.local_target import publish_point

        path, disk = work.root.path, self._disk

        def sync(folder: int) -> None:
            # Why by /proc: an open folder is the same whoever exchanges its name.
            self._settle(f"/proc/{os.getpid()}/fd/{folder}", run)

        def open_root() -> Folder:
            return Folder.at_place(path) if disk is None else disk.open_folder()

        if not publish_point(open_root, work.name, work.manifest, sync):
            self.complete(work.otherwise, run)

    def complete(self, script: Pipeline, run: Callable[[Pipeline], None]) -> None:
        """Run the script by which a copy becomes whole, once the disk took all of it; else a note stays, and the script does not run.

        Why, though the script syncs, too: of a write error that the sync of another program heard it is not told.
        Raises: OrchestratorError · OSError.
        """
        if self._disk is not None:
            with self._disk.noted():
                self._settle(self._disk.folder, run)
        run(script)
        self.require_written()

    def _settle(self, folder: str, run: Callable[[Pipeline], None]) -> None:
        from orchestrator.verify.pipelines import settle_pipeline

        run(settle_pipeline(Location(path=folder)))
        self.require_written()

    def require_written(self) -> None:
        """Check that no write to the watched disk failed. Raises: OrchestratorError."""
        from orchestrator.verify.pipelines import settle_pipeline

        if self._disk is None:
            return
        try:
            self._disk.require_written()
        except OSError as error:
            self.lost = True
            said = f"sync: error syncing '{self._disk.folder}': {error.strerror}"
            command = settle_pipeline(Location(path=self._disk.folder))
            raise self._explain(pipeline_failure(command, PipelineResult(exits=(1,), last_output=(said,)))) from error
