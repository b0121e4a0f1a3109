"""Advice about the setup of a pool that may cause trouble later: vdevs, device names, properties, memory."""

import re
from collections.abc import Iterator

from orchestrator.domain.command_line import quoted
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.pool.model import DATA, DatasetProperty, PoolFinding, PoolSurvey, Vdev

_CHANCE_NAME = re.compile(
    r"/dev/(sd[a-z]+\d*|hd[a-z]\d*|vd[a-z]+\d*|xvd[a-z]+\d*|nvme\d+n\d+(p\d+)?|dm-\d+|mmcblk\d+(p\d+)?)"
)
_UNEVEN = 0.3  # of the whole between the fullest and the emptiest vdev
_FULL = 0.5  # below that, uneven vdevs have no effect
_OTHERS = 4 << 30  # bytes that should remain for everything else on the machine
_NAMED = 3
_TABLES = 0.25  # of the ARC's limit: more metadata displaces everything else


def check_pool_setup(world: PoolSurvey) -> Iterator[PoolFinding]:
    """Yield advice about the setup; none is serious."""
    yield from _mixed(world)
    yield from _uneven(world)
    yield from _names(world)
    yield from _settings(world)
    yield from _dedup(world)
    yield from _arc(world)


def _advice(word: str, says: str, hint: str) -> PoolFinding:
    return PoolFinding(word=word, grave=False, says=says, hint=hint)


def _mixed(world: PoolSurvey) -> Iterator[PoolFinding]:
    """Report top-level vdevs with different redundancy: the pool is only as safe as the weakest."""
    pool = world.status.name
    tops = [
        device for device in world.status.devices if device.role == DATA and device.kind not in ("hole", "indirect")
    ]
    alone = [device for device in tops if device.leaf]
    if alone and len(alone) < len(tops):
        says = (
            f"{alone[0].name} stands alone in {pool} beside vdevs with redundancy: when it dies, all of {pool} is lost"
        )
        yield _advice(
            "mixed", says, f"`zpool attach {quoted(pool)} {quoted(alone[0].name)} NEW-DEVICE` makes it a mirror"
        )
        return
    shapes = {(_shape(device), len(device.below)) for device in tops if device.below}
    if len(shapes) > 1:
        says = f"the vdevs of {pool} are not alike: {', '.join(f'{device.name} of {len(device.below)}' for device in tops)}"
        yield _advice("mixed", says, "the pool is as safe and as fast as the weakest of them; add like ones only")
    for device in world.status.devices:
        if device.role in ("special", "dedup") and device.leaf:
            says = f"{device.name} holds metadata of {pool} alone: when it dies, all of {pool} is lost"
            yield _advice(
                "mixed", says, f"`zpool attach {quoted(pool)} {quoted(device.name)} NEW-DEVICE` makes it a mirror"
            )


def _shape(device: Vdev) -> str:
    """Return the kind of a vdev: a mirror with a device being replaced is still a mirror."""
    return device.name.rpartition("-")[0] or device.kind


def _uneven(world: PoolSurvey) -> Iterator[PoolFinding]:
    vdevs = sorted(world.vdevs, key=lambda each: each.share)
    if len(vdevs) < 2:
        return
    least, most = vdevs[0], vdevs[-1]
    if most.share < _FULL or most.share - least.share < _UNEVEN:
        return
    says = (
        f"{world.status.name} is unevenly filled: {most.name} is {most.share:.0%} full, {least.name} {least.share:.0%}; "
        f"nearly all that is written goes to {least.name}, at its speed alone"
    )
    yield _advice(
        "uneven", says, "it evens out as data is rewritten: `zfs send | zfs receive` of datasets within the pool"
    )


def _names(world: PoolSurvey) -> Iterator[PoolFinding]:
    named = [device.name for device in world.status.each() if device.leaf and _CHANCE_NAME.fullmatch(device.name)]
    if not named:
        return
    pool = world.status.name
    says = (
        f"{_first(named)} in {pool} {'is' if len(named) == 1 else 'are'} named in the order in which the kernel found the "
        "disks, which changes"
    )
    yield _advice(
        "device-names", says, f"`zpool export {quoted(pool)} && zpool import -d /dev/disk/by-id {quoted(pool)}`"
    )


def _settings(world: PoolSurvey) -> Iterator[PoolFinding]:
    rules = (
        (
            "sync",
            "disabled",
            "sync-disabled",
            "programs are informed that data is safe while it is not: power lost, seconds lost",
        ),
        ("checksum", "off", "checksum-off", "nothing can detect when data there has gone bad, and no scrub finds it"),
    )
    for name, value, word, means in rules:
        where = [setting.dataset for setting in world.settings if (setting.name, setting.value) == (name, value)]
        if where:
            hint = f"`zfs inherit {name} {quoted(where[0])}`" + (", and so for the others" if len(where) > 1 else "")
            yield _advice(word, f"{name}={value} is set on {_first(where)}: {means}", hint)


def _dedup(world: PoolSurvey) -> Iterator[PoolFinding]:
    on = [each for each in world.settings if each.name == "dedup" and each.value != "off"]
    memory, pool = world.memory, world.status.name
    limit = memory.arc_most or memory.total
    if memory.dedup is None or limit is None or memory.dedup < limit * _TABLES:
        return
    says = (
        f"the dedup tables of {pool} take {show_size(memory.dedup)}, and the ARC may have {show_size(limit)}: "
        "once they do not fit, each write waits for disks"
    )
    yield _advice("dedup", says, _dedup_hint(on))


def _dedup_hint(on: list[DatasetProperty]) -> str:
    where = f"`zfs set dedup=off {quoted(on[0].dataset)}`" if on else "dedup is off already"
    return f"{where}; tables shrink as that data is rewritten elsewhere and destroyed; or more memory"


def _arc(world: PoolSurvey) -> Iterator[PoolFinding]:
    """Report an ARC limit that leaves too little memory. Why half is enough on a small machine: ZFS's old default."""
    total, most = world.memory.total, world.memory.arc_most
    if total is None or most is None:
        return
    left = total - most
    if left >= _OTHERS or left >= total * 0.45:
        return
    limit = max(total - _OTHERS, total // 2)
    says = (
        f"the ARC may grow to {show_size(most)} of {show_size(total)}: {show_size(max(left, 0))} are left for all else"
    )
    yield _advice("arc", says, f'write "options zfs zfs_arc_max={limit}" into /etc/modprobe.d/zfs.conf')


def _first(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {show_count(more, 'other')}" if more > 0 else "")
