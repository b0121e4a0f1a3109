"""The stages of a run that goes on with a cut copy: which remainders are completed, which are dropped, and what is cloned instead. Pure."""

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import Bytes, show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, linked_copy, parse, script_commands
from orchestrator.engines.rsync.left_out import overgrown_files
from orchestrator.engines.rsync.linked_copy import small_step
from orchestrator.engines.rsync.model import LARGE_FILE, PARTIAL, WORK, PartialFile, RsyncSurvey
from orchestrator.engines.rsync.options import options_of

Stage = tuple[Step, ...]
_SURE = 1024 * 1024  # so many bytes of a partial file that seems complete are sent again, so that the rest is verified


def separate_cut_copy(
    job: Job, world: RsyncSurvey, tree: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages before a copy that goes on in a cut one: what it shares with points goes, and remainders are completed or dropped."""
    return (
        *((_discard_others(job),) if world.target.work and job.parts else ()),
        *((_unshare(job),) if world.target.work and world.points else ()),
        *complete_or_drop(job, world, tree, base, request),
    )


def bring_up_to_date(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages that make what a cut copy holds as the source has it now, and then clone large files that it lacks.

    Why large ones in place: of what shares its blocks with a point a whole copy would take room, be it that hardly anything differs.
    """
    images = _cloned_files(job, world, base)
    if base is None or not images:
        return (_update(job, world, work, request),)
    names = f"{request.notes}/cut-large"
    listed = b"".join(b"./" + path + b"\0" for path in images)
    in_place = replace(job, options=replace(options_of(job), in_place=True))
    large = linked_copy.copy_over(
        commands.copy_command(in_place, work, world, base=None, existing=True, names=names, least=LARGE_FILE),
        action="bring large files of the cut copy up to date",
        why="only what changed in them since the copy was interrupted is written",
        keeps=f"{request.notes}/moved-cut-large",
        needs=((names, listed),),
    )
    clones = linked_copy.clone_large_files(job, world, work, base, tuple(images), names, request)
    return (large, _update(job, world, work, request), *clones)


def _cloned_files(job: Job, world: RsyncSurvey, base: RestorePoint | None) -> dict[bytes, int]:
    """Return the large files that can be made from the point's by a clone, each with its bytes, where the filesystem makes clones."""
    target = world.target
    if not (world.clones and target.work and _is_compared(world, base)) or job.parts or target.led or target.open:
        return {}
    left_out = {path for each in world.sparse for path in each.paths} | {path for path, _ in world.refused}
    return {path: size for path, size in world.large if path in world.older and path not in left_out}


def _is_compared(world: RsyncSurvey, base: RestorePoint | None) -> bool:
    """Return whether the point to which unchanged files are linked is the one that was compared with the source, and sound."""
    newest = world.points[-1].name if world.points else ""
    return (
        base is not None
        and base.name == newest
        and base.manifest is not None
        and not (base.damaged or world.target.damaged)
    )


def complete_or_drop(
    job: Job, world: RsyncSurvey, tree: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages for remainders of an interrupted copy: some are completed, the others discarded."""
    stages, completed = list[Stage](), list[PartialFile]()
    stale, linked, cloned = list[PartialFile](), list[PartialFile](), list[PartialFile]()
    differing = _differing(world, base)
    images = _cloned_files(job, world, base)
    for half in world.target.half:
        if half.wanted is None:
            stale.append(half)
        elif differing is not None and half.path not in differing:
            linked.append(half)
        elif half.path in images and _is_better_cloned(half, world):
            cloned.append(half)
        elif half.wanted:
            completed.append(half)
    if stale:
        stages.append(_discard(tree, stale, "discard remainders", "their files have left the source"))
    if linked:
        why = f"their files are as in point {base.name if base else ''}, and are linked to it"
        stages.append(_discard(tree, linked, "discard remainders of unchanged files", why))
    if cloned:
        why = "a clone of the point's file, with what changed in it, takes less room than what is there"
        stages.append(_discard(tree, cloned, "discard remainders of large files", why))
    if overgrown := overgrown_files(world):
        command = script_commands.discard_command(tree, overgrown)
        why = "the target does not take these files as they are now"
        stages.append((small_step("discard older states", why, command),))
    return (*stages, *(stage for half in completed for stage in _go_on(job, world, tree, half, request)))


def _differing(world: RsyncSurvey, base: RestorePoint | None) -> frozenset[bytes] | None:
    """Return the paths in which source and base differ, with their other names; None: they are not known, or no remainder is there."""
    if world.differing is None or world.unread or not world.target.half or not _is_compared(world, base):
        return None
    return frozenset((*world.differing.paths, *world.differing.joined))


def _is_better_cloned(half: PartialFile, world: RsyncSurvey) -> bool:
    """Return whether to clone the point's file, and write what differs, is better than to go on with what is there.

    Always where room may lack. One that has its whole size was such a clone, of which nothing says how far it came: where a program of ours
    compares it, that reads both once, and to go on reads them twice.
    """
    moving, free = world.changes.moving if world.changes else None, world.target.free_bytes
    lacks = moving is not None and free is not None and free < moving
    return lacks or (world.ahead_of_large > 0 and half.have >= (half.wanted or 0))


def _discard(work: Location, halves: list[PartialFile], action: str, why: str) -> Stage:
    """Return the stage that removes partial files first: the copy may need their space."""
    return (small_step(action, why, script_commands.discard_command(work, tuple(half.lies for half in halves))),)


def _go_on(job: Job, world: RsyncSurvey, work: Location, half: PartialFile, request: RunRequest) -> tuple[Stage, ...]:
    """Return the stages that complete a partial file: it resumes where it stopped."""
    wanted = half.wanted or 0
    folder, slash, name = half.path.rpartition(b"/")
    partial = folder + slash + PARTIAL.encode() + b"/" + name
    shown = show_name(half.path)
    stages: list[Stage] = []
    have, length = half.have, None
    if have >= wanted:
        have = length = max(0, wanted - _SURE)
    if half.orphan or length is not None:
        why = "rsync was killed and would not use its temporary file again"
        if length is not None:
            why = "a remainder that looks whole is not trusted: its end is sent again, and all of it verified"
        orphan = half.lies if half.orphan else b""
        command = script_commands.take_up_command(work, half.path, orphan=orphan, length=length)
        stages.append((small_step(f"{'salvage' if half.orphan else 'shorten'} {shown}", why, command),))
    append = commands.append_command(
        job, half.path, work, partial, here=world.here, there=world.there, led=world.target.led
    )
    why = f"{show_size(have)} of {show_size(wanted)} are there"
    # Notes of an earlier attempt about its content are no longer valid.
    note = (f"{request.notes}/moved-on-{world.target.half.index(half)}", parse.format_moved_line(half.path))
    copy = replace(
        small_step(f"go on with {shown}", why, append), expected=Bytes(wanted - have), copies=True, needs=(note,)
    )
    holes = options_of(job).sparse and world.holes is not False
    finish = script_commands.finish_command(work, half.path, wanted, holes=holes)
    return (
        *stages,
        (copy,),
        (
            small_step(
                f"name {shown}", "it is whole and verified; if it could not be read, it is left to the copy", finish
            ),
        ),
    )


def _unshare(job: Job) -> Stage:
    """Return the stage that removes from a cut work tree what it shares with points.

    Why: rsync changes the metadata of a file that is there in place, and a published point never changes.
    """
    command = script_commands.unshare_command(job.target.location / WORK)
    why = "a published point never changes: what it shares with the cut copy is linked anew, where it is still the same"
    return (small_step("separate the cut copy from the points", why, command),)


def _discard_others(job: Job) -> Stage:
    """Return the stage that removes from a cut work tree what the job names no more: rsync looks only into what it names."""
    command = script_commands.discard_others_command(job.target.location / WORK, job.parts)
    return (
        small_step("discard what is no source any more", "the folders of the job may be others since the cut", command),
    )


def _update(job: Job, world: RsyncSurvey, work: Location, request: RunRequest) -> Stage:
    """Return the stage that makes what a cut copy holds as the source has it now, and deletes what the source has no more."""
    return linked_copy.copy_over(
        commands.copy_command(job, work, world, base=None, existing=True),
        action="bring the cut copy up to date",
        why="the source went on since the copy was interrupted",
        keeps=f"{request.notes}/moved-cut",
    )
