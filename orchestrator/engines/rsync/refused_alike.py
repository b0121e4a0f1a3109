"""The entries that a target refuses as it refused another, so that one more attempt leaves out all of them.

Of files that are too large rsync names one in each attempt, as it ends at the first; anybody may have a thousand, each smaller than the
one before. Of a link whose path and text together are longer than a message of rsync it names none at all.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from orchestrator.domain.answers import NOT_READ, parse_count
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.hole_limit import read_listing
from orchestrator.engines.rsync.left_out import MOST_LEFT_OUT, PERHAPS_TOO_LARGE, TOO_LARGE
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.patterns import is_left_out
from orchestrator.engines.rsync.refused_entries import few_entries
from orchestrator.engines.rsync.script_commands import (
    list_large_command,
    list_long_links_command,
    size_limit_command,
)
from orchestrator.process.executor import Reader

_A_MINUTE = Seconds(60)
_LONG_TEXT = 900  # bytes; a message has 5,120, and a path at most 4,095 of them
_LONG_MESSAGE = 3400  # bytes of path and text; what remains is for the path of the target
_OWNERS = {
    1: 1,
    2: 8,
}  # whose links are left out, by how many attempts of the run met one that rsync could not name; after more all
_PARTS = {
    1: 1,
    2: 2,
    3: 16,
}  # of the smallest refused file, by how many of its owner's were; after more nothing of hers of 1 MiB is copied
_OVERLONG = "its path and the text of the link are so long that rsync cannot say whether the target takes it"


def find_alike(job: Job, request: RunRequest, reader: Reader) -> dict[bytes, str]:
    """Return the refused entries with those of the source that would be refused next, each with the reason.

    What a pattern leaves out is not named: it is not copied at all. Raises: OrchestratorError.
    """
    refused = request.refused
    found = dict(refused)
    if request.unnamed:
        copied = (
            each for each in _unnamable_links(job, reader)
            if not _is_left_out(job, each[0])
        )  # fmt: skip
        found |= dict.fromkeys(_of_owners(copied, _OWNERS.get(request.unnamed)), _OVERLONG)
    if TOO_LARGE in found.values():
        found = _as_large(job, found, reader) | found
    kept = {
        path: why for path, why in found.items()
        if path in refused or not _is_left_out(job, path)
    }  # fmt: skip
    return few_entries(kept, MOST_LEFT_OUT)


def _as_large(job: Job, refused: Mapping[bytes, str], reader: Reader) -> dict[bytes, str]:
    """Return the files that are larger than the target's filesystem takes, or at least as large as the smallest of their owner's that was refused.

    Of one below 1 MiB nothing is listed. Why its limit: of files whose sizes fall one by one each attempt would find one. Where it cannot be
    asked, as behind a gate or on FUSE, smaller ones of an owner are left out, too, the more of hers were refused. Why each owner for
    herself: one who cuts a refused file short before it is listed would leave out everybody's.
    """
    command = list_large_command(job.tree, one_filesystem=options_of(job).one_file_system)
    listed = partial(read_listing, command, reader, _size_and_owner)
    sizes: dict[int, list[int]] = {}
    for path, (size, owner) in listed():
        if refused.get(path) == TOO_LARGE:
            sizes.setdefault(owner, []).append(size)
    if not sizes:
        return {}
    limit = _size_limit(job, reader)
    least = {owner: min(theirs) for owner, theirs in sizes.items()}
    unsure = {owner: least[owner] // _PARTS.get(len(theirs), least[owner] + 1) for owner, theirs in sizes.items()}
    found: dict[bytes, str] = {}
    for path, (size, owner) in listed():
        if size >= least.get(owner, size + 1) or (limit is not None and size > limit):
            found[path] = TOO_LARGE
        elif limit is None and size >= unsure.get(owner, size + 1):
            found[path] = PERHAPS_TOO_LARGE
    return found


def _size_and_owner(told: bytes) -> tuple[int, int]:
    size, _, owner, _, _ = told.split(b"\t")
    return parse_count(size), parse_count(owner)


def _size_limit(job: Job, reader: Reader) -> int | None:
    """Return how many bytes a file may have at the target, as its kernel says; None where it does not, such as behind a gate."""
    result = reader.read(Pipeline(stages=(size_limit_command(job.target.location),)), timeout=_A_MINUTE)
    try:
        return parse_count(result.stdout) if result.well else None
    except NOT_READ:
        return None


def _is_left_out(job: Job, path: bytes) -> bool:
    top = job.tree.group_of(path) if job.parts else b""
    return is_left_out(options_of(job).excludes, path, folder=False, top=top)


def _of_owners(links: Iterable[tuple[bytes, int, int]], most: int | None) -> list[bytes]:
    """Return the links of so many owners, those with the longest texts first; None: of all.

    Why: a target that takes no text of so many bytes has refused the longest in any case, and perhaps none of another owner, whose links
    only have long paths. Why of all in the end: as many owners with such links cost the job no more attempts.
    """
    longest: dict[int, int] = {}
    theirs: dict[int, list[bytes]] = {}
    for path, size, owner in links:
        longest[owner] = max(size, longest.get(owner, 0))
        theirs.setdefault(owner, []).append(path)
    chosen = sorted(theirs, key=lambda owner: (-longest[owner], owner))[:most]
    return [path for owner in chosen for path in theirs[owner]]


def _unnamable_links(job: Job, reader: Reader) -> Iterator[tuple[bytes, int, int]]:
    """Yield (path, bytes of the text, owner) of each link that rsync could not name. Raises: OrchestratorError."""
    command = list_long_links_command(job.tree, _LONG_TEXT, one_filesystem=options_of(job).one_file_system)
    for path, (size, owner) in read_listing(command, reader, _text_and_owner):
        if len(path) + size >= _LONG_MESSAGE:
            yield path, size, owner


def _text_and_owner(told: bytes) -> tuple[int, int]:
    size, _, owner = told.partition(b"\t")
    return parse_count(size), parse_count(owner)
