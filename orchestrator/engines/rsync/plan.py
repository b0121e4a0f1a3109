"""The decisions of an rsync run from the survey, and the stages of its plan: each step with commands, reason and check."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import parse_point_name, point_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import (
    Decision,
    NothingToDo,
    Pipeline,
    Plan,
    PointPublication,
    Refusal,
    Step,
    TargetPreparation,
    TargetTrial,
)
from orchestrator.domain.point import MIRROR, RestorePoint
from orchestrator.domain.units import Bytes, show_count, show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, linked_copy, script_commands
from orchestrator.engines.rsync.abilities import required_abilities
from orchestrator.engines.rsync.hole_limit import LARGEST, most_growth
from orchestrator.engines.rsync.left_out import left_out_entries, left_out_file, left_out_rules_of
from orchestrator.engines.rsync.linked_copy import small_step
from orchestrator.engines.rsync.model import (
    MANIFEST,
    OURS,
    PARTIALS,
    TEMPORARY,
    WORK,
    PointVisible,
    RsyncSurvey,
)
from orchestrator.engines.rsync.options import as_lane, options_of
from orchestrator.engines.rsync.plan_text import describe_plan, describe_resumed, warnings
from orchestrator.engines.rsync.refusals import refuse

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import ParallelCopy

Stage = tuple[Step, ...]


def close_folders(job: Job, world: RsyncSurvey) -> tuple[Stage, ...]:
    """Return the stage that closes our folders to other users.

    Why a work tree that others could enter is not resumed: they may have put a link or a file into it.
    """
    if not world.target.open:
        return ()
    root, keeps = job.target.location, not options_of(job).points
    command = script_commands.close_folders_command(root, world.target.open, keeps_work=keeps)
    why = "what others may enter or exchange could lead root elsewhere"
    return ((small_step("close our folders to other users", why, command),),)


def _bounded(job: Job, stages: tuple[Stage, ...], world: RsyncSurvey, request: RunRequest) -> tuple[Stage, ...]:
    """Return the stages that copy no more than was seen, and as much as may come meanwhile: an owner may make more at any moment.

    The first one writes the rules of what is left out.
    """
    if world.changes is not None and world.changes.moving is not None:
        most = world.changes.moving + most_growth(job, world)
        stages = tuple(tuple(replace(step, most=most) if step.copies else step for step in stage) for stage in stages)
    if not (rules := left_out_rules_of(world)):
        return stages
    first = stages[0][0]
    return ((replace(first, needs=(*first.needs, (left_out_file(request), rules))), *stages[0][1:]), *stages[1:])


def prepare_target(job: Job, *folders: str, discards: bool = False) -> Stage:
    """Return the stage that makes the target ours, once old receivers have ended. `folders`: ours, below its root.

    `discards`: the copy in the work tree goes, as its disk may not have taken it.
    """
    root, stored, patience = job.target.location, options_of(job).fake_super, int(job.pipe.stall_after) + 30
    inside = tuple(folder.removeprefix(f"{OURS}/") for folder in folders)
    command = script_commands.prepare_command(root, job.identity, inside, patience=patience, stored=stored)
    why = "the marker says whose it is; no receiver of an earlier run may be alive"
    action = "prepare the target"
    if discards:
        action, why = (
            f"{action}, and discard the cut copy",
            f"{why}; it is not certain that the disk took all of that copy",
        )
    step = small_step(action, why, command)
    if root.host is not None:
        return (step,)
    work = TargetPreparation(
        root=root, job=job.identity, stored=stored, folders=inside, otherwise=Pipeline(stages=(command,))
    )
    return (replace(step, work=work),)


def try_target(job: Job, world: RsyncSurvey) -> tuple[Stage, ...]:
    """Return the stage that asks a new target what it can hold, and refuses what the source has besides.

    Why not with patterns: only rsync knows what they leave out. The comparison after the copy finds what is lost then.
    """
    options = options_of(job)
    if world.target.owner is not None or (options.excludes and not options.fake_super):
        return ()
    abilities = ("fake-super",) if options.excludes else required_abilities(options)
    tried = script_commands.try_abilities_command(job.target.location, abilities)
    found = script_commands.find_unheld_command(job.tree, one_filesystem=options.one_file_system, points=options.points)
    step = small_step("ask what the target can hold", "what it cannot is named before anything is copied", tried)
    asked = Pipeline(stages=(tried, found))
    if job.target.location.host is not None:
        return ((replace(step, work=asked),),)
    return ((replace(step, work=TargetTrial(root=job.target.location, abilities=abilities, otherwise=asked)),),)


def remove_litter(job: Job, litter: tuple[str, ...]) -> Stage:
    """Return the stage that removes the remains of an interrupted removal or publishing."""
    command = script_commands.remove_command(job.target.location, litter)
    return (small_step("clear away leftovers", "a removal or a publishing was cut in the middle", command),)


def remove_points(job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> Stage:
    """Return the stage that removes points; the owner's [keep] is the consent."""
    why = "; ".join(f"{name}: {reason}" for name, reason in zip(names, reasons, strict=True))
    step = small_step(
        f"remove {show_count(len(names), 'point')}", why, script_commands.remove_command(job.target.location, names)
    )
    return (replace(step, removes=" ".join(names)),)


def _open_top(job: Job) -> Stage:
    """Return the stage that gives the folder above several folders its mode: it is ours, as `/` itself is not copied."""
    command = script_commands.open_top_command(job.target.location / WORK)
    return (small_step("open the folder above all", "it is no copy of the source's root", command),)


def copy_stages(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages with parallel copies, or one rsync over all; then damaged files are copied again, unlinked.

    After an interruption what is there is brought up to date first. Why first, and once: what a later stage links to a point is
    not looked at again, so that nothing is changed in place where its metadata changed at the source meanwhile.
    """
    if world.links_at_gate(base):
        return _copy_for_gate(job, world, work, base, request)
    return _copy_and_link(job, world, work, base, request)


def _copy_for_gate(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages that copy what differs into a work tree that shares nothing with a point, and then link the rest."""
    differing, changes = world.differing, world.changes
    if differing is None or base is None or changes is None:
        raise AssertionError("world.links_at_gate has seen them")
    names = f"{request.notes}/differing"
    damaged = [path for path in world.target.damaged if path]
    paths = dict.fromkeys((*differing.paths, *differing.joined, *damaged))
    copied = dict.fromkeys((*differing.present, *differing.joined, *differing.folders))
    if len(copied) > 1:
        # rsync takes the root for all that lies right in it, and sends its metadata with any other name.
        copied.pop(b".", None)
    copy = Step(
        action=f"copy {job.tree}",
        why=f"what differs from point {base.name}; the gate links the rest",
        worker="main",
        work=Pipeline(
            stages=(commands.copy_command(job, work, world, base=base, names=f"{names}-and-present"),),
            keeps=f"{request.notes}/moved-0",
        ),
        expected=_expected(world),
        copies=True,
        needs=((f"{names}-and-present", _listed(copied)),),
    )
    cut = _up_to_date(job, world, work, base, request)
    again = _see_again(job, world, base, work, request)
    return (*cut, (copy,), *again, link_unchanged(job, base, names, _listed(paths)))


def link_unchanged(job: Job, base: RestorePoint, names: str, listed: bytes) -> Stage:
    """Return the stage in which the gate links what is unchanged. `listed`: the paths that are not, written to `names`."""
    command = script_commands.link_unchanged_command(job.target.location, base.name)
    why = "a gate links by itself, and then lets no copy come near what a point shares"
    step = small_step(f"link unchanged entries from point {base.name}", why, command)
    work = Pipeline(stages=(command,), reads=names)
    return (replace(step, work=work, counts_links=True, needs=((names, listed),)),)


def _listed(paths: Iterable[bytes]) -> bytes:
    return b"".join(b"./" + path + b"\0" for path in paths)


def _copy_and_link(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    again = _see_again(job, world, base, work, request)
    cut = _up_to_date(job, world, work, base, request)
    count = len(_parallel_copies(world))
    linked = linked_copy.link_unchanged(job, world, work, base, request)
    if differing := linked_copy.differing_by_name(job, world, work, base):
        return (*linked, *linked_copy.copy_by_name(job, world, work, base, differing, request), *again)
    crowded = (linked_copy.copy_crowded(job, world, work, request),) if world.crowded and base else ()
    over = bool(linked or crowded)
    if count and not crowded:
        copies = tuple(_parallel_copy(job, world, work, base, number, request) for number in range(1, count + 1))
    else:
        copies = _whole(job, world, work, base, request, linked=over)
    times = (linked_copy.folder_times(job, world, work, request),) if over else ()
    copying = (copies,) if cut or base else linked_copy.with_files_ahead(job, world, copies, work, request)
    return (*cut, *crowded, *linked, *copying, *times, *again)


def _see_again(
    job: Job, world: RsyncSurvey, base: RestorePoint | None, work: Location, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages after the copy: for what rsync does only half where metadata differ, and for damaged files."""
    stages = list[Stage]()
    altered = world.changes.altered if base and world.changes else ()
    if base and altered and options_of(job).sparse and world.holes is not False:
        stages.append(_dig_holes(base, work, altered, request))
    if altered and commands.may_name_what_is_missing(world) and options_of(job).xattrs:
        stages.append(_settle(job, world, work, altered, request))
    return (*stages, *((_repair(job, world, work, request),) if _repairs(world, base) else ()))


def _separated(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages that make of a cut copy what a copy may go on with."""
    if not world.target.work:
        return ()
    from orchestrator.engines.rsync.cut_copy import separate_cut_copy  # few runs go on with a cut copy

    return separate_cut_copy(job, world, work, base, request)


def _up_to_date(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages that make what a cut copy holds as the source has it now."""
    if not world.target.work:
        return ()
    from orchestrator.engines.rsync.cut_copy import bring_up_to_date

    return bring_up_to_date(job, world, work, base, request)


def _whole(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest, *, linked: bool
) -> Stage:
    """Return the stage with one rsync over everything. `linked`: what is unchanged is in the tree already."""
    command = commands.copy_command(job, work, world, base=base, linked=linked)
    return (
        Step(
            action=f"copy {job.tree}",
            why=f"unchanged files are linked to point {base.name}" if base else _first(world),
            worker="main",
            work=Pipeline(stages=(command,), keeps=f"{request.notes}/moved-0"),
            expected=_expected(world),
            copies=True,
            accounts=True,
        ),
    )


def _first(world: RsyncSurvey) -> str:
    bare = "no entry has attributes, so rsync looks for none" if world.bare is not None else ""
    return "; ".join(filter(None, ("the first copy", bare, world.side_by_side.why)))


def _settle(job: Job, world: RsyncSurvey, work: Location, altered: tuple[bytes, ...], request: RunRequest) -> Stage:
    """Return the stage that gives files back the capabilities that they lost with their owner.

    Why: of an unchanged file with other metadata rsync makes a copy of the point's file with its attributes, then gives it its
    owner; the kernel takes its capabilities away then, and only a second look finds them missing. Source: rsync 3.2 to 3.5,
    generator.c; capabilities(7). Only those are looked at: what is linked to a point must not be changed in place.
    """
    names = f"{request.notes}/altered"
    command = commands.settle_command(job, work, world, names)
    return (
        Step(
            action=f"look again at {show_count(len(altered), 'file')} with other metadata",
            why="the kernel takes the capabilities of a file away when it gets its owner",
            worker="main",
            work=Pipeline(stages=(command,), keeps=f"{request.notes}/moved-settled"),
            expected=Bytes(0),
            copies=True,
            needs=((names, commands.settle_names(job, altered)),),
        ),
    )


def _dig_holes(base: RestorePoint, work: Location, altered: tuple[bytes, ...], request: RunRequest) -> Stage:
    """Return the stage that gives files back the holes that they have in the point.

    Why: of an unchanged file with other metadata rsync copies the point's file, and writes its holes as zeros. Source: rsync 3.2
    to 3.5, copy_file in util1.c.
    """
    names = f"{request.notes}/altered-holes"
    step = small_step(
        f"look for holes in {show_count(len(altered), 'file')} with other metadata",
        "rsync copies them from the point, and fills their holes",
        script_commands.dig_holes_command(base.tree, work),
    )
    pipeline = Pipeline(stages=step.work.stages, reads=names) if isinstance(step.work, Pipeline) else step.work
    return (replace(step, work=pipeline, needs=((names, _listed(altered)),)),)


def _parallel_copies(world: RsyncSurvey) -> "tuple[ParallelCopy, ...]":
    """Return the parallel copies of the tree; empty when there is only one."""
    found = world.parallel_copies
    if found is None or isinstance(found, Refusal) or len(found.parallel_copies) < 2:
        return ()
    return found.parallel_copies


def _parallel_copy(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, number: int, request: RunRequest
) -> Step:
    parallel_copies = _parallel_copies(world)
    parallel_copy = parallel_copies[number - 1]
    names = f"{request.notes}/lane-{number}"
    command = commands.copy_command(as_lane(job, number), work, world, base=base, parallel_copy=True)
    shares = f"{show_count(len(parallel_copy.paths), 'part')}, {show_size(parallel_copy.size)}: all parallel copies have about the same size"
    return Step(
        action=f"copy {job.tree}, parallel copy {number} of {len(parallel_copies)}",
        why="; ".join(filter(None, (shares, world.side_by_side.why))),
        worker=f"lane {number}",
        work=Pipeline(stages=(command,), reads=names, keeps=f"{request.notes}/moved-{number}"),
        expected=Bytes(min(parallel_copy.size, LARGEST)),
        copies=True,
        accounts=True,
        needs=((names, parallel_copy.files_from),),
    )


def _repair(job: Job, world: RsyncSurvey, work: Location, request: RunRequest) -> Stage:
    """Return the repair stage, after the copy. Why not before: rsync replaces an equal file by a link to the old one."""
    names = f"{request.notes}/damaged"
    what = "everything" if world.target.all_damaged else show_count(len(world.target.damaged), "damaged file")
    return (
        Step(
            action=f"copy {what} again",
            why="a reading found their copies damaged; they are never linked into a new point",
            worker="main",
            work=Pipeline(
                stages=(commands.recopy_command(job, work, world, names),), keeps=f"{request.notes}/moved-repair"
            ),
            expected=None,
            copies=True,
            needs=((names, commands.path_filter(world.target.damaged)),),
        ),
    )


def _repairs(world: RsyncSurvey, base: RestorePoint | None) -> bool:
    """Return True when damaged files must be copied over: else nothing is linked to the point in which they were found."""
    return bool(world.target.damaged) and (base is not None and base.name == world.points[-1].name)


def _base(world: RsyncSurvey) -> RestorePoint | None:
    """Return the point to which unchanged files are linked: the newest one whose manifest can be believed."""
    if not world.points or not world.target.all_damaged:
        return world.points[-1] if world.points else None
    return next((point for point in reversed(world.points[:-1]) if point.manifest and not point.damaged), None)


def sweep_partial_files(work: Location) -> tuple[Stage, ...]:
    """Return the stage that removes unfinished partial files of unreadable sources; the folders keep their times.

    Why only on a host: on this machine the listing for the manifest sees whether there are any, see `record_manifest`.
    """
    if work.host is None:
        return ()
    command = script_commands.sweep_command(work)
    return ((small_step("sweep the tree", "remainders that nothing needs any more must not stay in it", command),),)


def publish_point(job: Job, name: str) -> Stage:
    """Return the stage that makes the point visible by one rename."""
    root = job.target.location
    command = script_commands.publish_command(root, name, MANIFEST)
    step = small_step(f"publish point {name}", "it is whole: one rename makes it visible", command)
    if root.host is None:
        work = PointPublication(root=root, name=name, manifest=MANIFEST, otherwise=Pipeline(stages=(command,)))
        step = replace(step, work=work)
    return (replace(step, makes=name, confirmation=PointVisible(root=root, name=name)),)


def name_latest(job: Job, name: str) -> Stage:
    """Return the stage that sets `latest` after an interrupted publishing."""
    command = script_commands.name_latest_command(job.target.location, name)
    return (small_step(f"make `latest` name {name}", "publishing it was cut in the middle", command),)


def mirror_stages(job: Job, world: RsyncSurvey, request: RunRequest) -> tuple[Stage, ...]:
    """Return the stages that copy over the mirror itself; lost source files are deleted only with consent."""
    command = commands.copy_command(job, job.target.location, world, base=None, tidy=options_of(job).delete)
    copy = Step(
        action=f"mirror {job.tree}",
        why="the mirror differs from the source" if world.target.owner else "the first copy",
        worker="main",
        work=Pipeline(stages=(command,), keeps=f"{request.notes}/moved-0"),
        expected=_expected(world),
        copies=True,
        accounts=True,
    )
    repair = (_repair(job, world, job.target.location, request),) if world.target.damaged else ()
    return ((copy,), *repair)


def _expected(world: RsyncSurvey) -> Bytes | None:
    return None if world.changes is None or world.changes.moving is None else Bytes(world.changes.moving)


def plan(job: Job, world: RsyncSurvey, request: RunRequest) -> Decision:
    """Return the steps to a new restore point (or an equal mirror), nothing, or a refusal."""
    refusal = refuse(job, world, request)
    if refusal:
        return refusal
    if _equal(job, world, request):
        return _nothing(job, world, request)
    if world.sparse or world.refused:
        job = replace(job, options=replace(options_of(job), left_out=left_out_file(request)))
    return _plan_point(job, world, request) if options_of(job).points else _plan_mirror(job, world, request)


def _equal(job: Job, world: RsyncSurvey, request: RunRequest) -> bool:
    """Return True when the target has a complete copy equal to the source, as far as a survey can see."""
    changes, target, options = world.changes, world.target, options_of(job)
    if changes is None or world.unread or target.owner != job.identity or target.damaged:
        return False
    if options.points:
        return bool(world.points) and changes.none and not world.others
    from orchestrator.engines.rsync.mirror_steps import is_last_mirror

    whole = target.mirrored is not None and not target.work and is_last_mirror(job, target.mirrored, request)
    return whole and (changes if options.delete else replace(changes, deleted=0)).none


def _nothing(job: Job, world: RsyncSurvey, request: RunRequest) -> NothingToDo:
    points = options_of(job).points
    current = world.points[-1].name if points else MIRROR
    what = f"point {current}" if points else "the mirror"
    deleted = world.changes.deleted if world.changes else 0
    more = f"; it also holds {show_count(deleted, 'entry', 'entries')} that the source has no more" if deleted else ""
    stages = _clearing(job, world, request)
    if points and world.target.latest != current:
        stages += (name_latest(job, current),)
    return NothingToDo(
        why=f"nothing {'else changed: but for that, ' if world.sparse or world.refused else 'changed: '}{what} is as the source{more}",
        current=current,
        stages=stages,
        warnings=warnings(job, world),
        compared=world.look.why if world.look else "",
        left_out=left_out_entries(world),
    )


def _clearing(job: Job, world: RsyncSurvey, request: RunRequest) -> tuple[Stage, ...]:
    litter = world.target.litter
    if world.target.orphans and (missed := request.missed() & world.target.orphans):
        # Moved away, perhaps: without its manifest a point that comes back could never be verified again.
        litter = tuple(name for name in litter if name not in missed)
    return (*close_folders(job, world), *((remove_litter(job, litter),) if litter else ()))


def _plan_point(job: Job, world: RsyncSurvey, request: RunRequest) -> Plan:
    from orchestrator.engines.rsync.manifest_steps import record_manifest  # only where something is copied

    work = job.target.location / WORK
    name = _new_name(world, request)
    base = _base(world)
    named = bool(world.ahead) or linked_copy.differing_by_name(job, world, work, base) is not None
    stages = (
        *_clearing(job, world, request),
        *try_target(job, world),
        prepare_target(job, WORK, discards=world.target.unwritten),
        *_separated(job, world, work, base, request),
        *copy_stages(job, world, work, base, request),
        *sweep_partial_files(work),
        *((_open_top(job),) if job.parts else ()),
        record_manifest(job, world, work, name, base, request, named=named),
        publish_point(job, name),
    )
    return Plan(
        summary=describe_plan(world, name), stages=_bounded(job, stages, world, request), resumes=describe_resumed(world),
        anew=not world.target.work, warnings=warnings(job, world), compared=world.look.why if world.look else "",
        left_out=left_out_entries(world),
    )  # fmt: skip


def _plan_mirror(job: Job, world: RsyncSurvey, request: RunRequest) -> Plan:
    """Plan the copy to one plain tree that becomes equal to the source."""
    from orchestrator.engines.rsync.manifest_steps import record_mirror
    from orchestrator.engines.rsync.mirror_steps import end_mirror, resume_mirror, separate_files

    stages = (
        *_clearing(job, world, request),
        *try_target(job, world),
        prepare_target(job, WORK, PARTIALS, TEMPORARY),  # the first, empty, says that the mirror is unfinished
        *((resume_mirror(job, world),) if world.target.work else ()),
        *separate_files(job, world, request),
        *mirror_stages(job, world, request),
        record_mirror(job, world, request),
        end_mirror(job),
    )
    what = f"make the mirror as {job.tree}"
    return Plan(
        summary=what, stages=_bounded(job, stages, world, request), resumes=describe_resumed(world), warnings=warnings(job, world),
        left_out=left_out_entries(world), rewrites=True,
    )  # fmt: skip


def _new_name(world: RsyncSurvey, request: RunRequest) -> str:
    """Return the run's time as a name, or one second after the newest point when a clock was set back."""
    name = point_name(request.now)
    if world.points and name <= world.points[-1].name:
        return point_name(parse_point_name(world.points[-1].name) + timedelta(seconds=1))
    return name
