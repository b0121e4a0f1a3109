"""Findings about a pool's health, each as a sentence with its hint: devices, errors, scans, free space.

A finding is grave when data is lost, now or with the next fault: devices that are gone or give errors, lost files, no free
space. All others are advice.
"""

from collections.abc import Iterable, Iterator

from orchestrator.domain.age import is_older, show_age
from orchestrator.domain.command_line import quoted
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.engines.pool.config_checks import check_pool_setup
from orchestrator.engines.pool.model import HEALTHY, PoolFinding, PoolStatus, PoolSurvey, Vdev
from orchestrator.engines.pool.options import PoolOptions

_NAMED = 5
_LOST = 95.0  # percent: from here on ZFS searches free space block by block
# By the state of a device: its meaning, and the hint.
_MEANINGS = {
    "FAULTED": ("is FAULTED, so ZFS no longer uses it", "look at its cable and `smartctl -a`; {replace}"),
    "DEGRADED": ("is DEGRADED: it gives too many errors", "look at its cable and `smartctl -a`; {replace}"),
    "UNAVAIL": ("is UNAVAIL: it is missing, or can no longer be read", "plug it in and `zpool online {pool} {name}`; {replace}"),
    "REMOVED": ("is REMOVED: it was pulled out, or its link broke", "plug it in and `zpool online {pool} {name}`; {replace}"),
    "OFFLINE": ("is OFFLINE: somebody took it out of use", "`zpool online {pool} {name}` takes it back"),
}  # fmt: skip
_REPLACE = "else `zpool replace {pool} {name} NEW-DEVICE`"


def judge_health(world: PoolSurvey, options: PoolOptions) -> tuple[PoolFinding, ...]:
    """Return all findings, grave ones first; accepted advice is left out."""
    found = [
        *_of_pool(world.status),
        *_of_devices(world.status),
        *_of_counters(world.status),
        *_of_data(world.status),
        *_of_space(world, options),
        *_of_scans(world, options),
        *_of_slow(world.status),
        *check_pool_setup(world),
    ]
    found += _of_the_rest(world.status, found)
    kept = [finding for finding in found if finding.grave or finding.word not in options.accept]
    return tuple(sorted(kept, key=lambda finding: not finding.grave))


def _of_pool(status: PoolStatus) -> Iterator[PoolFinding]:
    pool = status.name
    if status.state == "SUSPENDED":
        says = f"{pool} is SUSPENDED: it lost its disks, and all that uses it hangs"
        yield PoolFinding(
            word="state", grave=True, says=says, hint=f"attach the disks again, then `zpool clear {quoted(pool)}`"
        )
    elif status.state != "ONLINE" and not any(True for _ in _of_devices(status)):
        says = f"{pool} is {status.state}" + (f": {status.says}" if status.says else "")
        yield PoolFinding(
            word="state", grave=True, says=says, hint=status.action or f"see `zpool status -v {quoted(pool)}`"
        )


def _of_devices(status: PoolStatus) -> Iterator[PoolFinding]:
    """Yield one finding for each device that is not in normal use."""
    for group, device in _leaves(status):
        if device.state in HEALTHY or device.kind in ("hole", "indirect"):
            continue
        meaning, hint = _MEANINGS.get(device.state, (f"is {device.state}", "see `zpool status -v {pool}`; {replace}"))
        hint = hint.replace("{replace}", _REPLACE).format(pool=quoted(status.name), name=quoted(device.name))
        note = f" ({device.note})" if device.note else ""
        grave = device.role not in ("cache", "spares")
        says = f"{device.name}{_part(group, device, status.name)} {meaning}{note}{_left(group) if grave else ''}"
        yield PoolFinding(word="device", grave=grave, says=says + _mending(status), hint=hint)


def _part(group: Vdev | None, device: Vdev, pool: str) -> str:
    role = "" if device.role == "data" else f" ({device.role})"
    return f" in {group.name} of {pool}{role}" if group else f" of {pool}{role}"


def _left(group: Vdev | None) -> str:
    """Return a note when a top-level group has no redundancy left; else an empty string."""
    if group is None:
        return ""
    bad = sum(not any(leaf.state in HEALTHY for leaf in each.all() if leaf.leaf) for each in group.below)
    spare = len(group.below) - 1 if group.kind == "mirror" else _parity(group)
    if spare is None or bad < spare:
        return ""
    return (
        f"; {group.name} has no redundancy left" if bad == spare else f"; {group.name} has lost more than it can spare"
    )


def _parity(group: Vdev) -> int | None:
    digits = group.kind.removeprefix("raidz").removeprefix("draid")[:1] or group.name.removeprefix(group.kind)[:1]
    if not group.kind.startswith(("raidz", "draid")):
        return None
    return int(digits) if digits.isdigit() else 1


def _mending(status: PoolStatus) -> str:
    scan = status.scan
    if scan is None or scan.kind != "resilver" or scan.state != "running":
        return ""
    return "; a resilver is running" + (f", {scan.share:.0%} done" if scan.share is not None else "")


def _of_counters(status: PoolStatus) -> Iterator[PoolFinding]:
    """Yield findings for counted errors: of devices, and of groups whose devices all have none."""
    for _, device in _leaves(status):
        if device.reads or device.writes or device.checksums:
            yield _counted(device, status.name)
    for group in status.devices:
        if group.checksums and not any(leaf.checksums for leaf in group.all() if leaf.leaf):
            yield _counted(group, status.name)


def _counted(device: Vdev, pool: str) -> PoolFinding:
    counts = ((device.reads, "read"), (device.writes, "write"), (device.checksums, "checksum"))
    errors = " and ".join(show_count(number, f"{kind} error") for number, kind in counts if number)
    says = f"{device.name} of {pool} gave {errors}"
    hint = f"look at its cable, its power and `smartctl -a`; then `zpool clear {quoted(pool)}`, and replace it if errors come back"
    return PoolFinding(word="errors", grave=True, says=says, hint=hint)


def _of_data(status: PoolStatus) -> Iterator[PoolFinding]:
    if not status.errors or status.state == "SUSPENDED":  # then it counts blocks that it could not write
        return
    named = ", ".join(status.damaged[:_NAMED])
    more = len(status.damaged) - _NAMED
    told = f": {named}" + (f" and {more} more" if more > 0 else "") if named else ""
    yield PoolFinding(
        word="lost", grave=True,
        says=f"{status.name} has {show_count(status.errors, 'error')} that nothing could repair, so data is lost{told}",
        hint=f"restore these files from a copy, or destroy the snapshots that are named; then `zpool scrub {quoted(status.name)}`",
    )  # fmt: skip


def _of_space(world: PoolSurvey, options: PoolOptions) -> Iterator[PoolFinding]:
    used = world.whole.share * 100
    if used < options.capacity_warn.number:
        return
    grave = used >= options.capacity_fail.number
    how = "stops soon" if grave else "is slow by now" if used >= _LOST else "becomes slow"
    pool, free = world.status.name, show_size(world.whole.free)
    yield PoolFinding(
        word="capacity", grave=grave,
        says=f"{pool} is {used:.0f} % full, with {free} left: writing to it {how}",
        hint=f"destroy snapshots or data (`zfs list -o space -r {quoted(pool)}` shows what uses the space), or add a vdev",
    )  # fmt: skip


def _of_scans(world: PoolSurvey, options: PoolOptions) -> Iterator[PoolFinding]:
    scan, pool = world.status.scan, world.status.name
    scrub = (
        f"`zpool scrub {quoted(pool)}`"
        if options.scrub_every is None
        else "this job starts one by itself, see scrub-every"
    )
    if scan is None:
        yield PoolFinding(word="old-scrub", grave=False, says=f"{pool} was never scrubbed", hint=scrub)
        return
    ago = show_age(scan.ended, world.at) if scan.ended else "just now"
    if scan.state == "canceled":
        says = f"the {scan.kind} of {pool} was cancelled {ago}, so it is not known whether all of it can be read"
        yield PoolFinding(word="old-scrub", grave=False, says=says, hint=scrub)
    elif scan.ended and is_older(scan.ended, options.scrub_late, world.at):
        says = f"all of {pool} was last read {ago}; scrub-late is {show_duration(options.scrub_late)}"
        yield PoolFinding(word="old-scrub", grave=False, says=says, hint=scrub)
    if scan.repaired:
        says = f"the scrub of {pool} repaired {show_size(scan.repaired)}: some disk gives back other data than it got"
        yield PoolFinding(
            word="repaired", grave=False, says=says, hint="look at the disks with `smartctl -a`, and at the memory"
        )
    if scan.errors and not world.status.errors:
        says = f"the last {scan.kind} of {pool} found {show_count(scan.errors, 'error')} that it could not repair"
        yield PoolFinding(
            word="other", grave=False, says=says, hint=f"`zpool scrub {quoted(pool)}` shows whether they are gone"
        )


def _of_slow(status: PoolStatus) -> Iterator[PoolFinding]:
    for _, device in _leaves(status):
        if device.slow:
            says = f"{device.name} of {status.name} took more than 30 s for {show_count(device.slow, 'answer')}"
            yield PoolFinding(
                word="slow", grave=False, says=says, hint="look at its cable and `smartctl -a`: such disks fail soon"
            )


def _of_the_rest(status: PoolStatus, found: Iterable[PoolFinding]) -> Iterator[PoolFinding]:
    """Report zpool's own message when no other finding explains it. Why not features: an old pool is healthy."""
    explained = {"state", "device", "errors", "lost"} & {finding.word for finding in found}
    resilvering = status.scan is not None and status.scan.kind == "resilver" and status.scan.state == "running"
    if not status.says or explained or resilvering or "features are" in status.says or "on-disk format" in status.says:
        return
    says = f"zpool says of {status.name}: {status.says}"
    yield PoolFinding(
        word="other", grave=False, says=says, hint=status.action or f"see `zpool status -v {quoted(status.name)}`"
    )


def _leaves(status: PoolStatus) -> Iterator[tuple[Vdev | None, Vdev]]:
    """Yield each device with its top-level group; None: the device is a top-level vdev itself."""
    for top in status.devices:
        for each in top.all():
            if each.leaf:
                yield (None if each is top else top), each
