"""The small files of a restore or a first copy, written before rsync does the rest: where that pays, and by which command."""

from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline, Step
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.contract.restore import RestoreRequest
from orchestrator.engines.rsync.model import RESERVED, RsyncSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.script_commands import in_tree_command, inside_command, list_top_command
from orchestrator.engines.rsync.side_by_side import count_ahead, lists_many
from orchestrator.process.own_program import own_environment, own_program, place_of

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import ParallelCopy

LEAST_AHEAD = 3_000  # entries; for fewer, the start of a program takes what it would save
LEAST_AHEAD_OF_COPY = 10_000  # the same of a first copy, where steps are recorded besides
WHY_AHEAD = "it takes less time than rsync, which then does all else, and what this leaves"


def pays_ahead(job: Job, wanted: RestoreRequest, split: "tuple[ParallelCopy, ...]") -> bool:
    """Return whether small files are written before a copy into a new folder on this machine, by root.

    Only where a manifest verifies all of it at the end, and where the copy takes a file of the same size and time for the same.
    """
    if not _is_plain(job) or wanted.anew or wanted.point.manifest is None:
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


def count_ahead_of_copy(job: Job, world: RsyncSurvey) -> int:
    """Return how many programs write small files before a first copy within this machine, by root, that copies all of one folder; or 0.

    Not where rsync compares contents, or leaves something out that only it knows. A later copy passes over what is there, and brings little.
    """
    options, target = options_of(job), world.target
    if job.source.host or job.target.location.host or job.parts or world.points or target.work or world.mixed:
        return 0
    if not _is_plain(job) or options.checksum or options.hides or world.sparse or world.refused:
        return 0
    if (
        world.changes is None
        or (world.changes.entries_now or 0) < LEAST_AHEAD_OF_COPY
        or not target.by_root
        or target.led
        or target.coarse
    ):
        return 0
    shares = getattr(world.parallel_copies, "parallel_copies", ())
    return len(shares) if len(shares) > 1 else count_ahead(job)


def _is_plain(job: Job) -> bool:
    """Return whether files of a job's copies are as their owners have them, and come as quickly as they can."""
    options = options_of(job)
    kept = options.points and options.owners and options.modes and not options.fake_super
    return kept and not job.pipe.rate_limit


def small_files_ahead(
    job: Job, copies: tuple[Step, ...], count: int, request: RunRequest
) -> tuple[tuple[Step, ...], ...]:
    """Return the stages of copies of all, `count` programs before them that write small files; of several copies each has one.

    Then rsync removes what has left the source since they were read. Also after errors: what it cannot list would not be there without us.
    """
    (whole, *others), names = copies, f"{request.notes}/all"
    shares = [(copy, 0, 1) for copy in copies] if others else [(whole, number, count) for number in range(count)]
    steps = list[Step]()
    for number, (copy, which, of) in enumerate(shares, 1):
        command = _copy_ahead_command(job, which, of)
        listed = copy.work.reads if others and isinstance(copy.work, Pipeline) else None
        action = f"write small files of {copy.action.removeprefix('copy ')}"
        step = Step(
            action=action if others else f"{action}, {number} of {count}", why=WHY_AHEAD, worker=f"lane {number}",
            work=Pipeline(stages=(command,), reads=listed or names, keeps=f"{request.notes}/moved-ahead-{number}"), expected=None,
            copies=True, ahead=True, needs=copy.needs if listed else ((names, b"./.\0"),),
        )  # fmt: skip
        steps.append(step)
    return tuple(steps), tuple(map(_tidying, copies))


def _tidying(copy: Step) -> Step:
    if not isinstance(copy.work, Pipeline):
        raise TypeError(f"no programs copy in: {copy.action}")
    (rsync,) = copy.work.stages
    argv = (rsync.argv[0], "--delete", "--ignore-errors", *rsync.argv[1:])
    return replace(copy, work=replace(copy.work, stages=(replace(rsync, argv=argv),)))


def _copy_ahead_command(job: Job, which: int, of: int) -> Command:
    words = own_program("orchestrator.trees.source_files", job.source.path, str(which), str(of), *RESERVED)
    start = in_tree_command(job.target.location, "work", *words)
    return replace(start, environment=(*start.environment, *own_environment(place_of("xxhash"))))
