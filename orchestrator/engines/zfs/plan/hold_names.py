"""The names of our bookmarks and holds on the source, which show a later run the copy that each one is for.

A name holds the guid of the target's pool, the place of the copy there, and the guid of the snapshot. Older names hold no
place: they may belong to any job that copies the dataset into that pool.
"""

import re
from zlib import crc32

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location

HOLD = "poolferry"  # every hold's tag begins with it
CURSOR = "poolferry"  # and every bookmark's name
_TARGET_ID = r"([0-9a-f]{16})(?:_([0-9a-f]{8}))?"
_BOOKMARK = re.compile(rf"{CURSOR}_(held_)?{_TARGET_ID}_([0-9a-f]{{16}})")
LONGEST_NAME = 255  # bytes of a dataset's or snapshot's whole name. Source: openzfs, ZFS_MAX_DATASET_NAME_LEN
DEEPEST = (
    50  # datasets from the pool's own on down, where the module is as it comes. Source: zfs(4), zfs_max_dataset_nesting
)
_LONGEST_MARK = len(f"#{CURSOR}_held_") + 16 + len("_") + 8 + len("_") + 16
_TAG = re.compile(rf"{HOLD}_{_TARGET_ID}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationTargetId:
    """A replication target id: the guid of the copy's pool, and its place there; an older name has no place."""

    pool: int
    place: str | None = None

    def __str__(self) -> str:
        return f"{self.pool:016x}" + (f"_{self.place}" if self.place else "")


def replication_target_id(pool_guid: int, copy: Location) -> ReplicationTargetId:
    """Return the replication target id of a copy. Why no pool name: the pool may be imported under another name."""
    below = copy.path.partition("/")[2]
    return ReplicationTargetId(pool=pool_guid, place=f"{crc32(below.encode('utf-8', 'surrogateescape')):08x}")


def cursor_bookmark_name(target_id: ReplicationTargetId, guid: int) -> str:
    """Return the name of the bookmark that records, for one copy, a snapshot that was sent there."""
    return f"{CURSOR}_{target_id}_{guid:016x}"


def hold_bookmark_name(target_id: ReplicationTargetId, guid: int) -> str:
    """Return the name of the bookmark that records our hold on a snapshot for one copy.

    Why: one listing shows all bookmarks, but holds only snapshot by snapshot.
    """
    return f"{CURSOR}_held_{target_id}_{guid:016x}"


def fits_bookmark(dataset: str) -> bool:
    """Return whether the longest of our bookmarks has room behind a dataset's name."""
    return len(dataset.encode("utf-8", "surrogateescape")) + _LONGEST_MARK <= LONGEST_NAME


def hold_tag(target_id: ReplicationTargetId) -> str:
    """Return the tag of a hold on a snapshot that one copy's token needs."""
    return f"{HOLD}_{target_id}"


def parse_cursor_bookmark(name: str) -> ReplicationTargetId | None:
    """Return the replication target id of a bookmark that records a sent snapshot; None: it is no such one of ours."""
    found = _BOOKMARK.fullmatch(name)
    return _parse_target_id(found[2], found[3]) if found and not found[1] else None


def parse_hold_bookmark(name: str) -> ReplicationTargetId | None:
    """Return the replication target id of a bookmark that records a hold; None: it is no such one of ours."""
    found = _BOOKMARK.fullmatch(name)
    return _parse_target_id(found[2], found[3]) if found and found[1] else None


def parse_bookmark_guid(name: str) -> int:
    """Return the guid of the snapshot that a bookmark of ours is for. Raises: ValueError for any other name."""
    found = _BOOKMARK.fullmatch(name)
    if found is None:
        raise ValueError(f"no bookmark of ours: {name}")
    return int(found[4], 16)


def parse_hold_tag(tag: str) -> ReplicationTargetId | None:
    """Return the replication target id of a hold; None: it is not ours."""
    found = _TAG.fullmatch(tag)
    return _parse_target_id(found[1], found[2]) if found else None


def _parse_target_id(pool: str, place: str | None) -> ReplicationTargetId:
    return ReplicationTargetId(pool=int(pool, 16), place=place)
