"""The lines of an older manifest that hold for a new copy as they are, and the sums that show it without sorting or memory.

A sum adds a keyed hash of each entry, so it is the same for the same entries in any order, and for others in one of 2^64 cases: one sum
compares the plain files of both sides, a second one the files of the copy with the lines. What anybody named, and all that is no
plain file, is held, and compared one by one.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from orchestrator.verify.entry import Line, special, unescape
from orchestrator.verify.manifest import ManifestTotals, Row
from orchestrator.verify.manifest_lines import ManifestDamaged

_MOST = 100_000  # entries that are held
_TABS = 9  # of an entry whose names have none
_BATCH = 4096


class NotCarried(Exception):
    """The older manifest does not show enough: all is listed, sorted and compared."""


class ListedEntries:
    """The entries of one side: `held` by path; of the others `content`, a sum of what a copy must have of its source, and `lines`, one of
    what a manifest says of a file, its inode too.

    `apart`: paths that are held in any case. Records are those of a listing with the time of change at its end.
    """

    def __init__(self, apart: Collection[bytes]) -> None:
        if not sys.flags.hash_randomization:
            raise NotCarried  # with a known key somebody could make two entries of one sum
        self._apart = apart
        self.held: dict[bytes, bytes] = {}
        self.content = self.lines = 0

    def add_source(self, entries: list[bytes]) -> None:
        """Add entries of the source, in any order. Raises: NotCarried."""
        apart, held, content, odd = self._apart, self.held, 0, _has_odd_names(entries)
        for entry in entries:
            head = entry.rsplit(b"\t", 4)[0]
            path, _, told = head.partition(b"//")
            if path in apart or not told.startswith(b"f\t") or (odd and special(path)):
                held[path] = entry
            else:
                content += hash(head)
        self._end(content)

    def add_copy(self, entries: list[bytes]) -> None:
        """Add entries of the copy, in any order. Raises: NotCarried."""
        apart, held, content, lines, odd = self._apart, self.held, 0, 0, _has_odd_names(entries)
        for entry in entries:
            head, _, inode, _, _ = entry.rsplit(b"\t", 4)
            path, _, told = head.partition(b"//")
            if path in apart or not told.startswith(b"f\t") or (odd and special(path)):
                held[path] = entry
                continue
            content += hash(head)
            _, size, mtime, mode, uid, gid = told.split(b"\t")
            at = mtime[:-11] + mtime[-10:-1] if mtime[:1] not in b"-0" else _nanoseconds(mtime)
            lines += hash(b"\t".join((path, size, at, mode, uid, gid, inode)))
        self.lines += lines
        self._end(content)

    def _end(self, content: int) -> None:
        self.content += content
        if len(self.held) > _MOST:
            raise NotCarried

    def hold(self, path: bytes, entry: bytes) -> None:
        """Hold an entry of the source that was added."""
        if path not in self.held:
            self.content -= hash(entry.rsplit(b"\t", 4)[0])
            self.held[path] = entry


def _has_odd_names(entries: list[bytes]) -> bool:
    """Return whether a name among the entries may be written with escapes."""
    text = b"\0".join(entries)
    return b"\\" in text or b"\n" in text or b"\r" in text or text.count(b"\t") != _TABS * len(entries)


def _nanoseconds(mtime: bytes) -> bytes:
    return b"%d" % (int(mtime[:-11]) * 10**9 + int(mtime[-10:-1]))


class CarriedLines:
    """The lines of an older manifest, read once: which of them may be carried on, with their sum; the others as rows.

    `apart`: paths whose lines are not carried; `algorithm`: of the digests. `attributes`: reads the text of a file's attributes in the
    copy, of which some lines tell; None: no line may.
    """

    def __init__(self, apart: Collection[bytes], algorithm: str, attributes: Callable[[bytes], str] | None) -> None:
        self._apart, self._start, self._attributes = apart, f"{algorithm}:".encode(), attributes
        self._dropped: set[bytes] = set()
        self.rows: dict[bytes, Row] = {}
        self.sum = self.files = self.bytes = 0

    def read(self, lines: Iterable[bytes]) -> None:
        """Read all lines. Raises: NotCarried · ValueError."""
        apart, start, none = self._apart, self._start, b"+-" if self._attributes else b""
        total = files = size_of_all = 0
        for line in lines:
            digest, kind, size, mtime, mode, uid, gid, _, inode, path = line.split(b"\t", 9)
            if kind != b"f" or path in apart or b"\\" in path or not digest.startswith(start):
                self._hold(line, path)
                continue
            if not digest.endswith(none) or not none:
                self._require_same_attributes(path, digest)
            total += hash(b"\t".join((path, size, mtime, mode, uid, gid, inode)))
            files += 1
            size_of_all += int(size)
        self.sum, self.files, self.bytes = total, files, size_of_all

    def _hold(self, line: bytes, path: bytes) -> None:
        row = line.split(b"\t")
        name = unescape(row[9])
        self._dropped.add(path)
        self.rows[name] = (name, row)
        if len(self.rows) > _MOST:
            raise NotCarried

    def _require_same_attributes(self, path: bytes, digest: bytes) -> None:
        text = digest.partition(b"+")[2].decode("ascii")
        if bool(text) != (self._attributes is not None) or (self._attributes and self._attributes(path) != text):
            raise NotCarried

    def text(self, path: bytes) -> str:
        """Return the text of an entry's attributes in its row; empty where there is none."""
        row = self.rows.get(path)
        return row[1][0].partition(b"+")[2].decode("ascii") if row else ""

    def with_others(self, lines: Iterable[bytes], others: list[Line]) -> Iterator[bytes]:
        """Yield the carried lines, from a second reading, merged with sorted others; many at once. Raises: ValueError."""
        dropped, at, last = self._dropped, 0, b""
        batch: list[bytes] = []
        following = others[0][0] if others else None
        for line in lines:
            path = line.split(b"\t", 9)[9]
            if path in dropped:
                continue
            key = path + b"//"
            while following is not None and following < key:
                batch.append(others[at][2][:-1])
                last, at = following, at + 1
                following = others[at][0] if at < len(others) else None
            if key <= last or key == following:
                raise ManifestDamaged(f"entries out of order, or twice: {path[:200]!r}")
            last = key
            batch.append(line)
            if len(batch) >= _BATCH:
                yield b"\n".join(batch) + b"\n"
                batch = []
        batch += [line[:-1] for _, _, line in others[at:]]
        if batch:
            yield b"\n".join(batch) + b"\n"

    def totals(self, others: list[Line]) -> ManifestTotals:
        """Return the totals of a manifest of the carried lines and others."""
        files = [size for _, size, _ in others if size >= 0]
        return ManifestTotals(
            entries=self.files + len(others), files=self.files + len(files), bytes=self.bytes + sum(files)
        )


def listed_records(held: Mapping[bytes, bytes]) -> list[bytes]:
    """Return the held entries of a copy as a listing without times of change has them, sorted."""
    return sorted(entry[: entry.rindex(b"\t")] for entry in held.values())
