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
    pool's own dataset, where that is the destination; None: unknown.
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


def is_restored_by_us(dataset: Dataset) -> bool:
    """Return whether an earlier restore left the dataset incomplete, or without its last settings."""
    return dataset.flags is not None and dataset.flags.backup
