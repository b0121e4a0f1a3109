"""The limit of holes: which sparse files a run leaves out, so that no owner's holes hold up the copy of all others.

Why: rsync reads a hole as zeros, some 200 MB a second, and anybody may make a file of 8 EiB that takes no space, or a thousand of 1 TiB.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from orchestrator.domain.answers import NOT_READ, parse_count, unreadable
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.point import Changes
from orchestrator.engines.rsync.large_files import LargeFiles
from orchestrator.engines.rsync.left_out import MOST_LEFT_OUT
from orchestrator.engines.rsync.model import RsyncSurvey, SparseFile
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.script_commands import BELOW_ROOT, list_large_command
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

LARGEST = (1 << 63) - 1  # bytes; what a database can hold
LONGEST_PATH = 4095  # bytes; rsync carries no longer one, and names it
_BLOCK = 512  # find's unit
SMALLEST_HOLE = 64 << 10  # a smaller difference may be a filesystem that packs small files
_UNKNOWN = 1 << 50  # bytes; where nobody tells how large the target's filesystem is
_Fields = TypeVar("_Fields")
_UNREADABLE = (1,)  # find's exit code where a folder could not be read, or has vanished; the copy will name it


def has_hole(size: int, blocks: int) -> bool:
    """Return whether a file takes so much less than its size that it has a hole. `blocks`: as find counts them."""
    return size - _BLOCK * blocks >= SMALLEST_HOLE


def most_holes(job: Job, seen: RsyncSurvey) -> int:
    """Return how many bytes of holes a run reads of one owner's files."""
    return options_of(job).most_holes or seen.target.whole_bytes or _UNKNOWN


def most_growth(job: Job, seen: RsyncSurvey) -> int:
    """Return how many bytes a run reads beyond what it saw before: an honest file that grows in the meantime fits into the target."""
    return max(most_holes(job, seen), seen.target.whole_bytes or _UNKNOWN)


def limit_holes(job: Job, seen: RsyncSurvey, large: LargeFiles | None, reader: Reader) -> RsyncSurvey:
    """Return the survey with the files that are left out; the source is listed only where more is to be copied than the target could hold.

    `large`: the large files that are copied; None: all of the source's. What is not copied counts for nothing, and is never left out:
    it is as in the newest copy, or a pattern leaves it out. Raises: OrchestratorError.
    """
    changes, most = seen.changes, most_holes(job, seen)
    if changes is None or changes.moving is None or changes.moving <= most:
        return seen
    left = choose_left_out(_list_sparse(job, large, reader), most)
    names = frozenset(path for each in left for path in each.paths)
    return replace(_without(seen, changes, names, names if large is None else names & large.new, left), sparse=left)


def _without(
    seen: RsyncSurvey, changes: Changes, names: frozenset[bytes], new: frozenset[bytes], left: tuple[SparseFile, ...]
) -> RsyncSurvey:
    """Return the survey as if these names were not at the source. `new`: those of them that the newest copy lacks."""
    half = tuple(replace(half, wanted=None) if half.path in names else half for half in seen.target.half)
    differing = seen.differing
    if differing is not None:
        present, joined = (
            tuple(path for path in paths if path not in names) for paths in (differing.present, differing.joined)
        )
        differing = replace(differing, present=present, joined=joined)
    moved = (changes.moving or 0) - sum(each.size * each.reads for each in left)
    changes = replace(
        changes,
        moving=max(0, min(moved, LARGEST)),
        created=max(0, changes.created - len(new)),
        entries_now=None if changes.entries_now is None else max(0, changes.entries_now - len(names)),
        files_now=None if changes.files_now is None else max(0, changes.files_now - len(names)),
        files_new=max(0, changes.files_new - len(new)),
    )
    return replace(seen, changes=changes, target=replace(seen.target, half=half), differing=differing)


def choose_left_out(files: Iterable[SparseFile], most: int) -> tuple[SparseFile, ...]:
    """Return the files to leave out, so that the holes of each owner's other files of these are `most` bytes together at the most.

    Why each owner for herself: so nobody's holes keep out what is somebody else's. Her largest files go: those are the fewest.
    """
    owners: dict[int, list[SparseFile]] = {}
    for each in files:
        owners.setdefault(each.owner, []).append(each)
    left = list[SparseFile]()
    for _, theirs in sorted(owners.items()):
        held = sum(each.hole * each.reads for each in theirs)
        theirs.sort(key=lambda each: (each.hole * each.reads, each.paths))
        while held > most:
            left.append(theirs.pop())
            held -= left[-1].hole * left[-1].reads
    return tuple(left)


def read_listing(
    command: Command, reader: Reader, fields: Callable[[bytes], _Fields]
) -> Iterator[tuple[bytes, _Fields]]:
    """Yield the path and the fields of each file that find lists below a tree, whatever it could not read. Raises: OrchestratorError."""
    record = b""
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\0") as records:
            for record in records:
                name, _, rest = record.partition(b"//")
                yield name.removeprefix(BELOW_ROOT), fields(rest)
    except NOT_READ as error:
        raise unreadable("find", command, record, error) from error
    except PipelineFailed as failed:
        if failed.result.exits != _UNREADABLE:
            from orchestrator.engines.rsync.errors import explain

            raise explain(failed) from failed


def _large_fields(told: bytes) -> tuple[int, int, int, int, bytes]:
    size, blocks, owner, links, inode = told.split(b"\t")
    return parse_count(size), parse_count(blocks), parse_count(owner), parse_count(links), inode


def _list_sparse(job: Job, large: LargeFiles | None, reader: Reader) -> tuple[SparseFile, ...]:
    """List the files with the largest holes, of which a name is copied. Raises: OrchestratorError."""
    options = options_of(job)
    names: dict[bytes, list[bytes]] = {}
    told: dict[bytes, tuple[int, int, int]] = {}
    first: list[tuple[int, bytes]] = []  # a heap: the smallest hole
    command = list_large_command(job.tree, one_filesystem=options.one_file_system)
    for path, (size, blocks, owner, links, inode) in read_listing(command, reader, _large_fields):
        alone = large is not None and links == 1 and path not in large.copied
        if alone or len(path) > LONGEST_PATH or not has_hole(size, blocks):
            continue
        if inode not in told:
            told[inode] = size, size - _BLOCK * blocks, owner
            heapq.heappush(first, (told[inode][1], inode))
        names.setdefault(inode, []).append(path)
        if len(first) > MOST_LEFT_OUT:
            _, gone = heapq.heappop(first)
            del names[gone], told[gone]
    found = list[SparseFile]()
    for inode, (each, hole, user) in told.items():
        copied = names[inode] if large is None else [name for name in names[inode] if name in large.copied]
        if copied:
            reads, left = (1, names[inode]) if options.hard_links else (len(copied), copied)
            found.append(SparseFile(paths=tuple(left), size=each, hole=hole, owner=user, reads=reads))
    return tuple(found)
