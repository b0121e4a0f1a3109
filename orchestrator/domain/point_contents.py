"""The contents of restore points by their manifests: entries, versions of one path, and differences between two points."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEntry:
    """One entry of a point. `kind`: "file", "directory", "symlink" …; `target`: of a symlink; `digest`: of a file, if it was read;
    `attributes`: its access list and attributes, if they were read.
    """

    path: bytes
    kind: str
    size: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    target: bytes = b""
    digest: str = ""
    attributes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPoint:
    """A point that was looked into, and the disk on which it lies; empty: the job's own place."""

    name: str
    disk: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryInPoint:
    """The entry of one path in one point. `entry` None: the point holds none; `listed` False: it has no manifest that says so."""

    point: ContentPoint
    entry: PointEntry | None
    listed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """One version of an entry, the same in `points` points in a row: from `first` to `last`."""

    entry: PointEntry
    first: str
    last: str
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersions:
    """All versions of one path, oldest first."""

    path: bytes
    versions: tuple[VersionRange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """One entry that differs between two points. `before` None: it was added; `after` None: it was removed."""

    before: PointEntry | None
    after: PointEntry | None

    @property
    def entry(self) -> PointEntry:
        """Return the entry as it is now, or as it was before it was removed."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change has an entry on one side at least")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One entry that a run would carry. `change`: "added", "changed", "removed", or "metadata" (mode, owner, link, attributes).

    `bytes`: size of a regular file to copy; None for all else.
    """

    path: bytes
    change: str
    folder: bool
    bytes: int | None
