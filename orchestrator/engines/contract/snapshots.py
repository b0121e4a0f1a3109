"""Engines that take and prune snapshots, and the section that names datasets."""

from collections.abc import Iterable
from typing import Any, Protocol

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, SnapshotRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed


class DatasetSection(Protocol):
    """The options section of an engine whose source is a dataset: which descendant datasets belong to it."""

    @property
    def recursive(self) -> bool: ...

    @property
    def exclude(self) -> tuple[str, ...]: ...


class Snapshotter(Protocol):
    """A component that takes and removes snapshots by a job's [snapshots], before and after another engine's copies.

    `folder`: a local folder of the job's own that stays between its runs. Failures of these steps are explained here too.
    """

    def snapshot_mistakes(
        self, snapshots: SnapshotRules, source: Location, copy: Location | None
    ) -> Iterable[tuple[str, str, str]]:
        """Return (key, mistake, expected value) for mistakes in [snapshots]."""
        ...

    def survey_snapshots(self, job: Job, reader: Reader) -> Any:
        """Return the existing snapshots and the time on that machine, read in one command."""
        ...

    def is_made_anew(self, world: Any, remembered: str) -> bool:
        """Return whether the surveyed source is not the one whose identity history remembers; False if it remembers none."""
        ...

    def is_being_restored(self, world: Any, *, known: bool) -> bool:
        """Return whether a restore of the surveyed source began and is not finished: a snapshot would stand in its way.

        `known`: history knows that; else what a dataset below the root says of itself does not count.
        """
        ...

    def take(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        """Return the steps that take due snapshots, before the copying engine's survey. Raises: OrchestratorError: none can be taken."""
        ...

    def prune_source(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        """Return the steps that remove snapshots that [snapshots] no longer keeps; they run after copy and bookmark exist."""
        ...

    def unpruned(self, job: Job, world: Any, reader: Reader) -> str:
        """Return which snapshots `prune_source` would let go, and the space that matters; empty where it lets none go.

        Raises: OrchestratorError.
        """
        ...

    def prune_target(self, job: Job, folder: str) -> tuple[Step, ...]:
        """Return the steps that remove points that [keep] does not keep from the copy; they run after the copy is confirmed."""
        ...

    def told(self, words: str) -> tuple[str, ...]:
        """Return warnings from the last output of such a step after its success."""
        ...

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        """Return the error for a failure: what happened, what it means, what to do."""
        ...
