"""Manifests on disk: every entry of a point, readable with zless, sorted, whole or refused."""

import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import IO

from orchestrator.domain.answers import NOT_READ, bound_instant
from orchestrator.domain.authentication import AuthenticationKey, ManifestTag
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.hashes import blake2b, compare_digest
from orchestrator.process.background import BackgroundCall
from orchestrator.verify.entry import (
    Line,
    ManifestEntry,
    escape,
    leads_astray,
    line_of,
    parse_line,
    path_below,
    unescape,
)
from orchestrator.verify.manifest_lines import (
    FORMAT,
    FULL_FORMAT,
    TAG_BYTES,
    TAG_LINE,
    TAGGED,
    TAGGED_FORMAT,
    TAGGED_FULL_FORMAT,
    ManifestDamaged,
    PackedTexts,
    packed_lines,
    unpacked_pieces,
)

_COLUMNS = b"# columns: digest kind size mtime_ns mode uid gid nlink inode path target\n"
_BATCH = 4096
_PIECE = 1 << 20
_DIGEST = 16  # bytes
_LARGEST = (1 << 63) - 1  # bytes that history can hold
Row = tuple[bytes, list[bytes]]
"""The path of an entry, and the fields of its line as they are written; none of them is checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestHeader:
    """Header of a manifest. `digest`: the algorithm that the point uses. `attributes`: access lists and attributes were read."""

    job: str
    source: str
    point: str
    digest: str
    created: datetime
    attributes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTotals:
    """Totals of a manifest."""

    entries: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedEntries:
    """Some entries of a manifest, with its tag and its header."""

    tag: ManifestTag
    header: ManifestHeader
    entries: tuple[ManifestEntry, ...]


def write_manifest(
    path: str, header: ManifestHeader, entries: Iterable[ManifestEntry], *, key: AuthenticationKey | None = None
) -> ManifestTotals:
    """Write the sorted entries as one whole file that appears at once; `key` tags it. Raises: ValueError · OSError."""
    return write_lines(path, header, map(line_of, entries), key=key)


def write_lines(
    path: str, header: ManifestHeader, lines: Iterable[Line], *, key: AuthenticationKey | None = None
) -> ManifestTotals:
    """Write entries in their written form in the same way. A thread compresses them while the next ones are made."""
    counts = _LineCounter()
    return write_batches(path, header, counts.batches(lines), lambda: counts.totals, key=key)


def write_batches(
    path: str,
    header: ManifestHeader,
    batches: Iterable[bytes],
    totals: Callable[[], ManifestTotals],
    *,
    key: AuthenticationKey | None = None,
) -> ManifestTotals:
    """Write lines, many at once, in the same way. `totals`: theirs, once all were taken."""
    part = f"{path}.part"
    with open(part, "wb", opener=_for_us) as file:
        text = _TaggedText(file, key)
        last = BackgroundCall(partial(text.add, _heading(header, _format(header, tagged=key is not None))))
        try:
            for batch in batches:
                last.result()
                last = BackgroundCall(partial(text.add, batch))
        finally:
            last.result()
        counted = totals()
        text.add(b"# end entries=%d files=%d bytes=%d\n" % (counted.entries, counted.files, counted.bytes))
        text.end()
        file.flush()
        os.fsync(file.fileno())
    rename_whole(part, path)
    return counted


def _format(header: ManifestHeader, *, tagged: bool) -> bytes:
    if header.attributes:
        return TAGGED_FULL_FORMAT if tagged else FULL_FORMAT
    return TAGGED_FORMAT if tagged else FORMAT


class _TaggedText:
    """The compressed text of a manifest on its way to the file, and its tag at the end.

    The tag is over the heading, too: it names job and point, so that no other point's manifest takes its place.
    """

    def __init__(self, file: IO[bytes], key: AuthenticationKey | None) -> None:
        self._file, self._key = file, key
        self._pack = zlib.compressobj(1, wbits=31)
        self._hash = key.manifest_hash() if key else None

    def add(self, text: bytes) -> None:
        if self._hash is not None:
            self._hash.update(text)
        self._file.write(self._pack.compress(text))

    def end(self) -> None:
        if self._key is not None and self._hash is not None:
            line = b"# authentication: blake2b %b %b\n" % (self._key.id.encode(), self._hash.hexdigest().encode())
            self._file.write(self._pack.compress(line))
        self._file.write(self._pack.flush())


def read_tag(path: str, key: AuthenticationKey | None) -> ManifestTag:
    """Return the tag of a manifest, after a look at all of it. Raises: VerificationFailed when it is damaged · OSError."""
    lines = packed_lines(path)
    try:
        beginning = next(lines)
        told, _ = _read_heading(lines)
        if beginning not in TAGGED:
            return ManifestTag(job=told["job"], point=told["point"], key="", right=False)
        check = TagCheck(path, key)
        for piece in unpacked_pieces(path):
            check.feed(piece)
        return check.tag(told["job"], told["point"])
    except (*NOT_READ, ManifestDamaged) as error:
        raise _failed(path, error) from error


def read_tagged_entries(path: str, key: AuthenticationKey | None, prefix: bytes) -> TaggedEntries:
    """Return the entries at and below a path, and the tag that one and the same reading shows.

    Raises: VerificationFailed when it is damaged · OSError.
    """
    check = TagCheck(path, key)
    header, entries = read_manifest(path, prefix=prefix, seen=check.feed)
    found = tuple(entries)
    try:
        return TaggedEntries(tag=check.tag(header.job, header.point), header=header, entries=found)
    except ManifestDamaged as error:
        raise _failed(path, error) from error


class TagCheck:
    """The check of a tag against the text before it, which is fed piece by piece. `path`: for its error."""

    def __init__(self, path: str, key: AuthenticationKey | None) -> None:
        self._path = path
        self._hash = key.manifest_hash() if key else None
        self._beginning = self._rest = b""

    def feed(self, piece: bytes) -> None:
        """Take the next piece of the whole text."""
        self._beginning = self._beginning or piece.partition(b"\n")[0]
        self._rest += piece
        if self._hash is not None:
            self._hash.update(self._rest[:-TAG_BYTES])
        self._rest = self._rest[-TAG_BYTES:]

    def tag(self, job: str, point: str) -> ManifestTag:
        """Return the tag at the end of the text. Raises: ManifestDamaged where its line is missing."""
        if self._beginning not in TAGGED:
            return ManifestTag(job=job, point=point, key="", right=False)
        line = TAG_LINE.fullmatch(self._rest.removesuffix(b"\n"))
        if line is None:
            raise ManifestDamaged(f"{self._path}: the manifest is damaged: the line of its tag is missing")
        right = self._hash is not None and compare_digest(self._hash.hexdigest().encode(), line[2])
        return ManifestTag(job=job, point=point, key=line[1].decode(), right=right)


def _for_us(path: str, flags: int) -> int:
    """Open a file that nobody else may read, as digests tell contents, and that is no link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


class _LineCounter:
    """Counter of lines on their way that also checks their order."""

    def __init__(self) -> None:
        self._entries = self._files = self._bytes = 0

    @property
    def totals(self) -> ManifestTotals:
        return ManifestTotals(entries=self._entries, files=self._files, bytes=self._bytes)

    def batches(self, lines: Iterable[Line]) -> Iterator[bytes]:
        """Yield the lines, many at once. Raises: ValueError."""
        last, batch = b"", list[bytes]()
        for key, content, line in lines:
            if key <= last:
                raise ValueError(f"entries out of order, or twice: {key[:-2]!r}")
            last = key
            if content >= 0:
                self._files += 1
                self._bytes += content
            batch.append(line)
            if len(batch) == _BATCH:
                self._entries += _BATCH
                yield b"".join(batch)
                batch = []
        self._entries += len(batch)
        if self._bytes > _LARGEST:
            raise ValueError("sizes that no disk holds")
        yield b"".join(batch)


def rename_whole(old: str, new: str) -> None:
    """Rename a file so that the new name survives a power cut."""
    os.rename(old, new)
    folder = os.open(os.path.dirname(new) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_manifest(
    path: str, *, prefix: bytes = b"", seen: Callable[[bytes], object] | None = None
) -> tuple[ManifestHeader, Iterator[ManifestEntry]]:
    """Return the header, and the entries as they are read; `prefix`: only what lies there, as seen from there.

    Of what lies elsewhere the lines are only counted. `seen`: takes the whole text, piece by piece.
    Raises: VerificationFailed (also while the entries are read: a cut manifest shows at its end) · OSError.
    """
    header, lines = _read_begin(path, packed_lines(path, holding=b"\t" + escape(prefix) if prefix else b"", seen=seen))
    return header, _entries(path, lines, prefix)


def _read_begin(path: str, lines: Iterator[bytes]) -> tuple[ManifestHeader, Iterator[bytes]]:
    """Return the header, and the lines of the entries."""
    try:
        beginning = next(lines)
        told, first = _read_heading(lines)
        header = ManifestHeader(
            job=told["job"], source=told["source"], point=told["point"], digest=told["digest"],
            created=bound_instant(datetime.fromisoformat(told["created"]).astimezone(UTC)),
            attributes=beginning in (FULL_FORMAT, TAGGED_FULL_FORMAT),
        )  # fmt: skip
    except (*NOT_READ, ManifestDamaged) as error:
        raise _failed(path, error) from error
    return header, chain(first, lines)


class TaggedTexts:
    """The entries of a manifest as texts of many lines, as they are written; its header, and its tag and totals once all were read.

    Raises: VerificationFailed; while texts are read ManifestDamaged · OSError.
    """

    def __init__(self, path: str, key: AuthenticationKey | None) -> None:
        self.header, _ = _read_begin(path, packed_lines(path))
        self._check = TagCheck(path, key)
        self._texts = PackedTexts(path, seen=self._check.feed)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._texts)

    @property
    def totals(self) -> ManifestTotals:
        """Return the totals at the end."""
        entries, files, size = self._texts.totals
        return ManifestTotals(entries=entries, files=files, bytes=size)

    @property
    def tag(self) -> ManifestTag:
        """Return the tag at the end. Raises: ManifestDamaged where its line is missing."""
        return self._check.tag(self.header.job, self.header.point)


def copy_manifest(path: str, copy: str) -> str:
    """Copy a manifest as it is into a file that nobody else may change; return its digest. Raises: OSError."""
    hashed = blake2b(digest_size=_DIGEST)
    with open(path, "rb") as file, open(copy, "wb", opener=_for_us) as copied:
        while piece := file.read(_PIECE):
            hashed.update(piece)
            copied.write(piece)
    return hashed.hexdigest()


def digest_manifest(path: str) -> str:
    """Return the digest of a manifest's file. Raises: OSError."""
    hashed = blake2b(digest_size=_DIGEST)
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
    return hashed.hexdigest()


def read_names(path: str, *, prefix: bytes = b"") -> Iterator[bytes]:
    """Yield only the paths, for a third of the work. Raises: VerificationFailed (also at the end) · OSError."""
    last = b""
    inside = prefix + b"/"
    try:
        for line in packed_lines(path):
            if line.startswith(b"#"):
                continue
            name = line.split(b"\t", 10)[9]
            name = unescape(name) if b"\\" in name else name
            if leads_astray(name):
                raise ManifestDamaged(f"{path}: a path that leads elsewhere: {name[:200]!r}")
            key = name + b"//"
            if key <= last:
                raise ManifestDamaged(f"{path}: entries out of order, or twice: {name!r}")
            last = key
            if not prefix:
                yield name
            elif key.startswith(inside):
                yield name[len(inside) :]
    except NOT_READ as error:
        raise _failed(path, error) from error


def require_whole(path: str) -> None:
    """Unpack a manifest to its end, so that what is shown of it comes from a whole one. Raises: VerificationFailed · OSError."""
    try:
        for _ in packed_lines(path):
            pass
    except (*NOT_READ, ManifestDamaged) as error:
        raise _failed(path, error) from error


def read_rows(path: str, *, holding: bytes = b"") -> Iterator[Row]:
    """Yield the path and the written fields of each entry, for a third of the work of `read_manifest`.

    `row_entry` makes an entry of the fields. `holding`: only the rows with these bytes in them; of the others only the number is looked at.
    Raises: VerificationFailed (also at the end) · OSError.
    """
    last = b""
    try:
        for line in packed_lines(path, holding=holding):
            if line.startswith(b"#"):
                continue
            row = line.split(b"\t")
            name = row[9]
            name = unescape(name) if b"\\" in name else name
            key = name + b"//"
            if key <= last:
                raise ManifestDamaged(f"{path}: entries out of order, or twice: {name!r}")
            last = key
            yield name, row
    except (*NOT_READ, ManifestDamaged) as error:
        raise _failed(path, error) from error


def read_rows_below(path: str, prefix: bytes) -> Iterator[Row]:
    """Yield the rows of what lies at `prefix`, each with its path as seen from there. Raises: VerificationFailed (also at the end) · OSError."""
    for name, row in read_rows(path, holding=b"\t" + escape(prefix) if prefix else b""):
        if leads_astray(name):
            raise _failed(path, ValueError(f"a path that leads elsewhere: {name[:200]!r}"))
        below = path_below(name, prefix)
        if below is not None:
            yield below, row


def row_entry(path: str, row: list[bytes]) -> ManifestEntry:
    """Return the entry of a row. `path`: of the manifest. Raises: VerificationFailed."""
    try:
        return parse_line(b"\t".join(row))
    except NOT_READ as error:
        raise _failed(path, error) from error


def _entries(path: str, lines: Iterable[bytes], prefix: bytes) -> Iterator[ManifestEntry]:
    last = b""
    inside = prefix + b"/"
    try:
        for line in lines:
            entry = parse_line(line)
            key = entry[0] + b"//"
            if key <= last:
                raise ManifestDamaged(f"{path}: entries out of order, or twice: {entry.path!r}")
            last = key
            if not prefix:
                yield entry
            elif key.startswith(inside):
                yield entry._replace(path=entry.path[len(inside) :])
    except NOT_READ as error:
        raise _failed(path, error) from error


def _failed(path: str, error: Exception) -> VerificationFailed:
    why = str(error) if isinstance(error, ManifestDamaged) else f"{path}: the manifest is damaged: {error}"
    return VerificationFailed(
        why, hint="the copy itself may be sound: bring the manifest back from another place, if there is one"
    )


def _heading(header: ManifestHeader, beginning: bytes) -> bytes:
    told = {"job": header.job, "source": header.source, "point": header.point, "digest": header.digest}
    lines = [f"# {name}: ".encode() + escape(os.fsencode(value)) for name, value in told.items()]
    created = f"# created: {header.created.astimezone(UTC).isoformat()}".encode()
    return b"\n".join([beginning, *lines, created, _COLUMNS])


def _read_heading(lines: Iterator[bytes]) -> tuple[dict[str, str], list[bytes]]:
    """Return the values of the heading, and the first line after it."""
    told: dict[str, str] = {}
    for line in lines:
        if not line.startswith(b"#"):
            return told, [line]
        name, _, value = line[2:].partition(b": ")
        told[name.decode("ascii", "replace")] = os.fsdecode(unescape(value))
    return told, []
