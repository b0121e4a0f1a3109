"""The actions of a restore once all data is complete: original properties, keys and mounts; then our marks are removed.

Nothing here is remembered: the remaining work shows on the datasets themselves, so it continues after any interruption.
`finish` decides the last actions.
"""

import shlex
from collections.abc import Iterable, Iterator

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Decision, Effect, NothingToDo, Plan, Step
from orchestrator.domain.units import show_count
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import command_host
from orchestrator.engines.zfs.model import Dataset, DatasetType, SendFlags
from orchestrator.engines.zfs.plan.send_flags import has_its_own_key
from orchestrator.engines.zfs.restore.finish import (
    CANMOUNT,
    LOCAL,
    current_value,
    decide_finish,
    finish_steps,
    inherit_steps,
    is_encryption_root,
    key_location,
    make_step,
    source_value,
)
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, PropertyValue, is_restored_by_us
from orchestrator.engines.zfs.restore.pool_root import is_pool_root, retained_properties, retained_property_warnings

# Quotas and reservations last: a full dataset must not prevent the others. canmount is set at the end, separately.
_ORDER = (
    "mountpoint", "sharenfs", "sharesmb", "readonly", "quota", "refquota", "reservation", "refreservation",
)  # fmt: skip
_PUBLISHED = ("mountpoint", "sharenfs", "sharesmb")
# Properties that a stream sets by itself, or that can only be set at creation. Source: zfsprops(7).
_NOT_TO_SET = frozenset(
    "casesensitivity normalization utf8only volblocksize volsize version encryption keyformat keylocation pbkdf2iters".split()
)


def plan(seen: DatasetRestoreSurvey) -> Decision:
    """Plan the properties first; once they are right, the mounts; nothing when all is done or must wait."""
    names = _unsettled(seen)
    first = tuple(_properties(seen, names))
    if first:
        summary = f"give {show_count(len(names), 'dataset')} of {seen.world.target.root} their properties back"
        told = (*_kept_overrides(seen, names), *retained_property_warnings(seen))
        return Plan(summary=summary, stages=(first,), again=True, warnings=told)
    last = decide_finish(seen, names)
    if steps := tuple(finish_steps(seen, last)):
        mounts = show_count(len(last.mount), "dataset")
        return Plan(
            summary=f"let {seen.world.target.root} be used: {mounts} to mount", stages=(steps,), warnings=last.warnings
        )
    return NothingToDo(why=f"{seen.world.target.root} holds all of the copy", current=None, warnings=last.warnings)


def waiting_datasets(seen: DatasetRestoreSurvey) -> tuple[str, ...]:
    """Return the full names of the datasets that wait for a key or for their mountpoint."""
    return tuple(seen.world.target.full(name) for name in decide_finish(seen, _unsettled(seen)).wait)


def foresee_steps(seen: DatasetRestoreSurvey) -> tuple[tuple[Step, ...], ...]:
    """Return the same steps for a destination that does not hold the data yet, as the survey will find it then."""
    names = tuple(sorted(seen.world.source.datasets))
    there = {name: _arrived(seen, one) for name, one in seen.world.source.datasets.items()}
    target = replace(seen.world.target, datasets=there)
    home = {name: _received(seen, name) for name in names}
    seen = replace(seen, home=home, mounts={}, world=replace(seen.world, target=target))
    parts = tuple(_properties(seen, names)), tuple(finish_steps(seen, decide_finish(seen, names)))
    return tuple(part for part in parts if part)


def _arrived(seen: DatasetRestoreSurvey, one: Dataset) -> Dataset:
    """Return a dataset as it will be once its data is complete."""
    raw = one.encrypted and has_its_own_key(seen.world, one)
    return replace(
        one, flags=SendFlags(backup=True), placeholder=not one.snapshots, mounted=False, encrypted=raw, key_loaded=False
    )


def _received(seen: DatasetRestoreSurvey, dataset: str) -> dict[str, PropertyValue]:
    """Return its properties after the receive: the received ones, some of them overridden by the receive's options."""
    source = seen.world.source.datasets[dataset]
    told = seen.copied.get(dataset, {})
    bare = source.encrypted or (not dataset and is_pool_root(seen))
    came = {name: one.received for name, one in told.items() if one.received is not None and not bare}
    found = {name: PropertyValue(value=value, received=value, source="received") for name, value in came.items()}
    whole = seen.world.target.full(dataset)
    for name in commands.overridden_properties(source.kind):
        value = came.get(name)
        if name == "mountpoint":
            found[name] = PropertyValue(value=value or f"/{whole}", received=value, source="default")
        else:
            found[name] = PropertyValue(value="", received=value, source="default" if name in _PUBLISHED else LOCAL)
    own = seen.home.get(dataset, {}) if not dataset and is_pool_root(seen) else {}
    return {name: one for name, one in own.items() if one.source == LOCAL} | found


def _unsettled(seen: DatasetRestoreSurvey) -> tuple[str, ...]:
    """Return the restored datasets that still have our mark, parents first."""
    there = seen.world.target.datasets
    back = (name for name in sorted(seen.world.source.datasets) if name in there)
    return tuple(name for name in back if is_restored_by_us(there[name]) or there[name].placeholder)


# Properties.


def _properties(seen: DatasetRestoreSurvey, names: Iterable[str]) -> Iterator[Step]:
    """Yield steps for the properties that the copy overrides, then for those that no stream brought."""
    names = tuple(names)
    for name in _ORDER:
        back = tuple(one for one in names if _is_aside(seen, one, name))
        yield from inherit_steps(seen, name, back)
    for one in names:
        yield from _set(seen, one)


def _property_source(seen: DatasetRestoreSurvey, dataset: str) -> DatasetType:
    return seen.world.target.datasets[dataset].kind


def _stays_aside(seen: DatasetRestoreSurvey, name: str) -> bool:
    """Return whether a property would be harmful at another place: two datasets at one mountpoint, or an unrequested share."""
    return name in _PUBLISHED and not seen.homeward


def _is_aside(seen: DatasetRestoreSurvey, dataset: str, name: str) -> bool:
    """Return whether a value of ours, or the parent's, overrides the one that the dataset should have."""
    now, came = current_value(seen, dataset, name), source_value(seen, dataset, name)
    if (
        now is None
        or _stays_aside(seen, name)
        or name not in commands.overridden_properties(_property_source(seen, dataset))
    ):
        return False
    if came is not None and now.received != came:
        return False  # another value was received: `_set` sets it
    if name == "mountpoint" and now.source == LOCAL and seen.world.target.datasets[dataset].waits:
        return False  # a person gave it another place, as its own was taken
    return now.source == LOCAL or (came is not None and now.source != "received")


def _set(seen: DatasetRestoreSurvey, dataset: str) -> Iterator[Step]:
    """Yield steps for properties that no stream brought: sent from a bookmark, encrypted by the pool, or resumed."""
    words, stays = [], {one[0] for one in retained_properties(seen)} if not dataset else ()
    for name, told in sorted(seen.copied.get(dataset, {}).items()):
        now = current_value(seen, dataset, name)
        if (
            told.received is None
            or name in _NOT_TO_SET
            or name == CANMOUNT
            or _stays_aside(seen, name)
            or name in stays
        ):
            continue
        if now is None or told.received not in (now.received, now.value, now.outside):
            words.append(f"{name}={told.received}")
    if is_encryption_root(seen, dataset) and (place := key_location(seen, dataset)) not in (
        "prompt",
        _home_key_place(seen, dataset),
    ):
        words.append(f"keylocation={place}")
    if words:
        target = seen.world.target.full(dataset)
        command = commands.zfs_command(
            "set", *words, target, effect=Effect.WRITES, where=command_host(seen.world.target)
        )
        yield make_step(f"set {', '.join(words)} of {target}", "the copy kept it, and no stream brought it", command)


def _home_key_place(seen: DatasetRestoreSurvey, dataset: str) -> str:
    now = current_value(seen, dataset, "keylocation")
    return now.value if now else "prompt"


def _kept_overrides(seen: DatasetRestoreSurvey, names: Iterable[str]) -> tuple[str, ...]:
    """Return a warning on the properties that are not restored, because the data is at another place."""
    kept = [
        f"zfs inherit -S {name} {shlex.quote(seen.world.target.full(one))}"
        for one in names
        for name in _PUBLISHED
        if not seen.homeward and source_value(seen, one, name) is not None
    ]
    if not kept:
        return ()
    what = "mountpoints and shares stay aside, as this is not where the data came from"
    return (f"{what}; to have them back: {'; '.join(kept[:5])}{' …' if len(kept) > 5 else ''}",)
