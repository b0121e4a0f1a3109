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

from collections.abc import Iterable, Iterator

from orchestrator.domain.point import Finding, Verdict
from orchestrator.verify.entry import (
    EXACT,
    UNREAD,
    ManifestEntry,
    Tolerance,
    differences,
    same_time,
    sort_key,
    was_never_copied,
)

_BEHIND = b"\xff" * 4096  # after every path: no part of one has more than 255 bytes
_NO_DIGEST = (_BEHIND, "")


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
        if digests is not None and not known and entry.kind == here.kind == "f" and entry.digest != UNREAD:
            yield _finding(entry.path, Verdict.UNREADABLE, "it was not read")
        finding = compare_entry(entry, here, known, tolerance)
        if finding is not None:
            yield finding


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
