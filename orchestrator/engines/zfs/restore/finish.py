"""The last stage of a restore: keys that are shared again, mounts, and the removal of our markers.

What must wait for a person (a key, a mountpoint that something else has) keeps its mark, and the same command goes on from
there.
"""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.domain.units import show_count
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import at
from orchestrator.engines.zfs.model import FLAGS, PLACEHOLDER, Kind
from orchestrator.engines.zfs.plan.context import parent_of
from orchestrator.engines.zfs.restore.model import Seen, Value

CANMOUNT = "canmount"
LOCAL = "local"
# Arguments: datasets, parents first. Those that are mounted already are fine.
_MOUNT = """
s=0; for d do e=$(zfs mount "$d" 2>&1) || case $e in *"already mounted"*) ;; *) printf "%s\\n" "$e" >&2; s=1;; esac; done; [ "$s" = 0 ]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The last actions of a restore: datasets that share their parent's key again, get canmount back, are mounted, and
    lose their mark.
    """

    heirs: tuple[str, ...]
    canmount: tuple[str, ...]
    mount: tuple[str, ...]
    done: tuple[str, ...]
    warnings: tuple[str, ...]


def decide_ending(seen: Seen, names: tuple[str, ...]) -> Ending:
    blocked: dict[str, str] = {}
    canmount, mount, warnings = [], list[str](), list[str]()
    heirs, waiting = _heirs(seen, names)
    for name in names:
        there = seen.world.target.datasets[name]
        if there.kind is Kind.VOLUME or there.placeholder:
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
    stay = {*blocked, *waiting}
    if stay:
        # The command is said again, and mounts parents first: `zfs mount -a` meanwhile would leave these below the wrong one.
        stay |= {name for name in names if _to_be_mounted(seen, name) and _above_locked(seen, name)}
    done = tuple(name for name in names if name not in stay and (name or not stay))
    return Ending(
        heirs=heirs, canmount=tuple(one for one in canmount if one not in stay and _canmount_differs(seen, one)),
        mount=tuple(mount), done=done,
        warnings=(*dict.fromkeys(warnings), *_told_of(seen, waiting)),
    )  # fmt: skip


# Keys. Why: a raw stream makes of each dataset an encryption root of its own (openzfs 15687).


def _heirs(seen: Seen, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the datasets that shared their parent's key: those that can share it again now, and the others."""
    datasets = seen.world.target.datasets
    ours = [one for one in names if one and is_own_root(seen, one) and _shared_key(seen, one, parent_of(one))]
    ready = tuple(one for one in ours if datasets[one].key_loaded and datasets[parent_of(one)].key_loaded)
    return ready, tuple(one for one in ours if one not in ready)


def is_own_root(seen: Seen, dataset: str) -> bool:
    """Return whether the restored dataset has a key of its own."""
    one = seen.world.target.datasets[dataset]
    return one.encrypted and one.encryption_root == seen.world.target.full(dataset)


def _shared_key(seen: Seen, dataset: str, above: str) -> bool:
    """Return whether both have the same key: each new passphrase key gets a new salt; a key in a file has none, and
    its place is told only of the root that it was loaded for.
    """
    if above not in seen.world.target.datasets or not seen.world.target.datasets[above].encrypted:
        return False
    mine, theirs = (_text(seen, one, "pbkdf2salt") for one in (dataset, above))
    if _text(seen, dataset, "keyformat") != _text(seen, above, "keyformat"):
        return False
    if mine not in ("", "0", "-"):
        return mine == theirs
    return key_place(seen, dataset) == "prompt" and theirs in ("", "0", "-")


def key_place(seen: Seen, dataset: str) -> str:
    """Return the key location that the copy records; for a dataset that shared a key, this is only "prompt"."""
    told = seen.copied.get(dataset, {}).get("keylocation")
    return told.value if told and told.value not in ("none", "-") else "prompt"


def _text(seen: Seen, dataset: str, name: str) -> str:
    now = now_of(seen, dataset, name)
    return now.value if now else ""


def _told_of(seen: Seen, waiting: tuple[str, ...]) -> tuple[str, ...]:
    if not waiting:
        return ()
    root = seen.world.target.root
    share = f"{show_count(len(waiting), 'dataset')} of {root} shared the key of what lies above, and shall again"
    return (f"{share}: load all keys (zfs load-key -r {root.path}), then say the same command again",)


def _canmount(seen: Seen, dataset: str) -> str:
    return wanted(seen, dataset, CANMOUNT) or "on"


def _canmount_differs(seen: Seen, dataset: str) -> bool:
    now = now_of(seen, dataset, CANMOUNT)
    return now is not None and (now.source == LOCAL and now.value != _canmount(seen, dataset))


def _mountpoint(seen: Seen, dataset: str) -> str:
    now = now_of(seen, dataset, "mountpoint")
    return now.value if now else "none"


def _to_be_mounted(seen: Seen, dataset: str) -> bool:
    return _canmount(seen, dataset) == "on" and _mountpoint(seen, dataset).startswith("/")


def _blocked(seen: Seen, dataset: str, blocked: dict[str, str]) -> str | None:
    """Return why a dataset cannot be mounted now: something else uses its mountpoint, or its parent's, or files lie there."""
    if not _to_be_mounted(seen, dataset):
        return None
    if dataset and parent_of(dataset) in blocked:
        return blocked[parent_of(dataset)]
    place, whole = _mountpoint(seen, dataset), seen.world.target.full(dataset)
    other = seen.mounts.get(place)
    if other is None and place in seen.occupied:
        return (
            f"{whole} is not mounted, as files lie in {place}, which it would hide: move them away, or give it another place "
            f"(zfs set mountpoint=/… {whole}), and say the same command again"
        )
    if other is None or other == whole:
        return None
    return f"{whole} is not mounted, as {other} has {place}: unmount that, and say the same command again"


def _above_locked(seen: Seen, dataset: str) -> bool:
    """Return whether a dataset above waits for its key, so that this one would be mounted below the wrong one."""
    while dataset:
        dataset = parent_of(dataset)
        above = seen.world.target.datasets.get(dataset)
        if above is not None and above.encrypted and not above.key_loaded and _to_be_mounted(seen, dataset):
            return True
    return False


def _locked(seen: Seen, dataset: str) -> str:
    root = seen.world.target.datasets[dataset].encryption_root or seen.world.target.full(dataset)
    return f"{root} is encrypted: zfs load-key -r {root}, then zfs mount -a"


def last_steps(seen: Seen, ending: Ending) -> Iterator[Step]:
    side = seen.world.target
    for one in ending.heirs:
        command = commands.zfs("change-key", "-i", side.full(one), effect=Effect.WRITES, where=at(side))
        yield step(f"give {side.full(one)} the key of what it lies in", "so it was where it came from", command)
    yield from _canmounts(seen, ending.canmount)
    for batch in commands.batches((side.full(one),) for one in ending.mount):
        command = commands.script(_MOUNT, *batch, effect=Effect.WRITES, where=at(side))
        yield step(f"mount {few(batch)}", "all of it is there", command)
    for command in commands.keep_commands(tuple(_remembered(seen, ending.done)), side):
        yield step("remember what the targets hold", "as before: their next sends start from these bookmarks", command)
    for mark, names in (
        (PLACEHOLDER, ending.done),  # also where a rest came onto one, and no properties after it
        (FLAGS, tuple(one for one in ending.done if not side.datasets[one].placeholder)),
    ):
        # The root's last: it says whether anything is left to be done.
        for batch in commands.batches((side.full(one),) for one in sorted(names, reverse=True)):
            command = commands.zfs("inherit", mark, *batch, effect=Effect.WRITES, where=at(side))
            yield step(f"take our mark from {few(batch)}", "it is whole, and as it was", command)


def _remembered(seen: Seen, names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """Yield the bookmarks to create again, by guid, so that disks that are away now can continue from them later."""
    for name, mark, guid in seen.cursors:
        there = seen.world.target.datasets.get(name) if name in names else None
        found = next((one for one in there.snapshots if one.guid == guid), None) if there else None
        if found is not None:
            yield seen.world.target.full(name), found.name, mark


def _canmounts(seen: Seen, names: tuple[str, ...]) -> Iterator[Step]:
    side = seen.world.target
    came = tuple(one for one in names if _received_canmount(seen, one) == wanted(seen, one, CANMOUNT))
    yield from inherit(seen, CANMOUNT, came)
    for one in names:
        if one not in came:
            words = (f"{CANMOUNT}={_canmount(seen, one)}", side.full(one))
            command = commands.zfs("set", *words, effect=Effect.WRITES, where=at(side))
            yield step(f"set {words[0]} of {words[1]}", "the copy kept it, and no stream brought it", command)


def _received_canmount(seen: Seen, dataset: str) -> str | None:
    now = now_of(seen, dataset, CANMOUNT)
    return now.received if now else None


# What both parts of settling need.


def wanted(seen: Seen, dataset: str, name: str) -> str | None:
    """Return the property value that the dataset brought to its copy."""
    told = seen.copied.get(dataset, {}).get(name)
    return told.received if told else None


def now_of(seen: Seen, dataset: str, name: str) -> Value | None:
    return seen.home.get(dataset, {}).get(name)


def inherit(seen: Seen, name: str, datasets: tuple[str, ...]) -> Iterator[Step]:
    side = seen.world.target
    for batch in commands.batches((side.full(one),) for one in datasets):
        command = commands.zfs("inherit", "-S", name, *batch, effect=Effect.WRITES, where=at(side))
        yield step(f"give {name} back to {few(batch)}", "the value that it came with", command)


def few(names: tuple[str, ...]) -> str:
    return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def step(does: str, why: str, command: Command) -> Step:
    return Step(does=does, why=why, lane="settle", work=Pipeline(stages=(command,)), expected=None)
