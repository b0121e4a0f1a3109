"""The small files of a restore or a first copy, and large ones of any, written before rsync does the rest: where that pays, by which command."""

from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline, Step
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.contract.restore import RestoreRequest
from orchestrator.engines.rsync.model import LARGE_FILE, RESERVED, RsyncSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.parallel import distribute_weights
from orchestrator.engines.rsync.script_commands import in_tree_command, inside_command, list_top_command
from orchestrator.engines.rsync.side_by_side import count_ahead, lists_many
from orchestrator.process.own_program import own_environment, own_program, place_of

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import ParallelCopy

LEAST_AHEAD = 3_000  # entries; for fewer, the start of a program takes what it would save
LEAST_AHEAD_OF_COPY = 10_000  # the same of a first copy, where steps are recorded besides
LEAST_LARGE_AHEAD = Bytes(128 << 20)  # of the large files of one such program together; the same
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

    Not where something is left out that only rsync knows. A later copy passes over what is there, and brings little.
    """
    if world.points or options_of(job).hides or not _may_write(job, world):
        return 0
    if world.changes is None or (world.changes.entries_now or 0) < LEAST_AHEAD_OF_COPY:
        return 0
    return _shares(world) or count_ahead(job)


def count_ahead_of_large(job: Job, world: RsyncSurvey) -> int:
    """Return how many programs write large files before a copy within this machine, by root; or 0. One alone takes less time than rsync, too."""
    whole = sum(size for _, size in world.large)
    if whole < LEAST_LARGE_AHEAD or not _may_write(job, world):
        return 0
    return min(len(world.large), whole // LEAST_LARGE_AHEAD, _shares(world) or count_ahead(job) or 1)


def _may_write(job: Job, world: RsyncSurvey) -> bool:
    """Return whether files may be written before a copy into a new folder; not where rsync compares contents."""
    options, target = options_of(job), world.target
    if job.source.host or job.target.location.host or job.parts or target.work or world.mixed:
        return False
    if not _is_plain(job) or options.checksum or world.sparse or world.refused:
        return False
    return target.by_root and not target.led and not target.coarse


def _shares(world: RsyncSurvey) -> int:
    """Return how many copies share the tree; 0: one rsync copies all."""
    shares = getattr(world.parallel_copies, "parallel_copies", ())
    return len(shares) if len(shares) > 1 else 0


def _is_plain(job: Job) -> bool:
    """Return whether files of a job's copies are as their owners have them, and come as quickly as they can."""
    options = options_of(job)
    kept = options.points and options.owners and options.modes and not options.fake_super
    return kept and not job.pipe.rate_limit


def files_ahead(
    job: Job, world: RsyncSurvey, copies: tuple[Step, ...], request: RunRequest
) -> tuple[tuple[Step, ...], ...]:
    """Return the stages of copies of all, and before them that of the programs that write small files, and then large ones.

    Then rsync removes what has left the source since they were read. Also after errors: what it cannot list would not be there without us.
    """
    small = _small_files_ahead(job, copies, world.ahead, request) if world.ahead else ()
    large = large_files_ahead(job, world, request) if world.ahead_of_large else ()
    return (*small, *large), tuple(map(_tidying, copies))


def _small_files_ahead(job: Job, copies: tuple[Step, ...], count: int, request: RunRequest) -> tuple[Step, ...]:
    """Return the steps of `count` programs that write small files; of several copies each has one."""
    (whole, *others), names = copies, f"{request.notes}/all"
    shares = [(copy, 0, 1) for copy in copies] if others else [(whole, number, count) for number in range(count)]
    steps = list[Step]()
    for number, (copy, which, of) in enumerate(shares, 1):
        words = own_program("orchestrator.trees.source_files", job.source.path, str(which), str(of), *RESERVED)
        listed = copy.work.reads if others and isinstance(copy.work, Pipeline) else None
        action = f"write small files of {copy.action.removeprefix('copy ')}"
        work = Pipeline(
            stages=(_ahead_command(job, words),),
            reads=listed or names,
            keeps=f"{request.notes}/moved-ahead-{number}",
        )
        step = Step(
            action=action if others else f"{action}, {number} of {count}", why=WHY_AHEAD, worker=f"lane {number}", work=work, expected=None,
            copies=True, ahead=True, needs=copy.needs if listed else ((names, b"./.\0"),),
        )  # fmt: skip
        steps.append(step)
    return tuple(steps)


def large_files_ahead(job: Job, world: RsyncSurvey, request: RunRequest) -> tuple[Step, ...]:
    """Return the steps of the programs that write large files, each a share of them."""
    count = world.ahead_of_large
    how = "holes" if options_of(job).sparse and world.holes is not False else "whole"
    words = own_program("orchestrator.trees.large_copies", job.source.path, str(LARGE_FILE), how, *RESERVED)
    steps = list[Step]()
    for number, share in enumerate(distribute_weights([size for _, size in world.large], count), 1):
        names = f"{request.notes}/large-{number}"
        listed = b"".join(b"./" + world.large[place][0] + b"\0" for place in share)
        work = Pipeline(
            stages=(_ahead_command(job, words),), reads=names, keeps=f"{request.notes}/moved-large-ahead-{number}"
        )
        step = Step(
            action=f"write large files of {job.tree}{f', {number} of {count}' if count > 1 else ''}", why=WHY_AHEAD, worker=f"lane {number}",
            work=work, expected=None, copies=True, ahead=True, needs=((names, listed),),
        )  # fmt: skip
        steps.append(step)
    return tuple(steps)


def _tidying(copy: Step) -> Step:
    if not isinstance(copy.work, Pipeline):
        raise TypeError(f"no programs copy in: {copy.action}")
    (rsync,) = copy.work.stages
    argv = (rsync.argv[0], "--delete", "--ignore-errors", *rsync.argv[1:])
    return replace(copy, work=replace(copy.work, stages=(replace(rsync, argv=argv),)))


def _ahead_command(job: Job, words: tuple[str, ...]) -> Command:
    start = in_tree_command(job.target.location, "work", *words)
    return replace(start, environment=(*start.environment, *own_environment(place_of("xxhash"))))
