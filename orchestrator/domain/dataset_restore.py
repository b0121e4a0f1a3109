"""Datasets during a restore: the request, and the next part of the work."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Step
from orchestrator.domain.point import RestorePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRestoreRequest:
    """Restore request: all of a copy, or the part `below`; with `until`, nothing newer than that point.

    `kit`: the content of the source's newest recovery kit, which names what the source kept for other targets. `lost_keys`: full
    names of restored datasets whose keys are lost. `newer`: lines on newer points that are partial, and were not chosen for that.
    """

    to: Location
    below: str = ""
    until: RestorePoint | None = None
    kit: str | None = None
    lost_keys: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRestorePlan:
    """Next part of a restore. `whole`: all data is there, only to be verified; `then`: the known later steps.

    `waits`: the datasets that are whole and wait for a key or for their mountpoint; `short`: by full name at the destination, lines for datasets
    that are older than was asked for, or do not come, as the copy does not hold the point of them.
    """

    decision: Decision
    whole: bool = False
    then: tuple[tuple[Step, ...], ...] = ()
    waits: tuple[str, ...] = ()
    short: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NextBase:
    """Base of the next run into a target. `base`: the newest snapshot of the root that both sides hold; None: none.

    `held`: so many of the `datasets` that the target has of the job have one.
    """

    base: str | None
    held: int
    datasets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotView:
    """A snapshot that can be read: `show` makes `tree` its contents, `hide` ends that; `rest`: the requested part.

    `left_out`: datasets that lie below the requested part and are not included. `requested`: the point that was asked for, where
    the dataset may hold only an older one.
    """

    point: RestorePoint
    tree: Location
    rest: bytes
    show: Step
    hide: Step
    left_out: tuple[str, ...] = ()
    requested: RestorePoint | None = None
