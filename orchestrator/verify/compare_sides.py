"""Comparison of one snapshot as both sides list it, name by name, when neither side has a manifest.

Records are those of `listing_command`, sorted by path; between them `path//=algorithm:digest`, `//!reason` for a path that
could not be read, and `//~` at the end of a complete listing.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.point import Finding, Verdict
from orchestrator.verify.compare import join_sorted
from orchestrator.verify.entry import UNREAD, ManifestEntry, differences, parse_listing, with_digest

# "sha256sum: './a b': Input/output error", "find: ./a: Permission denied"
_TROUBLE = re.compile(rb".*?'?\./(.*?)'?: ([^:]+)", re.DOTALL)


class SortedListing:
    """A stream of one side's sorted records as entries with digests.

    `troubles`: why something could not be read, by its path; complete once the first entry is there.
    Raises: VerificationFailed for an incomplete listing; ValueError for data that is no listing.
    """

    def __init__(self, records: Iterable[bytes]) -> None:
        self._records = records
        self._other = "reading fails"
        self._whole = False
        self.troubles: dict[bytes, str] = {}
        self.entries = self.files = self.bytes = 0

    def __iter__(self) -> Iterator[ManifestEntry]:
        for path, records in groupby(self._records, key=lambda record: record.partition(b"//")[0]):
            entry = self._entry(path, records)
            if entry is None:
                raise ValueError(f"an entry that is not listed has a digest: {path!r}")
            self.entries += 1
            yield entry
        if not self._whole:
            raise VerificationFailed(
                "a listing broke off before its end: nothing is verified",
                hint="verify again; look at the machine's /tmp",
            )

    def trouble(self, path: bytes) -> str | None:
        """Return why a path, or a folder above it, could not be read; None when it could."""
        while True:
            if path in self.troubles:
                return self.troubles[path]
            if not path:
                return None
            path = path.rpartition(b"/")[0]

    def why_unread(self, path: bytes) -> str:
        """Return why a file has no digest."""
        return self.troubles.get(path, self._other)

    def _entry(self, path: bytes, records: Iterable[bytes]) -> ManifestEntry | None:
        entry, digest = None, ""
        for record in records:
            told = record[len(path) + 2 :]
            if told.startswith(b"="):
                digest = told[1:].decode("ascii")
            elif told.startswith(b"!"):
                self._note(told[1:])
            elif told == b"~":
                self._whole = True
            else:
                entry = parse_listing(record)
        if entry is None or entry.kind != "f":
            return entry
        self.files += bool(digest)
        self.bytes += entry.size if digest else 0
        return with_digest(entry, digest or UNREAD)

    def _note(self, words: bytes) -> None:
        match = _TROUBLE.fullmatch(words)
        if match:
            self.troubles[match[1]] = match[2].decode("utf-8", "replace").strip()
        else:
            self._other = words.decode("utf-8", "replace").strip()


def compare_sides(source: SortedListing, target: SortedListing) -> Iterator[tuple[Finding, bool]]:
    """Yield all differences, in order; True: the source cannot be read, which is no error of the copy."""
    for expected, here in join_sorted(source, target):
        if expected is None:
            if here is not None:
                yield _only_target(here, source)
        elif here is None:
            yield _only_source(expected, target)
        else:
            yield from _both(expected, here, source, target)


def _only_target(here: ManifestEntry, source: SortedListing) -> tuple[Finding, bool]:
    why = source.trouble(here.path)
    if why:
        return _finding(here.path, Verdict.UNPROVED, f"its folder cannot be read on the source ({why})"), False
    return _finding(here.path, Verdict.EXTRA, "the source's snapshot does not have it"), False


def _only_source(expected: ManifestEntry, target: SortedListing) -> tuple[Finding, bool]:
    why = target.trouble(expected.path)
    if why:
        return _finding(expected.path, Verdict.UNREADABLE, f"its folder cannot be read on the target ({why})"), False
    return _finding(expected.path, Verdict.MISSING, "the source's snapshot has it"), False


def _both(
    expected: ManifestEntry, here: ManifestEntry, source: SortedListing, target: SortedListing
) -> Iterator[tuple[Finding, bool]]:
    path, told = here.path, differences(expected, here)
    for entry, side, at_source in ((expected, source, True), (here, target, False)):
        why = side.troubles.get(path) if entry.kind == "d" else None
        if entry.digest == UNREAD:
            why = side.why_unread(path)
        if why:
            called = "source" if at_source else "target"
            yield _finding(path, Verdict.UNREADABLE, f"it cannot be read on the {called} ({why})"), at_source
    if expected.kind != here.kind:
        yield _finding(path, Verdict.EDITED, *told), False
    elif UNREAD in (expected.digest, here.digest):
        if here.digest != UNREAD:
            yield _finding(path, Verdict.UNPROVED, "it cannot be read on the source"), False
    elif expected.digest != here.digest:
        same = expected.size == here.size and expected.mtime_ns == here.mtime_ns
        digests = f"{here.digest} on the target, {expected.digest} on the source"
        yield _finding(path, Verdict.ROTTEN if same else Verdict.EDITED, digests, *told), False
    elif told:
        yield _finding(path, Verdict.METADATA, *told), False


def _finding(path: bytes, verdict: Verdict, *details: str) -> Finding:
    return Finding(path=path, verdict=verdict, detail="; ".join(details))
