"""The last stage of a restore: keys that are shared again, mounts, and the removal of our markers.

A dataset that must wait for a person (for a key, or for a mountpoint in use) keeps its mark, and the same command continues
there.
"""

import shlex
from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.domain.units import show_count
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import command_host
from orchestrator.engines.zfs.model import FLAGS, PLACEHOLDER, WAITS, Dataset, DatasetType
from orchestrator.engines.zfs.plan.context import parent_dataset
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, PropertyValue, is_incomplete

CANMOUNT = "canmount"
LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreFinish:
    """The last actions of a restore.

    They are for datasets that share their parent's key again, get canmount back, are mounted, and lose their mark; `wait`:
    those that get the mark of a dataset that is whole and waits.
    """

    heirs: tuple[str, ...]
    canmount: tuple[str, ...]
    mount: tuple[str, ...]
    done: tuple[str, ...]
    wait: tuple[str, ...]
    warnings: tuple[str, ...]


def decide_finish(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> RestoreFinish:
    """Decide the last actions for each restored dataset; one that waits holds up only what would be mounted inside of it."""
    heirs, unshared = _heirs(seen, names)
    blocked, locked = dict[str, str](), list[str]()
    for name in names:
        if why := _blocked(seen, name, blocked):
            blocked[name] = why
        elif _is_locked(seen, name):
            locked.append(name)
    waiting = {*blocked, *locked, *unshared} | _inside(seen, names, (*blocked, *_all_locked(seen, names)))
    done = tuple(name for name in names if name not in waiting)
    used = [
        name
        for name in done
        if _is_filesystem(seen, name) and not (_there(seen, name).encrypted and _is_lost(seen, name))
    ]
    return RestoreFinish(
        heirs=heirs, canmount=tuple(name for name in used if _canmount_differs(seen, name)),
        mount=tuple(name for name in used if _to_be_mounted(seen, name) and not _there(seen, name).mounted),
        done=done, wait=tuple(name for name in names if name in waiting),
        warnings=(*dict.fromkeys(blocked.values()), *explain_keys(seen, (*locked, *unshared)), *_explain_lost(seen, names)),
    )  # fmt: skip


def _there(seen: DatasetRestoreSurvey, dataset: str) -> Dataset:
    return seen.world.target.datasets[dataset]


def _is_filesystem(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    there = _there(seen, dataset)
    return there.kind is not DatasetType.VOLUME and not there.placeholder


def _is_locked(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    """Return whether a dataset cannot be mounted for want of its key, which nobody said to be lost."""
    there = _there(seen, dataset)
    wanted = _is_filesystem(seen, dataset) and _to_be_mounted(seen, dataset)
    return wanted and there.encrypted and not there.key_loaded and not _is_lost(seen, dataset)


def _all_locked(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the locked datasets, those too that were finished, and locked again since."""
    return tuple(
        name for name in seen.world.target.datasets
        if _is_locked(seen, name) and (name in names or current_text(seen, name, CANMOUNT) == "on")
    )  # fmt: skip


def _inside(seen: DatasetRestoreSurvey, names: tuple[str, ...], closed: tuple[str, ...]) -> set[str]:
    """Return the datasets to be mounted inside of what cannot be mounted yet.

    Why they wait: `zfs mount -a` would mount them first, make folders in what lies above, and later mount their parent over them.
    """
    fronts = tuple(f"{_mountpoint(seen, name).rstrip('/')}/" for name in closed)
    return {
        name for name in names
        if _is_filesystem(seen, name) and _to_be_mounted(seen, name)
        and not (_there(seen, name).encrypted and _is_lost(seen, name)) and f"{_mountpoint(seen, name)}/".startswith(fronts)
    }  # fmt: skip


# Keys. Why: a raw stream makes each dataset its own encryption root (openzfs 15687).


def _heirs(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the datasets that shared their parent's key: those that can share it again now, and the others."""
    datasets = seen.world.target.datasets
    ours = [
        one for one in names if one and is_encryption_root(seen, one) and _shared_key(seen, one, parent_dataset(one))
    ]
    ready = tuple(one for one in ours if datasets[one].key_loaded and datasets[parent_dataset(one)].key_loaded)
    return ready, tuple(one for one in ours if one not in ready and not _is_lost(seen, one))


def _is_lost(seen: DatasetRestoreSurvey, dataset: str) -> bool:
    """Return whether a dataset's key was said to be lost, or that of what lies above, which it shared."""
    if dataset in seen.lost or not dataset or not seen.lost:
        return dataset in seen.lost
    root = seen.world.target.datasets[dataset].encryption_root
    if root and root in {seen.world.target.full(one) for one in seen.lost}:
        return True
    above = parent_dataset(dataset)
    return _shared_key(seen, dataset, above) and _is_lost(seen, above)


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
    mine, theirs = (current_text(seen, one, "pbkdf2salt") for one in (dataset, above))
    if current_text(seen, dataset, "keyformat") != current_text(seen, above, "keyformat"):
        return False
    if mine not in ("", "0", "-"):
        return mine == theirs
    return key_location(seen, dataset) == "prompt" and theirs in ("", "0", "-")


def key_location(seen: DatasetRestoreSurvey, dataset: str) -> str:
    """Return the key location that the copy records; for a dataset that shared a key, this is only "prompt"."""
    told = seen.copied.get(dataset, {}).get("keylocation")
    return told.value if told and told.value not in ("none", "-") else "prompt"


def explain_keys(seen: DatasetRestoreSurvey, waiting: tuple[str, ...]) -> tuple[str, ...]:
    """Return the warnings about datasets that wait for keys, with the commands that load each key in any state.

    Why not `zfs load-key -r`: a raw stream makes each dataset a root of its own, whose location is a prompt: a key in a file
    must be named (-L).
    """
    side, by_place = seen.world.target, dict[str, dict[str, None]]()
    for name in waiting:
        for one in (parent_dataset(name), name) if name else (name,):
            root = _key_root(seen, one)
            if root is not None and not _is_lost(seen, root):
                by_place.setdefault(_place_of_key(seen, root), {})[side.full(root)] = None
    if not waiting:
        return ()
    count = show_count(len(set(waiting)), "dataset")
    loads = "; ".join(_load_line(place, tuple(roots)) for place, roots in by_place.items())
    gone = [place for place in by_place if place in seen.keyless]
    absent = (
        f" ({', '.join(gone)} {'is' if len(gone) == 1 else 'are'} not there: bring that back first)" if gone else ""
    )
    first = side.full(waiting[0]) + (f" and {len(set(waiting)) - 1} more" if len(set(waiting)) > 1 else "")
    lost = f"if a key is lost for ever: the same command with --lost-key {shlex.quote(side.full(waiting[0]))}"
    again = "then run the same command again" if loads else "run the same command again"
    front = f"{loads}; " if loads else ""
    told = f"{count} of {side.root}: whole, and not in use before the key is loaded: {first}{absent}"
    return (f"{told}: {front}{again}; {lost}",)


def _key_root(seen: DatasetRestoreSurvey, dataset: str) -> str | None:
    """Return the encryption root, below the restored one, whose key a dataset needs and does not have; None: none."""
    one = seen.world.target.datasets.get(dataset)
    if one is None or not one.encrypted or one.key_loaded:
        return None
    root, top = one.encryption_root or "", seen.world.target.root.path
    return root[len(top) + 1 :] if f"{root}/".startswith(f"{top}/") else dataset


def _place_of_key(seen: DatasetRestoreSurvey, root: str) -> str:
    """Return where a root's key lies: by its own location, or by that of what it shared the key with; "": it is asked for."""
    own = current_text(seen, root, "keylocation")
    while own in ("", "prompt", "none", "-") and root and _shared_key(seen, root, parent_dataset(root)):
        root = parent_dataset(root)
        own = next(
            (
                each
                for each in (current_text(seen, root, "keylocation"), key_location(seen, root))
                if each.startswith("file")
            ),
            own,
        )
    return own if own.startswith(("file://", "http")) else ""


def _load_line(place: str, roots: tuple[str, ...]) -> str:
    """Build the command that loads a key for some datasets, which have it from one place."""
    where = f"-L {shlex.quote(place)} " if place else ""
    if len(roots) == 1:
        return f"zfs load-key {where}{shlex.quote(roots[0])}"
    return f'for each in {shlex.join(roots)}; do zfs load-key {where}"$each"; done'


def explain_locked_again(seen: DatasetRestoreSurvey) -> tuple[str, ...]:
    """Return the warnings about datasets that a restore had finished, and that a restart locked again, with the commands."""
    by_root = dict[str, list[str]]()
    for name, one in sorted(seen.world.target.datasets.items()):
        if name in seen.world.source.datasets and _is_locked(seen, name):
            by_root.setdefault(one.encryption_root or seen.world.target.full(name), []).append(
                seen.world.target.full(name)
            )
    return tuple(
        f"{names[0]} is back, and its key is not loaded now, as after a restart: zfs load-key {shlex.quote(root)}"
        + "".join(f" && zfs mount {shlex.quote(name)}" for name in names)
        for root, names in by_root.items()
    )


def _explain_lost(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if _there(seen, name).encrypted and _is_lost(seen, name):
            whole = shlex.quote(seen.world.target.full(name))
            yield (
                f"{whole}: its key was said to be lost: nobody can read what it holds, here or in the copies; nothing is destroyed, "
                f"and nothing waits for it any more; if the key is found: zfs load-key {whole} && zfs inherit -S canmount {whole} "
                f"&& zfs mount {whole}"
            )


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
    if not _is_filesystem(seen, dataset) or not _to_be_mounted(seen, dataset):
        return None
    if dataset and parent_dataset(dataset) in blocked:
        return blocked[parent_dataset(dataset)]
    place, whole = _mountpoint(seen, dataset), seen.world.target.full(dataset)
    other = seen.mounts.get(place)
    if other is None and place in seen.occupied:
        return (
            f"{whole} is not mounted, as files lie in {place}, which it would hide: move them away, or give it another place "
            f"(zfs set mountpoint={shlex.quote(f'{place}.restored')} {shlex.quote(whole)}), and run the same command again"
        )
    if other is None or other == whole:
        return None
    free = f"zfs set canmount=noauto {shlex.quote(other)}; zfs unmount {shlex.quote(other)}"
    return f"{whole} is not mounted, as {other} has {place}: unmount that ({free}), and run the same command again"


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
    yield from _mark_waiting(seen, ending.wait)
    for mark, names in (
        (PLACEHOLDER, ending.done),  # also where a resumed stream went onto one, and no properties after it
        (WAITS, tuple(one for one in ending.done if side.datasets[one].waits)),
        (FLAGS, tuple(one for one in ending.done if is_incomplete(side.datasets[one]))),
    ):
        yield from _unmark(seen, mark, names, "it is whole, and as it was")


def _mark_waiting(seen: DatasetRestoreSurvey, names: tuple[str, ...]) -> Iterator[Step]:
    """Yield the steps that tell what is whole and waits from what is not whole: only the latter stops the runs of its job."""
    side, ours = seen.world.target, tuple(one for one in names if is_incomplete(_there(seen, one)))
    for batch in commands.batch_arguments((side.full(one),) for one in ours if not _there(seen, one).waits):
        command = commands.zfs_command("set", f"{WAITS}=on", *batch, effect=Effect.WRITES, where=command_host(side))
        yield make_step(
            f"mark {list_few(batch)} as waiting", "it is whole; it waits, and nothing else waits for it", command
        )
    yield from _unmark(seen, FLAGS, ours, "it is whole, and waits")


def _unmark(seen: DatasetRestoreSurvey, mark: str, names: tuple[str, ...], why: str) -> Iterator[Step]:
    # The root's last: it shows whether work is left.
    side = seen.world.target
    for batch in commands.batch_arguments((side.full(one),) for one in sorted(names, reverse=True)):
        command = commands.zfs_command("inherit", mark, *batch, effect=Effect.WRITES, where=command_host(side))
        yield make_step(f"take our mark from {list_few(batch)}", why, command)


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


def current_text(seen: DatasetRestoreSurvey, dataset: str, name: str) -> str:
    """Return a property's value at the destination; empty: unknown."""
    now = current_value(seen, dataset, name)
    return now.value if now else ""


def inherit_steps(seen: DatasetRestoreSurvey, name: str, datasets: tuple[str, ...]) -> Iterator[Step]:
    side = seen.world.target
    for batch in commands.batch_arguments((side.full(one),) for one in datasets):
        command = commands.zfs_command("inherit", "-S", name, *batch, effect=Effect.WRITES, where=command_host(side))
        yield make_step(f"give {name} back to {list_few(batch)}", "the value that it came with", command)


def list_few(names: tuple[str, ...]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def make_step(action: str, why: str, command: Command) -> Step:
    return Step(action=action, why=why, worker="settle", work=Pipeline(stages=(command,)), expected=None)
