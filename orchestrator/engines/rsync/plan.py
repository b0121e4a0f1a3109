"""What an rsync run does, decided from what was seen. Pure."""

from dataclasses import replace
from datetime import timedelta

from orchestrator.domain.command import Command, Pipeline
from orchestrator.domain.job import Job
from orchestrator.domain.names import parse_point_name, point_name, show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Nothing, Plan, Recording, Refusal, Step
from orchestrator.domain.point import Point
from orchestrator.domain.units import Bytes, show_size
from orchestrator.engines.contract import Asked
from orchestrator.engines.rsync import commands, scripts
from orchestrator.engines.rsync.lanes import Lane, Lanes, named
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.engines.rsync.words import MARKER, OURS, PARTIAL, WORK, CountsEqual, HalfCopied, PointVisible, World

_Stage = tuple[Step, ...]
_SURE = 1024 * 1024  # so many bytes of a whole-looking remainder are sent again, so that the rest is verified
MIRROR = "mirror"


def plan(job: Job, world: World, asked: Asked) -> Decision:
    """The steps to a new restore point (or an equal mirror), nothing, or a refusal."""
    refusal = refuse(job, world, asked)
    if refusal:
        return refusal
    options = job.options
    assert isinstance(options, RsyncOptions)
    if world.changes is not None and world.changes.none and not world.target.damaged and world.target.owner == job.name:
        return _nothing(job, world, mirror=not options.points)
    if not options.points:
        return _plan_mirror(job, world, options, asked)
    return _plan_point(job, world, asked)


def refuse(job: Job, world: World, asked: Asked) -> Refusal | None:
    """Whether something about the two places forbids every copy."""
    source, target, place = world.source, world.target, job.target
    if not source.exists:
        return Refusal(
            why=f"the source {job.source} is not there",
            evidence=(),
            cure="mount it, or correct `source` in the job file",
        )
    if not source.directory:
        return Refusal(
            why=f"the source {job.source} is not a folder",
            evidence=(),
            cure="name the folder that holds it; [rsync] excludes leaves the rest out",
        )
    if not target.exists and (target.foreign or not target.parent):
        why = "is a file" if target.foreign else "is not there, and neither is the folder above it"
        return Refusal(
            why=f"the target {place.location} {why}",
            evidence=(),
            cure=f"mount it, make the folder, or correct [place.{place.name}]",
        )
    if target.owner is not None and target.owner != job.name:
        return Refusal(
            why=f"the target {place.location} belongs to the job {show_name(target.owner)}",
            evidence=(f"{MARKER} says so",),
            cure="give each job a place of its own in targets.toml",
        )
    if isinstance(world.lanes, Refusal):
        return world.lanes
    return _refuse_unmarked(job, world, asked)


def _refuse_unmarked(job: Job, world: World, asked: Asked) -> Refusal | None:
    """A target without our marker: new, not mounted, or somebody else's."""
    target = world.target
    if target.owner is not None:
        return None
    known = asked.remembered.get("target-used") == str(job.target.location)
    if known and "target-new" not in asked.allowed:
        return Refusal(why=f"the target {job.target.location} held copies of this job and now has no sign of them: is its disk mounted?", guard="target-new",
                       evidence=(f"no {MARKER} there",), cure=f"mount it; or, if it is meant to begin anew: poolferry run {job.name} --allow target-new")  # fmt: skip
    options = job.options
    assert isinstance(options, RsyncOptions)
    if target.points or (target.foreign and not options.points and "target-in-use" not in asked.allowed):
        return Refusal(why=f"the target {job.target.location} holds something that is not this job's", guard="target-in-use",
                       evidence=tuple(map(show_name, target.foreign[:10])), cure=f"name an empty folder; or, if it may become the mirror: poolferry run {job.name} --allow target-in-use")  # fmt: skip
    return None


def _nothing(job: Job, world: World, *, mirror: bool) -> Nothing:
    current = None if mirror else world.points[-1].name
    what = "the mirror" if mirror else f"point {current}"
    stages = (_removal(job, world.target.litter),) if world.target.litter else ()
    return Nothing(why=f"nothing changed: {what} is as the source", current=current or MIRROR, stages=stages)


def _plan_point(job: Job, world: World, asked: Asked) -> Plan:
    root = job.target.location
    work = root / WORK
    name = _new_name(world, asked)
    base = world.points[-1] if world.points else None
    stages = [
        *([_removal(job, world.target.litter)] if world.target.litter else []),
        (_prepare(job, root, work),),
        *_resume(job, world, work),
        *_copies(job, world, work, base, asked),
        *([(_sweep(world, work),)] if world.target.half else []),
        (_record(job, work, name, base, asked),),
        (_publish(root, name, asked),),
    ]
    return Plan(summary=_summary(world, name), stages=tuple(stages), resumes=_resumes(world), warnings=())


def _new_name(world: World, asked: Asked) -> str:
    """The run's instant, or one second after the newest point when a clock was set back."""
    name = point_name(asked.now)
    if world.points and name <= world.points[-1].name:
        return point_name(parse_point_name(world.points[-1].name) + timedelta(seconds=1))
    return name


def _summary(world: World, name: str) -> str:
    changes = world.changes
    if changes is None:
        return f"make point {name}"
    if not world.points:
        return f"first copy: make point {name} of {changes.entries_now} entries, {show_size(changes.moving)}"
    repaired = f", {len(world.target.damaged)} damaged copied again" if world.target.damaged else ""
    return f"make point {name}: {changes.created} new, {changes.changed} changed, {changes.deleted} gone{repaired}, {show_size(changes.moving)} to move"


def _resumes(world: World) -> str | None:
    if not world.target.work:
        return None
    half = sum(half.have for half in world.target.half)
    return "an interrupted copy lies in the target" + (f", {show_size(half)} of it half-copied files" if half else "")


def _prepare(job: Job, root: Location, work: Location) -> Step:
    return Step(does="prepare the target", why="the marker says whose it is; no receiver of an earlier run may be alive", lane="main",
                work=_alone(scripts.prepare_command(root, job.name, work, patience=int(job.pipe.stall_after) + 30)), expected=None)  # fmt: skip


def _resume(job: Job, world: World, work: Location) -> list[_Stage]:
    """Half-copied files first: each goes on from where it stopped."""
    useful = [half for half in world.target.half if half.wanted]
    stages: list[_Stage] = []
    for half in useful:
        stages += _finish(job, world, work, half)
    return stages


def _finish(job: Job, world: World, work: Location, half: HalfCopied) -> list[_Stage]:
    assert half.wanted is not None
    folder, slash, name = half.path.rpartition(b"/")
    partial_folder = folder + slash + PARTIAL.encode()
    partial = partial_folder + b"/" + name
    shown = show_name(half.path)
    stages: list[_Stage] = []
    if half.orphan:
        salvage = scripts.salvage_command(work, half.lies, partial_folder, name)
        stages.append(
            (_step(f"salvage {shown}", "rsync was killed and would not use its temporary file again", salvage),)
        )
    have = half.have
    if have >= half.wanted:
        have = max(0, half.wanted - _SURE)
        stages.append(
            (
                _step(
                    f"shorten {shown}",
                    "a remainder that looks whole is not trusted: its end is sent again, all of it verified",
                    scripts.shorten_command(work, partial, have),
                ),
            )
        )
    append = commands.append_command(job, half.path, work, partial, here=world.here, there=world.there)
    copy = Step(does=f"go on with {shown}", why=f"{show_size(have)} of {show_size(half.wanted)} are there", lane="main", expected=Bytes(half.wanted - have),
                work=_alone(append, keeps=None))  # fmt: skip
    finish = scripts.finish_command(work, partial, half.path)
    stages += [(copy,), (_step(f"name {shown}", "it is whole and verified", finish),)]
    return stages


def _copies(job: Job, world: World, work: Location, base: Point | None, asked: Asked) -> list[_Stage]:
    """Damaged files first, unlinked; then lanes, or one rsync over all; after a cut always one over all, as it also tidies."""
    stages: list[_Stage] = []
    if world.target.damaged:
        stages.append((_repair(job, world, work, asked),))
    lanes = _lanes(world)
    if lanes:
        stages.append(tuple(_lane(job, world, work, base, number, asked) for number in range(1, len(lanes) + 1)))
    if lanes and not world.target.work:
        stages.append((_settle(job, world, work, base, asked),))
    else:
        stages.append((_whole(job, world, work, base, asked),))
    return stages


def _whole(job: Job, world: World, work: Location, base: Point | None, asked: Asked) -> Step:
    """One rsync over everything; after a cut it also removes from the work tree what the source no longer has."""
    command = commands.copy_command(
        job,
        work,
        base=base.tree if base else None,
        here=world.here,
        there=world.there,
        coarse=world.target.coarse,
        tidy=world.target.work,
    )
    why = f"unchanged files are linked to point {base.name}" if base else "the first copy"
    return Step(does=f"copy {job.source}", why=why, lane="main", work=_alone(command, keeps=f"{asked.notes}/moved-0"),
                expected=_expected(world), accounts=True)  # fmt: skip


def _lane(job: Job, world: World, work: Location, base: Point | None, number: int, asked: Asked) -> Step:
    lanes = _lanes(world)
    lane = lanes[number - 1]
    names = f"{asked.notes}/lane-{number}"
    command = commands.copy_command(
        job,
        work,
        base=base.tree if base else None,
        here=world.here,
        there=world.there,
        coarse=world.target.coarse,
        lane=True,
    )
    return Step(does=f"copy {job.source}, lane {number} of {len(lanes)}", why=f"{len(lane.paths)} parts, {show_size(lane.size)}: lanes are equally heavy", lane=f"lane {number}",
                work=Pipeline(stages=(command,), reads=names, keeps=f"{asked.notes}/moved-{number}"), expected=Bytes(lane.size),
                accounts=not world.target.work, needs=((names, lane.files_from),))  # fmt: skip


def _lanes(world: World) -> tuple[Lane, ...]:
    """The lanes that the tree really splits into; one lane is none."""
    return world.lanes.lanes if isinstance(world.lanes, Lanes) and len(world.lanes.lanes) > 1 else ()


def _settle(job: Job, world: World, work: Location, base: Point | None, asked: Asked) -> Step:
    names = f"{asked.notes}/shared"
    assert isinstance(world.lanes, Lanes)
    command = commands.copy_command(
        job,
        work,
        base=base.tree if base else None,
        here=world.here,
        there=world.there,
        coarse=world.target.coarse,
        flat=True,
    )
    return Step(does="settle the folders that lanes shared", why="each lane changed their times", lane="main", work=Pipeline(stages=(command,), reads=names),
                expected=None, needs=((names, named(world.lanes.shared_directories)),))  # fmt: skip


def _repair(job: Job, world: World, work: Location, asked: Asked) -> Step:
    names = f"{asked.notes}/damaged"
    command = commands.copy_command(
        job, work, base=None, here=world.here, there=world.there, coarse=world.target.coarse, lane=True, unlinked=True
    )
    return Step(does=f"copy {len(world.target.damaged)} damaged files again", why="a reading found their copies damaged; they are never linked into a new point", lane="main",
                work=Pipeline(stages=(command,), reads=names, keeps=f"{asked.notes}/moved-repair"), expected=None, needs=((names, named(world.target.damaged)),))  # fmt: skip


def _sweep(world: World, work: Location) -> Step:
    return _step(
        "sweep the work tree",
        "remainders that nothing needs any more must not enter a point",
        scripts.sweep_command(work, _stale_orphan(world)),
    )


def _stale_orphan(world: World) -> str:
    """A find pattern for the one orphan whose file has left the source; `-` when there is none."""
    stale = [half.lies for half in world.target.half if half.orphan and not half.wanted]
    text = stale[0].decode("utf-8", "surrogateescape") if stale else "-"
    return "./" + "".join("\\" + char if char in "\\*?[]" else char for char in text)


def _record(job: Job, tree: Location, name: str, base: Point | None, asked: Asked) -> Step:
    manifest = job.target.location / f"{OURS}/manifest.gz"
    recording = Recording(
        tree=tree,
        manifest=manifest,
        point=name,
        moved=asked.notes,
        linked=base.manifest if base else None,
        digest=job.verify.digest,
    )
    return Step(
        does="write the manifest",
        why="each entry with its digest, so that the point can be proved by itself",
        lane="main",
        work=recording,
        expected=None,
        proof=CountsEqual(tree=tree),
    )


def _publish(root: Location, name: str, asked: Asked) -> Step:
    return Step(does=f"publish point {name}", why="it is whole: one rename makes it visible", lane="main", expected=None, makes=name,
                work=_alone(scripts.publish_command(root, name, f"{OURS}/manifest.gz")), proof=PointVisible(root=root, name=name))  # fmt: skip


def _plan_mirror(job: Job, world: World, options: RsyncOptions, asked: Asked) -> Plan:
    """One plain tree that becomes as the source."""
    root = job.target.location
    kept = f"{asked.notes}/moved-0"
    mirrored = replace(options, excludes=(*options.excludes, f"/{OURS}"))
    command = commands.copy_command(
        replace(job, options=mirrored),
        root,
        base=None,
        here=world.here,
        there=world.there,
        coarse=world.target.coarse,
        tidy=options.delete,
    )
    copy = Step(does=f"mirror {job.source}", why="the first copy" if world.changes is None or not world.target.owner else "the mirror differs from the source", lane="main", work=_alone(command, keeps=kept),
                expected=_expected(world), accounts=True)  # fmt: skip
    linked = root / f"{OURS}/manifest.gz" if world.target.owner else None
    recording = Recording(
        tree=root,
        manifest=root / f"{OURS}/manifest.gz",
        point=MIRROR,
        moved=asked.notes,
        linked=linked,
        digest=job.verify.digest,
    )
    record = Step(
        does="write the manifest",
        why="each entry with its digest, so that the mirror can be proved",
        lane="main",
        work=recording,
        expected=None,
        makes=MIRROR,
        proof=CountsEqual(tree=root) if options.delete else None,
    )
    return Plan(summary=f"make the mirror as {job.source}", stages=((_prepare(job, root, root),), (copy,), (record,)))


def _expected(world: World) -> Bytes | None:
    return None if world.changes is None or world.changes.moving is None else Bytes(world.changes.moving)


def plan_removal(job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> _Stage:
    """The step that removes points; the owner's [keep] is the consent."""
    why = "; ".join(f"{name}: {reason}" for name, reason in zip(names, reasons, strict=True))
    return (
        Step(
            does=f"remove {len(names)} points",
            why=why,
            lane="main",
            work=_alone(scripts.remove_command(job.target.location, names)),
            expected=None,
            removes=" ".join(names),
        ),
    )


def _removal(job: Job, litter: tuple[str, ...]) -> _Stage:
    return (
        _step(
            "clear away leftovers",
            "a removal or a publishing was cut in the middle",
            scripts.remove_command(job.target.location, litter),
        ),
    )


def _step(does: str, why: str, command: Command) -> Step:
    return Step(does=does, why=why, lane="main", work=_alone(command), expected=None)


def _alone(command: Command, keeps: str | None = None) -> Pipeline:
    return Pipeline(stages=(command,), keeps=keeps)
