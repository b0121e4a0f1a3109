r"""One entry of a tree in a manifest, its line there, and the listing of a tree. Everything is sorted by `sort_key`.

A line: digest, kind, size, mtime_ns, mode, uid, gid, nlink, inode, path and, for symlinks, target, with TABs between. In names
only \\, newline, TAB and CR are escaped; every other byte is written unchanged. Behind the digest stands + and the text of
access lists and attributes, where they were read; see attributes.py.
Why no dataclass: the worker imports this module and must start at once.

GNU find begins each record of a listing with the path and `//`, which no path holds, and ends it with NUL, so that sorting the
raw records sorts the entries.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from orchestrator.verify.attributes import UNRECORDED, attribute_differences

NO_CONTENT = "-"  # not a regular file
UNREAD = "!"  # a file that could not be read when it was copied
UNKNOWN = "?"  # in a draft: still to be read; "?xxh128:…": read it, the digest must be this one
ENTRY_TYPES = {
    b"f": "f", b"d": "d", b"l": "l", b"p": "p", b"s": "s", b"b": "b", b"c": "c", b"D": "D",
}  # fmt: skip
ENTRY_TYPE_NAMES = {
    "f": "file", "d": "directory", "l": "symlink", "p": "pipe", "s": "socket", "b": "block device",
    "c": "character device", "D": "door",
}  # fmt: skip
LONGEST = 4 << 20  # bytes of one record or line; a path that programs can name has 4 KiB
_NO_NAMES = (b"", b".", b"..")
_AT_AN_END = (b"/", b".")
_SPECIAL = re.compile(rb"[\\\n\t\r]")
special = _SPECIAL.search  # characters that must be escaped in a name
_ESCAPED = re.compile(rb"\\(.?)", re.DOTALL)
_SHORT = {b"\\": b"\\\\", b"\n": b"\\n", b"\t": b"\\t", b"\r": b"\\r"}
_LONG = {b"\\": b"\\", b"n": b"\n", b"t": b"\t", b"r": b"\r"}


new_entry: Callable[..., "ManifestEntry"] = tuple.__new__  # half the cost of Entry(…), a million times


class ManifestEntry(NamedTuple):
    """One entry. `path` is below the root, b"" the root itself; `size` is 0 for all but regular files."""

    path: bytes
    kind: str
    size: int
    mtime_ns: int
    mode: int
    uid: int
    gid: int
    nlink: int
    inode: int
    target: bytes = b""
    digest: str = NO_CONTENT
    attributes: str = UNRECORDED


def was_never_copied(entry: ManifestEntry) -> bool:
    """Return True when the manifest lists an entry only as unreadable at the source, so that it is missing."""
    return entry.digest == UNREAD and not entry.inode


def with_digest(entry: ManifestEntry, digest: str) -> ManifestEntry:
    """Return the entry with another digest."""
    return new_entry(ManifestEntry, (*entry[:10], digest, entry[11]))


Line = tuple[bytes, int, bytes]
"""An entry as it is written: its key in `sort_key`, the bytes of a regular file or -1, the line."""


class Tolerance(NamedTuple):
    """Differences that a comparison ignores. `grain_ns`: time resolution of the coarser filesystem."""

    owner: bool = False
    mode: bool = False
    mtime: bool = False
    grain_ns: int = 1
    attributes: str = ""  # letters of the parts of attributes that are not compared


EXACT = Tolerance()


def sort_key(path: bytes) -> bytes:
    """Return the sort key of a path: no key is the beginning of another, so raw records that begin with it sort alike."""
    return path + b"//"


def path_below(path: bytes, prefix: bytes) -> bytes | None:
    """Return `path` relative to `prefix`; None when it lies elsewhere."""
    if not prefix or path == prefix:
        return b"" if prefix else path
    return path[len(prefix) + 1 :] if path.startswith(prefix + b"/") else None


def escape(name: bytes) -> bytes:
    """Return a name as it is written in a line."""
    return _SPECIAL.sub(lambda match: _SHORT[match[0]], name) if _SPECIAL.search(name) else name


def unescape(text: bytes) -> bytes:
    """Return the name that `escape` wrote. Raises: ValueError."""
    return _ESCAPED.sub(_long, text) if b"\\" in text else text


def _long(match: re.Match[bytes]) -> bytes:
    try:
        return _LONG[match[1]]
    except KeyError:
        raise ValueError(f"a backslash that begins no escape: {match[0]!r}") from None


def format_line(entry: ManifestEntry) -> bytes:
    """Return the entry's line, newline included."""
    path, kind, size, mtime_ns, mode, uid, gid, nlink, inode, target, digest, attributes = entry
    if attributes:
        digest = f"{digest}+{attributes}"
    line = f"{digest}\t{kind}\t{size}\t{mtime_ns}\t{mode:o}\t{uid}\t{gid}\t{nlink}\t{inode}\t".encode("ascii")
    if kind == "l":
        return b"%b%b\t%b\n" % (line, escape(path), escape(target))
    return b"%b%b\n" % (line, escape(path) if special(path) else path)


def line_of(entry: ManifestEntry) -> Line:
    """Return the entry as it is written."""
    return entry[0] + b"//", entry[2] if entry[1] == "f" else -1, format_line(entry)


def parse_line(line: bytes) -> ManifestEntry:
    """Parse a line without its newline into an entry. Raises: ValueError."""
    digest, kind, size, mtime_ns, mode, uid, gid, nlink, inode, path, *rest = line.split(b"\t")
    if len(rest) != (kind == b"l") or kind not in ENTRY_TYPES or not digest:
        raise ValueError(f"not a line of a manifest: {line[:200]!r}")
    if b"\\" in path:
        path = unescape(path)
    told, attributes = digest.decode("ascii"), UNRECORDED
    if "+" in told:
        told, _, attributes = told.partition("+")
    if leads_astray(path):
        raise ValueError(f"a path that leads elsewhere: {path[:200]!r}")
    return new_entry(ManifestEntry, (
        path, ENTRY_TYPES[kind], int(size), int(mtime_ns), int(mode, 8), int(uid),
        int(gid), int(nlink), int(inode), unescape(rest[0]) if rest else b"", told, attributes,
    ))  # fmt: skip


def leads_astray(path: bytes) -> bool:
    """Return True for a path that may lead outside the root: absolute, or with `..`, `.` or an empty component."""
    # Most paths have none of these and need no further search.
    if not (b"/." in path or b"//" in path or path[:1] in _AT_AN_END or path[-1:] == b"/"):
        return False
    return path != b"" and any(part in _NO_NAMES for part in path.split(b"/"))


def differences(expected: ManifestEntry, found: ManifestEntry, tolerance: Tolerance = EXACT) -> tuple[str, ...]:
    """Return the differences in kind, size, time, mode, owner, link target or attributes; such as "mode 600, promised 644"."""
    if found.kind != expected.kind:
        return (f"a {ENTRY_TYPE_NAMES[found.kind]}, expected a {ENTRY_TYPE_NAMES[expected.kind]}",)
    told = []
    if found.size != expected.size:
        told.append(f"size {found.size}, expected {expected.size}")
    if not same_time(expected.mtime_ns, found.mtime_ns, tolerance):
        told.append(f"mtime {_moment(found.mtime_ns)}, expected {_moment(expected.mtime_ns)}")
    if found.mode != expected.mode and not tolerance.mode and found.kind != "l":
        told.append(f"mode {found.mode:o}, expected {expected.mode:o}")
    if (found.uid, found.gid) != (expected.uid, expected.gid) and not tolerance.owner:
        told.append(f"owner {found.uid}:{found.gid}, expected {expected.uid}:{expected.gid}")
    if found.target != expected.target:
        told.append(f"target {_shown(found.target)}, expected {_shown(expected.target)}")
    return (*told, *attribute_differences(expected.attributes, found.attributes, ignored=tolerance.attributes))


def same_time(expected_ns: int, found_ns: int, tolerance: Tolerance) -> bool:
    """Return True when two times are equal within the resolution of the coarser filesystem."""
    return tolerance.mtime or abs(found_ns - expected_ns) < tolerance.grain_ns


def _moment(time_ns: int) -> str:
    """Return the time in UTC, with all its nanoseconds; the seconds since 1970 where a date has no such year."""
    from datetime import UTC, datetime, timedelta  # 0.5 ms, and few entries differ

    seconds, rest = divmod(time_ns, 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}{fraction}Z"
    except OverflowError:
        return f"{seconds}{fraction} s"


def _shown(name: bytes) -> str:
    return escape(name).decode("utf-8", "backslashreplace")


def split_records(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Split output that arrives in pieces into NUL-terminated records. Raises: ValueError when the last one is incomplete."""
    rest = b""
    for chunk in chunks:
        pieces = (rest + chunk).split(b"\0")
        rest = pieces.pop()
        if len(rest) > LONGEST:
            raise ValueError(f"a record without an end: {rest[:200]!r}")
        yield from pieces
    if rest:
        raise ValueError(f"the output breaks off in the middle of a record: {rest[-200:]!r}")


def parse_listing(record: bytes) -> ManifestEntry:
    """Parse one record into an entry; a regular file's digest is still unknown. Raises: ValueError."""
    path, _, rest = record.partition(b"//")
    kind, size, mtime, mode, uid, gid, nlink, inode, target = rest.split(b"\t", 8)
    seconds, nanos = mtime[:-11], mtime[-10:-1]  # find writes ten decimals, the last is 0
    mtime_ns = int(seconds) * 1_000_000_000 + int(
        nanos
    )  # before 1970 too: find prints -2.5 for second -2 plus half a second
    if kind not in ENTRY_TYPES:
        raise ValueError(f"an entry of unknown kind: {record!r}")
    plain = kind == b"f"
    return new_entry(ManifestEntry, (
        path, ENTRY_TYPES[kind], int(size) if plain else 0, mtime_ns, int(mode, 8), int(uid), int(gid), int(nlink),
        int(inode), target, UNKNOWN if plain else NO_CONTENT, UNRECORDED,
    ))  # fmt: skip


def format_plain_line(record: bytes, key: bytes, digest: str) -> Line | None:
    """Return the written line of a regular file with its digest, or digest and attributes; None where text is not enough.

    `key`: the record's begin, its path and `//`. Why: this fits most files of a copy, and a line of text is half the work of an entry.
    """
    kind, size, mtime, others = record[len(key) :].split(b"\t", 3)
    path = key[:-2]
    if kind != b"f" or mtime[:1] in b"-0" or special(path):
        return None
    return (
        key,
        int(size),
        b"%b\tf\t%b\t%b%b\t%b%b\n" % (digest.encode(), size, mtime[:-11], mtime[-10:-1], others, path),
    )
