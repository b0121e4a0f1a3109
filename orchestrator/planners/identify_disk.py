"""Disk recognition: by the identity of the filesystem or pool, by poolferry's marker, and by the generation.

Never by name, label or serial alone: bridges report the serials of other disks, and a copy of a disk has its label. Each state
has its own sentence (the facts and their meaning) and hint. Nothing is written to a disk that is not READY.
"""

import shlex
from collections.abc import Container, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import count

from orchestrator.domain.authentication import AuthenticationKey, Authenticity, judge_marker
from orchestrator.domain.command_line import quoted
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import MOUNT_ROOT, POOL_PREFIX, Disk, DiskMarker, DiskRecord, DiskState
from orchestrator.domain.run import RunReport
from orchestrator.domain.units import show_count

UNPLUG = "it may be unplugged"
# OpenZFS keeps a pool whose disk was removed during an export, and the lock that every survey of any pool waits for.
HANGS = "hangs in the kernel, as the disk was pulled out while it was let go"
RESTART = (
    "restart this machine, then plug the disk in again: what was copied is kept, and the copy continues; until then other pools "
    "may not answer either"
)
LOOK_ALIKE_HINT = "unplug it, and find out where it comes from; if it is the disk itself after all"
_ANOTHER = "plug it in again; if that does not help: in another port, or with another cable"


class DeviceState(StrEnum):
    """Result of recognizing a device. TO_VERIFY: by its identity an enrolled disk; its marker is not read yet."""

    READY = "ours-ready"
    TO_VERIFY = "to-verify"
    FOREIGN = "foreign"
    BLANK = "blank"
    CLONE = "clone"
    STALE = "stale-clone"
    NEWER = "newer-than-we-know"
    ANOTHER_HOST = "another-host"
    LOOK_ALIKE = "look-alike"
    REFORMATTED = "reformatted"
    READ_ONLY = "read-only"
    LOCKED = "locked"
    NOT_VERIFIED = "not-verified"
    IN_USE = "in-use"
    SET_ASIDE = "set-aside"
    SILENT = "does-not-answer"
    NEEDS_CHECK = "needs-check"
    TOO_NEW = "too-new"
    HELD = "pool-suspended"
    VISITED = "being-visited"
    LEASED = "leased"
    RELEASED = "safe-to-remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifiedDevice:
    """A device and its recognition. `disk` None: not an enrolled disk."""

    state: DeviceState
    device: BlockDevice
    disk: Disk | None
    says: str
    hint: str


NOT_NOW = (DeviceState.VISITED, DeviceState.LEASED, DeviceState.RELEASED)  # nothing is wrong with the disk


class VisitOutcome(StrEnum):
    """The outcome of a visit. REFUSED: it was a wrong disk, or it could not be opened; nothing was written to it."""

    DONE = "done"
    INCOMPLETE = "incomplete"
    PULLED_OUT = "pulled-out"
    BUSY = "busy"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitResult:
    """A finished visit. `seen`: the state of the disk; `safe`: it may be unplugged.

    `readings`: copies that were read again within the set's budget. `beside`: other disks in its case that are still in use.
    `health`: as in DiskVisit. `only_read`: the visit was for a restore, a reading or a restore test, and brought nothing.
    """

    disk: Disk
    ending: VisitOutcome
    seen: DeviceState
    why: str
    hint: str
    safe: bool
    reports: tuple[RunReport, ...] = ()
    readings: tuple[RunReport, ...] = ()
    beside: str = ""
    health: str | None = None
    only_read: bool = False


def identify_devices(
    devices: Sequence[BlockDevice],
    disks: Iterable[Disk],
    known: Iterable[DiskRecord],
    held: Mapping[str, bool] | None = None,
) -> tuple[IdentifiedDevice, ...]:
    """Recognize each device that is an enrolled disk or was plugged in, without opening it.

    `held`: names of disks whose pool is still imported, and whether it is being exported.
    """
    held = held or {}
    ours = {disk.identity: disk for disk in disks}
    remembered = {each.identity: each for each in known}
    above = {name for device in devices for name in device.above}
    nodes = f"/dev/mapper/{POOL_PREFIX}"  # our own device nodes: one may still point to a disk that was pulled out
    leaves = [
        device for device in devices
        if not device.parts and device.name not in above and not device.path.startswith(nodes)
    ]  # fmt: skip
    found = {device.uuid for device in leaves if device.uuid}
    lost = (disk for disk in ours.values() if disk.name in held and disk.identity not in found)
    told = [identify_lost_disk(disk, hangs=held[disk.name]) for disk in lost]
    for device in leaves:
        disk = ours.get(device.uuid)
        if disk is not None:
            told.append(_ours(device, disk, leaves, remembered.get(device.uuid)))
        elif device.external and device.size:
            told.append(_stranger(device, remembered, found, {disk.set for disk in ours.values()}))
    return tuple(told)


def _ours(device: BlockDevice, disk: Disk, leaves: Sequence[BlockDevice], known: DiskRecord | None) -> IdentifiedDevice:
    if told := identify_twins(device, disk, leaves):
        return told
    if known is not None and known.standing is not DiskState.ACTIVE:
        says = f"disk {disk.name} was said to be {known.standing}, and is here; nothing was written to it"
        return _describe_device(
            DeviceState.SET_ASIDE, device, disk, says, f"to use it again: poolferry disks readopt {disk.name}"
        )
    if not device.answers:
        return _describe_device(
            DeviceState.SILENT,
            device,
            disk,
            f"disk {disk.name} does not answer ({device.path}); nothing was copied",
            _ANOTHER,
        )
    foreign = [place for place in device.at if not place.startswith(f"{MOUNT_ROOT}/")]
    if foreign:
        says = f"disk {disk.name} is mounted at {foreign[0]}, by somebody else; nothing was written to it"
        return _describe_device(
            DeviceState.IN_USE,
            device,
            disk,
            says,
            f"umount {shlex.quote(foreign[0])}; and keep the desktop from mounting it",
        )
    if device.read_only:
        says = f"disk {disk.name} can only be read ({device.path}); nothing was copied"
        return _describe_device(
            DeviceState.READ_ONLY, device, disk, says, "move the switch on the disk or its case, and plug it in again"
        )
    return _describe_device(DeviceState.TO_VERIFY, device, disk, f"disk {disk.called} is here ({device.path})", "")


def identify_twins(device: BlockDevice, disk: Disk, devices: Sequence[BlockDevice]) -> IdentifiedDevice | None:
    """Report a disk that is there twice; None: it is there once. `devices`: all that hold something, none of ours above them."""
    twins = [each for each in devices if (each.uuid, each.sub) == (device.uuid, device.sub)]
    if len(twins) < 2:
        return None
    places = " and ".join(
        f"{each.called} ({each.path})" if each.path not in each.called else each.called for each in twins
    )
    says = f"disk {disk.name} is there twice: {places}; one is a copy of the other, and nothing was written to either"
    hint = (
        f"unplug the copy: the disk's sticker shows which one is the disk, and `poolferry disks show {disk.name}` its serial; then: "
        f"poolferry disks scan {disk.name}"
    )
    return _describe_device(DeviceState.CLONE, device, disk, says, hint)


def identify_lost_disk(disk: Disk, *, hangs: bool) -> IdentifiedDevice:
    """Report a pool that lost its disk: until the disk returns it cannot be used or released. `hangs`: never, see HANGS."""
    device = BlockDevice(
        name="", path=f"/dev/mapper/{POOL_PREFIX}{disk.name}", disk="", size=0, kind="zfs_member", uuid=disk.identity, sub="", label="",
        read_only=False, external=False, serial="", model="", wwn="",
    )  # fmt: skip
    if hangs:
        return _describe_device(DeviceState.HELD, device, disk, f"the pool of disk {disk.name} {HANGS}", RESTART)
    says = (
        f"the pool of disk {disk.name} is still held, and its disk is gone: it was pulled out before it was let go; "
        "other pools and disks are not harmed by it"
    )
    hint = (
        f"plug disk {disk.called} in again, in any port: the next visit continues and lets it go; if it never comes back, "
        "only a restart of this machine takes the pool away"
    )
    return _describe_device(DeviceState.HELD, device, disk, says, hint)


def _stranger(
    device: BlockDevice, remembered: Mapping[str, DiskRecord], found: set[str], sets: set[str]
) -> IdentifiedDevice:
    """Describe an unknown device. Why no serial if the known disk is here: many bridges report one serial for all."""
    if not device.answers:
        says = f"unknown disk {device.called}: it cannot be read, and nothing was written to it"
        return _describe_device(DeviceState.SILENT, device, None, says, _ANOTHER)
    was = next(
        (each for each in remembered.values()
         if each.serial and each.serial == device.serial and each.identity not in found),
        None,
    )  # fmt: skip
    if was is not None:
        how = "is blank now" if device.blank else f"holds {_content(device)} now"
        says = f"{device.called} looks like disk {was.name}, but {how}; nothing was written to it"
        again = _enroll(device, {was.set}, name=next_disk_name(was.name, remembered))
        hint = f"where that is right: poolferry disks lost {was.name}; then {again}; else {UNPLUG}"
        return _describe_device(DeviceState.REFORMATTED, device, None, says, hint)
    if device.blank:
        says = f"unknown disk {device.called}: it is blank, and nothing was written to it"
        return _describe_device(
            DeviceState.BLANK, device, None, says, f"to use it: {_enroll(device, sets)}; else {UNPLUG}"
        )
    says = (
        f"unknown disk {device.called}: it holds {_content(device)} and is not one of ours; nothing was written to it"
    )
    hint = (
        f"{UNPLUG}; to make it one: {_enroll(device, sets)} (it names how to keep what is on it, and how to erase it)"
    )
    return _describe_device(DeviceState.FOREIGN, device, None, says, hint)


def _enroll(device: BlockDevice, sets: set[str], *, name: str = "NAME") -> str:
    """Return the command that enrolls a device. NAME is the person's choice, and so is the set where there are several."""
    return f"poolferry disks enroll {quoted(device.path)} --set {next(iter(sets)) if len(sets) == 1 else 'SET'} --name {name}"


def next_disk_name(name: str, taken: Container[str]) -> str:
    """Return a free name after a disk's former one, such as red-2: that one stays with the old disk's history."""
    stem, dash, number = name.rpartition("-")
    stem, last = (stem, int(number)) if dash and stem and number.isascii() and number.isdecimal() else (name, 1)
    return next(each for each in (f"{stem}-{last + more}" for more in count(1)) if each not in taken)


def _content(device: BlockDevice) -> str:
    kinds = {"zfs_member": "a pool", "crypto_LUKS": "a LUKS container", "": "a partition table"}
    named = f' "{device.label}"' if device.label else ""
    return kinds.get(device.kind, device.kind) + named


def verify_identity(
    disk: Disk,
    device: BlockDevice,
    marker: DiskMarker | None,
    known: DiskRecord | None,
    owner: str,
    *,
    key: AuthenticationKey,
    tagged: bool,
) -> IdentifiedDevice:
    """Verify that an opened disk is the expected one. `owner`: this machine; `tagged`: its key tagged the disk before."""
    state, says, hint = _judge(disk, marker, known, owner)
    if marker is not None and state is not DeviceState.ANOTHER_HOST:
        shown = judge_marker(marker, disk, key, tagged=tagged)
        old = state is DeviceState.STALE and not marker.authentication  # a copy from the time before there were tags
        if state is DeviceState.READY or (shown is Authenticity.FORGED and not old):
            state, says, hint = _doubt(disk, marker, shown, known=known is not None) or (state, says, hint)
    return _describe_device(state, device, disk, says, hint)


def _doubt(disk: Disk, marker: DiskMarker, shown: Authenticity, *, known: bool) -> tuple[DeviceState, str, str] | None:
    """Return why the marker's tag does not show that the disk is ours; None where it does, or need not."""
    readopt = f"poolferry disks readopt {disk.name}"
    if shown is Authenticity.FORGED:
        says = (
            f"a disk that looks like {disk.name}: its marker says that it is ours, and does not have the tag of this host's key; "
            "nothing was written to it"
        )
        return DeviceState.LOOK_ALIKE, says, f"{LOOK_ALIKE_HINT}: {readopt}"
    if shown is Authenticity.OTHER_KEY:
        other = marker.authentication.partition(":")[0][:8]
        says = f"the marker of disk {disk.name} has the tag of the key {other}, which is not on this machine; nothing was written to it"
        return (
            DeviceState.NOT_VERIFIED,
            says,
            f"unplug it; if the state directory was lost, and this is the disk: {readopt}",
        )
    if shown is Authenticity.EARLIER and not known:
        says = (
            f"the marker of disk {disk.name} has no tag, and history does not know the disk; nothing was written to it"
        )
        return DeviceState.NOT_VERIFIED, says, f"look what is on it; if it is the right one: {readopt}"
    return None


def _judge(disk: Disk, marker: DiskMarker | None, known: DiskRecord | None, owner: str) -> tuple[DeviceState, str, str]:
    readopt = f"poolferry disks readopt {disk.name}"
    nothing = "nothing was written to it"
    if marker is None:
        says = f"disk {disk.name} has the right identity, but no marker of ours on it; {nothing}"
        return DeviceState.NOT_VERIFIED, says, f"look what happened to it; if it is the right one: {readopt}"
    if marker.owner != owner:
        says = f'this is disk {marker.name} of the machine "{marker.host}"; {nothing}'
        return (
            DeviceState.ANOTHER_HOST,
            says,
            f"unplug it; if that machine is no more, and this one took its place: {readopt}",
        )
    if (marker.name, marker.set) != (disk.name, disk.set) or (known is not None and marker.disk != known.disk):
        says = f"the marker on it says disk {marker.name} of the set {marker.set}, not {disk.name} of {disk.set}; {nothing}"
        return (
            DeviceState.NOT_VERIFIED,
            says,
            f"look at [disk.{disk.name}] in targets.toml; if that is right: {readopt}",
        )
    if known is not None and marker.generation < known.written:
        behind = f"it is at visit {marker.generation}, and disk {disk.name} has had {known.written}"
        says = f"an older copy of disk {disk.name}: {behind}; {nothing}"
        return (
            DeviceState.STALE,
            says,
            f"unplug it, and plug in the disk itself; if that is lost and this one shall be it: {readopt}",
        )
    if known is not None and marker.generation > known.generation:
        ahead = f"it has had {show_count(marker.generation, 'visit')}, and history knows of {known.generation}"
        says = f"disk {disk.name} is newer than what is remembered of it: {ahead}; {nothing}"
        return DeviceState.NEWER, says, f"if history was put back from a copy: {readopt}; else find out who wrote to it"
    return DeviceState.READY, f"disk {disk.called} is here, and it is the one", ""


def _describe_device(
    state: DeviceState, device: BlockDevice, disk: Disk | None, says: str, hint: str
) -> IdentifiedDevice:
    return IdentifiedDevice(state=state, device=device, disk=disk, says=says, hint=hint)
