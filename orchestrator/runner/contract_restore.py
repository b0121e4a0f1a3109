"""The interface of a dataset engine that can restore its copies; the contract of all engines is in their own package."""

from typing import Any, Protocol, runtime_checkable

from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest, NextBase, SnapshotView
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract import ComparisonPlan, RunRequest
from orchestrator.process.executor import Reader


@runtime_checkable
class DatasetRestorer(Protocol):
    """An engine that can send its copies back; interrupted parts are resumed, and each part follows from its own survey."""

    def survey_dataset_restore(
        self,
        job: Job,
        dataset_request: DatasetRestoreRequest,
        run_request: RunRequest,
        reader: Reader,
        *,
        content: bool,
    ) -> Any:
        """Return a survey of copy and destination."""
        ...

    def plan_dataset_restore(self, seen: Any, run_request: RunRequest) -> DatasetRestorePlan:
        """Decide the next part."""
        ...

    def plan_restore_verification(self, seen: Any, run_request: RunRequest) -> ComparisonPlan | Refusal:
        """Plan the comparison of restored data with the copy; with contents, if the survey requested them."""
        ...

    def survey_owners(self, kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
        """Return lines for accounts with another number at the destination than in a kit, each with its hint."""
        ...

    def survey_files(self, job: Job, path: bytes, point: RestorePoint, reader: Reader) -> SnapshotView | Refusal:
        """Return the location of the files below a path, as of a point."""
        ...

    def chain(self, world: Any) -> NextBase:
        """Return the state from which the next run continues."""
        ...
