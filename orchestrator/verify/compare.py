"""Comparison of a listing with a manifest, name by name, with all differences.

When digests of the tree are at hand, bytes are judged too:

    digest    size and time     verdict
    same      as promised       none, or METADATA for mode, owner
    same      time differs      METADATA
    another   one differs       EDITED
    another   as promised       ROTTEN
    unknown   size differs      EDITED: other bytes for certain
    unknown   time differs      METADATA: perhaps other bytes
"""

from collections.abc import Iterable, Iterator

from orchestrator.domain.point import Finding, Verdict
from orchestrator.verify.entry import EXACT, UNREAD, Entry, Tolerance, differences, never_here, order, same_time

_BEHIND = b"\xff" * 4096  # behind every path: no part of one has more than 255 bytes
_NO_DIGEST = (_BEHIND, "")


def compare(
    promised: Iterable[Entry],
    found: Iterable[Entry],
    *,
    digests: Iterable[tuple[bytes, str]] | None = None,
    tolerance: Tolerance = EXACT,
) -> Iterator[Finding]:
    """Yield all differences, in order. All input is sorted; `digests`: of the tree, by the manifest's algorithm."""
    told = iter(digests or ())
    path, digest = next(told, _NO_DIGEST)
    for promise, here in joined(promised, found):
        if promise is None or here is None:
            yield _only_one(promise, here)
            continue
        key = order(promise.path)
        while order(path) < key:
            path, digest = next(told, _NO_DIGEST)
        known = digest if path == promise.path else ""
        if digests is not None and not known and promise.kind == here.kind == "f" and promise.digest != UNREAD:
            yield _finding(promise.path, Verdict.UNREADABLE, "it was not read")
        finding = judge(promise, here, known, tolerance)
        if finding is not None:
            yield finding


def extras(promised: Iterable[bytes], found: Iterable[bytes]) -> Iterator[Finding]:
    """Yield the paths that the manifest does not have; the workers find the other differences."""
    names = iter(promised)
    last = b""
    for path in found:
        key = path + b"//"
        while last < key:
            last = next(names, _BEHIND) + b"//"
        if last != key:
            yield _extra(path)
    for _ in names:
        pass  # a manifest that is cut shows at its end


def _extra(path: bytes) -> Finding:
    return _finding(path, Verdict.EXTRA, "not in the manifest")


def judge(promise: Entry, here: Entry, digest: str = "", tolerance: Tolerance = EXACT) -> Finding | None:
    """Return the finding on one entry that both sides have. `digest` "": the file was not read."""
    told = differences(promise, here, tolerance)
    if promise.kind != here.kind:
        return _finding(promise.path, Verdict.EDITED, *told)
    if promise.kind == "f" and ":" not in promise.digest:
        return _finding(promise.path, Verdict.UNPROVED, "it could not be read when it was copied")
    same = here.size == promise.size and same_time(promise.mtime_ns, here.mtime_ns, tolerance)
    if digest and digest != promise.digest:
        told = (f"{digest}, promised {promise.digest}", *told)
        return _finding(promise.path, Verdict.ROTTEN if same else Verdict.EDITED, *told)
    if here.size != promise.size:
        return _finding(promise.path, Verdict.EDITED, *told)
    return _finding(promise.path, Verdict.METADATA, *told) if told else None


def joined(left: Iterable[Entry], right: Iterable[Entry]) -> Iterator[tuple[Entry | None, Entry | None]]:
    """Yield the entries of two sorted streams, side by side; None where one side has none."""
    lefts, rights = iter(left), iter(right)
    one, two = next(lefts, None), next(rights, None)
    while one is not None or two is not None:
        first = order(one.path) if one is not None else _BEHIND
        second = order(two.path) if two is not None else _BEHIND
        yield (one if first <= second else None), (two if second <= first else None)
        if first <= second:
            one = next(lefts, None)
        if second <= first:
            two = next(rights, None)


def _only_one(promise: Entry | None, here: Entry | None) -> Finding:
    if here is not None:
        return _extra(here.path)
    if promise is not None and never_here(promise):
        return _finding(promise.path, Verdict.UNPROVED, "it could not be read when it was copied")
    return _finding(promise.path if promise else b"", Verdict.MISSING, "not there")


def _finding(path: bytes, verdict: Verdict, *details: str) -> Finding:
    return Finding(path=path, verdict=verdict, detail="; ".join(details))
