"""The model of a restore: both sides, their properties, and the remains of an earlier restore."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import Job
from orchestrator.engines.zfs.model import Dataset, ZfsSurvey
from orchestrator.engines.zfs.verify.checksum import ChecksumSupport


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyValue:
    """A property's value; the value received with a stream, even when overridden; the value's source.

    `outside`: a mountpoint without the folder that its pool was imported for (altroot); None: it has none.
    """

    value: str
    received: str | None
    source: str
    outside: str | None = None


Properties = Mapping[str, Mapping[str, PropertyValue]]
Cursor = tuple[str, str, int]  # dataset, bookmark, guid


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRestoreSurvey:
    """A survey of copy and destination. `job`: made for the restore; `world`: the copy, up to the point, is its source.

    `homeward`: the destination is the origin of the copy, so mountpoints and shares return too. `copied`, `home`: properties of
    both by dataset; `mounts`: mounted datasets at the destination; `occupied`: mountpoints there that hold other files. `able`:
    contents were requested. `cursors`: the source's bookmarks for its targets, from its last recovery kit. `inside`: files in a
    pool's own dataset, where that is the destination; None: unknown. `lost`: datasets whose keys a person said to be lost;
    `keyless`: locations of keys that hold no file now; `already`: history knows that a restore to here ended well, and of no run
    since. `short`: datasets that come back as of an earlier snapshot than the one that was asked for, each with that; empty:
    with none, as its first copy was cut. `aside`: datasets of the copy that a run set aside there, and that do not come back; `below`: the
    part of the copy that was asked for.
    """

    job: Job
    world: ZfsSurvey
    homeward: bool
    copied: Properties
    home: Properties
    mounts: Mapping[str, str]
    occupied: frozenset[str] = frozenset()
    bare: tuple[str, ...] = ()
    able: tuple[ChecksumSupport, ChecksumSupport] | None = field(default=None)
    cursors: tuple[Cursor, ...] = ()
    inside: tuple[str, ...] | None = None
    lost: frozenset[str] = frozenset()
    keyless: frozenset[str] = frozenset()
    already: bool = False
    short: Mapping[str, str] = field(default_factory=dict)
    aside: tuple[str, ...] = ()
    below: str = ""


def is_incomplete(dataset: Dataset) -> bool:
    """Return whether an earlier restore left the dataset without all of its data, or without its settings."""
    return dataset.flags is not None and dataset.flags.backup


def is_restored_by_us(dataset: Dataset) -> bool:
    """Return whether an earlier restore left the dataset incomplete, or waiting for its key or its mountpoint."""
    return is_incomplete(dataset) or dataset.waits


def continues(seen: DatasetRestoreSurvey) -> bool:
    """Return whether a restore of this copy to this place left a part that waits; its other datasets may be in use again."""
    copies, there = seen.world.source.datasets, seen.world.target.datasets
    left = any(
        is_restored_by_us(one) and name in copies and shares_snapshot(one, copies[name]) for name, one in there.items()
    )
    return left and all(
        shares_snapshot(one, copies[name]) for name, one in there.items() if name in copies and not one.placeholder
    )


def shares_snapshot(one: Dataset, copy: Dataset) -> bool:
    """Return whether a dataset holds a snapshot of its copy, by guid; or nothing can be expected of it."""
    guids = {each.guid for each in copy.snapshots}
    return not guids or is_incomplete(one) or one.partial or any(each.guid in guids for each in one.snapshots)
