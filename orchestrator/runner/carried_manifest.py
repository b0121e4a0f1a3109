"""The manifest of a new point from the lines of the one before, where both sides are as recorded but for what changed.

Both are listed whole, as always. But nothing is sorted, and only of what changed since the last look attributes are read, and lines made.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.authentication import AuthenticationKey, ManifestTag
from orchestrator.domain.errors import ManifestForged, VerificationFailed
from orchestrator.domain.plan import ListingRecorder, ManifestRecording, Pipeline, SourceReview
from orchestrator.process.executor import PipelineFailed, Writer
from orchestrator.process.reading_beside import ReadingBeside
from orchestrator.verify.attributes import NO_ATTRIBUTES, keep_parts
from orchestrator.verify.build import ManifestDraft, ManifestMerge, draft_of
from orchestrator.verify.carried_lines import CarriedLines, ListedEntries, NotCarried, listed_records
from orchestrator.verify.completeness import NotSwept, without_remainders
from orchestrator.verify.digest import OpenTree
from orchestrator.verify.manifest import ManifestHeader, read_tagged_lines, write_batches
from orchestrator.verify.source import SourceComparison

_SECOND = 10**9


def may_carry(work: ManifestRecording) -> bool:
    """Return whether the manifest before may say enough of the new point."""
    recorder, review = work.recorder, work.review
    named = review is not None and review.copied is not None and review.copied.selected is None
    known = recorder is not None and recorder.carries and work.linked is not None and work.linked.manifest is not None
    return named and known and not work.stored and not work.apart


class ManifestCarrier:
    """The maker of a draft from the manifest before. `moved`: names and digests that the copy told, sorted.

    `authentic`: judges that manifest by its tag.
    """

    def __init__(
        self, work: ManifestRecording, local: str, older: str, *, header: ManifestHeader, key: AuthenticationKey | None,
        comparison: SourceComparison, writer: Writer, moved: Callable[[], Iterator[tuple[bytes, str]]],
        authentic: Callable[[ManifestTag], None],
    ) -> None:  # fmt: skip
        if work.recorder is None or work.review is None:
            raise AssertionError("may_carry has seen them")
        self._recorder: ListingRecorder = work.recorder
        self._review: SourceReview = work.review
        self._work, self._local, self._older, self._header, self._key = work, local, older, header, key
        self._comparison, self._writer, self._moved, self._authentic = comparison, writer, moved, authentic

    def draft(self) -> ManifestDraft | None:
        """Write the draft; None where the manifest before does not show enough. Raises: OrchestratorError · OSError."""
        try:
            return self._draft()
        except ManifestForged:
            raise
        except (NotCarried, NotSwept, PipelineFailed, VerificationFailed, FileNotFoundError, *NOT_READ):
            return None

    def _draft(self) -> ManifestDraft:
        work, comparison, recorder = self._work, self._comparison, self._recorder
        recorder.begin(work.tree, work.point, carried=True)
        for _ in comparison.begin(iter((b"%d.%09d" % divmod(recorder.began_ns, _SECOND), b""))):
            raise AssertionError("no entry came yet")
        source = self._list_source()
        changed = recorder.changed()
        if changed is None:
            raise NotCarried
        for path, entry in changed.items():
            if entry is not None:
                source.hold(path, entry)
        apart = recorder.differing | changed.keys()
        with ReadingBeside(self._writer, lambda writer: self._list_copy(apart, writer)) as listing:
            lines = self._read_older(apart)  # meanwhile, as nearly all of a listing is find's own time
            copy = listing.result()
        if (source.content, lines.sum) != (copy.content, copy.lines):
            raise NotCarried
        merge = ManifestMerge(
            work.digest, self._moved(), (lines.rows[path] for path in _sorted(lines.rows)), itself=False
        )
        texts = self._texts(source, lines, changed.keys())
        joined = comparison.join(listed_records(copy.held), sorted(source.held.values()), texts)
        others = list(merge.lines(joined))
        if merge.wanted:
            raise NotCarried
        batches = lines.with_others(read_tagged_lines(self._older, None)[1], others)
        totals = lines.totals(others)
        write_batches(draft_of(self._local), self._header, batches, lambda: totals, key=self._key)
        return ManifestDraft(
            totals=totals, unknown=merge.unknown, unknown_bytes=merge.unknown_bytes, findings=tuple(merge.findings)
        )

    def _list_source(self) -> ListedEntries:
        found = ListedEntries(self._recorder.differing)
        with self._writer.records(Pipeline(stages=(self._recorder.listing(self._review.source.root),))) as records:
            for entries in self._recorder.batches(iter(records), copy=False):
                found.add_source(entries)
        return found

    def _list_copy(self, apart: frozenset[bytes], writer: Writer) -> ListedEntries:
        found = ListedEntries(apart)
        with writer.records(Pipeline(stages=(self._recorder.listing(self._work.tree),))) as records:
            for entries in self._recorder.batches(without_remainders(records), copy=True):
                found.add_copy(entries)
        return found

    def _read_older(self, apart: frozenset[bytes]) -> CarriedLines:
        """Read the manifest before, and judge it. What the copy has of attributes is read of each file that has some."""
        parts = self._review.parts
        header, lines, tag = read_tagged_lines(self._older, self._key)
        if (header.attributes, header.digest) != (self._header.attributes, self._header.digest):
            raise NotCarried
        with OpenTree(os.fsencode(self._work.tree.path)) as tree:
            carried = CarriedLines(apart, self._work.digest, partial(_read_text, tree, parts) if parts else None)
            carried.read(lines)
        self._authentic(tag())
        self._comparison.attributes = bool(parts)
        return carried

    def _texts(self, source: ListedEntries, lines: CarriedLines, changed: Collection[bytes]) -> Iterator[bytes]:
        """Yield the attributes of the source's held entries, sorted: read where an entry changed, else as they were."""
        parts = self._review.parts
        if not parts:
            return
        with OpenTree(os.fsencode(self._review.source.root.path)) as tree:
            for path in _sorted(source.held):
                text = "" if path in changed else lines.text(path)
                text = text or _read_text(tree, parts, path)
                if text != NO_ATTRIBUTES:
                    yield path + b"//" + text.encode()


def _read_text(tree: OpenTree, parts: str, path: bytes) -> str:
    """Return the text of an entry's attributes. Raises: NotCarried where it cannot be read: all is listed then, and the reason told."""
    try:
        return keep_parts(tree.attributes(path), parts)
    except OSError as error:
        raise NotCarried from error


def _sorted(paths: Iterable[bytes]) -> list[bytes]:
    return sorted(paths, key=lambda path: path + b"//")
