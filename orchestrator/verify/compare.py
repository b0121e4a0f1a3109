"""Comparison of a listing with a manifest, name by name, with all differences.

With digests of the tree, bytes are judged too:

    digest    size and time     verdict
    same      as in manifest    none, or METADATA for mode, owner
    same      time differs      METADATA
    another   one differs       EDITED
    another   as in manifest    ROTTEN
    unknown   size differs      EDITED: other bytes for certain
    unknown   time differs      METADATA: perhaps other bytes
"""

from collections.abc import Callable, Iterable, Iterator

from orchestrator.domain.point import Finding, Verdict
from orchestrator.verify.entry import (
    EXACT,
    UNREAD,
    ManifestEntry,
    Tolerance,
    differences,
    parse_listing,
    same_time,
    sort_key,
    was_never_copied,
)
from orchestrator.verify.manifest import Row

_BEHIND = b"\xff" * 4096  # after every path: no part of one has more than 255 bytes
_NO_DIGEST = (_BEHIND, "")
_NO_ROW: Row = (_BEHIND, [])
_FIELDS = 10  # of a row of all but symbolic links


def compare(
    expected: Iterable[ManifestEntry],
    found: Iterable[ManifestEntry],
    *,
    digests: Iterable[tuple[bytes, str]] | None = None,
    tolerance: Tolerance = EXACT,
) -> Iterator[Finding]:
    """Yield all differences, in order. All input is sorted; `digests`: of the tree, by the manifest's algorithm."""
    told = iter(digests or ())
    path, digest = next(told, _NO_DIGEST)
    for entry, here in join_sorted(expected, found):
        if entry is None or here is None:
            yield _only_one(entry, here)
            continue
        key = sort_key(entry.path)
        while sort_key(path) < key:
            path, digest = next(told, _NO_DIGEST)
        known = digest if path == entry.path else ""
        yield from _of_both(entry, here, known, tolerance, read=digests is not None)


def _of_both(
    expected: ManifestEntry, here: ManifestEntry, digest: str, tolerance: Tolerance, *, read: bool
) -> Iterator[Finding]:
    """Yield the findings for one entry that both sides have. `read`: a file without a digest was not read, and should have been."""
    if read and not digest and expected.kind == here.kind == "f" and expected.digest != UNREAD:
        yield _finding(expected.path, Verdict.UNREADABLE, "it was not read")
    finding = compare_entry(expected, here, digest, tolerance)
    if finding is not None:
        yield finding


class RowComparison:
    """Comparison of a listing with the rows of a manifest, as text where both say the same; it counts what is listed.

    `row_entry`: returns the entry of a row. Why by text: nearly all is as expected, and entries of both sides take three times as long.
    """

    def __init__(self, row_entry: Callable[[Row], ManifestEntry], tolerance: Tolerance) -> None:
        self._row_entry, self._tolerance = row_entry, tolerance
        self.entries = self.files = self.bytes = 0

    def findings(
        self, rows: Iterator[Row], found: Iterable[tuple[bytes, str]], digests: Iterator[tuple[bytes, str]]
    ) -> Iterator[Finding]:
        """Yield all differences, in order. All input is sorted; `found`: records, each with the text of its attributes; `digests`: of files.

        Raises: ValueError for what is no record.
        """
        row, told = next(rows, _NO_ROW), next(digests, _NO_DIGEST)
        key, read = sort_key(row[0]), sort_key(told[0])
        for record, text in found:
            end = record.index(b"//") + 2
            here = record[:end]
            while key < here:
                yield _only_one(self._row_entry(row), None)
                row = next(rows, _NO_ROW)
                key = row[0] + b"//"
            while read < here:
                told = next(digests, _NO_DIGEST)
                read = told[0] + b"//"
            digest = told[1] if read == here else ""
            kind, size, mtime, mode, uid, gid, _ = record[end:].split(b"\t", 6)
            if key != here:
                yield _only_one(None, self._listed(record, text))
                continue
            wanted = f"{digest}+{text}" if text else digest
            if (
                kind == b"f"
                and digest
                and row[1][:7] == [wanted.encode(), kind, size, mtime[:-11] + mtime[-10:-1], mode, uid, gid]
                and mtime[:1] != b"-"  # find's -5.5 is 4.5 seconds before 1970
                and len(row[1]) == _FIELDS
            ):
                self.entries += 1
                self.files += 1
                self.bytes += int(size)
            else:
                yield from _of_both(
                    self._row_entry(row), self._listed(record, text), digest, self._tolerance, read=True
                )
            row = next(rows, _NO_ROW)
            key = row[0] + b"//"
        while row is not _NO_ROW:
            yield _only_one(self._row_entry(row), None)
            row = next(rows, _NO_ROW)

    def _listed(self, record: bytes, text: str) -> ManifestEntry:
        """Return the entry of a record, counted."""
        entry = parse_listing(record)
        self.entries += 1
        if entry.kind == "f":
            self.files += 1
            self.bytes += entry.size
        return entry._replace(attributes=text)


def find_extras(expected: Iterable[bytes], found: Iterable[bytes]) -> Iterator[Finding]:
    """Yield the paths that the manifest does not have; the workers find the other differences."""
    names = iter(expected)
    last = b""
    for path in found:
        key = path + b"//"
        while last < key:
            last = next(names, _BEHIND) + b"//"
        if last != key:
            yield _extra(path)
    for _ in names:
        pass  # a truncated manifest raises at its end


def _extra(path: bytes) -> Finding:
    return _finding(path, Verdict.EXTRA, "not in the manifest")


def compare_entry(
    expected: ManifestEntry, here: ManifestEntry, digest: str = "", tolerance: Tolerance = EXACT
) -> Finding | None:
    """Return the finding for one entry that both sides have. `digest` "": the file was not read."""
    told = differences(expected, here, tolerance)
    if expected.kind != here.kind:
        return _finding(expected.path, Verdict.EDITED, *told)
    if expected.kind == "f" and ":" not in expected.digest:
        return _finding(expected.path, Verdict.UNPROVED, "it could not be read when it was copied")
    same = here.size == expected.size and same_time(expected.mtime_ns, here.mtime_ns, tolerance)
    if digest and digest != expected.digest:
        told = (f"{digest}, expected {expected.digest}", *told)
        return _finding(expected.path, Verdict.ROTTEN if same else Verdict.EDITED, *told)
    if here.size != expected.size:
        return _finding(expected.path, Verdict.EDITED, *told)
    return _finding(expected.path, Verdict.METADATA, *told) if told else None


def join_sorted(
    left: Iterable[ManifestEntry], right: Iterable[ManifestEntry]
) -> Iterator[tuple[ManifestEntry | None, ManifestEntry | None]]:
    """Yield the entries of two sorted streams, side by side; None where one side has none."""
    lefts, rights = iter(left), iter(right)
    one, two = next(lefts, None), next(rights, None)
    while one is not None or two is not None:
        first = sort_key(one.path) if one is not None else _BEHIND
        second = sort_key(two.path) if two is not None else _BEHIND
        yield (one if first <= second else None), (two if second <= first else None)
        if first <= second:
            one = next(lefts, None)
        if second <= first:
            two = next(rights, None)


def _only_one(expected: ManifestEntry | None, here: ManifestEntry | None) -> Finding:
    if here is not None:
        return _extra(here.path)
    if expected is not None and was_never_copied(expected):
        return _finding(expected.path, Verdict.UNPROVED, "it could not be read when it was copied")
    return _finding(expected.path if expected else b"", Verdict.MISSING, "not there")


def _finding(path: bytes, verdict: Verdict, *details: str) -> Finding:
    return Finding(path=path, verdict=verdict, detail="; ".join(details))
