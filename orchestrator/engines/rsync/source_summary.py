"""The listing of the source: what a copy moves, how it splits, and whether any entry has access lists or attributes."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from orchestrator.domain.answers import GONE, NOT_READ, split_lines, unreadable
from orchestrator.domain.job import Job
from orchestrator.domain.place import USED
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.point import Changes
from orchestrator.engines.contract.engine import BareScan, ListedEntry, RunRequest
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.hole_limit import LONGEST_PATH, SMALLEST_HOLE, has_hole
from orchestrator.engines.rsync.large_files import MOST_LARGE
from orchestrator.engines.rsync.model import LARGE_FILE, RESERVED, WORTH_A_REMAINDER, WORTH_A_REMAINDER_THERE
from orchestrator.engines.rsync.options import options_of
from orchestrator.process.background import BackgroundCall
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import TreeSplitter

_RESERVED = rb"(?:^|/)(?:%s)(?=/|$)" % b"|".join(re.escape(name.encode()) for name in RESERVED)
_MOST_RESERVED = 10_000  # names of ours that are remembered
Fields = tuple[bytes, bytes, bytes, bytes, bytes, bytes]


Listed = tuple["TreeSplitter", bool, tuple[bytes, ...]]


class EarlyListing:
    """A listing of the source, in a thread; with a `scan`, that looks whether any entry has access lists or attributes. Use it in a `with`.

    Why a thread: the scan's current folder may then be another one than the program's. Left before its end, it is ended. Nothing is looked at
    before a program has listed some of it: a program that waits for a dead disk can be ended, a look of our own cannot.
    """

    def __init__(self, job: Job, reader: Reader, scan: BareScan | None) -> None:
        self._scan, self._path = scan, job.source.path
        self._known: bool | None = None
        executor, self._stop = reader.beside()
        executor.meanwhile(lambda: None)  # what the caller does meanwhile begins with a program that it waits for
        self._call = BackgroundCall(lambda: self._listed(job, executor))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End it, where it has not ended."""
        self._stop.request("its listing is not needed")
        self._call.__exit__()

    def _listed(self, job: Job, executor: Reader) -> Listed:
        if self._scan is None:
            return survey_tree(job, executor)
        with self._scan:
            return survey_tree(job, executor, self)

    @property
    def batch(self) -> int:
        """Return how many entries are looked at together."""
        return self._scan.batch if self._scan else 0

    def take(self, entries: list[ListedEntry]) -> None:
        """Look at the next entries of the listing, where each change has a time of change of its own."""
        if self._known is None:
            self._known = self._scan is not None and _tells_changes(self._path)
        if self._known and self._scan is not None:
            self._scan.take(entries)

    @property
    def digests(self) -> tuple[bytes, ...] | None:
        """Return what the scan found; None: there is none, or some entry has attributes, or may get some without a time of change."""
        return self._scan.digests if self._scan and self._known else None

    def result(self) -> Listed:
        """Return the listing. Raises: OrchestratorError where the source cannot be listed."""
        return self._call.result()


def begin_bare_listing(job: Job, request: RunRequest, reader: Reader) -> EarlyListing | None:
    """Begin the listing of what may be a first copy, which can do without rsync's look for attributes if no entry has any.

    None where it could not. Only within one machine; what changes later the review or the next run finds.
    """
    options = options_of(job)
    here = job.source.host is None and job.target.location.host is None and not job.parts
    plain = options.points and options.one_file_system and not options.fake_super and options.acls and options.xattrs
    if request.bare is None or request.again or not (here and plain):
        return None
    from orchestrator.engines.rsync.next_look import kernel_time, oldest_young

    return EarlyListing(job, reader, request.bare(job.source.path, oldest_young(kernel_time())))


def _tells_changes(path: str) -> bool:
    from orchestrator.engines.rsync.next_look import filesystem_of

    try:
        return bool(filesystem_of(path))
    except OSError:
        return False


def begin_early_listing(job: Job, request: RunRequest, reader: Reader, until: ExitStack) -> EarlyListing | None:
    """Begin it before the target is looked at, where this job has made no copy yet; it ends with `until`, needed or not.

    Of a source here whose copies go to a host, too: it is listed while that is reached.
    """
    if USED in request.remembered or request.refused or options_of(job).hides:
        return None
    begun = begin_bare_listing(job, request, reader)
    if begun is None and not request.again and job.source.host is None and job.target.location.host is not None:
        begun = EarlyListing(job, reader, None)
    return until.enter_context(begun) if begun else None


def all_are_small(job: Job, listed: "TreeSplitter", *, early: EarlyListing | None) -> bool:
    """Return whether a first copy needs no remainders of half-copied files: each file is soon copied anew. `early`: the listing that told it."""
    far = job.source.host or job.target.location.host
    worth = WORTH_A_REMAINDER_THERE if far else WORTH_A_REMAINDER
    return bool(far or early) and listed.largest < worth and job.pipe.rate_limit is None


def survey_tree(
    job: Job, reader: Reader, scan: EarlyListing | None = None, *, left_out: frozenset[bytes] = frozenset()
) -> "tuple[TreeSplitter, bool, tuple[bytes, ...]]":
    """Return a summary of the source's listing, which is read as a stream.

    It holds entries and bytes to move, the split, whether files have holes, and names of ours in it. `scan`: looks at the same entries.
    `left_out`: paths that do not count.
    """
    from orchestrator.engines.rsync.parallel import TreeSplitter

    listed, holes, largest = TreeSplitter(most=_half_the_memory(), shared=job.tree.above), False, 0
    reserved: dict[bytes, None] = {}
    options = options_of(job)
    if scan is not None:
        command = script_commands.list_bare_command(job.source)
    else:
        command = script_commands.list_sizes_command(job.tree, one_filesystem=options.one_file_system)
    find_reserved, record = re.compile(_RESERVED).search, b""
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\0") as records:
            for record, known in _scanned(records, scan) if scan else ((each, None) for each in records):
                path, kind, size, links, inode, blocks = known or _fields(record)
                if not path:
                    continue  # the root
                if len(path) > LONGEST_PATH or path in left_out:
                    continue  # rsync names it and leaves it out; in the split each folder above it would take as much
                if found := find_reserved(path):
                    if len(reserved) < _MOST_RESERVED:
                        reserved[path[: found.end()]] = None
                    continue
                length = int(size)
                listed.add(path, kind, length, int(inode), int(links) if options.hard_links else 1)
                if length > largest:
                    largest = length
                if length >= SMALLEST_HOLE and kind == b"f":
                    hole = has_hole(length, int(blocks))
                    holes = holes or hole
                    if length >= LARGE_FILE and links == b"1" and not hole and len(listed.large) < MOST_LARGE:
                        listed.large.append((path, length))
    except NOT_READ as error:
        raise unreadable("find", command, record, error) from error
    except PipelineFailed as failed:
        if failed.result.exits != (1,):  # 1: an entry could not be looked at, or has vanished; one rsync will name it
            from orchestrator.engines.rsync.errors import explain

            raise explain(failed) from failed
        listed.missed = any(not line.endswith(GONE) for line in split_lines("\n".join(failed.result.last_output)))
    listed.largest = largest
    return listed, holes, tuple(reserved)


def _fields(record: bytes) -> Fields:
    """Return path, kind, size, names, inode and blocks of an entry. Raises: ValueError."""
    path, _, rest = record.partition(b"//")
    kind, size, links, inode, blocks = rest.split(b"\t")
    return path.removeprefix(script_commands.BELOW_ROOT), kind, size, links, inode, blocks


def _scanned(records: Iterable[bytes], scan: EarlyListing) -> Iterator[tuple[bytes, Fields]]:
    """Yield records as a review lists them, with the blocks behind, and their fields, once the scan has looked at their entries."""
    for batch in _batches(records, scan.batch):
        entries, fields = [], []
        for record in batch:
            reviewed, _, blocks = record.rpartition(b"\t")
            path, _, rest = reviewed.partition(b"//")
            kind, size, _, _, _, _, links, inode, told = rest.split(b"\t", 8)
            entries.append((reviewed, path, kind, inode, told[told.rindex(b"\t") + 1 :]))
            fields.append((path, kind, size, links, inode, blocks))
        scan.take(entries)
        yield from zip(batch, fields, strict=True)


def _batches(records: Iterable[bytes], most: int) -> Iterator[list[bytes]]:
    """Yield the records, so many at once; those before a failure come before it, as one unreadable folder is told behind all others."""
    batch: list[bytes] = []
    try:
        for record in records:
            batch.append(record)
            if len(batch) == most:
                yield batch
                batch = []
    except PipelineFailed:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _half_the_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def first_copy(listed: "TreeSplitter") -> Changes:
    """Return the changes of a first copy: it copies everything."""
    entries, size = listed.totals()
    return Changes(
        entries_before=None,
        files_before=None,
        entries_now=entries,
        deleted=0,
        changed=0,
        created=entries,
        moving=size,
        files_now=listed.files,
    )
