"""How bookmarks and holds of ours are called on the source, so that a later run knows for which copy each is.

A name tells the target's pool by its guid, the copy there by its place, and the snapshot by its guid. Older names tell no
place: they may be any job's that copies the dataset into that pool.
"""

import re
from zlib import crc32

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location

HOLD = "poolferry"  # every hold's tag begins with it
CURSOR = "poolferry"  # and every bookmark's name
_KEEPER = r"([0-9a-f]{16})(?:_([0-9a-f]{8}))?"
_MARK = re.compile(rf"{CURSOR}_(held_)?{_KEEPER}_([0-9a-f]{{16}})")
_TAG = re.compile(rf"{HOLD}_{_KEEPER}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """For which copy something is kept: the guid of its pool, and its place there; an older name tells none."""

    pool: int
    place: str | None = None

    def __str__(self) -> str:
        return f"{self.pool:016x}" + (f"_{self.place}" if self.place else "")


def keeper_of(pool_guid: int, copy: Location) -> Keeper:
    """The keeper of a job's copy. Why not the pool's name: it may be imported under another one."""
    below = copy.path.partition("/")[2]
    return Keeper(pool=pool_guid, place=f"{crc32(below.encode('utf-8', 'surrogateescape')):08x}")


def cursor_name(keeper: Keeper, guid: int) -> str:
    """The bookmark that remembers, for one copy, a snapshot that was sent there."""
    return f"{CURSOR}_{keeper}_{guid:016x}"


def held_name(keeper: Keeper, guid: int) -> str:
    """The bookmark that says: a hold of ours keeps this snapshot for this copy.

    Why: a listing tells bookmarks at once, and holds only snapshot by snapshot.
    """
    return f"{CURSOR}_held_{keeper}_{guid:016x}"


def hold_tag(keeper: Keeper) -> str:
    """The tag of a hold that keeps a snapshot which one copy's token needs."""
    return f"{HOLD}_{keeper}"


def cursor_keeper(name: str) -> Keeper | None:
    """For which copy a bookmark remembers a snapshot; None: it is no such bookmark of ours."""
    found = _MARK.fullmatch(name)
    return _keeper(found[2], found[3]) if found and not found[1] else None


def held_keeper(name: str) -> Keeper | None:
    """For which copy a bookmark tells of a hold; None: it tells of none."""
    found = _MARK.fullmatch(name)
    return _keeper(found[2], found[3]) if found and found[1] else None


def tag_keeper(tag: str) -> Keeper | None:
    """For which copy a hold is; None: it is none of ours."""
    found = _TAG.fullmatch(tag)
    return _keeper(found[1], found[2]) if found else None


def _keeper(pool: str, place: str | None) -> Keeper:
    return Keeper(pool=int(pool, 16), place=place)
