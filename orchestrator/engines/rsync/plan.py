"""What an rsync run does, decided from what was seen. Pure."""

from datetime import timedelta

from orchestrator.domain.job import Job
from orchestrator.domain.names import parse_point_name, point_name, show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Nothing, Plan, Refusal
from orchestrator.domain.quick import replace
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract import Asked
from orchestrator.engines.rsync import commands, steps
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.words import MARKER, MIRROR, WORK, World


def plan(job: Job, world: World, asked: Asked) -> Decision:
    """The steps to a new restore point (or an equal mirror), nothing, or a refusal."""
    refusal = refuse(job, world, asked)
    if refusal:
        return refusal
    if _equal(job, world):
        return _nothing(job, world)
    return _plan_point(job, world, asked) if options_of(job).points else _plan_mirror(job, world, asked)


def refuse(job: Job, world: World, asked: Asked) -> Refusal | None:
    """Whether something about the two places forbids every copy."""
    return (
        _refuse_digest(job, world) or _refuse_source(job, world) or _refuse_target(job, world)
        or _refuse_unmarked(job, world, asked)
    )  # fmt: skip


def _refuse_digest(job: Job, world: World) -> Refusal | None:
    """A point on a host is read there, with what that host has."""
    digest, host = job.verify.digest, job.target.location.host
    if host is None or digest == "sha256" or (digest == "xxh128" and commands.shares_xxh128(world.here, world.there)):
        return None
    why = f"{digest} cannot be made on {host}, so its points could never be proved"
    others = '"xxh128" or "sha256"' if digest == "blake3" else '"sha256"'
    return Refusal(why=why, evidence=(), cure=f"write digest = {others} in [verify]")


def _refuse_source(job: Job, world: World) -> Refusal | None:
    if isinstance(world.lanes, Refusal):
        return world.lanes
    if world.source.directory:
        return None
    if world.source.exists:
        cure = "name the folder that holds it; [rsync] excludes leaves the rest out"
        return Refusal(why=f"the source {job.source} is not a folder", evidence=(), cure=cure)
    cure = "mount it, or correct `source` in the job file"
    return Refusal(why=f"the source {job.source} is not there", evidence=(), cure=cure)


def _refuse_target(job: Job, world: World) -> Refusal | None:
    target, place = world.target, job.target
    if not target.exists and (target.foreign or not target.parent):
        what = "is a file" if target.foreign else "is not there, and neither is the folder above it"
        cure = f"mount it, make the folder, or correct [place.{place.name}]"
        return Refusal(why=f"the target {place.location} {what}", evidence=(), cure=cure)
    if target.owner is not None and target.owner != job.name:
        return Refusal(
            why=f"the target {place.location} belongs to the job {show_name(target.owner)}",
            evidence=(f"{MARKER} says so",),
            cure="give each job a place of its own in targets.toml",
        )
    return None


def _refuse_unmarked(job: Job, world: World, asked: Asked) -> Refusal | None:
    """A target without our marker: new, not mounted, or somebody else's."""
    target, place = world.target, job.target.location
    if target.owner is not None:
        return None
    if asked.remembered.get("target-used") == str(place) and "target-new" not in asked.allowed:
        return Refusal(
            why=f"the target {place} held copies of this job and now shows no sign of them: is its disk mounted?",
            evidence=(f"no {MARKER} there",),
            cure=f"mount it; or, if it is meant to begin anew: poolferry run {job.name} --allow target-new",
            guard="target-new",
        )
    overwrites = target.foreign and not options_of(job).points
    if (target.points or overwrites) and "target-in-use" not in asked.allowed:
        return Refusal(
            why=f"the target {place} holds something that is not this job's",
            evidence=tuple(map(show_name, target.foreign[:10])),
            cure=f"name an empty folder; or, if it may be used: poolferry run {job.name} --allow target-in-use",
            guard="target-in-use",
        )
    return None


def _equal(job: Job, world: World) -> bool:
    """Whether a whole copy is there that is as the source, as far as a look can tell."""
    changes, target, options = world.changes, world.target, options_of(job)
    if changes is None or world.unread or target.owner != job.name or target.damaged:
        return False
    if options.points:
        return bool(world.points) and changes.none
    whole = target.mirrored is not None and not target.work
    return whole and (changes if options.delete else replace(changes, deleted=0)).none


def _nothing(job: Job, world: World) -> Nothing:
    points = options_of(job).points
    current = world.points[-1].name if points else MIRROR
    what = f"point {current}" if points else "the mirror"
    deleted = world.changes.deleted if world.changes else 0
    more = f"; it also holds {show_count(deleted, 'entry', 'entries')} that the source has no more" if deleted else ""
    stages = _clearing(job, world)
    if points and world.target.latest != current:
        stages += (steps.name_latest(job, current),)
    return Nothing(why=f"nothing changed: {what} is as the source{more}", current=current, stages=stages)


def _clearing(job: Job, world: World) -> tuple[steps.Stage, ...]:
    return (steps.clear(job, world.target.litter),) if world.target.litter else ()


def _plan_point(job: Job, world: World, asked: Asked) -> Plan:
    work = job.target.location / WORK
    name = _new_name(world, asked)
    base = world.points[-1] if world.points else None
    stages = (
        *_clearing(job, world),
        steps.prepare(job, work),
        *_remainders(job, world, work, asked),
        *steps.copies(job, world, work, base, asked),
        steps.sweep(job, work),
        steps.record(job, work, name, base, asked),
        steps.publish(job, name),
    )
    return Plan(summary=_summary(world, name), stages=stages, resumes=_resumes(world), anew=not world.target.work)


def _remainders(job: Job, world: World, tree: Location, asked: Asked) -> tuple[steps.Stage, ...]:
    """What an interrupted copy left half: some go on, the others go."""
    stale = tuple(half for half in world.target.half if half.wanted is None)
    discard = (steps.discard(tree, stale),) if stale else ()
    return (*discard, *steps.resume(job, world, tree, asked))


def _plan_mirror(job: Job, world: World, asked: Asked) -> Plan:
    """One plain tree that becomes as the source."""
    stages = (
        steps.prepare(job, job.target.location / WORK),  # empty: it says that the mirror is unfinished
        *_remainders(job, world, job.target.location, asked),
        *steps.mirror(job, world, asked),
        steps.sweep(job, job.target.location),
        steps.record_mirror(job, world, asked),
        steps.end_mirror(job),
    )
    return Plan(summary=f"make the mirror as {job.source}", stages=stages, resumes=_resumes(world))


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
    counts = f"{changes.created} new, {changes.changed} changed, {changes.deleted} gone"
    repaired = f", {len(world.target.damaged)} damaged copied again" if world.target.damaged else ""
    return f"make point {name}: {counts}{repaired}, {show_size(changes.moving)} to move"


def _resumes(world: World) -> str | None:
    if not world.target.work:
        return None
    half = sum(half.have for half in world.target.half)
    tail = f", {show_size(half)} of it half-copied files" if half else ""
    return f"an interrupted copy lies in the target{tail}"
