"""The lines of an older manifest that hold for a new copy as they are: those of files that the copy shares with the point before.

Both points are known by listings. A sum adds a keyed hash of each file, so it is the same for the same files in any order, and for
others in one of 2^64 cases: it compares all plain files that nobody named. All else is held, and compared one by one.
"""

import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping

from orchestrator.verify.entry import Line, unescape
from orchestrator.verify.manifest import ManifestTotals, Row
from orchestrator.verify.manifest_lines import ManifestDamaged

_MOST = 100_000  # entries that are held
_FILE = b"f"


class NotCarried(Exception):
    """The older manifest does not show enough: all is listed, sorted and compared."""


class ListedEntries:
    """The entries of one point: `held` by path; of the others `sum`, of what tells a file apart, its inode too, and their `count`.

    `apart`: paths that are held in any case. Records are those of a listing with the time of change at its end.
    """

    def __init__(self, apart: Collection[bytes]) -> None:
        if not sys.flags.hash_randomization:
            raise NotCarried  # with a known key somebody could make two entries of one sum
        self._apart = apart
        self.held: dict[bytes, bytes] = {}
        self.sum = self.count = 0

    def add(self, entries: list[bytes]) -> None:
        """Add entries, in any order. Raises: NotCarried · ValueError."""
        apart, held, total, before = self._apart, self.held, 0, len(self.held)
        for entry in entries:
            head, _, inode, _, _ = entry.rsplit(b"\t", 4)  # names, and what a link says, have no part in a file
            path, _, told = head.partition(b"//")
            if path in apart or told[:1] != _FILE:
                held[path] = entry
            else:
                total += hash((head, inode))
        self.sum += total
        self.count += len(entries) + before - len(held)
        if len(held) > _MOST:
            raise NotCarried


def _key(line: bytes) -> bytes:
    """Return the key by which lines are sorted."""
    path = line.split(b"\t", 10)[9]
    return (unescape(path) if b"\\" in path else path) + b"//"


class CarriedLines:
    """The lines of an older manifest, read once: those that are not carried as `rows`, by their path.

    `apart`: paths whose lines are not carried; `algorithm`: of the digests.
    """

    def __init__(self, apart: Collection[bytes], algorithm: str) -> None:
        self._apart, self._start = apart, f"{algorithm}:".encode()
        self._keys = sorted(path + b"//" for path in apart)
        self.rows: dict[bytes, Row] = {}

    def read(self, texts: Iterable[bytes]) -> None:
        """Read all lines, many at once. Raises: NotCarried · ValueError."""
        start, keys, at = self._start, self._keys, 0
        for text in texts:
            lines = text.split(b"\n")
            for line in lines:
                if not line.startswith(start):
                    self._hold(line)
            place, end = 0, bisect_left(keys, _key(lines[-1]) + b"\0")
            for key in keys[at:end]:
                place = bisect_left(lines, key, lo=place, key=_key)
                if place < len(lines) and _key(lines[place]) == key:
                    self._hold(lines[place])
            at = end

    def _hold(self, line: bytes) -> None:
        row = line.split(b"\t")
        name = unescape(row[9])
        if row[1] == _FILE and name not in self._apart:
            raise NotCarried  # its digest is missing, or of another kind
        self.rows[name] = (name, row)
        if len(self.rows) > _MOST:
            raise NotCarried

    def text(self, path: bytes) -> str:
        """Return the text of an entry's attributes in its row; empty where there is none."""
        row = self.rows.get(path)
        return row[1][0].partition(b"+")[2].decode("ascii") if row else ""

    def with_others(self, texts: Iterable[bytes], others: list[Line]) -> Iterator[bytes]:
        """Yield the carried lines, from a second reading, merged with sorted others; many at once. Raises: ValueError."""
        edits: dict[bytes, bytes | None] = {path + b"//": None for path in self.rows}
        edits.update((key, line[:-1]) for key, _, line in others)
        keys, at, last = sorted(edits), 0, b""
        for text in texts:
            begin, end = text.partition(b"\n")[0], _key(text[text.rfind(b"\n") + 1 :])
            if _key(begin) <= last:
                raise ManifestDamaged(f"entries out of order, or twice: {last[:-2][:200]!r}")
            last = end
            until = bisect_left(keys, end + b"\0", lo=at)
            if kept := _edited(text, keys[at:until], edits) if until > at else text:
                yield kept + b"\n"
            at = until
        if rest := [line for line in map(edits.__getitem__, keys[at:]) if line is not None]:
            yield b"\n".join(rest) + b"\n"

    def totals(self, older: ManifestTotals, others: list[Line]) -> ManifestTotals:
        """Return the totals of a manifest of the carried lines and others. `older`: of the one before."""
        files = [size for _, size, _ in others if size >= 0]
        gone = [int(row[2]) for _, row in self.rows.values() if row[1] == _FILE]
        return ManifestTotals(
            entries=older.entries - len(self.rows) + len(others), files=older.files - len(gone) + len(files),
            bytes=older.bytes - sum(gone) + sum(files),
        )  # fmt: skip


def _edited(text: bytes, keys: list[bytes], edits: Mapping[bytes, bytes | None]) -> bytes:
    """Return lines without those of some keys, and with the lines that take their places."""
    lines, place, found = text.split(b"\n"), 0, list[bytes]()
    for key in keys:
        after = bisect_left(lines, key, lo=place, key=_key)
        found += lines[place:after]
        place = after + (after < len(lines) and _key(lines[after]) == key)
        line = edits[key]
        if line is not None:
            found.append(line)
    return b"\n".join(found + lines[place:])


def listed_records(held: Mapping[bytes, bytes]) -> list[bytes]:
    """Return the held entries of a copy as a listing without times of change has them, sorted."""
    return sorted(entry[: entry.rindex(b"\t")] for entry in held.values())
