"""The core of every engine (survey, plan, explain), the request of a run, and the check for a protocol.

Why not isinstance with runtime_checkable: it imports `inspect` on Python 3.12 and later, which costs each run too much time.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Confirmation, Decision, Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.source_tree import SourceTree

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from orchestrator.domain.arrival import PointRemoval, ReceivedPoint
    from orchestrator.process.executor import Reader  # 3 ms with what starts programs, and `status` starts none
    from orchestrator.process.pipeline import PipelineFailed


ListedEntry = tuple[
    bytes, bytes, bytes, bytes, bytes
]  # its record in a review's listing; path, kind, inode, time of change


class BareScan(Protocol):
    """A look, beside a listing, whether any entry has access lists or attributes. `batch`: so many entries it takes at once."""

    batch: int

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def take(self, entries: list[ListedEntry]) -> None:
        """Look at the next entries of the listing."""

    @property
    def digests(self) -> tuple[bytes, ...] | None:
        """Return what a review of the copy knows the same entries by; None: some have attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The request of a run: its nominal time, the guards that may pass once, and a local folder for its notes.

    `notes` holds an empty folder `empty`. `retain`: selects, from names with their creation times, those that [keep] would
    keep. `again`: an attempt of this run has failed, so a survey passes nothing over. `judge`: decides which points that others
    sent here go, or why none may; None: the engine prunes none. `brought`: returns the names of points that runs of this machine made at the
    place, or found as new as the source. `missed`: returns the names of points that were at the place
    and that we never removed: whatever remains of one stays, as the point may come back. `looks`: a local folder in which the
    engine may remember what it saw; empty: it remembers nothing. `bare`: begins a look whether any entry of a folder here has attributes;
    its second argument is the time of change, in nanoseconds, from which one may change once more without a sign. `left_out`: parts
    of the source that are not to be copied now, each with the reason. `crowded`: an attempt of this run met a file that could have no more
    names. `refused`: the entries that the target did not take in an earlier attempt of this run, each with the reason; `unnamed`: how
    many attempts of this run met a refused entry that nothing names.
    """

    now: datetime
    notes: str
    allowed: frozenset[str] = frozenset()
    remembered: Mapping[str, str] = field(default_factory=dict)
    retain: Callable[[tuple[tuple[str, datetime], ...]], frozenset[str]] | None = None
    again: bool = False
    crowded: bool = False
    refused: Mapping[bytes, str] = field(default_factory=dict)
    unnamed: int = 0
    missed: Callable[[], frozenset[str]] = frozenset
    brought: Callable[[], frozenset[str]] = frozenset
    looks: str = ""
    bare: "Callable[[str, int], BareScan] | None" = None
    judge: "Callable[[tuple[ReceivedPoint, ...]], tuple[PointRemoval, ...] | Refusal] | None" = None
    left_out: Mapping[str, Refusal] = field(default_factory=dict)


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
        """Return the bytes moved so far, from the count of bytes between the first program and the second."""
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
    """The entries that a copy left out: `unreadable` (name, reason), and names that vanished during the copy.

    `unmade`: those that are not carried, as they are too large (name, reason). `unlinked`: names that the target's filesystem did not give
    to a file (name, reason); the copy may have made a file of its own of them, which only a listing of it shows.
    `unstored`: what the target does not hold as it is at the source (name, what), as only the comparison after the copy can name it;
    and `more_unstored` others. `refused`: so many errors told before that some are of that kind.
    """

    unreadable: tuple[tuple[bytes, str], ...] = ()
    unmade: tuple[tuple[bytes, str], ...] = ()
    unlinked: tuple[tuple[bytes, str], ...] = ()
    vanished: tuple[bytes, ...] = ()
    unstored: tuple[tuple[bytes, str], ...] = ()
    more_unstored: int = 0
    refused: int = 0

    @property
    def missing(self) -> tuple[bytes, ...]:
        """Return the names that the source has and the copy lacks, so that the manifest lists them as missing."""
        return tuple(name for name, _ in (*self.unreadable, *self.unmade, *self.unlinked))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageResults:
    """The results that the successful steps of a stage promised, and their measures. `recorded`: the counts of the new manifest; None: there is none.

    `uncertain`: what the failed steps promised. It may be there all the same, as a program can die after its work is done.
    """

    confirmations: tuple[Confirmation, ...]
    uncertain: tuple[Confirmation, ...] = ()
    meters: tuple[ProgressMeter, ...] = ()
    left_out: tuple[SkippedEntries, ...] = ()
    recorded: ManifestCounts | None = None


class Engine(Protocol):
    """One way of copying. The results of `survey` and the options are the engine's own types: here they are Any."""

    name: str
    options: type
    needs_datasets: bool
    stays: bool  # works on the source alone, so its jobs name no target
    without: tuple[str, ...]  # sections of a job file, and keys such as "pipe.transport", that it does not use
    guards: tuple[str, ...]  # its own guards that --allow may switch off once
    no_files: tuple[str, str]  # why its points are not restored as files, and what to do instead; empty where they are

    def mistakes(
        self, options: Any, source: SourceTree, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        """Return (key, mistake, expected value) for keys that contradict each other; "rsync.excludes[2]" is the third element of a list."""
        ...

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        """Return the location, inside a place, of the copy of a source."""
        ...

    def advise(self, job: Job, reader: "Reader") -> tuple[SystemCheckResult, ...]:
        """Check programs, versions, reachability and free space for `check --system`."""
        ...

    def survey(self, job: Job, request: RunRequest, reader: "Reader") -> Any:
        """Return everything that a plan needs, read in a constant number of commands."""
        ...

    def later(self, request: RunRequest) -> tuple[str, ...]:
        """Return the modules that nothing needs before the survey's first program has started: they are imported while it runs."""
        ...

    def plan(self, job: Job, world: Any, request: RunRequest) -> Decision:
        """Decide the actions of a run."""
        ...

    def points(self, job: Job, reader: "Reader") -> tuple[RestorePoint, ...]:
        """Return the restore points that the target really holds, oldest first."""
        ...

    def explain(self, broken: "PipelineFailed") -> OrchestratorError:
        """Return the error for a failure: what happened, what it means, what to do."""
        ...


P = TypeVar("P")


def implements(engine: object, protocol: type[P]) -> "TypeIs[P]":
    """Return True when the engine has each method that the protocol names."""
    return all(hasattr(engine, name) for name in vars(protocol) if not name.startswith("_"))
