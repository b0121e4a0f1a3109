"""Enrollment check of a device: the only decision by which anything is ever erased."""

from collections.abc import Iterable, Sequence

from orchestrator.domain.device import BlockDevice
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Refusal
from orchestrator.domain.rotation import Disk

CONTENT_SIGNATURES = {"zfs": "zfs_member"}  # contents for which blkid has another name


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrollmentRequest:
    """Enrollment request. `erase`: the serial that the person typed as consent to erase; empty: no consent.

    `adopt`: its content stays. `inner`: consent to a disk that is not removable.
    """

    name: str
    set: str
    content: str
    adopt: bool
    erase: str
    inner: bool
    locked: bool


def refuse_enrollment(
    enroll_request: EnrollmentRequest, device: BlockDevice, devices: Sequence[BlockDevice], disks: Iterable[Disk]
) -> Refusal | None:
    """Return why a device cannot be enrolled; None when it can."""
    family = [each for each in devices if each.disk == device.disk or each.name in device.above]
    whose = next((disk for disk in disks if device.uuid and device.uuid in (disk.identity, disk.inside)), None)
    if whose is not None:
        return _no(f"{device.called} is disk {whose.name} of the set {whose.set} already", "plug in another disk")
    if not device.size:
        return _no(f"{device.called} is empty: there is no medium in it", "put one in")
    if not device.answers:
        return _no(f"{device.called} cannot be read", "another port, another cable, or another disk")
    if device.read_only:
        return _no(f"{device.called} can only be read", "move the switch on the disk or its case")
    places = [place for each in family for place in each.at]
    if places:
        return _no(
            f"{device.called} is in use: mounted at {', '.join(places)}",
            "a disk of the system is never enrolled; unmount any other",
        )
    above = [name for each in family for name in each.above]
    if above:
        return _no(
            f"{device.called} is in use by {', '.join(dict.fromkeys(above))}", "close it, or export its pool, first"
        )
    if not device.external and not enroll_request.inner:
        return _no(f"{device.called} cannot be pulled out, as far as the kernel knows", "--inner says that it can")
    return _adoptable(enroll_request, device) if enroll_request.adopt else _erasable(enroll_request, device)


def _erasable(enroll_request: EnrollmentRequest, device: BlockDevice) -> Refusal | None:
    if device.blank:
        return None
    held = ", ".join(
        filter(None, (device.kind, device.label and f'"{device.label}"', device.table and f"a {device.table} table"))
    )
    held = held or f"{len(device.parts)} partitions"
    wanted = device.serial or str(device.size)
    what = "serial" if device.serial else "size in bytes, as it has no serial"
    if enroll_request.erase == wanted:
        return None
    if enroll_request.erase:
        return _no(
            f'"{enroll_request.erase}" is not the {what} of {device.called}, which holds {held}',
            "look at the disk's own label",
        )
    hint = f"the same command with --adopt keeps what is on it; with --erase and the disk's {what} it erases all of it"
    return _no(f"{device.called} is not blank: it holds {held}", hint)


def refuse_changed_device(device: BlockDevice, again: BlockDevice | None, held: Sequence[str] | None) -> Refusal | None:
    """Return why a device must not be erased after all; None when a new survey shows the judged device unchanged.

    `held`: the signatures on it and its partitions, None where they cannot be read. Why two surveys: a device that is not blank
    is erased only with consent, and its content must still be the one that the person consented to.
    """
    if again is None:
        return _no(f"{device.called} is gone", "plug it in again")
    if again != device:
        return _no(f"{device.called} has changed since it was looked at", "look what is on it, and try again")
    if held is None:
        return _no(f"{device.called} cannot be read", "another port, another cable, or another disk")
    if device.blank and held:
        hint = "somebody has just put something on it; the same command with --erase and the disk's serial erases all of it"
        return _no(f"{device.called} is not blank any more: it holds {', '.join(held)}", hint)
    return None


def _adoptable(enroll_request: EnrollmentRequest, device: BlockDevice) -> Refusal | None:
    wanted = (
        "crypto_LUKS"
        if enroll_request.locked
        else CONTENT_SIGNATURES.get(enroll_request.content, enroll_request.content)
    )
    if device.kind == wanted:
        return None
    held = device.kind or (f"a {device.table} table" if device.table else "nothing")
    return _no(
        f"{device.called} holds {held}, not {wanted}", "say what is on it by --content, or name one of its partitions"
    )


def _no(why: str, hint: str) -> Refusal:
    return Refusal(why=f"{why}; nothing was written to it", evidence=(), hint=hint)
