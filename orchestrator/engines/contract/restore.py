"""Engines whose copies can be restored, as trees of files or as datasets."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest, NextBase, SnapshotView
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, MountPoint
from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.comparison import ComparisonPlan
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """The request of a restore. `size`: of all of the point, where history knows it.

    `notes`: the folder for lists of what several programs copy side by side; empty: one program copies it all. `anew`: the disk may
    have lost what an earlier try wrote, so each file is copied again.
    """

    point: RestorePoint
    path: bytes  # below the point; b"" is all of it
    to: Location
    size: Bytes | None = None
    notes: str = ""
    anew: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationSurvey:
    """The state of a restore's destination, and the kind of entry that the point holds at the requested path.

    `kind`: "absent", "folder" or "other"; `unfinished`: (job, point, path as shown) of an interrupted restore; `wanted`: "folder", "file" or
    "absent"; `to`: the destination itself, when a file is restored into a folder. `mounts`: mount points below it, which count
    as no entries; `filling`: those of them into which the unfinished restore writes files. `half`: what that left half-copied, in
    the engine's own form. `split`: what several programs copy side by side, in that form, too; empty: one copies it all. `holes`: some
    of the requested files have holes, or may have. `ahead`: so many programs, which are quicker, write its small files first; `large`: files
    that such programs write, too, each with its bytes.
    """

    kind: str
    entries: int
    examples: tuple[bytes, ...]
    unfinished: tuple[str, str, str] | None
    wanted: str
    to: Location
    mounts: tuple[MountPoint, ...] = ()
    filling: tuple[bytes, ...] = ()
    half: tuple[Any, ...] = ()
    split: tuple[Any, ...] = ()
    holes: bool = True
    ahead: int = 0
    large: tuple[tuple[bytes, int], ...] = ()


class FileRestorer(Protocol):
    """An engine whose points are restored as trees of files."""

    def survey_restore(self, job: Job, wanted: RestoreRequest, reader: Reader) -> DestinationSurvey:
        """Return a survey of the requested data and of the destination."""
        ...

    def plan_restore(self, job: Job, wanted: RestoreRequest, seen: DestinationSurvey, *, aside: str | None) -> Plan:
        """Return the plan of a restore; `aside`: existing data at the destination are first renamed to this name."""
        ...


class DatasetRestorer(Protocol):
    """An engine that can send its copies back; interrupted parts are resumed, and each part is planned from its own survey."""

    def partial_points(self, job: Job, kit: str | None, reader: Reader) -> Mapping[str, tuple[str, ...]]:
        """Return the points that lack datasets, as the copy alone shows: each with the full names of those at the source."""
        ...

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

    def survey_lost_rights(self, job: Job, kit: str, now: datetime, reader: Reader) -> tuple[tuple[str, ...], str]:
        """Return lines for rights, holds and bookmarks that a kit records and no stream brings, each with its hint.

        The second value is one line on values that were set on the source, and are received ones now.
        """
        ...

    def survey_files(self, job: Job, path: bytes, point: RestorePoint, reader: Reader) -> SnapshotView | Refusal:
        """Return the location of the files below a path, as of a point."""
        ...

    def chain(self, world: Any) -> NextBase:
        """Return the state from which the next run continues."""
        ...
