"""The limit of holes: which sparse files a run leaves out, so that no owner's holes hold up the copy of all others.

Why: rsync reads a hole as zeros, some 200 MB a second, and anybody may make a file of 8 EiB that takes no space, or a thousand of 1 TiB.
"""

import heapq
from collections.abc import Iterable

from orchestrator.domain.answers import NOT_READ, parse_count, unreadable
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import show_size
from orchestrator.engines.rsync.model import DifferingPaths, RsyncSurvey, SparseFile
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.script_commands import BELOW_ROOT, list_large_command
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

LARGEST = (1 << 63) - 1  # bytes; what a database can hold
_BLOCK = 512  # find's unit
_HOLE = 64 << 10  # a smaller difference may be a filesystem that packs small files
_UNKNOWN = 1 << 50  # bytes; where nobody tells how large the target's filesystem is
_UNREADABLE = (1,)  # find's exit code where a folder could not be read, or has vanished; the copy will name it


def has_hole(size: int, blocks: int) -> bool:
    """Return whether a file takes so much less than its size that it has a hole. `blocks`: as find counts them."""
    return size - _BLOCK * blocks >= _HOLE


def most_holes(job: Job, seen: RsyncSurvey) -> int:
    """Return how many bytes of holes a run reads."""
    return options_of(job).most_holes or seen.target.whole_bytes or _UNKNOWN


def limit_holes(job: Job, seen: RsyncSurvey, selected: DifferingPaths | None, reader: Reader) -> RsyncSurvey:
    """Return the survey with the files that are left out; the source is listed only where more is to be copied than the target could hold.

    `selected`: what is copied; None: unknown. Raises: OrchestratorError.
    """
    changes, differing, most = seen.changes, seen.differing, most_holes(job, seen)
    if changes is None or changes.moving is None or changes.moving <= most:
        return seen
    found = _list_sparse(job, frozenset(selected.present) if selected else None, reader)
    left = choose_left_out(found, most)
    names = frozenset(path for each in left for path in each.paths)
    moving = max(0, min(changes.moving - sum(each.size for each in left), LARGEST))
    target = replace(
        seen.target,
        half=tuple(replace(half, wanted=None) if half.path in names else half for half in seen.target.half),
    )
    if differing is not None:
        present, joined = (
            tuple(path for path in paths if path not in names) for paths in (differing.present, differing.joined)
        )
        differing = replace(differing, present=present, joined=joined)
    changes = replace(
        changes,
        moving=moving,
        entries_now=None if changes.entries_now is None else changes.entries_now - len(names),
        files_now=None if changes.files_now is None else changes.files_now - len(names),
        files_new=max(0, changes.files_new - len(names)),
    )
    return replace(seen, changes=changes, target=target, differing=differing, sparse=left)


def choose_left_out(files: Iterable[SparseFile], most: int) -> tuple[SparseFile, ...]:
    """Return the files to leave out, so that the holes of the others are `most` bytes together at the most.

    Why always the largest file of the owner with the most: nobody's files then keep out those of somebody who has less.
    """
    owners: dict[int, list[SparseFile]] = {}
    for each in files:
        owners.setdefault(each.owner, []).append(each)
    sums = {owner: sum(each.hole for each in theirs) for owner, theirs in owners.items()}
    for theirs in owners.values():
        theirs.sort(key=lambda each: (each.hole, each.paths))
    first = [(-held, owner) for owner, held in sums.items()]
    heapq.heapify(first)
    left, total = list[SparseFile](), sum(sums.values())
    while total > most:
        held, owner = heapq.heappop(first)
        out = owners[owner].pop()
        left.append(out)
        total -= out.hole
        if owners[owner]:
            heapq.heappush(first, (held + out.hole, owner))
    return tuple(left)


def left_out(files: Iterable[SparseFile]) -> tuple[tuple[bytes, str], ...]:
    """Return each name of the files with the reason."""
    why = "are holes: all holes together are more than a run reads (most-holes in [rsync])"
    return tuple(
        (path, f"of its {show_size(each.size)} {show_size(each.hole)} {why}") for each in files for path in each.paths
    )


def _list_sparse(job: Job, selected: frozenset[bytes] | None, reader: Reader) -> tuple[SparseFile, ...]:
    """List the files with holes, of which a name is selected. Raises: OrchestratorError."""
    command = list_large_command(job.tree, one_filesystem=options_of(job).one_file_system)
    names: dict[bytes, list[bytes]] = {}
    told: dict[bytes, tuple[int, int, int]] = {}
    record = b""
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\0") as records:
            for record in records:
                path, _, rest = record.partition(b"//")
                size, blocks, owner, inode = rest.split(b"\t")
                if has_hole(parse_count(size), parse_count(blocks)):
                    told[inode] = int(size), int(size) - _BLOCK * int(blocks), parse_count(owner)
                    names.setdefault(inode, []).append(path.removeprefix(BELOW_ROOT))
    except NOT_READ as error:
        raise unreadable("find", command, record, error) from error
    except PipelineFailed as failed:
        if failed.result.exits != _UNREADABLE:
            from orchestrator.engines.rsync.errors import explain

            raise explain(failed) from failed
    return tuple(
        SparseFile(paths=tuple(names[inode]), size=size, hole=hole, owner=owner)
        for inode, (size, hole, owner) in told.items()
        if selected is None or not selected.isdisjoint(names[inode])
    )
