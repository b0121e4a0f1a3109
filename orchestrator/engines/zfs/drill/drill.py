"""Restore tests of datasets: clones of a copy's newest snapshots, or a real receive, and the comparison of their files.

The clones lie beside the copy, flat below one dataset with our mark; only datasets with that mark are ever destroyed. An
encrypted dataset without its key here is tested as stored: its raw stream is read or received, and its files are never visible.
"""

import os
from collections.abc import Iterator, Mapping

from orchestrator.domain.command_line import quoted
from orchestrator.domain.drill import DrillDataset, DrillPlan
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Refusal, Step
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.comparison import ComparisonPlan, SnapshotPair
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost, command_host
from orchestrator.engines.zfs.drill.candidates import (
    DrillCandidate,
    find_drill_candidates,
    is_recorded,
    recorded_snapshots,
)
from orchestrator.engines.zfs.drill.scratch_clone import scratch_place
from orchestrator.engines.zfs.model import DatasetType, SendFlags, SideSurvey
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.verify import checksum as digesting
from orchestrator.engines.zfs.verify import compare as comparing
from orchestrator.engines.zfs.verify.checksum import ComparisonSurvey
from orchestrator.engines.zfs.verify.compare import snapshot_path

PLACE, MARK = "poolferry-drill", "poolferry:drill"


def scratch_parent(job: Job) -> Location:
    """Return the dataset that contains the clones of a restore test."""
    place = scratch_place(job)
    return Location(path=f"{place.path.rpartition('/')[0]}/{PLACE}/{job.name}", host=place.host)


def plan_drill(
    job: Job, both: ComparisonSurvey, request: RunRequest, *, whole: bool, kit: str | None
) -> DrillPlan | Refusal:
    """Plan clones of the newest snapshots on both sides, beside the copy; `whole`: receive them in [drill] scratch.

    A snapshot that the source no longer has is compared with its records: bookmarks, and `kit`, the newest recovery kit.
    """
    case = PlanContext(job, both.world, request)
    found = find_drill_candidates(case, both.away)
    if isinstance(found, Refusal):
        return found
    scratch = job.drill.scratch
    if whole and (scratch is None or scratch.startswith("/")):
        why = "a drill of whole datasets receives them, and no dataset is named for that"
        return Refusal(why=why, evidence=(), hint='[drill] scratch = "tank/drill": a dataset of this machine')
    target_encrypts = [one for one in found if one.locked or (whole and one.there.encrypted)]
    chosen = [one for one in found if one not in target_encrypts and not one.volume]
    if not chosen and not target_encrypts:
        why = "nothing of the copy can be drilled: volumes have no files"
        return Refusal(why=why, evidence=(), hint=f"`poolferry verify {job.name} --content` shows more")
    known = recorded_snapshots(kit, case)
    if wrong := [one for one in (*chosen, *target_encrypts) if is_recorded(one, known) is False]:
        return _refuse_other(job, wrong[0], known)
    root = Location(path=f"{scratch}/{job.name}") if whole and scratch else scratch_parent(job)
    side = both.world.target
    where = CommandHost(sudo=options_of(job).sudo) if whole else command_host(side)
    parts = tuple(_part(both, one, root, number) for number, one in enumerate(chosen))
    made = [_made(job, both, one, part.scratch, where, whole=whole) for one, part in zip(chosen, parts, strict=True)]
    tried = tuple(_tried(job, both, target_encrypts, root, where, len(parts), whole=whole))
    left = [one for one in found if one.volume and one not in target_encrypts]
    point = next((one for one in found if not one.dataset), found[0])
    return DrillPlan(
        point=point.target.name, parts=parts, of=len(found),
        lacking=comparing.lacking_datasets(case, point.source.name) if point.source and not point.dataset else (),
        make=tuple((step,) for step in (*(_containers(root, where) if made or whole else ()), *made)),
        drop=drop_step(root, where), where=root, left_out="volumes have no files" if left else "",
        encrypted_steps=tried, verifies=_verified_by_it(job, side, target_encrypts, whole=whole), remarks=tuple(_remarks(chosen, known)),
    )  # fmt: skip


def _refuse_other(job: Job, one: DrillCandidate, known: Mapping[str, Mapping[str, int]]) -> Refusal:
    """Return the refusal of a copy that differs from the record; reading its contents could not correct that."""
    name, told = one.target.name, known[one.dataset][one.target.name]
    return Refusal(
        why=f"{one.dataset or 'the copy'}{one.target.mark} is another snapshot than the source had under that name",
        evidence=(f"guid {one.target.guid} in the copy, {told} in the newest recovery kit",),
        hint=f"`zpool history` of the copy's pool shows who made @{name}; `poolferry restore plan {job.name}` names other copies",
        outcome=Outcome.FAILED,
    )  # fmt: skip


def _remarks(chosen: list[DrillCandidate], known: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield notes on the parts that are not compared with the source."""
    alone = [one for one in chosen if one.alone]
    for why in dict.fromkeys(one.alone for one in alone):
        group = [one for one in alone if one.alone == why]
        yield f"{show_count(len(group), 'dataset')} could only be compared with the copy itself, as {why}"
    sure = [one for one in alone if one.source is None and is_recorded(one, known)]
    if sure:
        yield f"by guid {show_count(len(sure), 'snapshot')} of those {'is' if len(sure) == 1 else 'are'} what the source had"
    if unsure := [one for one in alone if is_recorded(one, known) is None]:
        yield f"nothing shows whether {_first(unsure)} is what the source had: neither a bookmark nor a recovery kit knows its guid"


def _first(found: list[DrillCandidate]) -> str:
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{found[0].dataset}{found[0].target.mark}{more}"


def _verified_by_it(job: Job, side: SideSurvey, target_encrypts: list[DrillCandidate], *, whole: bool) -> str:
    """Return a sentence on what the test of encrypted datasets verifies, and what it does not."""
    if not target_encrypts:
        return ""
    many, pool = show_count(len(target_encrypts), "encrypted dataset"), side.root.path.partition("/")[0]
    if whole:
        return (
            f"{many} came as {'it lies' if len(target_encrypts) == 1 else 'they lie'}, and {'its' if len(target_encrypts) == 1 else 'their'} "
            "snapshots by guid; whether the files are right only somebody with the key can see there"
        )
    return (
        f"of {many} without {'its' if len(target_encrypts) == 1 else 'their'} key no file was seen: at most {show_size(job.drill.size)} of "
        f"each raw stream was read; only a scrub (zpool scrub {quoted(pool)}) and a trial receive (poolferry drill {job.name} --whole) "
        "verify all of it"
    )


def _containers(root: Location, where: CommandHost) -> Iterator[Step]:
    """Yield steps that create the container. With `-p` an existing dataset is not changed and gets no mark."""
    for path in (root.path.rpartition("/")[0], root.path):
        options = ("-p", "-u", "-o", "canmount=off", "-o", "mountpoint=none", "-o", f"{MARK}=yes")
        made = commands.zfs_command("create", *options, path, effect=Effect.WRITES, where=where)
        why = "what is drilled lies there, and goes with it"
        yield _step(f"make {path}, if it is not there", why, Pipeline(stages=(made,)))


def _part(both: ComparisonSurvey, one: DrillCandidate, root: Location, number: int) -> DrillDataset:
    source, copy = both.world.source, both.world.target
    alone = bool(one.alone)
    compared = copy.full(one.dataset) + one.target.mark
    if one.source is not None and not alone:
        compared = source.full(one.dataset) + one.source.mark
    return DrillDataset(
        name=snapshot_path(one.dataset, one.target), number=number, source=compared, scratch=f"{root.path}/{number}", alone=alone
    )  # fmt: skip


def _made(
    job: Job, both: ComparisonSurvey, one: DrillCandidate, scratch: str, where: CommandHost, *, whole: bool
) -> Step:
    copy = both.world.target
    snapshot = copy.full(one.dataset) + one.target.mark
    if whole:
        return _received(job, both, one, scratch, where, SendFlags())
    given = ("-o", "mountpoint=legacy", "-o", "canmount=noauto", "-o", "readonly=off")
    clone = commands.zfs_command("clone", *given, snapshot, scratch, effect=Effect.WRITES, where=where)
    return _step(f"clone {snapshot}", "a drill reads it, and writes only into the clone", Pipeline(stages=(clone,)))


def _received(
    job: Job, both: ComparisonSurvey, one: DrillCandidate, scratch: str, where: CommandHost, flags: SendFlags
) -> Step:
    copy = both.world.target
    snapshot = copy.full(one.dataset) + one.target.mark
    send = commands.send_command(commands.full_send_arguments(snapshot, flags, properties=False), copy, job.pipe)
    unmounted = () if one.volume else ("-o", "mountpoint=legacy", "-o", "canmount=noauto")
    receive = commands.zfs_command("receive", "-u", *unmounted, scratch, effect=Effect.WRITES, where=where)
    work = Pipeline(stages=(send, commands.buffer_command(job.pipe, streams=1), receive))
    return Step(
        action=f"send {snapshot}, the whole, into {scratch}", why="a drill of all of it", worker="drill", work=work,
        expected=None, copies=True,
    )  # fmt: skip


def _tried(
    job: Job,
    both: ComparisonSurvey,
    target_encrypts: list[DrillCandidate],
    root: Location,
    where: CommandHost,
    first: int,
    *,
    whole: bool,
) -> Iterator[Step]:
    """Yield the test steps for datasets whose files cannot be read here."""
    side = both.world.target
    for number, one in enumerate(target_encrypts, first):
        snapshot, scratch = side.full(one.dataset) + one.target.mark, f"{root.path}/{number}"
        if whole:
            yield _received(job, both, one, scratch, where, SendFlags(raw=True))
            arrived = commands.script_command(
                "check-guid.sh", scratch + one.target.mark, str(one.target.guid), effect=Effect.READS, where=where
            )
            yield _step(
                f"look for guid {one.target.guid} in {scratch}",
                "it shall be the same snapshot",
                Pipeline(stages=(arrived,)),
            )
        else:
            read = commands.script_command(
                "read-raw.sh", snapshot, str(job.drill.size), effect=Effect.READS, where=command_host(side)
            )
            why = "each block's checksum is verified by reading it, without the key"
            yield _step(
                f"read {snapshot} as it lies, {show_size(job.drill.size)} of it at most", why, Pipeline(stages=(read,))
            )


def drop_step(root: Location, where: CommandHost) -> Step:
    """Build the step that destroys what a restore test made, if there is something."""
    command = commands.script_command("drop-drill.sh", root.path, MARK, effect=Effect.DESTROYS, where=where)
    return _step(f"drop {root}, if it is there", "a drill leaves nothing", Pipeline(stages=(command,)))


def listing_step(job: Job, drill_plan: DrillPlan, part: DrillDataset, keeps: str) -> Step:
    """Build the step that lists the files of a part."""
    command = _script("list-sizes.sh", part.scratch, _scratch_side(job, drill_plan))
    return _step(f"list {part.scratch}", "a sample is chosen", Pipeline(stages=(command,), keeps=keeps))


def damage_step(job: Job, drill_plan: DrillPlan, part: DrillDataset, names: str) -> Step:
    """Build the step that damages files of a part, in the clone alone."""
    command = _script("damage-files.sh", part.scratch, _scratch_side(job, drill_plan))
    return _step(f"damage {part.scratch}", "a drill must find it", Pipeline(stages=(command,), reads=names))


def plan_drill_comparison(
    job: Job, both: ComparisonSurvey, drill_plan: DrillPlan, names: Mapping[int, str], notes: str
) -> ComparisonPlan:
    """Plan to read each part and the source's snapshot; `names`: local files with the paths to read; none: all."""
    scratch = _scratch_side(job, drill_plan)

    def listed(part: DrillDataset, side: SideSurvey, what: str, called: str) -> Step:
        file, keeps = names.get(part.number), f"{notes}/{part.number}-{called}"
        if file is None:
            command = digesting.checksum_list_command(
                what, DatasetType.FILESYSTEM, digesting.SHA256, job.verify.workers, side
            )
        else:
            command = _script("list-some.sh", what, side, digesting.SHA256, str(job.verify.workers))
        work = Pipeline(stages=(command,), keeps=keeps, reads=file)
        return Step(
            action=f"read {what} on the {called}", why="what came back is compared", worker=f"{what} {called}", work=work,
            expected=None,
        )  # fmt: skip

    def pairs() -> Iterator[SnapshotPair]:
        for part in drill_plan.parts:
            if part.number in names or not names:
                yield SnapshotPair(
                    name=part.name,
                    source=listed(part, both.world.target if part.alone else both.world.source, part.source, "source"),
                    target=listed(part, scratch, part.scratch, "scratch"),
                )

    read = tuple((pair,) for pair in pairs())
    return ComparisonPlan(point=drill_plan.point, checked=0, datasets=len(read), findings=(), stages=read)


def user_check_command(job: Job, drill_plan: DrillPlan, folder: str, owner: Command) -> Command | Refusal:
    """Build the owner's check, with the data mounted in a folder of its own. Refuses: the data is on another host."""
    if drill_plan.where.host is not None:
        hint = "`poolferry drill --whole` receives it here, where [drill] scratch names a dataset"
        return Refusal(
            why=f"the clones lie on {drill_plan.where.host.name}, and check-command is of this machine",
            evidence=(),
            hint=hint,
        )
    places = [
        word for part in drill_plan.parts for word in (part.scratch, os.fsdecode(part.name.partition(b"@")[0]) or ".")
    ]
    settings = [f"{name}={value}" for name, value in owner.environment]  # sudo keeps none
    values = (folder, *places, "-", "env", *settings, *owner.argv)
    sudo = options_of(job).sudo
    return commands.namespace_command(
        "run-check.sh", *values, effect=Effect.WRITES, host=None, sudo=sudo, keeps_disks=True
    )


def _scratch_side(job: Job, drill_plan: DrillPlan) -> SideSurvey:
    return SideSurvey(root=drill_plan.where, pool_guid=0, version=(), sudo=options_of(job).sudo)


def _script(text: str, what: str, side: SideSurvey, *more: str) -> Command:
    """Build a script command in a mount namespace of its own, as in `verify/checksum.py`."""
    return digesting.mount_namespace_command(text, (what, *more), side)


def _step(action: str, why: str, work: Pipeline) -> Step:
    return Step(action=action, why=why, worker="drill", work=work, expected=None)
