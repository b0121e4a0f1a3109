"""Contents of points, versions of files and differences of two points, as lines and as JSON; both one entry at a time."""

import stat
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.domain.names import show_name
from orchestrator.domain.point_contents import (
    ContentPoint,
    EntryChange,
    FileVersions,
    PlannedFile,
    PointEntry,
    VersionRange,
)
from orchestrator.domain.units import show_count, show_size
from orchestrator.planners.entry_versions import changed_parts
from orchestrator.views.format import format_iso

_TYPE_BITS = {
    "file": stat.S_IFREG, "directory": stat.S_IFDIR, "symlink": stat.S_IFLNK, "pipe": stat.S_IFIFO, "socket": stat.S_IFSOCK,
    "block device": stat.S_IFBLK, "character device": stat.S_IFCHR,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def entry_lines(entries: Iterable[PointEntry], below: bytes) -> Iterator[str]:
    """Render entries one line each, as ls -l does: mode, size, time, name as seen from the folder `below`."""
    front = len(below) + 1 if below else 0
    for each in entries:
        name = each.path[front:] if each.path != below else each.path
        yield f"{entry_mode(each)}  {_size(each):>10}  {entry_time(each)}  {_shown(each, name)}"


def entry_value(entry: PointEntry) -> dict[str, Any]:
    """Render an entry for programs."""
    target = {"target": show_name(entry.target)} if entry.kind == "symlink" else {}
    return {
        "path": show_name(entry.path), "type": entry.kind, "size_bytes": entry.size if entry.kind == "file" else None,
        "mtime": format_iso(_instant(entry)), "mtime_ns": entry.mtime_ns, "mode": f"{entry.mode:04o}", "uid": entry.uid,
        "gid": entry.gid, "digest": entry.digest or None, **target,
    }  # fmt: skip


def version_lines(files: Iterable[FileVersions]) -> Iterator[str]:
    """Render each path, and below it its versions, oldest first."""
    for each in files:
        yield _shown(each.versions[-1].entry, each.path)
        for version in each.versions:
            yield f"  {_size(version.entry):>10}  {entry_time(version.entry)}  {_range(version)}"


def _range(version: VersionRange) -> str:
    if version.points == 1:
        return f"in {version.first}"
    return f"from {version.first} to {version.last} ({show_count(version.points, 'point')})"


def file_value(found: FileVersions) -> dict[str, Any]:
    """Render a path with its versions for programs."""
    versions = [
        {"first": each.first, "last": each.last, "points": each.points, **entry_value(each.entry)}
        for each in found.versions
    ]
    return {"path": show_name(found.path), "versions": versions}


class ChangeCounter:
    """A counter of the changes that pass through."""

    def __init__(self) -> None:
        self.added = self.removed = self.changed = 0

    def count(self, changes: Iterable[EntryChange]) -> Iterator[EntryChange]:
        """Yield the changes, and count them."""
        for each in changes:
            self.added += each.before is None
            self.removed += each.after is None
            self.changed += each.before is not None and each.after is not None
            yield each

    def line(self, before: ContentPoint, after: ContentPoint) -> str:
        """Render the sums."""
        told = f"{self.added} added, {self.removed} removed, {self.changed} changed"
        return f"{point_words(before)} to {point_words(after)}: {told}"

    def value(self) -> dict[str, int]:
        """Render the sums for programs."""
        return {"added": self.added, "removed": self.removed, "changed": self.changed}


def change_lines(changes: Iterable[EntryChange]) -> Iterator[str]:
    """Render changes one line each."""
    for each in changes:
        name = _shown(each.entry, each.entry.path)
        if each.before is None or each.after is None:
            yield f"{'added' if each.before is None else 'removed':<8} {_size(each.entry):>10}  {name}"
        else:
            yield f"{'changed':<8} {_size(each.after):>10}  {name}: {', '.join(_parts(each.before, each.after, each))}"


def _parts(before: PointEntry, after: PointEntry, change: EntryChange) -> Iterator[str]:
    told = {
        "type": f"was a {before.kind}, is a {after.kind}",
        "size": f"was {_size(before)}",
        "contents": "contents",
        "target": f"pointed to {show_name(before.target)}",
        "time": f"was of {entry_time(before)}",
        "mode": f"mode {before.mode:04o} to {after.mode:04o}",
        "owner": f"owner {before.uid}:{before.gid} to {after.uid}:{after.gid}",
        "attributes": "access list or attributes",
    }
    return (told[part] for part in changed_parts(change))


def change_value(change: EntryChange) -> dict[str, Any]:
    """Render a change for programs."""
    kind = "added" if change.before is None else "removed" if change.after is None else "changed"
    return {
        "change": kind, "path": show_name(change.entry.path), "what": list(changed_parts(change)),
        "before": entry_value(change.before) if change.before else None,
        "after": entry_value(change.after) if change.after else None,
    }  # fmt: skip


_CHANGES = ("added", "changed", "metadata", "removed")


class PlannedFileCounter:
    """A counter of the planned files that pass through, by change, with the bytes to copy."""

    def __init__(self) -> None:
        self._counts, self._bytes = dict.fromkeys(_CHANGES, 0), 0

    def count(self, files: Iterable[PlannedFile]) -> Iterator[PlannedFile]:
        """Yield the files, and count them."""
        for each in files:
            self._counts[each.change] += 1
            self._bytes += each.bytes or 0
            yield each

    def line(self, shown: int) -> str:
        """Render the sums. `shown`: how many files were listed."""
        told = ", ".join(f"{number} {change}" for change, number in self._counts.items())
        more = sum(self._counts.values()) - shown
        rest = f"; {more} more are not listed here: --json has all" if more > 0 else ""
        return f"files: {told}; {show_size(self._bytes)} to copy{rest}"

    def value(self) -> dict[str, Any]:
        """Render the sums for programs."""
        return {"file_counts": self._counts, "file_bytes": self._bytes}


def planned_file_lines(files: Iterable[PlannedFile]) -> Iterator[str]:
    """Render planned files one line each."""
    for each in files:
        size = "-" if each.bytes is None else show_size(each.bytes)
        yield f"  {each.change:<8} {size:>10}  {show_name(each.path)}{'/' if each.folder else ''}"


def planned_file_value(file: PlannedFile) -> dict[str, Any]:
    """Render a planned file for programs."""
    return {"change": file.change, "path": show_name(file.path), "folder": file.folder, "size_bytes": file.bytes}


def point_words(point: ContentPoint) -> str:
    """Render a point with its disk."""
    return f"{point.name} on disk {point.disk}" if point.disk else point.name


def entry_mode(entry: PointEntry) -> str:
    """Return type and mode as ls -l shows them."""
    return stat.filemode(_TYPE_BITS.get(entry.kind, 0) | entry.mode)


def _size(entry: PointEntry) -> str:
    return show_size(entry.size) if entry.kind == "file" else "-"


def _instant(entry: PointEntry) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=entry.mtime_ns // 1000)
    except OverflowError:
        return None


def entry_time(entry: PointEntry) -> str:
    """Return the time of an entry for people, as wide as any other."""
    instant = _instant(entry)
    try:
        return "unknown time".ljust(19) if instant is None else f"{instant.astimezone():%Y-%m-%d %H:%M:%S}"
    except (OverflowError, ValueError):
        return "unknown time".ljust(19)


def _shown(entry: PointEntry, name: bytes) -> str:
    mark = {"directory": "/", "symlink": f" -> {show_name(entry.target)}"}.get(entry.kind, "")
    return f"{show_name(name)}{mark}"
