"""What an engine promises: look, decide, confirm, explain. rsync now; zfs, sanoid, btrfs are further folders.

The runner does the rest: locks, records, runs the pipelines of the plan, asks for the proofs, retries from the look.
An engine never starts a program by itself: `survey` and `confirm` are handed a Reader, which refuses to change things.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from orchestrator.domain.changes import Changes
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import Job, Snapshots, Verify
from orchestrator.domain.mounts import Mounted
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Pipeline, Plan, Proof, Refusal, Step
from orchestrator.domain.point import Finding, Point
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import Broken

if TYPE_CHECKING:
    from orchestrator.domain.rotation import Base


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run was asked for: the instant it counts as, what may pass once, and a local folder for its notes.

    `notes` holds an empty folder `empty`. `retain`: of names with the instants they were taken, those that [keep] would keep.
    """

    now: datetime
    notes: str
    allowed: frozenset[str] = frozenset()
    remembered: Mapping[str, str] = field(default_factory=dict)
    retain: Callable[[tuple[tuple[str, datetime], ...]], frozenset[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a restore was asked for."""

    point: Point
    path: bytes  # below the point; b"" is all of it
    to: Location


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSeen:
    """What lies where a restore shall go, and what the point holds under the wanted path.

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
    mounts: tuple[Mounted, ...] = ()
    filling: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One finding of `check --system`: `good`; or a sentence that says what to do, where `hinders` runs cannot work."""

    good: bool
    subject: str
    text: str
    hinders: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a manifest holds."""

    entries: int
    files: int
    bytes: int


class Meter(Protocol):
    """Reads one copying step's output as it comes."""

    def feed(self, chunk: bytes) -> int | None:
        """Bytes moved so far by the last program's own output, or None when this chunk does not tell."""
        ...

    def heard(self, chunk: bytes) -> None:
        """What the programs say beside their output."""
        ...

    def passed(self, count: int) -> int:
        """Bytes moved so far, of all that went from the first program to the second."""
        ...

    @property
    def expected(self) -> int | None:
        """What the program itself said it would move; None: it did not."""
        ...

    def moved(self) -> int | None:
        """Bytes that really travelled, by the program's own account at its end; else the best estimate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """What a copy that ended had to leave out: `unreadable` (name, why), and names that vanished under it."""

    unreadable: tuple[tuple[bytes, str], ...] = ()
    vanished: tuple[bytes, ...] = ()


class Engine(Protocol):
    """One way of copying. Worlds (`survey`) and options are the engine's own words, so they pass here as Any."""

    name: str
    options: type
    wants_datasets: bool
    stays: bool  # works on the source alone, so its jobs name no target
    without: tuple[str, ...]  # sections of a job file, and keys as "pipe.transport", that mean nothing to it
    guards: tuple[str, ...]  # what of its own may pass once, by --allow
    later: tuple[str, ...]  # modules that nothing needs before the look: they are imported while it runs

    def mistakes(
        self, options: Any, source: Location, target: Location, verify: Verify
    ) -> Iterable[tuple[str, str, str]]:
        """(key, what is wrong, what is expected) for keys that do not fit together."""
        ...

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        """Where in a place the copy of a source lies."""
        ...

    def advise(self, job: Job, reader: Reader) -> tuple[Advice, ...]:
        """Programs, versions, reachability and room for `check --system`."""
        ...

    def survey(self, job: Job, asked: Asked, reader: Reader) -> Any:
        """Everything a plan needs to know, in a constant number of commands."""
        ...

    def changes(self, world: Any) -> Changes | None:
        """What differs between source and newest copy, for the guards."""
        ...

    def newest(self, world: Any) -> Point | None:
        """The newest point that the survey saw."""
        ...

    def ground(self, world: Any) -> tuple[str, bool]:
        """Which filesystem the source lies on, and whether it is one of its own, for the guards."""
        ...

    def plan(self, job: Job, world: Any, asked: Asked) -> Decision:
        """What to do."""
        ...

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        """The plan with what its copies are expected to move, where only the programs can tell."""
        ...

    def points(self, job: Job, reader: Reader) -> tuple[Point, ...]:
        """The restore points that the target really holds, oldest first."""
        ...

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        """The steps of one stage that remove points."""
        ...

    def survey_restore(self, job: Job, wanted: Wanted, reader: Reader) -> DestinationSeen:
        """A look at what is wanted and where it shall go."""
        ...

    def plan_restore(self, job: Job, wanted: Wanted, seen: DestinationSeen, *, aside: str | None) -> Plan:
        """How to bring data back; `aside`: the name that what lies there gets first."""
        ...

    def meter(self) -> Meter:
        """A fresh meter for one copying step."""
        ...

    def left_out(self, broken: Broken, errors: Iterable[bytes], job: Job) -> LeftOut | None:
        """What was left out, when a copying step that failed still counts as done; else None."""
        ...

    def explain(self, broken: Broken) -> OrchestratorError:
        """What happened, what it means, what to do."""
        ...

    def room(self, world: Any) -> str:
        """How much room a copy needed and its target had, as far as the look could tell."""
        ...

    def confirm(
        self,
        proofs: tuple[Proof, ...],
        meters: tuple[Meter, ...],
        left_out: tuple[LeftOut, ...],
        recorded: Recorded | None,
        reader: Reader,
    ) -> None:
        """Look whether the promises of a stage's steps hold. Raises: ProofFailed."""
        ...


@runtime_checkable
class OfTrees(Protocol):
    """An engine whose copies are trees of files: points have manifests, and small files of ours lie beside them."""

    def moved(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        """(path, digest with its algorithm in front, "" where none is told) of each file that a kept output names."""
        ...

    def digests(
        self, tree: Location, names: str, empty: str, algorithm: str, job: Job
    ) -> tuple[Pipeline, Callable[[Iterable[bytes]], Iterator[tuple[bytes, str]]]]:
        """How files of a tree elsewhere are read there: the pipeline, and what its output lines mean.

        `names`: a local file with NUL-terminated paths; `empty`: an empty local folder. Raises: ValueError for an
        algorithm that cannot be made there.
        """
        ...

    def plan_sample(self, job: Job, point: Point, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
        """Brings some files of a point back into an empty folder, each in its place. `notes`: a local folder."""
        ...

    def damage_note(self, point: Point) -> Location | None:
        """Where damaged entries of a point are noted for the next survey; None: this engine needs no note."""
        ...

    def recovery(self, job: Job, made: datetime) -> str:
        """The page that tells how files come back without us."""
        ...

    def store(self, local: str, file: Location) -> Pipeline:
        """Carries a small local file to the target, whole or not at all."""
        ...

    def fetch(self, file: Location, local: str) -> Pipeline:
        """Brings a small file of the target here."""
        ...


@runtime_checkable
class OfDatasets(Protocol):
    """The section of an engine whose source is a dataset: which of those below the source belong to it."""

    @property
    def recursive(self) -> bool: ...

    @property
    def exclude(self) -> tuple[str, ...]: ...


class Snapshotter(Protocol):
    """Takes and removes snapshots by a job's [snapshots], before and after another engine's copies.

    `folder`: a local folder of the job's own that stays between its runs. Steps of these plans are explained here too.
    """

    def snapshot_mistakes(
        self, snapshots: Snapshots, source: Location, copy: Location | None
    ) -> Iterable[tuple[str, str, str]]:
        """(key, what is wrong, what is expected) of [snapshots]."""
        ...

    def survey_snapshots(self, job: Job, reader: Reader) -> Any:
        """What is there and what time it is there, in one command."""
        ...

    def take(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        """Takes what is due; to be done before the look of the copying engine."""
        ...

    def prune_source(self, job: Job, world: Any, folder: str) -> tuple[Step, ...]:
        """Removes what [snapshots] no longer keeps; only once the copy is proved, and its bookmark is there."""
        ...

    def prune_target(self, job: Job, folder: str) -> tuple[Step, ...]:
        """Removes from the copy what [keep] does not keep; only once the copy is proved."""
        ...

    def told(self, words: str) -> tuple[str, ...]:
        """Warnings out of the last words of such a step that ended well."""
        ...

    def explain(self, broken: Broken) -> OrchestratorError:
        """What happened, what it means, what to do."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One snapshot to be listed on both sides. `name`: what findings in it are called by.

    Each step keeps its output in a local file: NUL-terminated records as `verify.listing` reads them, and between them
    `path//=algorithm:digest` for files, `//!words` for what could not be read; `//~` says that nothing is missing.
    """

    name: bytes
    source: Step
    target: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a look at both sides tells of a copy, and how its contents are compared.

    `point`: the restore point that the verdict is about; None: the copy's root holds none. `checked`: how many snapshots
    both sides hold, of so many `datasets`. `stages`: pairs that are listed side by side.
    """

    point: str | None
    checked: int
    datasets: int
    findings: tuple[Finding, ...]
    stages: tuple[tuple[Pair, ...], ...] = ()
    warnings: tuple[str, ...] = ()


@runtime_checkable
class Comparer(Protocol):
    """An engine whose copies have no manifest: they are proved by comparing both sides."""

    def survey_both(self, job: Job, asked: Asked, reader: Reader, *, content: bool) -> Any:
        """Everything a comparison needs to know, in a constant number of commands."""
        ...

    def plan_comparison(
        self, job: Job, seen: Any, asked: Asked, *, point: str | None, content: bool
    ) -> Comparison | Refusal:
        """What both sides hold, what is not as it should be, and the steps that read the contents."""
        ...


@runtime_checkable
class Forecaster(Protocol):
    """An engine that remembers on the source what each pool has, so that the next copy can be told while that is away."""

    def bases(self, job: Job, pool_guid: int, reader: Reader) -> "tuple[Base, ...]":
        """Of each dataset of the source, what the next copy would start from."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Something of ours that keeps a snapshot, or the memory of one, on a pool.

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
class Pins:
    """All pins that a look found, and where it could not look."""

    pins: tuple[Pin, ...]
    unseen: tuple[tuple[Location, str], ...] = ()


@runtime_checkable
class Pinner(Protocol):
    """An engine that leaves pins behind, on the source for each target."""

    def survey_pins(self, jobs: tuple[Job, ...], reader: Callable[[Job], Reader]) -> Any:
        """All pins on the pools of the jobs' sources and places, in one command for each pool."""
        ...

    def judge_pins(self, jobs: tuple[Job, ...], seen: Any, now: datetime) -> Pins:
        """Which pins somebody still wants, each with the reason."""
        ...

    def plan_letting_go(self, seen: Any, pins: Pins) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
        """The steps that let go of what nobody wants, for each pool; the job stands for the pool."""
        ...
