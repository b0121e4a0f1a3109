"""Engines that copy: their reports before, during and after a copy; and the removal of points."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from orchestrator.domain.errors import EntriesRefused
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Plan, Refusal, Step
from orchestrator.domain.point import Changes, RestorePoint
from orchestrator.engines.contract.engine import ProgressMeter, RunRequest, SkippedEntries, StageResults
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

if TYPE_CHECKING:
    from orchestrator.domain.point_contents import PlannedFile
    from orchestrator.domain.rotation import IncrementBase


class Copier(Protocol):
    """An engine that carries data from a source to a target."""

    def meter(self) -> ProgressMeter:
        """Return a new meter for one copying step."""
        ...

    def space(self, world: Any) -> str:
        """Return the space that a copy needed and the free space of its target, as far as the survey knows."""
        ...

    def holds_copies(self, job: Job, world: Any) -> bool:
        """Return whether the survey found copies of this job at its target."""
        ...


class ChangeReporter(Protocol):
    """An engine whose survey lists the differences between source and newest copy, for the guards."""

    def changes(self, world: Any) -> Changes | None:
        """Return the differences between source and newest copy, for the guards."""
        ...

    def newest(self, world: Any) -> RestorePoint | None:
        """Return the newest point that the survey found."""
        ...

    def ground(self, world: Any) -> Mapping[str, tuple[str, bool]]:
        """Return for each folder of the source its filesystem, and whether it is the root of that filesystem, for the guards.

        A source of one folder has the name "".
        """
        ...


class MoveFinder(Protocol):
    """An engine that knows moved entries again, so that a renamed folder is not taken for a loss."""

    def find_moved(self, job: Job, world: Any, reader: Reader) -> Mapping[bytes, int]:
        """Return how many entries of the newest point lie elsewhere in the source now, by top folder."""
        ...


class FileForecaster(Protocol):
    """An engine that can name the files of the next run."""

    def forecast_files(self, job: Job, request: RunRequest, reader: Reader) -> "Iterator[PlannedFile]":
        """Yield the entries that a run would add, change or remove now. Raises: OrchestratorError."""
        ...


class LookRecorder(Protocol):
    """An engine that records how source and newest point are when they are equal, so that the next survey reads less."""

    def record_look(
        self, job: Job, world: Any, request: RunRequest, point: str, reader: Reader, *, touched: bool
    ) -> None:
        """Record both. `touched`: since they were compared the run read or removed points.

        Raises: OrchestratorError · PipelineFailed · OSError.
        """
        ...


class PointLister(Protocol):
    """An engine whose points nobody but us removes, and whose survey lists them: one that vanished is a loss.

    Behind a gate the other machine removes some, and never the newest.
    """

    def surveyed_points(self, job: Job, world: Any) -> tuple[RestorePoint, ...] | None:
        """Return the points that a survey found, oldest first; None where the survey says nothing about them."""
        ...

    def is_own_place(self, job: Job, reader: Reader) -> bool:
        """Return whether the place says of itself that it holds the copies of this job. Raises: OrchestratorError."""
        ...

    def pruned_there(self, world: Any) -> bool:
        """Return whether the machine that holds the points prunes them by its own rules, and our key cannot."""
        ...


class PlaceIdentifier(Protocol):
    """An engine that knows a copy again, so that another one with points of the same names is not taken for it."""

    def place_identity(self, world: Any) -> str | None:
        """Return the identity of the surveyed copy; empty: there is none at the place; None: the place could not be seen."""
        ...

    def find_place_identity(self, job: Job, reader: Reader) -> str | None:
        """Look for the identity of the copy at the job's place. Raises: OrchestratorError."""
        ...


class CopyFinder(Protocol):
    """An engine that finds a copy by its identity where it lies now, when its place has none any more."""

    def explain_moved_copy(self, job: Job, remembered: Mapping[str, str], reader: Reader) -> Refusal | None:
        """Return the refusal that says where the copy of the last run lies now, and how to go on; None: nowhere that is seen.

        `remembered`: the small facts of the job.
        """
        ...


class SourceIdentifier(Protocol):
    """An engine that knows its source again, so that one that was made anew is not taken for the old one."""

    def identity(self, world: Any) -> str:
        """Return the identity of the surveyed source, for history to remember after a good run; empty: it is not there."""
        ...

    def identity_of_kit(self, content: str) -> str:
        """Return the identity that a recovery kit records; empty: none."""
        ...

    def waiting(self, world: Any) -> tuple[str, ...]:
        """Return the parts of the surveyed source that are restored and wait for a key or for their mountpoint."""
        ...


class CompletenessReporter(Protocol):
    """An engine whose copies have parts, each with points of its own."""

    def incomplete_points(
        self, job: Job, world: Any, known: Mapping[str, tuple[str, ...]], reader: Reader
    ) -> Mapping[str, tuple[str, ...]]:
        """Return each point of the copy with the parts that lack it, though the source has it; none: it is whole.

        `known`: the parts that lacked a point before. What the surveyed source cannot show any more stays as it was. Empty:
        nothing can be judged.
        """
        ...


class SizeEstimator(Protocol):
    """An engine whose programs can estimate what a copy will move."""

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        """Return the plan with the expected sizes of its copies, where only the programs can estimate them."""
        ...


class PartialCopier(Protocol):
    """An engine whose copy may leave out single entries and still count as done."""

    def left_out(self, broken: PipelineFailed, errors: bytes, job: Job) -> SkippedEntries | None:
        """Return the entries left out, when a failed copying step still counts as done; else None."""
        ...

    def refused(self, broken: PipelineFailed, errors: bytes, job: Job, moved: str | None) -> EntriesRefused | None:
        """Return the error that names the entries that the target does not take, where nothing else failed. `moved`: the step's kept output."""
        ...


class PointRemover(Protocol):
    """An engine that removes restore points by [keep]."""

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the steps of one stage that remove points."""
        ...


class Confirmer(Protocol):
    """An engine that checks whether the results of a stage are there."""

    def confirm(self, stage: StageResults, reader: Reader) -> None:
        """Check that the expected results of a stage's steps are there. Raises: VerificationFailed."""
        ...


class SilentMeter:
    """The meter of an engine that copies nothing."""

    expected = None

    def feed(self, chunk: bytes) -> int | None:
        """Return None: no output of such an engine counts bytes."""
        return None

    def heard(self, chunk: bytes) -> None:
        """Ignore the output of the programs."""

    def passed(self, count: int) -> int:
        """Return the count itself."""
        return count

    def moved(self) -> int | None:
        """Return None: nothing was moved."""
        return None


class Forecaster(Protocol):
    """An engine that records on the source what each pool has, so that the next copy can be predicted in its absence."""

    def bases(self, job: Job, pool_guid: int, reader: Reader) -> "tuple[IncrementBase, ...]":
        """Return the base of the next copy for each dataset of the source."""
        ...


class SpaceChecker(Protocol):
    """An engine that can find out before a copy that its target has not enough free space."""

    def check_space(self, job: Job, world: Any, plan: Plan, request: RunRequest, reader: Reader) -> Plan | Refusal:
        """Return the plan, with a warning if it may not fit; or a refusal with what could be removed there. Raises: Stopped."""
        ...
