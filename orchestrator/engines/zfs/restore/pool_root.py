"""A pool's root dataset as the destination of a restore: it always exists, so it is never free, and never renamed.

OpenZFS receives a full stream into an existing dataset only with -F, which ignores its contents (dmu_recv.c: "if full, then
must be forced"), and a pool's own dataset can only be recreated with the pool. So -F stays, and the data that it would destroy
is searched for first: no snapshot, no bookmark, no file. An empty dataset is unmounted, made read-only and marked as ours;
another survey follows, and only then the receive. Datasets below it stay. Its options from `zpool create -O` stay too. Its
streams bring no properties, which are set in the end: the first received properties of a dataset remove its own local ones
(zfs_ioctl.c, clear_received_props), such options and our marks among them.

A timer may have taken snapshots of the new pool. Those that hold no file, as each was looked into, are removed with the step
that takes the dataset, and named there: OpenZFS receives over no snapshot.
"""

import shlex
from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Command, Effect, Pipeline, Plan, Refusal, Step
from orchestrator.domain.units import show_count
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import command_host
from orchestrator.engines.zfs.model import PLACEHOLDER, Bookmark, Dataset, SideSurvey, Snapshot, ZfsSurvey
from orchestrator.engines.zfs.plan.send_flags import has_its_own_key
from orchestrator.engines.zfs.restore.model import (
    DatasetRestoreSurvey,
    continues,
    is_restored_by_us,
    shares_snapshot,
)

_SHOWN = 5
_LOCAL = "local"


def is_pool_root(seen: DatasetRestoreSurvey) -> bool:
    """Return whether the destination is a pool's root dataset."""
    return "/" not in seen.world.target.root.path


def needs_file_look(world: ZfsSurvey) -> bool:
    """Return whether files at the destination matter: it is a pool's root dataset that is about to receive data."""
    there = world.target.datasets.get("")
    if "/" in world.target.root.path or there is None or there.encrypted:
        return False
    return not there.snapshots or not (is_restored_by_us(there) or _shared(world, there))


def _shared(world: ZfsSurvey, there: Dataset) -> tuple[Snapshot, ...]:
    """Return the snapshots of the pool's root dataset that its copy holds, too: it came back, by whatever tool."""
    copy = world.source.datasets.get("")
    guids = {one.guid for one in copy.snapshots} if copy else set()
    return tuple(one for one in there.snapshots if one.guid in guids)


def inside_command(side: SideSurvey) -> Command:
    """Build the command that prints the first files of a pool's root dataset, and of its snapshots."""
    root, there = side.root, side.datasets.get("")
    names = tuple(one.name for one in there.snapshots) if there else ()
    return commands.namespace_command(
        "look-inside.sh", root.path, *names, effect=Effect.READS, host=root.host, sudo=side.sudo
    )


def parse_inside(output: bytes) -> tuple[str, ...]:
    """Parse the names that `inside_command` printed."""
    return tuple(show_name(name) for name in output.split(b"\0") if name)


def plan_pool_root(seen: DatasetRestoreSurvey) -> Plan | Refusal | None:
    """Return the work before a receive into a pool: none, the plan to mark its root dataset as ours, or a refusal."""
    there = seen.world.target.datasets.get("")
    if there is None:
        return _refuse_absent(seen)
    refusal = _refuse_others(seen)
    if refusal is not None or (is_restored_by_us(there) and there.snapshots) or continues(seen):
        return refusal
    if not seen.world.source.datasets[""].snapshots:
        return None  # it receives nothing
    refusal = _refuse_occupied(seen, there) or _refuse_encrypted(seen, there) or _refuse_files(seen)
    if refusal is not None or is_restored_by_us(there) or (there.placeholder and not there.snapshots):
        return refusal
    return _refuse_mounted(seen) or _take(seen)


def after_taking_root(seen: DatasetRestoreSurvey) -> DatasetRestoreSurvey:
    """Return the survey as it will be once the dataset has our mark."""
    target = seen.world.target
    root = replace(target.datasets[""], placeholder=True, mounted=False, snapshots=())
    return replace(seen, world=replace(seen.world, target=replace(target, datasets={**target.datasets, "": root})))


def _take(seen: DatasetRestoreSurvey) -> Plan:
    root, empty = seen.world.target.root, seen.world.target.datasets[""].snapshots
    command = commands.script_command(
        "take-pool-root.sh", root.path, PLACEHOLDER, *(f"{one.guid} {one.name}" for one in empty),
        effect=Effect.DESTROYS if empty else Effect.WRITES, where=command_host(seen.world.target),
    )  # fmt: skip
    removed = f"remove {show_count(len(empty), 'snapshot')} without a file ({_marks(empty)}), " if empty else ""
    step = Step(
        action=f"{removed}unmount {root}, make it read-only and mark it as our place",
        why="it is the pool's own, and empty; what zfs puts there replaces what it holds",
        worker=root.path,
        work=Pipeline(stages=(command,)),
        expected=None,
    )
    return Plan(summary=f"take {root}, which is empty, for what returns", stages=((step,),), again=True)


def _marks(snapshots: tuple[Snapshot, ...]) -> str:
    more = f" and {len(snapshots) - _SHOWN} more" if len(snapshots) > _SHOWN else ""
    return ", ".join(one.mark for one in snapshots[:_SHOWN]) + more


def _refuse_absent(seen: DatasetRestoreSurvey) -> Refusal:
    root = seen.world.target.root
    hint = f"zpool import {shlex.quote(root.path)}; or create it, as `poolferry kit {seen.job.name}` shows"
    return Refusal(why=f"the pool {root} is not imported", evidence=(), hint=hint)


def _refuse_occupied(seen: DatasetRestoreSurvey, there: Dataset) -> Refusal | None:
    root = seen.world.target.root
    shared = _shared(seen.world, there)
    marks: tuple[Snapshot | Bookmark, ...] = (*(there.snapshots if shared else ()), *there.bookmarks)
    if not marks:
        return None
    return Refusal(
        why=f"{root} is there, and holds {show_count(len(marks), 'snapshot')}; a restore overwrites nothing",
        evidence=tuple(f"{root}{one.mark} (guid {one.guid})" for one in marks[-_SHOWN:]),
        hint=_elsewhere(seen),
    )


def _refuse_files(seen: DatasetRestoreSurvey) -> Refusal | None:
    root = seen.world.target.root
    if seen.inside is None:
        why = f"what {root} holds could not be looked at"
        return Refusal(
            why=why, evidence=(), hint=f"zfs mount {shlex.quote(root.path)}, then run the same command again"
        )
    if not seen.inside:
        return None
    more = " and more" if len(seen.inside) > _SHOWN else ""
    now = not seen.inside[0].startswith("@")
    move = f"move them into a dataset of their own, such as {root.path}/kept; or " if now else ""
    return Refusal(
        why=f"{root} is there, and {'holds files' if now else 'its snapshots hold files'}; a restore overwrites nothing",
        evidence=(", ".join(seen.inside[:_SHOWN]) + more,),
        hint=f"{move}{_elsewhere(seen)}",
    )


def _refuse_encrypted(seen: DatasetRestoreSurvey, there: Dataset) -> Refusal | None:
    """Return a refusal for encryption: a full stream replaces no encrypted dataset, a raw one none (dmu_recv.c)."""
    root, copy = seen.world.target.root, seen.world.source.datasets[""]
    raw = copy.encrypted and has_its_own_key(seen.world, copy)
    if not there.encrypted and not raw:
        return None
    what = f"{root} is encrypted" if there.encrypted else f"the copy {seen.world.source.root} is encrypted"
    why = f"{what}, and zfs puts nothing encrypted into a pool's own dataset"
    return Refusal(why=why, evidence=(), hint=_elsewhere(seen))


def _refuse_others(seen: DatasetRestoreSurvey) -> Refusal | None:
    """Return a refusal for datasets with the copy's names that were not restored from it and hold other data."""
    copies, target = seen.world.source.datasets, seen.world.target
    others = [
        name
        for name, one in target.datasets.items()
        if name and name in copies and not (is_restored_by_us(one) or one.placeholder or shares_snapshot(one, copies[name]))
        and not (one.partial and not one.snapshots)
    ]  # fmt: skip
    if not others:
        return None
    first = target.full(min(others))
    rename = commands.hinted_rename(first, f"{first}_aside", target.datasets[min(others)].kind, target)
    return Refusal(
        why=f"{first} is there; a restore overwrites nothing",
        evidence=tuple(target.full(name) for name in sorted(others)[:_SHOWN]),
        hint=f"{rename}{', and so on' if len(others) > 1 else ''}; or {_elsewhere(seen)}",
    )


def _refuse_mounted(seen: DatasetRestoreSurvey) -> Refusal | None:
    """Return a refusal for mounts below the root. Why not unmounted by us: programs that use them would fail."""
    root = seen.world.target.root.path
    places = [place for place, what in seen.mounts.items() if what == root]
    busy = sorted(
        what for place, what in seen.mounts.items() for own in places if place.startswith(f"{own.rstrip('/')}/")
    )
    if not busy:
        return None
    why = f"{root} has to be unmounted for this, and {busy[0]} is mounted below it"
    return Refusal(
        why=why,
        evidence=tuple(busy[:_SHOWN]),
        hint=f"zfs unmount {shlex.quote(busy[0])}; and mount it again when all is back",
    )


def _elsewhere(seen: DatasetRestoreSurvey) -> str:
    root = seen.world.target.root
    return f"bring it back below, as a dataset: --to {root}/NAME; or its parts, --path NAME --to {root}/NAME each"


# Its options from the creation of the pool.


def retained_properties(seen: DatasetRestoreSurvey) -> Iterator[tuple[str, str, str]]:
    """Yield (property, its value, the copy's value) for properties that the pool's root dataset had before and keeps."""
    root = seen.world.target.datasets.get("")
    if root is None or not is_pool_root(seen):
        return
    ours = (*commands.overridden_properties(root.kind), "canmount")
    for name, value in sorted(seen.home.get("", {}).items()):
        came = seen.copied.get("", {}).get(name)
        told = value.source == _LOCAL and name not in ours and not name.startswith("poolferry:")
        if told and came is not None and came.received not in (None, value.value):
            yield name, value.value, str(came.received)


def retained_property_warnings(seen: DatasetRestoreSurvey) -> tuple[str, ...]:
    """Return the kept properties as warnings."""
    root = seen.world.target.root
    return tuple(
        f"{root} keeps {name}={now}, set when the pool was created; the copy had {came}: zfs set {shlex.quote(f'{name}={came}')} {shlex.quote(root.path)}"
        for name, now, came in retained_properties(seen)
    )
