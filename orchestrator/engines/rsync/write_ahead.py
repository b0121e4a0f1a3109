"""The small files of a restore or a first copy, and large ones of any, written before rsync does the rest: where that pays, by which command."""

import os
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.contract.restore import DestinationSurvey, RestoreRequest
from orchestrator.engines.rsync import commands
from orchestrator.engines.rsync.model import LARGE_FILE, RESERVED, RsyncSurvey
from orchestrator.engines.rsync.options import as_lane, options_of
from orchestrator.engines.rsync.parallel import distribute_weights
from orchestrator.engines.rsync.script_commands import (
    in_tree_command,
    inside_command,
    list_top_command,
    survey_links_command,
)
from orchestrator.engines.rsync.side_by_side import count_ahead, lists_many
from orchestrator.process.own_program import own_environment, own_program, place_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.engines.rsync.parallel import ParallelCopy

LEAST_AHEAD = 1_000  # entries; for fewer, the start of a program takes what it would save
LEAST_AHEAD_OF_COPY = 2_000  # the same of a first copy, where steps are recorded besides
LEAST_LARGE_AHEAD = Bytes(128 << 20)  # of the large files of one such program together; the same
_NO_POINT = "-"
WHY_AHEAD = "it takes less time than rsync, which then does all else, and what this leaves"
_WHY_WHOLE = "such a program ends where the target takes nothing more, or where it meets much that is rsync's; then rsync copies all"
_WHY_BY_NAME = "the small files are there; their folders and all else follow, and nothing is looked at again"
Stage = tuple[Step, ...]


def count_ahead_of_restore(job: Job, wanted: RestoreRequest, split: "tuple[ParallelCopy, ...]", to: Location) -> int:
    """Return how many programs write small files before a copy into a new folder on this machine, by root, or 0.

    Only where a manifest verifies all of it at the end, and where the copy takes a file of the same size and time for the same.
    """
    if not _is_plain(job) or wanted.anew or wanted.point.manifest is None or not wanted.notes:
        return 0
    if split:
        return len(split) if sum(share.entries for share in split) >= LEAST_AHEAD else 0
    many = not wanted.path and lists_many(wanted.point, LEAST_AHEAD)
    return count_ahead(job, wanted.point.tree.path, to.path) if many else 0


def large_ahead_of_restore(
    job: Job, wanted: RestoreRequest, large: tuple[tuple[bytes, int], ...]
) -> tuple[tuple[bytes, int], ...]:
    """Return the large files that programs write before such a copy: these, or none, where that does not pay."""
    if not _is_plain(job) or wanted.anew or wanted.point.manifest is None or not wanted.notes:
        return ()
    return large if sum(size for _, size in large) >= LEAST_LARGE_AHEAD else ()


def large_files_of_restore(job: Job, wanted: RestoreRequest, seen: DestinationSurvey, what: str) -> Stage:
    """Return the steps of the programs that write large files of a restore, each a share of them."""
    tree = wanted.point.tree / os.fsdecode(wanted.path) if wanted.path else wanted.point.tree
    side_by_side = len(seen.split) or count_ahead(job, tree.path, seen.to.path) or 1
    count = min(len(seen.large), sum(size for _, size in seen.large) // LEAST_LARGE_AHEAD, side_by_side)
    how = "holes,linked" if seen.holes else "linked"
    program = own_program("orchestrator.trees.large_copies", tree.path, str(LARGE_FILE), how, _NO_POINT, *RESERVED)
    start = inside_command(seen.to, *program)
    start = replace(start, environment=(*start.environment, *own_environment(place_of("xxhash"))))
    return _large_steps(seen.large, count, start, f"{what} to {seen.to}", wanted.notes)


def write_ahead_command(
    tree: Location, to: Location, names: str | None, *, left: str, share: tuple[int, int] = (0, 1)
) -> Pipeline:
    """Build the pipeline that does it, in a folder that a restore has marked. `names`: see `commands.restore_command`; None: all of it.

    `left`: what it leaves is told in files whose names begin so; `share`: its number, and how many share the files; see the program.
    """
    words = (tree.path, *map(str, share), left, *RESERVED)
    start = inside_command(to, *own_program("orchestrator.trees.plain_files", *words))
    start = replace(start, environment=(*start.environment, *own_environment()))
    if names:
        return Pipeline(stages=(start,), reads=names)
    return Pipeline(stages=(list_top_command(tree), start), counts=1)


def left_by_name(
    copies: Stage, count: int, left: str, rsync: "Callable[[int], Command]", *, keeps: str = ""
) -> tuple[Stage, Stage]:
    """Return the stages after `count` programs that wrote small files before some copies: one before each, or all before one.

    First these copies, which run only where a program came to no end of its own; then those of what is left, by name. `left`: how the names of
    the files begin that tell it, before the number of a program; `rsync`: the command of the copy of a number, which reads names; `keeps`:
    how the name of the file for what it moved begins.
    """
    told = [(f"{left}-{number}",) for number in range(1, count + 1)]
    shares = told if len(copies) > 1 else [tuple(each for (each,) in told)]
    whole, named = list[Step](), list[Step]()
    for number, (copy, names) in enumerate(zip(copies, shares, strict=True), 1):
        single = tuple(f"{each}-single" for each in names)
        stages = (Command(argv=("cat", "--", *single), effect=Effect.READS), rsync(number))
        work = Pipeline(stages=stages, keeps=f"{keeps}-{number}" if keeps else None, counts=1)
        spare = tuple(f"{each}-whole" for each in names)
        action = f"{copy.action}, where a program before it gave up"
        whole.append(replace(copy, action=action, why=_WHY_WHOLE, expected=None, spare=spare, accounts=False))
        named.append(
            replace(copy, action=f"{copy.action}, by name", why=_WHY_BY_NAME, work=work, needs=(), spare=single, accounts=False)
        )  # fmt: skip
    return tuple(whole), tuple(named)


def count_programs(job: Job, world: RsyncSurvey, run: "Callable[[Command], bytes]") -> RsyncSurvey:
    """Return the survey with how many programs write small files before a first copy, and large ones before any.

    Small ones only behind the wall against links: rsync is told the paths of what is left.
    """
    ahead = count_ahead_of_copy(job, world)
    if ahead and not world.walled:
        world = replace(world, walled=run(survey_links_command(None)) == b"closed\n")
    return replace(world, ahead=ahead if world.walled else 0, ahead_of_large=count_ahead_of_large(job, world))


def count_ahead_of_copy(job: Job, world: RsyncSurvey) -> int:
    """Return how many programs write small files before a first copy within this machine, by root, that copies all of one folder; or 0.

    Not where something is left out that only rsync knows. A later copy passes over what is there, and brings little.
    """
    if world.points or options_of(job).hides or not may_write(job, world):
        return 0
    if world.changes is None or (world.changes.entries_now or 0) < LEAST_AHEAD_OF_COPY:
        return 0
    return _shares(world) or _count_here(job)


def count_ahead_of_large(job: Job, world: RsyncSurvey) -> int:
    """Return how many programs write large files before a copy within this machine, by root; or 0. One alone takes less time than rsync, too.

    On a filesystem that clones, also for few bytes: rsync looks for blocks at any place, and writes them with all that it writes at once.
    """
    whole = sum(size for _, size in world.large)
    cut = world.clones and bool(world.points)  # then large files go into a cut copy, too, each where none is
    if whole < (LARGE_FILE if world.clones else LEAST_LARGE_AHEAD) or not may_write(job, world, into_cut=cut):
        return 0
    return min(len(world.large), whole // LEAST_LARGE_AHEAD or 1, _shares(world) or _count_here(job) or 1)


def _count_here(job: Job) -> int:
    return count_ahead(job, job.source.path, job.target.location.path)


def may_write(job: Job, world: RsyncSurvey, *, into_cut: bool = False) -> bool:
    """Return whether files may be written before a copy into a new folder, or into a cut copy, too; not where rsync compares contents."""
    options, target = options_of(job), world.target
    if job.source.host or job.target.location.host or job.parts or (target.work and not into_cut) or world.mixed:
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
    job: Job, world: RsyncSurvey, copies: tuple[Step, ...], work: Location, request: RunRequest
) -> tuple[tuple[Step, ...], ...]:
    """Return the stages of first copies of all, and before them that of the programs that write small files, and then large ones.

    What those for small files leave is copied by name, and of that what has left the source since then goes: the owner, mode and time of a
    folder came with no file in it. The copies of all, where they run, remove all that has left it; also after errors: what rsync cannot
    list would not be there without us.
    """
    large = large_files_ahead(job, world, request) if world.ahead_of_large else ()
    whole = tuple(map(_tidying, copies))
    if not world.ahead:
        return large, whole

    def rsync(number: int) -> Command:
        of = as_lane(job, number) if len(copies) > 1 else job
        return commands.copy_command(of, work, world, base=None, names="-", tidy=True)

    small = _small_files_ahead(job, copies, world.ahead, request)
    left, keeps = f"{request.notes}/left", f"{request.notes}/moved-left"
    return (*small, *large), *left_by_name(whole, world.ahead, left, rsync, keeps=keeps)


def _small_files_ahead(job: Job, copies: tuple[Step, ...], count: int, request: RunRequest) -> tuple[Step, ...]:
    """Return the steps of `count` programs that write small files; of several copies each has one."""
    (whole, *others), names = copies, f"{request.notes}/all"
    shares = [(copy, 0, 1) for copy in copies] if others else [(whole, number, count) for number in range(count)]
    steps = list[Step]()
    for number, (copy, which, of) in enumerate(shares, 1):
        how = "one" if options_of(job).one_file_system else "all"
        words = (job.source.path, str(which), str(of), how, f"{request.notes}/left-{number}", *RESERVED)
        program = own_program("orchestrator.trees.source_files", *words)
        listed = copy.work.reads if others and isinstance(copy.work, Pipeline) else None
        action = f"write small files of {copy.action.removeprefix('copy ')}"
        work = Pipeline(
            stages=(_ahead_command(job, program),),
            reads=listed or names,
            keeps=f"{request.notes}/moved-ahead-{number}",
        )
        step = Step(
            action=action if others else f"{action}, {number} of {count}", why=WHY_AHEAD, worker=f"lane {number}", work=work, expected=None,
            copies=True, ahead=True, needs=copy.needs if listed else ((names, b"./.\0"),),
        )  # fmt: skip
        steps.append(step)
    return tuple(steps)


def large_files_ahead(job: Job, world: RsyncSurvey, request: RunRequest, base: RestorePoint | None = None) -> Stage:
    """Return the steps of the programs that write large files, each a share of them. `base`: a point with which they may share blocks."""
    how, point = (
        "holes" if options_of(job).sparse and world.holes is not False else "whole",
        base.tree.path if base else _NO_POINT,
    )
    words = own_program("orchestrator.trees.large_copies", job.source.path, str(LARGE_FILE), how, point, *RESERVED)
    return _large_steps(world.large, world.ahead_of_large, _ahead_command(job, words), str(job.tree), request.notes)


def _large_steps(large: tuple[tuple[bytes, int], ...], count: int, program: Command, what: str, notes: str) -> Stage:
    steps = list[Step]()
    for number, share in enumerate(distribute_weights([size for _, size in large], count), 1):
        names = f"{notes}/large-{number}"
        listed = b"".join(b"./" + large[place][0] + b"\0" for place in share)
        work = Pipeline(stages=(program,), reads=names, keeps=f"{notes}/moved-large-ahead-{number}")
        step = Step(
            action=f"write large files of {what}{f', {number} of {count}' if count > 1 else ''}", why=WHY_AHEAD, worker=f"lane {number}",
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
