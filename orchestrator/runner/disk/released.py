"""Disks that were said to be safe to remove, and have not been away since: nothing automatic touches them.

A note below /run holds the kernel's number of the plugged-in device, which no later one gets; a disk that was switched off has
the note of `disks/power.py`. A restart of the machine counts as plugging in.
"""

import contextlib
import os

from orchestrator.disks.power import find_asleep, forget_asleep
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.rotation import Disk
from orchestrator.runner.disk.lease import device_sequence, read_note, write_note
from orchestrator.runner.locks import VISITS, visit_lock_folder


def note_released(disk: Disk, device: BlockDevice, state: str, *, folder: str = VISITS) -> None:
    """Record that the disk was said to be safe to remove. Why no error: the visit has ended well all the same."""
    with contextlib.suppress(OSError):
        told: dict[str, object] = {"device": device.disk, "sequence": device_sequence(device.disk)}
        write_note(_note(disk, visit_lock_folder(state, folder)), told)


def forget_released(disk: Disk, state: str, *, folder: str = VISITS) -> None:
    """Remove the record, as a person wants the disk to be used again. The caller holds the lock of its visit."""
    forget_asleep(disk)
    with contextlib.suppress(OSError):
        os.unlink(_note(disk, visit_lock_folder(state, folder)))


def is_released(disk: Disk, state: str, *, folder: str = VISITS) -> bool:
    """Return True when the disk was said to be safe, and has been plugged in ever since. No program is started."""
    if find_asleep(disk) is not None:
        return True
    told = read_note(_note(disk, visit_lock_folder(state, folder, make=False)))
    if told is None:
        return False
    device, sequence = str(told.get("device", "")), str(told.get("sequence", ""))
    return bool(device and sequence) and "/" not in device and device_sequence(device) == sequence


def released_sentence(disk: Disk) -> str:
    """Return why a disk is left alone that was said to be safe to remove."""
    return f"disk {disk.called} was said to be safe to remove and is still plugged in: nothing touches it until it was away"


def released_hint(disk: Disk) -> str:
    """Return how such a disk is used again."""
    return f"take it away, and plug in another one; to use this one again: poolferry disks scan {disk.name}"


def _note(disk: Disk, folder: str) -> str:
    return f"{folder}/released-{disk.identity}"
