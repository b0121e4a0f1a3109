"""The listing of the source: what a copy moves, how it splits, and whether any entry has access lists or attributes."""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import TYPE_CHECKING

from orchestrator.domain.answers import NOT_READ, unreadable
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.point import Changes
from orchestrator.engines.contract.engine import BareScan, RunRequest
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.hole_limit import LONGEST_PATH, SMALLEST_HOLE, has_hole
from orchestrator.engines.rsync.model import RESERVED, RsyncSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import TreeSplitter

_RESERVED = rb"(?:^|/)(?:%s)(?=/|$)" % b"|".join(re.escape(name.encode()) for name in RESERVED)
_MOST_RESERVED = 10_000  # names of ours that are remembered


def begin_bare_scan(job: Job, seen: RsyncSurvey, request: RunRequest) -> "AbstractContextManager[BareScan | None]":
    """Begin the look whether the source has access lists or attributes at all, where a first copy can do without if it has none.

    Only within one machine, and where each change has a time of change of its own; what changes later the review or the next run finds.
    """
    options = options_of(job)
    here = job.source.host is None and job.target.location.host is None and not job.parts
    plain = options.points and options.one_file_system and not options.fake_super and options.acls and options.xattrs
    first = seen.changes is None and not seen.points and not seen.target.work and not request.again
    if request.bare is None or not (here and plain and first):
        return nullcontext()
    from orchestrator.engines.rsync.next_look import filesystem_of, kernel_time, oldest_young

    try:
        known = bool(filesystem_of(job.source.path))
    except OSError:
        known = False
    return request.bare(job.source.path, oldest_young(kernel_time())) if known else nullcontext()


def survey_tree(
    job: Job, reader: Reader, scan: BareScan | None = None, *, left_out: frozenset[bytes] = frozenset()
) -> "tuple[TreeSplitter, bool, tuple[bytes, ...]]":
    """Return a summary of the source's listing, which is read as a stream.

    It holds entries and bytes to move, the split, whether files have holes, and names of ours in it. `scan`: looks at the same entries.
    `left_out`: paths that do not count.
    """
    from orchestrator.engines.rsync.errors import explain
    from orchestrator.engines.rsync.parallel import TreeSplitter

    listed, holes, largest = TreeSplitter(most=_half_the_memory(), shared=job.tree.above), False, 0
    reserved: dict[bytes, None] = {}
    options = options_of(job)
    if scan is not None:
        command = script_commands.list_bare_command(job.source)
    else:
        command = script_commands.list_sizes_command(job.tree, one_filesystem=options.one_file_system)
    find_reserved = re.compile(_RESERVED).search
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\0") as records:
            fields = _fields_beside if scan else _fields
            for record in _scanned(iter(records), scan) if scan else records:
                path, kind, size, links, inode, blocks = fields(record)
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
                holes = holes or (length >= SMALLEST_HOLE and kind == b"f" and has_hole(length, int(blocks)))
    except NOT_READ as error:
        raise unreadable("find", command, record, error) from error
    except PipelineFailed as failed:
        if failed.result.exits != (1,):  # 1: a folder could not be read, or has vanished; the copy will name it
            raise explain(failed) from failed
    listed.largest = largest
    return listed, holes, tuple(reserved)


def _scanned(records: Iterator[bytes], scan: BareScan) -> Iterator[bytes]:
    """Yield the records once the scan has looked at their entries."""
    while batch := list(islice(records, scan.batch)):
        scan.take([record.rpartition(b"\t")[0] for record in batch])
        yield from batch


def _fields(record: bytes) -> tuple[bytes, ...]:
    """Return path, kind, size, names, inode and blocks of an entry."""
    path, _, rest = record.partition(b"//")
    return (path.removeprefix(script_commands.BELOW_ROOT), *rest.split(b"\t"))


def _fields_beside(record: bytes) -> tuple[bytes, ...]:
    """Return the same of a record as a review lists it, with the blocks behind."""
    path, _, rest = record.partition(b"//")
    kind, size, _, _, _, _, links, inode, told = rest.split(b"\t", 8)
    return path, kind, size, links, inode, told[told.rindex(b"\t") + 1 :]


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
