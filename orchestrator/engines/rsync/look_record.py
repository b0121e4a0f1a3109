"""The record of a look: source and newest point as listed when both were equal, so that the next look reads of what changed alone.

A file in our state directory, of frames: a kind, a length, and text packed by zlib; at its end a digest of all before.
"""

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from typing import IO

from orchestrator.domain.answers import parse_json
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect

# The time of change comes first, so that a comparison of bytes finds what is young. Of a record: 0 to 8 are what rsync compares,
# and inode and names, 9 is the path, with two slashes behind it, as none has, and what a link says.
LISTED = r"%C@\t%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%P//%l\0"
BATCH = 8192  # entries of a frame, and of a comparison
HEADER, SOURCE, COPY, TOTALS, DIGEST = b"h", b"s", b"c", b"t", b"d"
# Before an entry that may change once more without a sign: no listing has it, so it always counts as changed.
YOUNG = b"~"
_LONGEST = 256 << 20  # bytes of a frame, unpacked
_HEAD = 5


class RecordUnusable(Exception):
    """A record that is not there, or not whole: then rsync looks at everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookHeader:
    """The state in which a record was made: it says something only while all of this is the same.

    `settings`: a digest of all that decides how rsync compares; `made_with`: the same when the point was made, empty: unknown.
    `whole_ns`: when rsync last compared everything; `since`: how many looks have been our own after that. `made_ns`: when the listing
    began, by the clock of the filesystems.
    """

    settings: str
    made_with: str
    point: str
    source: str
    copy: str
    made_ns: int
    whole_ns: int
    since: int


def listing_command(root: Location) -> Command:
    """Build the command that lists a tree, itself too, for a record or for a comparison with one."""
    root_path = root.path.rstrip("/") + "/."  # also a root that is a link is entered
    return Command(argv=("find", root_path, "-xdev", "-printf", LISTED), effect=Effect.READS)


def path_of(entry: bytes) -> bytes:
    """Return the path below the root of an entry; empty for the root."""
    return entry.split(b"\t", 9)[9].partition(b"//")[0]


def kind_of(entry: bytes) -> bytes:
    """Return the kind of an entry, as find names it."""
    return entry.split(b"\t", 2)[1]


class RecordWriter:
    """The writer of a record: frame by frame into a new file, which gets its name once it is whole."""

    def __init__(self, path: str, header: LookHeader) -> None:
        self._path, self._new = path, f"{path}.new"
        self._digest = hashlib.sha256()
        with_all = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(self._new, with_all, 0o600), "wb")
        self._frame(HEADER, json.dumps({name: getattr(header, name) for name in _HEADER}).encode())

    def add(self, tree: bytes, entries: list[bytes]) -> None:
        """Write entries of one tree, in the order in which they were listed."""
        self._frame(tree, b"\0".join(entries))

    def end(self, entries: int, files: int) -> None:
        """Write the totals of the copy, its root excluded, and give the file its name."""
        self._frame(TOTALS, b"%d %d" % (entries, files))
        self._file.write(DIGEST + self._digest.digest())
        self._file.close()
        os.rename(self._new, self._path)

    def drop(self) -> None:
        """Remove a file that did not become whole."""
        self._file.close()
        if os.path.lexists(self._new):
            os.unlink(self._new)

    def _frame(self, kind: bytes, content: bytes) -> None:
        packed = zlib.compress(content, 1)
        frame = kind + len(packed).to_bytes(_HEAD - 1, "big") + packed
        self._digest.update(frame)
        self._file.write(frame)


_HEADER = {
    "settings": str,
    "made_with": str,
    "point": str,
    "source": str,
    "copy": str,
    "made_ns": int,
    "whole_ns": int,
    "since": int,
}


class RecordReader:
    """The reader of a record. What it yields counts only once `frames` has come to its end, where the digest is compared."""

    entries = files = 0  # of the copy, once all was read

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()
        kind, content = self._next()
        try:
            told = parse_json(content) if kind == HEADER else None
        except ValueError as error:
            raise RecordUnusable from error
        if not isinstance(told, dict) or {name: type(value) for name, value in told.items()} != _HEADER:
            raise RecordUnusable
        self.header = LookHeader(**told)

    def frames(self) -> Iterator[tuple[bytes, list[bytes]]]:
        """Yield the entries of both trees, as they were added. Raises: RecordUnusable."""
        while (frame := self._next())[0] in (SOURCE, COPY):
            yield frame[0], frame[1].split(b"\0")
        before = self._digest.digest()
        if frame[0] != TOTALS or self._file.read(1 + len(before) + 1) != DIGEST + before:
            raise RecordUnusable
        self.entries, self.files = map(int, frame[1].split())

    def _next(self) -> tuple[bytes, bytes]:
        head = self._file.read(_HEAD)
        packed = self._file.read(int.from_bytes(head[1:], "big")) if len(head) == _HEAD else b""
        if not packed:
            raise RecordUnusable
        self._digest.update(head + packed)
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(packed, _LONGEST)
        except zlib.error as error:
            raise RecordUnusable from error
        if not unpacker.eof:
            raise RecordUnusable
        return head[:1], content


class ListingDifference:
    """The entries in which a tree is not as it was recorded: `gone` as they were, `new` as they are.

    Both listings come in about the same order, so what is held is what differs, and what lies between.
    """

    def __init__(self) -> None:
        self.gone: set[bytes] = set()
        self.new: set[bytes] = set()

    def compare(self, recorded: list[bytes], now: list[bytes]) -> int:
        """Compare a part of both listings; return how many entries are held."""
        if recorded != now:
            self.gone.update(recorded)
            self.new.update(now)
            common = self.gone & self.new
            self.gone -= common
            self.new -= common
        return len(self.gone) + len(self.new)

    def paths(self) -> dict[bytes, tuple[bytes | None, bytes | None]]:
        """Return what differs by its path: the kind before and now; None where there was none, or is none."""
        before = {path_of(entry): kind_of(entry) for entry in self.gone}
        now = {path_of(entry): kind_of(entry) for entry in self.new}
        return {path: (before.get(path), now.get(path)) for path in {**before, **now}}
