"""The entries that a run leaves out of a copy, for their holes or as the target refused them: as rules of rsync, and in words."""

import re
from collections.abc import Collection, Iterable

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.commands import WILD_BYTES, rule_of
from orchestrator.engines.rsync.model import RsyncSurvey, SparseFile, TargetSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.parse import DryRunReader, parse_name

MOST_LEFT_OUT = 10_000  # files, those with the largest holes: rsync compares each name with each rule
TOO_LARGE = "it is larger than the target's filesystem takes"
PERHAPS_TOO_LARGE = "its owner has files that the target's filesystem does not take for their size, and how large one may be there cannot be asked"
OVER_QUOTA = "the quota that its owner or group has at the target is used up"
_LONGEST_RULE = 4095  # bytes
_GONE = b"pf:*deleting"
BEGINNING = b"\0"  # ends what is no path, but the beginning of many: no name holds it


def left_out_rules(files: Iterable[SparseFile]) -> bytes:
    """Return rules for these files alone, each ended by NUL."""
    return rules_for(path for each in files for path in each.paths)


def rules_for(paths: Iterable[bytes]) -> bytes:
    """Return rules for these entries alone, with all that lies below, each ended by NUL; for the beginning of many one for all of them."""
    return b"".join(_short_rule(path) + b"\0" for path in paths)


def _short_rule(path: bytes) -> bytes:
    """Return a path as a rule that rsync takes: it throws away a longer one, with a word alone.

    Where a backslash before each wildcard makes it too long, a `?` stands for each: it fits names alike, too, but none of another length.
    Without its slash a rule fits the end of a path; of the longest path there is, that is itself. Its first byte could be rsync's own.
    """
    if path.endswith(BEGINNING):
        return re.sub(WILD_BYTES, rb"\\\1", b"/" + path[:-1]) + b"*"
    rule = rule_of(b"/" + path)
    if len(rule) > _LONGEST_RULE:
        rule = re.sub(WILD_BYTES, b"?", b"/" + path)
    return rule if len(rule) <= _LONGEST_RULE else b"?" + rule[2:]


def left_out(files: Iterable[SparseFile]) -> tuple[tuple[bytes, str], ...]:
    """Return each name of the files with the reason."""
    why = "are holes, and the holes of its owner are more than a run reads (most-holes in [rsync])"
    return tuple(
        (path, f"of its {show_size(each.size)} {show_size(each.hole)} {why}") for each in files for path in each.paths
    )


def left_out_file(request: RunRequest) -> str:
    """Return the local file with the rules of what a run leaves out."""
    return f"{request.notes}/left-out"


def leave_out(job: Job, request: RunRequest) -> Job:
    """Return the job without the entries that the target has refused in this run."""
    if not request.refused:
        return job
    file = left_out_file(request)
    with open(file, "wb") as rules:
        rules.write(rules_for(request.refused))
    return replace(job, options=replace(options_of(job), left_out=file))


class RefusedReader(DryRunReader):
    """A reader of a look that counts no entry as gone which this run leaves out: the source has it still, and only the new copy has not."""

    def __init__(self, tree: SourceTree, refused: Collection[bytes], *, most_differing: int) -> None:
        super().__init__(tree, most_differing=most_differing)
        self._refused = refused

    def feed(self, line: bytes) -> None:
        """Read one line of the survey's output."""
        if self._refused and line.startswith(_GONE):
            item, _, name = line[3:].split(b"|", 2)
            if _is_among(parse_name(name.removesuffix(b"/")), self._refused):
                self._note_differing(item, name)
                self.files_gone += not name.endswith(
                    b"/"
                )  # of the copy; else they would pass for files that became something else
                return
        super().feed(line)


def leave_out_remainders(target: TargetSurvey, request: RunRequest) -> TargetSurvey:
    """Return the target's state with the half-copied files of refused entries as those that nothing needs."""
    if not request.refused:
        return target
    half = tuple(replace(each, wanted=None) if _is_among(each.path, request.refused) else each for each in target.half)
    return replace(target, half=half)


def _is_among(path: bytes, refused: Collection[bytes]) -> bool:
    """Return whether a path is one of these, lies below one, or begins like one that stands for many."""
    folder, _, name = path.rpartition(b"/")
    start = len(path) - len(name)
    if path in refused or any(path[:end] + BEGINNING in refused for end in range(start + 1, len(path) + 1)):
        return True
    return bool(folder) and _is_among(folder, refused)


def left_out_entries(world: RsyncSurvey) -> tuple[tuple[bytes, str], ...]:
    """Return each entry that a run leaves out, with the reason."""
    return (*left_out(world.sparse), *((path.removesuffix(BEGINNING), why) for path, why in world.refused))


def left_out_rules_of(world: RsyncSurvey) -> bytes:
    """Return the rules for what a run leaves out, each ended by NUL; empty: it leaves out nothing."""
    return left_out_rules(world.sparse) + rules_for(path for path, _ in world.refused)


def overgrown_files(world: RsyncSurvey) -> tuple[bytes, ...]:
    """Return what a cut copy may hold otherwise: an older state of a file that is too large by now, or one that got no owner.

    What lies in a folder of these goes with it.
    """
    if not world.target.work:
        return ()
    found = {path for path, why in world.refused if why in (TOO_LARGE, PERHAPS_TOO_LARGE, OVER_QUOTA)}
    return tuple(path for path, _ in world.refused if path in found and not _is_among(path.rpartition(b"/")[0], found))
