"""The record of a look: source and newest point as listed when both were equal, so that the next look reads of what changed alone.

A file in our state directory: a header, frames of entries, totals, and at its end a digest of all heads and of what is no frame. A
frame has a digest of its own, so that what is listed as it was recorded is neither unpacked nor taken apart.
"""

import json
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO

from orchestrator.domain.answers import parse_json
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.hashes import sha256, sha256_for
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect

# As a verification lists a source: 0 to 6 are what rsync compares, and names and inode; then what a link says, and the time of change.
LISTED = r"%P//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\t%C@\0"
BATCH = 8192  # entries of a frame, and of a comparison
SOURCE, COPY = b"s", b"c"
_HEADER, _TOTALS, _DIGEST = b"h", b"t", b"d"
# Behind an entry that may change once more without a sign: no listing has it, so it always counts as changed.
YOUNG = b"~"
_LONGEST = 256 << 20  # bytes of a frame, unpacked
ENTRY_KINDS = {
    stat.S_IFDIR: b"d", stat.S_IFREG: b"f", stat.S_IFLNK: b"l", stat.S_IFIFO: b"p", stat.S_IFSOCK: b"s", stat.S_IFCHR: b"c",
    stat.S_IFBLK: b"b",
}  # fmt: skip
_HASH = 32
_SECOND = 10**9
_HEAD = 1 + 4 + 4 + 4 + _HASH  # kind, bytes that follow, entries; bytes of what they are unpacked, and its digest


class RecordUnusable(ValueError):
    """A record that is not there, or not whole: then rsync looks at everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookHeader:
    """The state in which a record was made: it says something only while all of this is the same.

    `settings`: a digest of all that decides how rsync compares; `made_with`: the same when the point was made, empty: unknown.
    `whole_ns`: when rsync last compared everything; `since`: how many looks have been our own after that. `made_ns`: when the listing
    began, by the clock of the filesystems. `verified`: the point's manifest says of each entry that is still as recorded here which
    access lists and attributes the source's has.
    """

    settings: str
    made_with: str
    point: str
    source: str
    copy: str
    made_ns: int
    whole_ns: int
    since: int
    verified: bool


_FIELDS = {
    "settings": str,
    "made_with": str,
    "point": str,
    "source": str,
    "copy": str,
    "made_ns": int,
    "whole_ns": int,
    "since": int,
    "verified": bool,
}


def listing_command(root: Location) -> Command:
    """Build the command that lists a tree, itself first, for a record or for a comparison with one."""
    root_path = root.path.rstrip("/") + "/."  # also a root that is a link is entered
    return Command(argv=("find", root_path, "-xdev", "-printf", LISTED), effect=Effect.READS)


def list_root(path: str) -> bytes:
    """Return the entry of a tree's root, as the listing has it. Raises: OSError."""
    return form_entry(b"", os.stat(path), b"")


def form_entry(path: bytes, seen: os.stat_result, link: bytes) -> bytes:
    """Return an entry as the listing has it. `path`: below the root; `seen`: its status; `link`: what a link says."""
    kind = ENTRY_KINDS[stat.S_IFMT(seen.st_mode)]
    told = (path, kind, seen.st_size, *divmod(seen.st_mtime_ns, 10**9), seen.st_mode & 0o7777, seen.st_uid, seen.st_gid)
    names = (seen.st_nlink, seen.st_ino, link, *divmod(seen.st_ctime_ns, 10**9))
    return b"%b//%b\t%d\t%d.%09d0\t%o\t%d\t%d\t" % told + b"%d\t%d\t%b\t%d.%09d0" % names


def mark_young(entries: list[bytes], limit_ns: int) -> list[bytes]:
    """Return the entries, those marked that changed at that time or later: one more change might not show.

    Where a filesystem counts whole seconds, from the begin of that second.
    """
    limit, second = b"%d.%09d0" % divmod(limit_ns, _SECOND), b"%d.0000000000" % (limit_ns // _SECOND)
    times = [entry.rpartition(b"\t")[2] for entry in entries]
    if max(times) < second:
        return entries
    young = (at >= limit or at.endswith(b".0000000000") for at in times)
    return [
        entry + YOUNG if is_young and at >= second else entry
        for entry, at, is_young in zip(entries, times, young, strict=True)
    ]


def path_of(entry: bytes) -> bytes:
    """Return the path below the root of an entry; empty for the root."""
    return entry.partition(b"//")[0]


def kind_of(entry: bytes) -> bytes:
    """Return the kind of an entry, as find names it."""
    at = entry.index(b"//") + 2
    return entry[at : at + 1]


class RecordWriter:
    """The writer of a record: frame by frame into a new file, which gets its name once it is whole."""

    def __init__(self, path: str, header: LookHeader) -> None:
        self._path, self._new = path, f"{path}.new"
        self._digest = sha256()
        with_all = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.fdopen(os.open(self._new, with_all, 0o600), "wb")
        self._frame(_HEADER, pack_content(json.dumps({name: getattr(header, name) for name in _FIELDS}).encode(), 0))

    def add(self, tree: bytes, entries: "PackedEntries") -> None:
        """Write entries of one tree, in the order in which they were listed."""
        self._frame(tree, entries)

    def end(self, entries: int, files: int, *, root: bytes = b"", manifest: str = "") -> None:
        """Write the totals of the copy, its root excluded, and give the file its name. `root`: its root, where no frame has it.

        `manifest`: the digest of the point's manifest where its lines say of each entry what is recorded here.
        """
        self._frame(_TOTALS, pack_content(b"%d %d %b %b" % (entries, files, manifest.encode(), root), 0))
        self._file.write(_DIGEST + self._digest.digest())
        self._file.close()
        os.rename(self._new, self._path)

    def drop(self) -> None:
        """Remove a file that did not become whole."""
        self._file.close()
        if os.path.lexists(self._new):
            os.unlink(self._new)

    def _frame(self, kind: bytes, entries: "PackedEntries") -> None:
        packed = entries.packed
        numbers = (number.to_bytes(4, "big") for number in (len(packed), entries.count, entries.size))
        head = kind + b"".join(numbers) + entries.digest
        self._digest.update(head)
        self._file.write(head)
        self._file.write(packed)


def _digest(content: bytes) -> bytes:
    hashed = sha256_for(len(content))
    hashed.update(content)
    return hashed.digest()


class PackedEntries:
    """Some entries of a record, packed. `count`: how many they are; `size`: bytes of what they are unpacked; `digest`: its digest."""

    def __init__(self, packed: bytes, count: int, size: int, digest: bytes) -> None:
        self.packed, self.count, self.size, self.digest = packed, count, size, digest

    def is_as(self, content: bytes) -> bool:
        """Return whether these are the entries, with NUL between them."""
        return len(content) == self.size and _digest(content) == self.digest

    def content(self) -> bytes:
        """Unpack the frame. Raises: RecordUnusable."""
        unpacker = zlib.decompressobj()
        try:
            content = unpacker.decompress(self.packed, _LONGEST)
        except zlib.error as error:
            raise RecordUnusable from error
        if not unpacker.eof or _digest(content) != self.digest:
            raise RecordUnusable
        return content

    def entries(self) -> list[bytes]:
        """Return the entries. Raises: RecordUnusable."""
        return self.content().split(b"\0")


def pack_entries(entries: list[bytes]) -> PackedEntries:
    """Pack entries of one tree, in the order in which they were listed."""
    return pack_content(b"\0".join(entries), len(entries))


def pack_content(content: bytes, count: int) -> PackedEntries:
    """Pack so many entries with NUL between them. Most of it runs beside other threads."""
    return PackedEntries(zlib.compress(content, 1), count, len(content), _digest(content))


class RecordReader:
    """The reader of a record. What it yields counts only once `frames` has come to its end, where the digest is compared."""

    entries = files = 0  # of the copy, once all was read
    root = b""  # of the copy, where no frame has it
    manifest = ""  # the digest of the point's, where its lines say what is recorded here

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._heads = file, sha256()
        kind, frame = self._next()
        try:
            told = parse_json(frame.content()) if kind == _HEADER else None
        except ValueError as error:
            raise RecordUnusable from error
        if not isinstance(told, dict) or {name: type(value) for name, value in told.items()} != _FIELDS:
            raise RecordUnusable
        self.header = LookHeader(**told)

    def frames(self) -> Iterator[tuple[bytes, PackedEntries]]:
        """Yield the entries of both trees, as they were added. Raises: RecordUnusable."""
        while (found := self._next())[0] in (SOURCE, COPY):
            yield found
        before = self._heads.digest()
        if found[0] != _TOTALS or self._file.read(1 + len(before) + 1) != _DIGEST + before:
            raise RecordUnusable
        entries, files, manifest, self.root = found[1].content().split(b" ", 3)
        self.entries, self.files, self.manifest = int(entries), int(files), manifest.decode("ascii")

    def _next(self) -> tuple[bytes, PackedEntries]:
        head = self._file.read(_HEAD)
        packed = self._file.read(int.from_bytes(head[1:5], "big")) if len(head) == _HEAD else b""
        if not packed:
            raise RecordUnusable
        self._heads.update(head)
        count, size = int.from_bytes(head[5:9], "big"), int.from_bytes(head[9:13], "big")
        return head[:1], PackedEntries(packed, count, size, head[13:])


class ListingDifference:
    """The entries in which a tree is not as it was recorded: `gone` as they were, `new` as they are.

    Both listings come in about the same order, so what is held is what differs, and what lies between.
    """

    def __init__(self) -> None:
        self.gone: set[bytes] = set()
        self.new: set[bytes] = set()

    def exchange(self, gone: list[bytes], new: list[bytes]) -> int:
        """Note entries of the record that may be gone, and such as may be new; return how many are held."""
        if gone != new:
            if len(gone) == len(new):  # mostly the same entries in the same places
                apart = [pair for pair in zip(gone, new, strict=True) if pair[0] != pair[1]]
                gone, new = [one for one, _ in apart], [other for _, other in apart]
            self.gone.update(gone)
            self.new.update(new)
            common = self.gone & self.new
            self.gone -= common
            self.new -= common
        return self.held

    @property
    def held(self) -> int:
        """Return how many entries are held."""
        return len(self.gone) + len(self.new)

    def paths(self) -> dict[bytes, tuple[bytes | None, bytes | None]]:
        """Return what differs by its path: the kind before and now; None where there was none, or is none."""
        before = {path_of(entry): kind_of(entry) for entry in self.gone}
        now = {path_of(entry): kind_of(entry) for entry in self.new}
        return {path: (before.get(path), now.get(path)) for path in {**before, **now}}
