"""The small files of a restore, written before rsync does the rest: where that pays, and by which command."""

from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.engines.contract.restore import RestoreRequest
from orchestrator.engines.rsync.model import RESERVED
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.script_commands import inside_command, list_top_command
from orchestrator.engines.rsync.side_by_side import lists_many
from orchestrator.process.own_program import own_environment, own_program

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import ParallelCopy

LEAST_AHEAD = 3_000  # entries; for fewer, the start of a program takes what it would save


def pays_ahead(job: Job, wanted: RestoreRequest, split: "tuple[ParallelCopy, ...]") -> bool:
    """Return whether small files are written before a copy into a new folder on this machine, by root.

    Only where a manifest verifies all of it at the end, and where the copy takes a file of the same size and time for the same.
    """
    options = options_of(job)
    plain = options.points and options.owners and options.modes and not options.fake_super
    if not plain or job.pipe.rate_limit or wanted.anew or wanted.point.manifest is None:
        return False
    if split:
        return sum(share.entries for share in split) >= LEAST_AHEAD
    return not wanted.path and lists_many(wanted.point, LEAST_AHEAD)


def write_ahead_command(tree: Location, to: Location, names: str | None) -> Pipeline:
    """Build the pipeline that does it, in a folder that a restore has marked. `names`: see `commands.restore_command`; None: all of it."""
    start = inside_command(to, *own_program("orchestrator.trees.plain_files", tree.path, *RESERVED))
    start = replace(start, environment=(*start.environment, *own_environment()))
    if names:
        return Pipeline(stages=(start,), reads=names)
    return Pipeline(stages=(list_top_command(tree), start), counts=1)
