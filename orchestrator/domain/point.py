"""Restore points, and what is known of the bytes in them."""

from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One complete copy as it was at `taken`. `manifest` None: there is none, so nothing can be proved of it."""

    name: str
    taken: datetime
    tree: Location
    manifest: Location | None
    damaged: bool = False  # a reading found damage in it
    apart: tuple[bytes, ...] = ()  # names in the tree's root that are no part of it


class Verdict(StrEnum):
    """What a reading of one entry says, against the manifest."""

    MISSING = "missing"
    EXTRA = "extra"
    EDITED = "edited"  # size or mtime differ, and the digest
    ROTTEN = "rotten"  # size and mtime as promised, the digest is another
    METADATA = "metadata"  # bytes as promised; mode, owner, mtime or link target differ
    UNREADABLE = "unreadable"
    UNPROVED = "unproved"  # the manifest itself holds no digest: it could not be read when it was copied


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One entry that is not as promised."""

    path: bytes
    verdict: Verdict
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The result of verifying one tree: what was read, and what was found. `findings` holds the first ones; `counts` all."""

    entries: int
    files_read: int
    bytes_read: int
    took_s: float
    counts: tuple[tuple[Verdict, int], ...]
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Every promise of the manifest held (an entry the manifest never had a digest for is not a broken promise)."""
        return not any(count for verdict, count in self.counts if verdict is not Verdict.UNPROVED)
