"""The manifest of a new point from the lines of the one before, where both sides are as recorded but for what changed.

The look before the copy found the source as it was recorded, but for some paths; the copy is listed whole after it, and is as the point
before, but for the same paths. What a run may have touched, and what is no plain file, is compared one by one, with the source as it is then.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.authentication import AuthenticationKey, ManifestTag
from orchestrator.domain.errors import ManifestForged, VerificationFailed
from orchestrator.domain.place import Location
from orchestrator.domain.plan import ListingRecorder, ManifestRecording, Pipeline, SourceReview
from orchestrator.process.executor import PipelineFailed, Writer
from orchestrator.process.reading_beside import ReadingBeside
from orchestrator.runner.older_point import OlderPoint, OlderPointReading
from orchestrator.verify.attributes import NO_ATTRIBUTES, keep_parts
from orchestrator.verify.build import ManifestDraft, ManifestMerge, draft_of
from orchestrator.verify.carried_lines import CarriedLines, ListedEntries, NotCarried, listed_records
from orchestrator.verify.completeness import NotSwept, require_swept
from orchestrator.verify.digest import OpenTree
from orchestrator.verify.manifest import ManifestHeader, write_batches
from orchestrator.verify.source import SourceComparison

_SECOND = 10**9
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # or what should be a folder above it is none


def may_carry(work: ManifestRecording) -> bool:
    """Return whether the manifest before may say enough of the new point."""
    recorder, review = work.recorder, work.review
    named = review is not None and review.copied is not None and review.copied.selected is None
    known = recorder is not None and recorder.carries and work.linked is not None and work.linked.manifest is not None
    return named and known and not work.stored and not work.apart


class ManifestCarrier:
    """The maker of a draft from the manifest before. `older`: its reading; `moved`: names and digests that the copy told, sorted.

    `authentic`: judges that manifest by its tag.
    """

    def __init__(
        self, work: ManifestRecording, local: str, older: OlderPointReading, *, header: ManifestHeader, key: AuthenticationKey | None,
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
        if not recorder.begin(work.tree, work.point, carried=True):
            raise NotCarried  # such as where something else is mounted there by now
        for _ in comparison.begin(iter((b"%d.%09d" % divmod(recorder.began_ns, _SECOND), b""))):
            raise AssertionError("no entry came yet")
        touched = recorder.touched()
        source = self._look_at(self._review.source.root, touched)
        with ReadingBeside(self._writer, lambda writer: self._list_copy(touched, writer)) as listing:
            # Meanwhile, as nearly all of a listing is find's own time.
            older = self._judged_older()
            before, lines = older.entries, older.lines
            there = self._look_at(work.tree, touched | before.held.keys())
            now = {path: entry for path, entry in there.items() if entry is not None}
            expected = {path: entry for path, entry in (before.held | source).items() if entry is not None}
            merge = ManifestMerge(
                work.digest, self._moved(), (lines.rows[path] for path in _sorted(lines.rows)), itself=False
            )
            texts = self._texts(expected, lines, recorder.changed(source))
            joined = comparison.join(listed_records(now), sorted(expected.values()), texts)
            others = list(merge.lines(joined))
            if merge.wanted:
                raise NotCarried
            totals = lines.totals(older.texts.totals, others)
            batches = lines.with_others(older.read_again(), others)
            write_batches(draft_of(self._local), self._header, batches, lambda: totals, key=self._key)
            copy = listing.result()
        recorder.end_source()
        if (before.sum, before.count, now) != (copy.sum, copy.count, copy.held):
            raise NotCarried
        return ManifestDraft(
            totals=totals, unknown=merge.unknown, unknown_bytes=merge.unknown_bytes, findings=tuple(merge.findings)
        )

    def _look_at(self, root: Location, paths: Iterable[bytes]) -> dict[bytes, bytes | None]:
        """Return a tree's entries at some paths as they would be listed now; None: there is none. Raises: NotCarried · OSError."""
        found: dict[bytes, bytes | None] = {}
        with OpenTree(os.fsencode(root.path)) as tree:
            device = tree.stat(b"").st_dev
            for path in sorted(paths):
                found[path] = None
                try:
                    seen = tree.stat(path)
                    link = tree.target(path) if stat.S_ISLNK(seen.st_mode) else b""
                except OSError as error:
                    if error.errno in _GONE:
                        continue
                    raise NotCarried from error  # all is listed then, and the reason told
                if seen.st_dev != device:
                    raise NotCarried  # a listing shows of another filesystem its root alone
                found[path] = self._recorder.entry(path, seen, link)
        return found

    def _list_copy(self, touched: frozenset[bytes], writer: Writer) -> ListedEntries:
        found = ListedEntries(touched)
        with writer.pieces(Pipeline(stages=(self._recorder.listing(self._work.tree),))) as pieces:
            for entries in self._recorder.copy_batches(iter(pieces)):
                require_swept(entries)
                found.add(entries)
        return found

    def _judged_older(self) -> OlderPoint:
        """Return the point before as it was recorded, and the lines of its manifest, which is judged."""
        older = self._older.result()
        header = older.texts.header
        if not self._recorder.same_places() or (header.attributes, header.digest) != (
            self._header.attributes,
            self._header.digest,
        ):
            raise NotCarried
        self._authentic(older.texts.tag)
        self._comparison.attributes = bool(self._review.parts)
        return older

    def _texts(self, expected: Mapping[bytes, bytes], lines: CarriedLines, changed: set[bytes]) -> Iterator[bytes]:
        """Yield the attributes of the source's entries, sorted: read where an entry changed, else as they were."""
        parts = self._review.parts
        if not parts:
            return
        with OpenTree(os.fsencode(self._review.source.root.path)) as tree:
            for path in _sorted(expected):
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
