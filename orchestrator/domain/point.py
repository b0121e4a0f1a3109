"""Restore points, the results of verifying them, and what changed in the source since the newest."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.place import Location
from orchestrator.domain.run import RunReport

MIRROR = "mirror"  # the name by which a tree without points is known where points are named
MIRROR_FILE_TIME = "mirror's file of "  # before a place's name, the same: the file's own time, in whole seconds since 1970, as its filesystem has it
MIRROR_WRITES = "mirror half written on "  # before a place's name, the same: which run began to change it, and when; empty: it is whole
MIRROR_MADE = "mirror made at "  # before a place's name, a small fact of a job: when its last manifest was written


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePoint:
    """One complete copy of the source as it was at `taken`. `manifest` None: without a manifest nothing can be verified."""

    name: str
    taken: datetime
    tree: Location
    manifest: Location | None
    damaged: bool = False  # a reading found damage in it
    apart: tuple[bytes, ...] = ()  # names in the tree's root that are no part of it
    unfinished: bool = (
        False  # a mirror that a run began to change, and did not end: it is partly newer than its manifest
    )
    stored: bool = False  # its tree keeps owners, modes and kinds in attributes, as rsync's --fake-super writes them


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTotals:
    """Totals of the points at a place, as far as reading again goes. `read`: points of which all was read once; `fresh`: lately enough.

    `oldest`: the earliest of each point's newest reading, or of its making where it was never read; `undated`: points of which neither
    is known. `bytes`: of the points whose size is known, which are `sized`.
    """

    points: int
    read: int
    undated: int
    oldest: datetime | None
    sized: int
    bytes: int
    fresh: int
    fresh_bytes: int


class Verdict(StrEnum):
    """Result of reading one entry, compared with the manifest."""

    MISSING = "missing"
    EXTRA = "extra"
    EDITED = "edited"  # size or mtime differ, and the digest
    ROTTEN = "rotten"  # size and mtime as in the manifest, the digest is another
    METADATA = "metadata"  # bytes as in the manifest; mode, owner, mtime or link target differ
    UNREADABLE = "unreadable"
    UNPROVED = "unproved"  # the manifest itself holds no digest: it could not be read when it was copied


_COUNTED = {Verdict.METADATA: "with other metadata", Verdict.UNPROVED: "without a digest"}


def count_words(verdict: Verdict, number: int) -> str:
    """Return a count of entries for people: "2 rotten", "1 with other metadata"."""
    return f"{number} {_COUNTED.get(verdict, verdict.value)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One entry that differs from its manifest entry."""

    path: bytes
    verdict: Verdict
    detail: str

    @property
    def said(self) -> str:
        """Return the verdict as the end of a sentence: "is rotten", "has other metadata"."""
        return (
            "has other metadata"
            if self.verdict is Verdict.METADATA
            else f"is {_COUNTED.get(self.verdict, self.verdict.value)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationResult:
    """Result of verifying one tree. `findings` holds the first findings; `counts` counts all of them."""

    entries: int
    files_read: int
    bytes_read: int
    took_s: float
    counts: tuple[tuple[Verdict, int], ...]
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Return True when all entries match the manifest (an entry that has no digest there is no mismatch)."""
        return not any(count for verdict, count in self.counts if verdict is not Verdict.UNPROVED)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyJobResult:
    """A finished verification. `reading` None: it reached no verdict; `source`: the same for the source, if requested."""

    report: RunReport
    point: str | None
    reading: VerificationResult | None
    source: VerificationResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderChanges:
    """Changes in one top folder: its number of entries before, and how many of them are gone, changed, or elsewhere now."""

    before: int | None
    deleted: int
    changed: int
    moved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Differences that a survey found between the source and the newest restore point. None means unknown.

    `entries_before`, `files_before`: in the newest point; None when there is none. `other`: entries of which only mode, owner,
    times of links or similar data differ. `altered`: the files among them, as far as they are named. `moving`: bytes of the
    files to move. `files_now`, `files_new`, `files_gone`: regular files in the source, and how many of them are new or gone.
    `moved`: entries among the deleted ones that lie at another path now. `device_…`: the filesystem that holds the source,
    identified the same way in both surveys. Why: a device number of btrfs, ZFS or NFS may change with each mount, so for those
    it must be something more stable, or None. `by_part`: the source is several folders, and `folders` counts each of them;
    `emptied`: those that are empty now, and not in the newest point; `unmounted`: those that were mounted at the newest point;
    `given_up`: those that the job named then, and names no more.
    """

    entries_before: int | None
    files_before: int | None
    entries_now: int | None
    deleted: int
    changed: int
    created: int
    other: int = 0
    altered: tuple[bytes, ...] = ()
    moving: int | None = None
    files_now: int | None = None
    files_new: int = 0
    files_gone: int = 0
    moved: int = 0
    folders: Mapping[bytes, FolderChanges] = field(default_factory=dict)
    deleted_examples: tuple[bytes, ...] = ()
    changed_examples: tuple[bytes, ...] = ()
    device_before: int | str | None = None
    device_now: int | str | None = None
    by_part: bool = False
    emptied: tuple[str, ...] = ()
    unmounted: tuple[str, ...] = ()
    given_up: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Return True when the survey found no difference between the source and the newest copy."""
        return not (self.deleted or self.changed or self.created or self.other)
