"""Engines whose copies are verified by comparing both sides or by reading a stream, and their repair."""

from typing import Any, Protocol

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Pipeline, Refusal, Step
from orchestrator.domain.point import Finding
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableDataset:
    """One dataset of a copy, the pipelines that read it completely, and its size."""

    name: str
    size: Bytes
    reads: tuple[Pipeline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPair:
    """One snapshot to list on both sides. `name`: the name that findings use for it.

    Each step keeps its output in a local file: NUL-terminated records as `verify.entry` reads them, and between them
    `path//=algorithm:digest` for files, `//!reason` for a path that could not be read; `//~` marks a complete listing.
    """

    name: bytes
    source: Step
    target: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """The result of a survey of both sides of a copy, and the steps that compare the contents.

    `point`: the restore point that the verdict is about; None: the copy's root holds none. `checked`: how many snapshots both
    sides hold, of so many `datasets`. `stages`: pairs that are listed in parallel. `lacking`: full names of the source's
    datasets whose copies lack the point.
    """

    point: str | None
    checked: int
    datasets: int
    findings: tuple[Finding, ...]
    stages: tuple[tuple[SnapshotPair, ...], ...] = ()
    warnings: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


class CopyComparer(Protocol):
    """An engine whose copies have no manifest: they are verified by comparing both sides."""

    def survey_both(self, job: Job, request: RunRequest, reader: Reader, *, content: bool) -> Any:
        """Return everything that a comparison needs, read in a constant number of commands."""
        ...

    def plan_comparison(
        self, job: Job, seen: Any, request: RunRequest, *, point: str | None, content: bool
    ) -> ComparisonPlan | Refusal:
        """Return the snapshots of both sides, the differences found, and the steps that read the contents."""
        ...


class RepairPlanner(Protocol):
    """An engine that can repair one side with good data of the other."""

    def heal(
        self, job: Job, seen: Any, request: RunRequest, copy: tuple[Finding, ...], source: tuple[Finding, ...]
    ) -> tuple[str, ...]:
        """Return lines with the exact commands. `copy`, `source`: the findings on each side."""
        ...


class StreamReader(Protocol):
    """An engine whose copies have no manifest, and are read by sending them."""

    def sendable(self, job: Job, reader: Reader) -> tuple[ReadableDataset, ...]:
        """Return the datasets of a copy. Raises: OrchestratorError."""
        ...
