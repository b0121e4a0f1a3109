"""Build of a new point's manifest from known data, without reading files: a merge of three sorted streams.

Records that do not fit into memory are sorted with nameless temporary files in a folder.
"""

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import IO, Self

from orchestrator.domain.authentication import AuthenticationKey
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import Finding, Verdict
from orchestrator.process.background import nameless_file
from orchestrator.verify.attributes import UNRECORDED
from orchestrator.verify.entry import (
    UNKNOWN,
    UNREAD,
    Line,
    ManifestEntry,
    format_plain_line,
    line_of,
    new_entry,
    parse_line,
    parse_listing,
    sort_key,
    split_records,
    with_digest,
)
from orchestrator.verify.manifest import (
    ManifestHeader,
    ManifestTotals,
    Row,
    read_manifest,
    rename_whole,
    write_lines,
    write_manifest,
)

_FAN = 64  # spilled files open at once
_PIECE = 1 << 18
_CHUNK_BYTES = 32 << 20
_IN_MEMORY = 50_000  # names with their digests


def sorted_records(records: Iterable[bytes], *, chunk: int = 120_000, folder: str) -> Iterator[bytes]:
    """Yield the records (without NUL in them) in byte order, equal ones in the order they came."""
    spills: list[IO[bytes]] = []
    held: list[bytes] = []
    size = 0
    try:
        for record in records:
            if len(held) >= chunk or size >= _CHUNK_BYTES:
                held.sort()
                spills.append(_spill(held, folder))
                held, size = [], 0  # before more are taken: several sort at once
                if len(spills) > _FAN:
                    spills = [_join(spills, folder)]
            held.append(record)
            size += len(record)
        held.sort()
        yield from heapq.merge(*map(_unspill, spills), held) if spills else held
    finally:
        for spill in spills:
            spill.close()


def _join(spills: list[IO[bytes]], folder: str) -> IO[bytes]:
    whole = _spill(heapq.merge(*map(_unspill, spills)), folder)
    for spill in spills:
        spill.close()
    return whole


def _spill(records: Iterable[bytes], folder: str) -> IO[bytes]:
    file = nameless_file(folder)  # closed by the merge
    batch: list[bytes] = []
    for record in records:
        batch.append(record)
        if len(batch) == 4096:
            file.write(b"\0".join(batch) + b"\0")
            batch = []
    if batch:
        file.write(b"\0".join(batch) + b"\0")
    file.seek(0)
    return file


def _unspill(file: IO[bytes]) -> Iterator[bytes]:
    return split_records(iter(lambda: file.read(_PIECE), b""))


def _by_path(move: tuple[bytes, str]) -> bytes:
    return move[0] + b"//"


def sorted_moves(moves: Iterable[tuple[bytes, str]], *, folder: str) -> Iterator[tuple[bytes, str]]:
    """Yield names and digests in the order of manifests; of several digests for one name the last one."""
    source = iter(moves)
    few = list(islice(source, _IN_MEMORY))
    if len(few) < _IN_MEMORY:
        yield from sorted(dict(few).items(), key=_by_path)
        return
    moves = chain(few, source)
    told = (b"%b//%015d\t%b" % (path, number, digest.encode()) for number, (path, digest) in enumerate(moves))
    name, digest = None, ""
    for record in chain(sorted_records(told, folder=folder), (None,)):
        path, _, rest = record.partition(b"//") if record is not None else (None, b"", b"")
        if name is not None and path != name:
            yield name, digest
        name, digest = path, rest[16:].decode()


class DigestSpool:
    """Store on disk for digests that workers report in any order; it returns them in the manifest's order."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = nameless_file(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, number: int, digest: str, path: bytes) -> None:
        """Store one digest."""
        self._file.write(b"%015d\t%b\t%b\0" % (number, digest.encode(), path))

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Return the digests with their numbers in the manifest."""
        return ((int(number), digest.decode()) for number, digest, _ in self._records())

    def named(self) -> Iterator[tuple[bytes, str]]:
        """Return the digests with their paths."""
        return ((path, digest.decode()) for _, digest, path in self._records())

    def _records(self) -> Iterator[list[bytes]]:
        self._file.seek(0)
        records = sorted_records(_unspill(self._file), folder=self._folder)
        return (record.split(b"\t", 2) for record in records)


_FEW = 1000  # findings in memory
_INODES = 300_000  # inodes remembered for hard links inside the tree; files beyond are read instead
_BEHIND = b"\xff" * 4096  # after every path: no part of one has more than 255 bytes
_NO_MOVE = (_BEHIND, "")
_NO_ENTRY = ManifestEntry(_BEHIND, "", -1, 0, 0, 0, 0, 0, 0)
_NO_ROW: Row = (_BEHIND, [])


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestDraft:
    """Summary of a draft manifest. `unknown`: files still to be read, with their bytes.

    `findings`: the first files moved again with the old size and time but another digest: they rotted on one side.
    """

    totals: ManifestTotals
    unknown: int
    unknown_bytes: int
    findings: tuple[Finding, ...]


def draft_of(manifest: str) -> str:
    """Return the path of a manifest's draft."""
    return f"{manifest}.draft"


def build_manifest(
    manifest: str,
    header: ManifestHeader,
    *,
    listing: Iterable[bytes] = (),
    joined: Iterable[tuple[bytes, str]] | None = None,
    moved: Iterable[tuple[bytes, str]] = (),
    linked: Iterable[Row] = (),
    unread: Iterable[bytes] = (),
    itself: bool = False,
    key: AuthenticationKey | None = None,
) -> ManifestDraft:
    """Write the draft of a manifest; `finish_manifest` turns it into the manifest.

    `listing`: the records of `listing_command`, or `joined`: each with the text of its attributes; `moved`: names and digests
    ("xxh128:…"), the later one where a name appears twice; `linked`: the rows of the manifest of the point that unchanged files were
    linked from. `unread`: files that could not be read at the source, so that the manifest lists missing files. All sorted. Memory stays
    constant. `itself`: `linked` describes an earlier state of this tree, so a file may have been moved into its old inode. `key`
    tags the draft, as a draft without gaps becomes the manifest unchanged.
    """
    draft = draft_of(manifest)
    merge = ManifestMerge(header.digest, moved, linked, itself=itself)
    told = joined if joined is not None else ((record, UNRECORDED) for record in listing)
    totals = write_lines(draft, header, _with_unread(merge.lines(told), iter(unread)), key=key)
    if merge.wanted:
        followers = _HardLinkNames(draft, merge.wanted)
        write_manifest(draft, header, followers.entries(), key=key)
        merge.unknown -= followers.found
        merge.unknown_bytes -= followers.found_bytes
    return ManifestDraft(
        totals=totals, unknown=merge.unknown, unknown_bytes=merge.unknown_bytes, findings=tuple(merge.findings),
    )  # fmt: skip


def _with_unread(lines: Iterator[Line], unread: Iterator[bytes]) -> Iterator[Line]:
    """Yield the lines, merged with lines for entries that are missing because they could not be read."""
    name = next(unread, _BEHIND)
    if name == _BEHIND:
        yield from lines
    for line in lines:
        while sort_key(name) < line[0]:
            yield _unread(name)
            name = next(unread, _BEHIND)
        if sort_key(name) == line[0]:  # a folder that could not be listed, or an older copy that stayed
            name = next(unread, _BEHIND)
        yield line
    while name != _BEHIND:
        yield _unread(name)
        name = next(unread, _BEHIND)


def _unread(name: bytes) -> Line:
    return line_of(ManifestEntry(name, "f", 0, 0, 0, 0, 0, 1, 0, b"", UNREAD))


def finish_manifest(
    manifest: str,
    built: ManifestDraft,
    filled: Iterable[tuple[int, str]] = (),
    *,
    attributes: Mapping[bytes, str] | None = None,
    key: AuthenticationKey | None = None,
) -> ManifestTotals:
    """Turn the draft into the manifest; `filled`: the digests read, by entry number in the draft, in rising order.

    `attributes`: the texts of entries whose attributes are not what the draft says.

    Raises: ValueError when an entry is still unknown or `filled` names another: nothing is written then.
    """
    draft = draft_of(manifest)
    if not built.unknown and not attributes:
        rename_whole(draft, manifest)
        return built.totals
    header, entries = read_manifest(draft)
    whole = _filled(entries, iter(filled))
    if attributes:
        whole = (each._replace(attributes=attributes.get(each.path, each.attributes)) for each in whole)
    totals = write_manifest(manifest, header, whole, key=key)
    os.unlink(draft)
    return totals


def _filled(entries: Iterable[ManifestEntry], filled: Iterator[tuple[int, str]]) -> Iterator[ManifestEntry]:
    number, digest = next(filled, (-1, ""))
    for at, entry in enumerate(entries):
        if not entry.digest.startswith(UNKNOWN):
            yield entry
            continue
        if at != number:
            raise ValueError(f"no digest was read for {entry.path!r}")
        yield with_digest(entry, digest)
        number, digest = next(filled, (-1, ""))
    if number != -1:
        raise ValueError(f"a digest was read for entry {number}, which needs none")


def _listed(record: bytes, text: str) -> ManifestEntry:
    entry = parse_listing(record)
    return new_entry(ManifestEntry, (*entry[:11], text)) if text else entry


def _entry_of(row: list[bytes]) -> ManifestEntry:
    """Return the entry of a row; one that no file is like where there is none, or it is damaged."""
    try:
        return parse_line(b"\t".join(row)) if row else _NO_ENTRY
    except ValueError:
        return _NO_ENTRY


class ManifestMerge:
    """The three-way merge, with its counts."""

    def __init__(
        self, algorithm: str, moved: Iterable[tuple[bytes, str]], linked: Iterable[Row], *, itself: bool
    ) -> None:
        self._itself = itself
        self._start = f"{algorithm}:".encode()
        self._algorithm = algorithm + ":"
        self._moved = iter(moved)
        self._linked = iter(linked)
        self.unknown = self.unknown_bytes = 0
        self.findings: list[Finding] = []
        self.wanted: set[int] = set()

    def lines(self, listing: Iterable[tuple[bytes, str]]) -> Iterator[Line]:
        moved, linked, algorithm = self._moved, self._linked, self._algorithm
        fresh = next(moved, _NO_MOVE)
        name, row = next(linked, _NO_ROW)
        fresh_key, old_key = sort_key(fresh[0]), sort_key(name)
        for record, text in listing:
            key = record[: record.index(b"//") + 2]
            digest = ""
            while fresh_key <= key:
                digest = fresh[1] if fresh_key == key else ""
                fresh = next(moved, _NO_MOVE)
                fresh_key = fresh[0] + b"//"
            while old_key < key:
                name, row = next(linked, _NO_ROW)
                old_key = name + b"//"
            here = row if old_key == key else []
            line = None
            if here:
                line = self._linked_line(record, len(key), digest, here, text)
            elif digest.startswith(algorithm):
                line = format_plain_line(record, key, f"{digest}+{text}" if text else digest)
            yield line or line_of(self._known(_listed(record, text), digest, here))

    def _linked_line(self, record: bytes, end: int, fresh: str, row: list[bytes], text: str) -> Line | None:
        """Return the line of a linked file that is as its row; None where it takes a closer look.

        Why by text: nearly all files of a run are unchanged, and entries of both would take twice the time.
        """
        kind, size, mtime, others = record[end:].split(b"\t", 3)
        same = row[1:4] == [kind, size, mtime[:-11] + mtime[-10:-1]] and others.endswith(b"\t%b\t" % row[8])
        path, digest = record[: end - 2], row[0].partition(b"+")[0]
        # A name that is written as it is needs no escapes.
        if (
            fresh
            or not same
            or kind != b"f"
            or row[9:] != [path]
            or not digest.startswith(self._start)
            or not digest.isascii()
        ):
            return None
        if text:
            digest = b"%b+%b" % (digest, text.encode())
        return record[:end], int(size), b"%b\tf\t%b\t%b\t%b%b\n" % (digest, size, row[3], others, path)

    def _known(self, entry: ManifestEntry, fresh: str, row: list[bytes]) -> ManifestEntry:
        """Return the entry; a file with its known digest."""
        if entry[1] != "f":
            return entry
        old = _entry_of(row)
        digest = fresh or UNKNOWN
        if old[2] == entry[2] and old[3] == entry[3] and old[1] == "f":
            linked = old[8] == entry[8]
            if fresh and (self._itself or not linked):
                self._moved_again(entry, fresh.removeprefix(UNKNOWN), old)
            elif linked:  # an interrupted copy reported another, former file of this name
                digest = old[10].removeprefix(UNKNOWN) if ":" in old[10] else UNKNOWN
        if digest.startswith(self._algorithm):
            return with_digest(entry, digest)
        self.unknown += 1
        self.unknown_bytes += entry.size
        if digest != UNKNOWN:
            return with_digest(entry, UNKNOWN + digest.removeprefix(UNKNOWN))
        if entry.nlink > 1 and len(self.wanted) < _INODES:
            self.wanted.add(entry.inode)
        return entry

    def _moved_again(self, entry: ManifestEntry, digest: str, old: ManifestEntry) -> None:
        same_kind = digest.partition(":")[0] == old.digest.partition(":")[0]
        if same_kind and digest != old.digest and len(self.findings) < _FEW:
            what = f"moved again with the size and time of the older copy, but as {digest} instead of {old.digest}"
            self.findings.append(Finding(path=entry.path, verdict=Verdict.ROTTEN, detail=what))


class _HardLinkNames:
    """Further names of a file whose digest another name has: rsync reports only the first."""

    def __init__(self, draft: str, wanted: set[int]) -> None:
        self._draft = draft
        self._known = {e.inode: e for e in read_manifest(draft)[1] if e.inode in wanted and ":" in e.digest[1:]}
        self.found = self.found_bytes = 0

    def entries(self) -> Iterator[ManifestEntry]:
        for entry in read_manifest(self._draft)[1]:
            leader = self._known.get(entry.inode) if entry.digest == UNKNOWN else None
            if leader is None or leader.digest.startswith(UNKNOWN):
                yield entry
                continue
            self.found += 1
            self.found_bytes += entry.size
            yield with_digest(entry, leader.digest)
