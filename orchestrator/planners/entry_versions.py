"""Versions of files over restore points, folded into ranges; and the differences of one entry between two points."""

from collections.abc import Iterable, Iterator

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.point_contents import EntryChange, FileVersions, PointEntry, VersionRange


class VersionCollector:
    """A collector of entries, point by point, oldest first. Equal versions in points that follow each other are one range."""

    def __init__(self) -> None:
        self._found: dict[bytes, list[VersionRange]] = {}
        self._before = ""

    def __len__(self) -> int:
        return len(self._found)

    def add(self, point: str, entries: Iterable[PointEntry]) -> Iterator[int]:
        """Add the entries of one point; yield the number of paths after each."""
        for entry in entries:
            ranges = self._found.setdefault(entry.path, [])
            last = ranges[-1] if ranges else None
            if last is not None and last.last == self._before and is_same_version(last.entry, entry):
                ranges[-1] = replace(last, last=point, points=last.points + 1)
            else:
                ranges.append(VersionRange(entry=entry, first=point, last=point, points=1))
            yield len(self._found)
        self._before = point

    def files(self) -> tuple[FileVersions, ...]:
        """Return all paths with their versions, in the order of their names."""
        return tuple(FileVersions(path=path, versions=tuple(self._found[path])) for path in sorted(self._found))


def is_same_version(one: PointEntry, other: PointEntry) -> bool:
    """Return True for two entries with the same type, size, time and contents; mode and owner may differ."""
    facts = [(each.kind, each.size, each.mtime_ns, each.target) for each in (one, other)]
    return facts[0] == facts[1] and not _digests_differ(one, other)


def changed_parts(change: EntryChange) -> tuple[str, ...]:
    """Return the words for what changed in an entry that both points have; empty: nothing that counts.

    The time of a folder does not count: it changes with each entry in it, and those are listed themselves.
    """
    before, after = change.before, change.after
    if before is None or after is None:
        return ()
    if before.kind != after.kind:
        return ("type",)
    told = (
        ("size", before.size != after.size),
        ("contents", before.size == after.size and _digests_differ(before, after)),
        ("target", before.target != after.target),
        ("time", before.mtime_ns != after.mtime_ns and before.kind != "directory"),
        ("mode", before.mode != after.mode and before.kind != "symlink"),
        ("owner", (before.uid, before.gid) != (after.uid, after.gid)),
        ("attributes", bool(before.attributes and after.attributes) and before.attributes != after.attributes),
    )
    return tuple(word for word, differs in told if differs)


def _digests_differ(one: PointEntry, other: PointEntry) -> bool:
    """Return True for two digests of the same algorithm that differ; others cannot be compared."""
    same = bool(one.digest) and one.digest.partition(":")[0] == other.digest.partition(":")[0]
    return same and one.digest != other.digest
