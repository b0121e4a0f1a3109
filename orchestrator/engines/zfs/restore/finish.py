"""The last stage of a restore: keys that are shared again, mounts, and the removal of our markers.

A dataset that must wait for a person (for a key, or for a mountpoint in use) keeps its mark, and the same command continues
there.
"""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.domain.units import show_count
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import command_host
from orchestrator.engines.zfs.model import FLAGS, PLACEHOLDER, DatasetType
from orchestrator.engines.zfs.plan.context import parent_dataset
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, PropertyValue

CANMOUNT = "canmount"
LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreFinish:
    """The last actions of a restore.

    They are for datasets that share their parent's key again, get canmount back, are mounted, and lose their mark.
    """

    heirs: tuple[str, ...]
    canmount: tuple[str, ...]
    mount: tuple[str, ...]
    done: tuple[str, ...]
    warnings: tuple[str, ...]


def decide_finish(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> RestoreFinish:
    blocked: dict[str, str] = {}
    canmount, mount, warnings = [], list[str](), list[str]()
    heirs, waiting = _heirs(seen, names)
    for name in names:
        there = seen.world.target.datasets[name]
        if there.kind is DatasetType.VOLUME or there.placeholder:
            continue
        why = _blocked(seen, name, blocked)
        if why:
            blocked[name] = why
            continue
        canmount.append(name)
        if _to_be_mounted(seen, name):
            if there.encrypted and not there.key_loaded:
                warnings += [_locked(seen, name)] if name not in waiting else []
            elif not there.mounted and not _above_locked(seen, name):
                mount.append(name)
    warnings += dict.fromkeys(blocked.values())
    attached_disk = {*blocked, *waiting}
    if attached_disk:
        # A repeated command mounts parents first: `zfs mount -a` meanwhile would mount these below the wrong parent.
        attached_disk |= {name for name in names if _to_be_mounted(seen, name) and _above_locked(seen, name)}
    done = tuple(name for name in names if name not in attached_disk and (name or not attached_disk))
    return RestoreFinish(
        heirs=heirs, canmount=tuple(one for one in canmount if one not in attached_disk and _canmount_differs(seen, one)),
        mount=tuple(mount), done=done,
        warnings=(*dict.fromkeys(warnings), *_describe_key(seen, waiting)),
    )  # fmt: skip


# Keys. Why: a raw stream makes each dataset its own encryption root (openzfs 15687).


def _heirs(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the datasets that shared their parent's key: those that can share it again now, and the others."""
    datasets = seen.world.target.datasets
    ours = [
        one for one in names if one and is_encryption_root(seen, one) and _shared_key(seen, one, parent_dataset(one))
    ]
    ready = tuple(one for one in ours if datasets[one].key_loaded and datasets[parent_dataset(one)].key_loaded)
    return ready, tuple(one for one in ours if one not in ready)


def is_encryption_root(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    """Return whether the restored dataset has a key of its own."""
    one = seen.world.target.datasets[dataset]
    return one.encrypted and one.encryption_root == seen.world.target.full(dataset)


def _shared_key(seen: DatasetRestoreSurvey, dataset: str, above: str) -> bool:
    """Return whether both have the same key.

    Each new passphrase key gets a new salt; a key in a file has none, and its location is stored only on the root for which it
    was loaded.
    """
    if above not in seen.world.target.datasets or not seen.world.target.datasets[above].encrypted:
        return False
    mine, theirs = (_text(seen, one, "pbkdf2salt") for one in (dataset, above))
    if _text(seen, dataset, "keyformat") != _text(seen, above, "keyformat"):
        return False
    if mine not in ("", "0", "-"):
        return mine == theirs
    return key_location(seen, dataset) == "prompt" and theirs in ("", "0", "-")


def key_location(seen: DatasetRestoreSurvey, dataset: str) -> str:
    """Return the key location that the copy records; for a dataset that shared a key, this is only "prompt"."""
    told = seen.copied.get(dataset, {}).get("keylocation")
    return told.value if told and told.value not in ("none", "-") else "prompt"


def _text(seen: DatasetRestoreSurvey, dataset: str, name: str) -> str:
    now = current_value(seen, dataset, name)
    return now.value if now else ""


def _describe_key(seen: DatasetRestoreSurvey, waiting: tuple[str, ...]) -> tuple[str, ...]:
    if not waiting:
        return ()
    root = seen.world.target.root
    share = f"{show_count(len(waiting), 'dataset')} of {root} shared the key of what lies above, and shall again"
    return (f"{share}: load all keys (zfs load-key -r {root.path}), then run the same command again",)


def _canmount(seen: DatasetRestoreSurvey, dataset: str) -> str:
    return source_value(seen, dataset, CANMOUNT) or "on"


def _canmount_differs(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    now = current_value(seen, dataset, CANMOUNT)
    return now is not None and (now.source == LOCAL and now.value != _canmount(seen, dataset))


def _mountpoint(seen: DatasetRestoreSurvey, dataset: str) -> str:
    now = current_value(seen, dataset, "mountpoint")
    return now.value if now else "none"


def _to_be_mounted(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    return _canmount(seen, dataset) == "on" and _mountpoint(seen, dataset).startswith("/")


def _blocked(seen: DatasetRestoreSurvey, dataset: str, blocked: dict[str, str]) -> str | None:
    """Return why a dataset cannot be mounted now: its mountpoint, or its parent's, is in use, or holds files."""
    if not _to_be_mounted(seen, dataset):
        return None
    if dataset and parent_dataset(dataset) in blocked:
        return blocked[parent_dataset(dataset)]
    place, whole = _mountpoint(seen, dataset), seen.world.target.full(dataset)
    other = seen.mounts.get(place)
    if other is None and place in seen.occupied:
        return (
            f"{whole} is not mounted, as files lie in {place}, which it would hide: move them away, or give it another place "
            f"(zfs set mountpoint=/… {whole}), and run the same command again"
        )
    if other is None or other == whole:
        return None
    return f"{whole} is not mounted, as {other} has {place}: unmount that, and run the same command again"


def _above_locked(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    """Return whether a dataset above waits for its key, so that this one would be mounted below the wrong parent."""
    while dataset:
        dataset = parent_dataset(dataset)
        above = seen.world.target.datasets.get(dataset)
        if above is not None and above.encrypted and not above.key_loaded and _to_be_mounted(seen, dataset):
            return True
    return False


def _locked(seen: DatasetRestoreSurvey, dataset: str) -> str:
    root = seen.world.target.datasets[dataset].encryption_root or seen.world.target.full(dataset)
    return f"{root} is encrypted: zfs load-key -r {root}, then zfs mount -a"


def finish_steps(seen: DatasetRestoreSurvey, ending: RestoreFinish) -> Iterator[Step]:
    side = seen.world.target
    for one in ending.heirs:
        command = commands.zfs_command(
            "change-key", "-i", side.full(one), effect=Effect.WRITES, where=command_host(side)
        )
        yield make_step(f"give {side.full(one)} the key of what it lies in", "so it was where it came from", command)
    yield from _canmounts(seen, ending.canmount)
    for batch in commands.batch_arguments((side.full(one),) for one in ending.mount):
        command = commands.script_command("mount-datasets.sh", *batch, effect=Effect.WRITES, where=command_host(side))
        yield make_step(f"mount {list_few(batch)}", "all of it is there", command)
    for command in commands.bookmark_commands(tuple(_remembered(seen, ending.done)), side):
        yield make_step(
            "remember what the targets hold", "as before: their next sends start from these bookmarks", command
        )
    for mark, names in (
        (PLACEHOLDER, ending.done),  # also where a resumed stream went onto one, and no properties after it
        (FLAGS, tuple(one for one in ending.done if not side.datasets[one].placeholder)),
    ):
        # The root's last: it shows whether work is left.
        for batch in commands.batch_arguments((side.full(one),) for one in sorted(names, reverse=True)):
            command = commands.zfs_command("inherit", mark, *batch, effect=Effect.WRITES, where=command_host(side))
            yield make_step(f"take our mark from {list_few(batch)}", "it is whole, and as it was", command)


def _remembered(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield the bookmarks to create again, by guid, so that disks that are away now can continue from them later."""
    for name, mark, guid in seen.cursors:
        there = seen.world.target.datasets.get(name) if name in names else None
        found = next((one for one in there.snapshots if one.guid == guid), None) if there else None
        if found is not None:
            yield seen.world.target.full(name), found.mark, mark


def _canmounts(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> Iterator[Step]:
    side = seen.world.target
    came = tuple(one for one in names if _received_canmount(seen, one) == source_value(seen, one, CANMOUNT))
    yield from inherit_steps(seen, CANMOUNT, came)
    for one in names:
        if one not in came:
            words = (f"{CANMOUNT}={_canmount(seen, one)}", side.full(one))
            command = commands.zfs_command("set", *words, effect=Effect.WRITES, where=command_host(side))
            yield make_step(f"set {words[0]} of {words[1]}", "the copy kept it, and no stream brought it", command)


def _received_canmount(seen: DatasetRestoreSurvey, dataset: str) -> str | None:
    now = current_value(seen, dataset, CANMOUNT)
    return now.received if now else None


# Needed by `properties` too.


def source_value(seen: DatasetRestoreSurvey, dataset: str, name: str) -> str | None:
    """Return the property value that the stream of the dataset brought to its copy."""
    told = seen.copied.get(dataset, {}).get(name)
    return told.received if told else None


def current_value(seen: DatasetRestoreSurvey, dataset: str, name: str) -> PropertyValue | None:
    return seen.home.get(dataset, {}).get(name)


def inherit_steps(seen: DatasetRestoreSurvey, name: str, datasets: tuple[str, ...]) -> Iterator[Step]:
    side = seen.world.target
    for batch in commands.batch_arguments((side.full(one),) for one in datasets):
        command = commands.zfs_command("inherit", "-S", name, *batch, effect=Effect.WRITES, where=command_host(side))
        yield make_step(f"give {name} back to {list_few(batch)}", "the value that it came with", command)


def list_few(names: tuple[str, ...]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def make_step(action: str, why: str, command: Command) -> Step:
    return Step(action=action, why=why, worker="settle", work=Pipeline(stages=(command,)), expected=None)
