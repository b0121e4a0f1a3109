"""The states of source and target that forbid every copy of a job."""

from orchestrator.domain.command_line import quoted
from orchestrator.domain.job import Job
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.domain.place import USED
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands
from orchestrator.engines.rsync.model import MARKER, UNREADABLE_OWNER, RsyncSurvey, SourceSurvey
from orchestrator.engines.rsync.options import options_of


def refuse(job: Job, world: RsyncSurvey, request: RunRequest) -> Refusal | None:
    """Return a refusal when the state of source or target forbids every copy."""
    return (
        _refuse_gate(job, world) or _refuse_digest(job, world) or _refuse_source(job, world) or _refuse_target(job, world)
        or _refuse_mirror_over_points(job, world) or _refuse_unmarked(job, world, request)
    )  # fmt: skip


def _refuse_gate(job: Job, world: RsyncSurvey) -> Refusal | None:
    """Refuse a mirror behind a gate that only adds: each run of it would change what is there."""
    if world.gate is None or not world.adds or options_of(job).points:
        return None
    why = f"the gate {world.gate.gate} at {job.target.location.host} only lets restore points be added, and a mirror is none"
    return Refusal(why=why, evidence=(), hint=f"write points = true in [rsync] of {job.file}")


def _refuse_digest(job: Job, world: RsyncSurvey) -> Refusal | None:
    """Refuse a digest that the target's host cannot make: points on a host are read there."""
    digest, host = job.verify.digest, job.target.location.host
    if (
        host is None
        or digest == "sha256"
        or (digest == "xxh128" and commands.both_support_xxh128(world.here, world.there))
    ):
        return None
    why = f"{digest} cannot be made on {host}, so its points could never be verified"
    others = '"xxh128" or "sha256"' if digest == "blake3" else '"sha256"'
    return Refusal(why=why, evidence=(), hint=f"write digest = {others} in [verify]")


def _refuse_source(job: Job, world: RsyncSurvey) -> Refusal | None:
    if isinstance(world.parallel_copies, Refusal):
        return world.parallel_copies
    if world.parts and options_of(job).fake_super:
        why = "rsync gives the folders above several sources attributes by names of its own, which no target with fake-super may get"
        return Refusal(
            why=why, evidence=(), hint=f"write a job for each of the `sources` in {job.file}; or fake-super = false"
        )
    if world.parts:
        return _refuse_part(job, world.parts)
    if world.source.directory:
        return None
    if world.source.exists:
        hint = "name the folder that holds it; [rsync] excludes leaves the rest out"
        return Refusal(why=f"the source {job.source} is not a folder", evidence=(), hint=hint)
    hint = "mount it, or correct `source` in the job file"
    return Refusal(why=f"the source {job.source} is not there", evidence=(), hint=hint)


def _refuse_part(job: Job, parts: tuple[SourceSurvey, ...]) -> Refusal | None:
    """Refuse a source of several folders when one of them is missing: without it the others would make a point that lacks it."""
    for each in parts:
        if each.directory:
            continue
        folder = show_name(each.folder)
        if each.leads:
            hint = f'write "{show_name(each.leads)}" in `sources` of {job.file}: a link would be copied as a link'
            return Refusal(
                why=f"a link leads to the source {folder}", evidence=(f"it is {show_name(each.leads)}",), hint=hint
            )
        why = f"the source {folder} is {'not a folder' if each.exists else 'not there'}"
        hint = f"mount it; or, if it is given up, take it out of `sources` in {job.file}: its copies stay in the older points"
        return Refusal(why=why, evidence=(f"the other folders of the job: {_others(each, parts)}",), hint=hint)
    return None


def _others(one: SourceSurvey, parts: tuple[SourceSurvey, ...]) -> str:
    return ", ".join(show_name(each.folder) for each in parts if each is not one) or "none"


def _refuse_target(job: Job, world: RsyncSurvey) -> Refusal | None:
    target, place = world.target, job.target
    if world.mixed:
        return Refusal(
            why=f"the target {place.location} {world.mixed}: its copies would be copied, too",
            evidence=(f"`findmnt --target {quoted(place.location.path)}` shows what is mounted there",),
            hint=f"give [place.{place.name}] in targets.toml a folder apart from the source",
        )
    if not target.exists and (target.foreign or not target.parent):
        what = "is a file" if target.foreign else "is not there, and neither is the folder above it"
        hint = f"mount it, make the folder, or correct [place.{place.name}]"
        return Refusal(why=f"the target {place.location} {what}", evidence=(), hint=hint)
    if target.swapped:
        return Refusal(
            why=f"the target {place.location} holds something else where poolferry's own folders should be",
            evidence=tuple(map(show_name, target.swapped)),
            hint="find out who put it there; it is neither followed nor removed",
        )
    if target.owner is not None and target.owner != job.identity:
        why, evidence, hint = explain_marker(job, target.owner, hint="give each job a place of its own in targets.toml")
        return Refusal(why=f"the target {place.location} {why}", evidence=evidence, hint=hint)
    return None


def explain_marker(job: Job, owner: str, *, hint: str) -> tuple[str, tuple[str, ...], str]:
    """Return why the marker at a target keeps a job from it, the evidence, and what helps. `hint`: where it names another job."""
    if owner != UNREADABLE_OWNER:
        return f"belongs to the job {show_name(owner)}", (f"{MARKER} says so",), hint + renamed_hint(job, owner)
    root = job.target.location
    then = "goes on from the newest point" if options_of(job).points else "makes all as it is at the source"
    again = f"poolferry run {job.name} --allow target-in-use (it writes that file again, and {then})"
    remove = f"rm -- {quoted(f'{root.path}/{MARKER}')}"
    if root.host is not None:
        remove = f"{root.host.ssh} {quoted(remove)}"
    return (
        f"has a damaged {MARKER}, which says whose copies it holds",
        ("it was read, and is not as it was written",),
        f"bring it back; or, if they are copies of {job.name}: {remove} (then it can be verified and restored), and {again}",
    )


def renamed_hint(job: Job, owner: str) -> str:
    """Return what helps when a job's file was renamed without `poolferry rename`."""
    if not JOB_NAME.fullmatch(owner):
        return ""
    return f'; or, if the file of that job was renamed by hand: write known-as = "{owner}" before the first section of {job.file}'


def _refuse_mirror_over_points(job: Job, world: RsyncSurvey) -> Refusal | None:
    """Refuse a mirror in a place of restore points: to its source they are entries that are gone, which it may remove."""
    dated = world.target.dated
    if not dated or world.target.owner not in (None, job.identity):
        return None
    place = job.target
    return Refusal(
        why=f"the target {place.location} holds {show_count(len(dated), 'restore point')}, and a mirror there would take them for what the "
        "source has no more",
        evidence=tuple(f"points/{name}" for name in dated[-5:]),
        hint=f"write points = true in [rsync] of {job.file}; or, for a mirror, another place with a folder of its own in targets.toml as its "
        "target, and the points stay where they are",
    )


def _refuse_unmarked(job: Job, world: RsyncSurvey, request: RunRequest) -> Refusal | None:
    """Refuse a target without our marker when it is not mounted or holds other data."""
    target, place = world.target, job.target.location
    if target.owner is not None:
        return None
    used = request.remembered.get(USED) == str(place)
    if used and target.foreign and not options_of(job).points:
        if "target-in-use" in request.allowed:
            return None
        return Refusal(
            why=f"the target {place} has lost {MARKER}, which says whose mirror it is, and holds "
            f"{show_count(len(target.foreign), 'entry', 'entries')}",
            evidence=tuple(map(show_name, target.foreign[:10])),
            hint=f"bring it back; or, if that is the mirror of {job.name}: poolferry run {job.name} --allow target-in-use (it writes that "
            "file again, and makes all as it is at the source)",
            guard="target-in-use",
        )
    if used and target.points and "target-in-use" not in request.allowed:
        return Refusal(
            why=f"the target {place} has lost {MARKER}, which says whose copies it holds, and still holds "
            f"{show_count(len(target.points), 'point')} of earlier runs",
            evidence=tuple(each.name for each in target.points[-5:]),
            hint=f"bring it back; or, if they are copies of {job.name}: poolferry run {job.name} --allow target-in-use (it writes that "
            "file again, and goes on from the newest point)",
            guard="target-in-use",
        )
    if used and not target.points and "target-new" not in request.allowed:
        return Refusal(
            why=f"the target {place} held copies of this job and now shows no sign of them: is its disk mounted?",
            evidence=(f"no {MARKER} there",),
            hint=f"mount it; or, if it is meant to start from scratch: poolferry run {job.name} --allow target-new",
            guard="target-new",
        )
    overwrites = target.foreign and not options_of(job).points
    if (target.points or overwrites) and "target-in-use" not in request.allowed:
        return Refusal(
            why=f"the target {place} holds something that is not this job's",
            evidence=tuple(map(show_name, (*target.foreign, *(f"points/{each.name}" for each in target.points))))[:10],
            hint=f"name an empty folder; or, if it may be used: poolferry run {job.name} --allow target-in-use",
            guard="target-in-use",
        )
    return None
