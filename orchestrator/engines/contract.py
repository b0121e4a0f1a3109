"""The interface of an engine: survey, plan, confirm, explain. rsync now; zfs, sanoid, btrfs are further folders.

The runner does the rest: locks, records, runs the pipelines of the plan, asks for the proofs, retries from the look.
An engine never starts a program by itself: `survey` and `confirm` are handed a Reader, which refuses to change things.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from orchestrator.domain.changes import Changes
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import Job, SnapshotRules, VerifyRules
from orchestrator.domain.mounts import MountPoint
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Pipeline, Plan, Proof, Refusal, Step
from orchestrator.domain.point import Finding, RestorePoint
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

if TYPE_CHECKING:
    from orchestrator.domain.rotation import IncrementBase


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The request of a run: its nominal time, the guards that may pass once, and a local folder for its notes.

    `notes` holds an empty folder `empty`. `retain`: of names with the instants they were taken, those that [keep] would keep.
    """

    now: datetime
    notes: str
    allowed: frozenset[str] = frozenset()
    remembered: Mapping[str, str] = field(default_factory=dict)
    retain: Callable[[tuple[tuple[str, datetime], ...]], frozenset[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """The request of a restore."""

    point: RestorePoint
    path: bytes  # below the point; b"" is all of it
    to: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSurvey:
    """The state of a restore's destination, and the kind of entry that the point holds at the requested path.

    `kind`: "absent", "folder" or "other"; `unfinished`: (job, point) of a restore that was cut; `wanted`: "folder",
    "file" or "absent"; `to`: the destination itself, after a file was asked into a folder. `mounts`: what is mounted below
    it, which counts as no entry; `filling`: those of them that the unfinished restore brings files into.
    """

    kind: str
    entries: int
    examples: tuple[bytes, ...]
    unfinished: tuple[str, str] | None
    wanted: str
    to: Location
    mounts: tuple[MountPoint, ...] = ()
    filling: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemCheckResult:
    """One finding of `check --system`: `good`; or a sentence with the needed action. `hinders`: runs cannot work."""

    good: bool
    subject: str
    text: str
    hinders: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestCounts:
    """The totals of a manifest."""

    entries: int
    files: int
    bytes: int


class ProgressMeter(Protocol):
    """A reader of one copying step's output, chunk by chunk."""

    def feed(self, chunk: bytes) -> int | None:
        """Return the bytes moved so far by the last program's own output, or None when this chunk shows none."""
        ...

    def heard(self, chunk: bytes) -> None:
        """Read what the programs write to stderr."""
        ...

    def passed(self, count: int) -> int:
        """Return the bytes moved so far, from the count of bytes that went from the first program to the second."""
        ...

    @property
    def expected(self) -> int | None:
        """Return the bytes that the program itself announced; None: it announced nothing."""
        ...

    def moved(self) -> int | None:
        """Return the bytes that were transferred, by the program's own final statistics; else the best estimate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedEntries:
    """The entries that a copy left out: `unreadable` (name, reason), and names that vanished during the copy."""

    unreadable: tuple[tuple[bytes, str], ...] = ()
    vanished: tuple[bytes, ...] = ()


class Engine(Protocol):
    """One way of copying. The results of `survey` and the options are the engine's own types: here they are Any."""

    name: str
    options: type
    wants_datasets: bool
    stays: bool  # works on the source alone, so its jobs name no target
    without: tuple[str, ...]  # sections of a job file, and keys as "pipe.transport", that mean nothing to it
    guards: tuple[str, ...]  # what of its own may pass once, by --allow
    later: tuple[str, ...]  # modules that nothing needs before the look: they are imported while it runs

    def mistakes(
        self, options: Any, source: Location, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        """Return (key, what is wrong, what is expected) for keys that do not fit together."""
        ...

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        """Return the location, inside a place, of the copy of a source."""
        ...

    def advise(self, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
        """Check programs, versions, reachability and free space for `check --system`."""
        ...

    def survey(self, job: Job, request: RunRequest, reader: Reader) -> Any:
        """Return everything that a plan needs, read in a constant number of commands."""
        ...

    def changes(self, world: Any) -> Changes | None:
        """Return the differences between source and newest copy, for the guards."""
        ...

    def newest(self, world: Any) -> RestorePoint | None:
        """Return the newest point that the survey found."""
        ...

    def ground(self, world: Any) -> tuple[str, bool]:
        """Return the source's filesystem, and whether the source is the root of that filesystem, for the guards."""
        ...

    def plan(self, job: Job, world: Any, request: RunRequest) -> Decision:
        """Decide the actions of a run."""
        ...

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        """Return the plan with the expected sizes of its copies, where only the programs can estimate them."""
        ...

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        """Return the restore points that the target really holds, oldest first."""
        ...

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the steps of one stage that remove points."""
        ...

    def survey_restore(self, job: Job, wanted: RestoreRequest, reader: Reader) -> DestinationSurvey:
        """Return a survey of the requested data and of the destination."""
        ...

    def plan_restore(self, job: Job, wanted: RestoreRequest, seen: DestinationSurvey, *, aside: str | None) -> Plan:
        """Return the plan of a restore; `aside`: existing data at the destination are first renamed to this name."""
        ...

    def meter(self) -> ProgressMeter:
        """Return a new meter for one copying step."""
        ...

    def left_out(self, broken: PipelineFailed, errors: Iterable[bytes], job: Job) -> SkippedEntries | None:
        """Return the entries left out, when a failed copying step still counts as done; else None."""
        ...

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        """Return the error for a failure: what happened, what it means, what to do."""
        ...

    def space(self, world: Any) -> str:
        """Return the space that a copy needed and the free space of its target, as far as the survey knows."""
        ...

    def confirm(
        self,
        proofs: tuple[Proof, ...],
        meters: tuple[ProgressMeter, ...],
        left_out: tuple[SkippedEntries, ...],
        recorded: ManifestCounts | None,
        reader: Reader,
    ) -> None:
        """Check that the promised results of a stage's steps are there. Raises: ProofFailed."""
        ...


@runtime_checkable
class TreeEngine(Protocol):
    """An engine whose copies are trees of files: points have manifests, and our own small files lie beside them."""

    def moved(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        """Yield (path, digest with its algorithm as prefix, or "" where unknown) of each file that a kept output names."""
        ...

    def digests(
        self, tree: Location, names: str, empty: str, algorithm: str, job: Job
    ) -> tuple[Pipeline, Callable[[Iterable[bytes]], Iterator[tuple[bytes, str]]]]:
        """Return the pipeline that reads files of a remote tree there, and the parser of its output lines.

        `names`: a local file with NUL-terminated paths; `empty`: an empty local folder. Raises: ValueError for an
        algorithm that cannot be made there.
        """
        ...

    def plan_sample(self, job: Job, point: RestorePoint, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
        """Return the step that restores some files of a point, each at its path, to an empty folder. `notes`: local."""
        ...

    def damage_note(self, point: RestorePoint) -> Location | None:
        """Return the file that records damaged entries of a point for the next survey; None: it needs no record."""
        ...

    def recovery(self, job: Job, made: datetime) -> str:
        """Return the page that explains how to get files back without this program."""
        ...

    def store(self, local: str, file: Location) -> Pipeline:
        """Return the pipeline that copies a small local file to the target, completely or not at all."""
        ...

    def fetch(self, file: Location, local: str) -> Pipeline:
        """Return the pipeline that copies a small file from the target to this machine."""
        ...


@runtime_checkable
class DatasetSection(Protocol):
    """The options section of an engine whose source is a dataset: which descendant datasets belong to it."""

    @property
    def recursive(self) -> bool: ...

    @property
    def exclude(self) -> tuple[str, ...]: ...


class Snapshotter(Protocol):
    """A component that takes and removes snapshots by a job's [snapshots], before and after another engine's copies.

    `folder`: a local folder of the job's own that stays between its runs. Steps of these plans are explained here too.
    """

    def snapshot_mistakes(
        self, snapshots: SnapshotRules, source: Location, copy: Location | None
    ) -> Iterable[tuple[str, str, str]]:
        """Return (key, what is wrong, what is expected) for mistakes in [snapshots]."""
        ...

    def survey_snapshots(self, job: Job, reader: Reader) -> Any:
        """Return the existing snapshots and the time on that machine, read in one command."""
        ...

    def take(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        """Return the steps that take due snapshots; they run before the copying engine's survey."""
        ...

    def prune_source(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        """Return the steps that remove what [snapshots] no longer keeps; run after copy and bookmark are there."""
        ...

    def prune_target(self, job: Job, folder: str) -> tuple[Step, ...]:
        """Return the steps that remove from the copy what [keep] does not keep; run after the copy is confirmed."""
        ...

    def told(self, words: str) -> tuple[str, ...]:
        """Return warnings from the last output of such a step that succeeded."""
        ...

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        """Return the error for a failure: what happened, what it means, what to do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPair:
    """One snapshot to list on both sides. `name`: the name that findings use for it.

    Each step keeps its output in a local file: NUL-terminated records as `verify.listing` reads them, and between them
    `path//=algorithm:digest` for files, `//!words` for what could not be read; `//~` says that nothing is missing.
    """

    name: bytes
    source: Step
    target: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """The result of a survey of both sides of a copy, and the steps that compare the contents.

    `point`: the restore point that the verdict is about; None: the copy's root holds none. `checked`: how many snapshots
    both sides hold, of so many `datasets`. `stages`: pairs that are listed side by side.
    """

    point: str | None
    checked: int
    datasets: int
    findings: tuple[Finding, ...]
    stages: tuple[tuple[SnapshotPair, ...], ...] = ()
    warnings: tuple[str, ...] = ()


@runtime_checkable
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


@runtime_checkable
class Forecaster(Protocol):
    """An engine that records on the source what each pool has, so that the next copy can be predicted in its absence."""

    def bases(self, job: Job, pool_guid: int, reader: Reader) -> "tuple[IncrementBase, ...]":
        """Return the base of the next copy for each dataset of the source."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A hold or bookmark of ours that keeps a snapshot, or the record of one, on a pool.

    `kind`: "hold" or "bookmark"; `at`: the snapshot or bookmark; `target`: the pool it is kept for, by its name where that is
    known, else by its guid. `tag`: of a hold. `bytes`: room that only this keeps taken. `job`: who still wants it; None:
    nobody, so it may go.
    """

    kind: str
    at: Location
    target: str
    since: datetime | None
    bytes: int | None
    job: str | None
    why: str
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinReport:
    """All pins that a survey found, and the places that it could not read."""

    pins: tuple[Pin, ...]
    unseen: tuple[tuple[Location, str], ...] = ()


@runtime_checkable
class PinInspector(Protocol):
    """An engine that leaves pins behind, on the source for each target."""

    def survey_pins(self, jobs: tuple[Job, ...], reader: Callable[[Job], Reader]) -> Any:
        """Return all pins on the pools of the jobs' sources and places, read in one command for each pool."""
        ...

    def judge_pins(self, jobs: tuple[Job, ...], seen: Any, now: datetime) -> PinReport:
        """Return all pins, each with the job that still needs it and the reason."""
        ...

    def plan_release(self, seen: Any, pins: PinReport) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
        """Return the steps that release unneeded pins, for each pool; the job represents the pool."""
        ...
