"""Disks that poolferry switched off and that are still plugged in; the kernel finds them again on request.

A note below /run holds the USB port and the kernel's number of the device there; a newly plugged-in device gets another number.
"""

import contextlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime

from orchestrator.disks.run import try_all
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.domain.rotation import Disk
from orchestrator.process.executor import Writer

NOTES = "/run/poolferry-asleep"
BLOCK = "/sys/block"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsbPort:
    """USB connection of a disk. `port`: the folder of its USB device; `number`: its kernel number; `host`: its SCSI host."""

    port: str
    number: str
    host: str


def socket_of(disk: str, block: str = BLOCK) -> UsbPort | None:
    """Return the USB connection of a disk by its kernel name; None when it is not on USB."""
    path = os.path.realpath(os.path.join(block, disk))
    host = next((part for part in path.split("/") if part.startswith("host") and part[4:].isdigit()), "")
    while path != "/":
        number = _read(os.path.join(path, "devnum"))
        if number:
            return UsbPort(port=path, number=number, host=host) if host else None
        path = os.path.dirname(path)
    return None


def note_asleep(disk: Disk, socket: UsbPort, notes: str = NOTES) -> None:
    """Record that a disk was switched off. Why no error: without the record it is only woken by hand."""
    try:
        os.makedirs(notes, mode=0o755, exist_ok=True)
        with open(os.path.join(notes, disk.identity), "w", encoding="utf-8") as file:
            file.write(f"{socket.port}\n{socket.number}\n{socket.host}\n")
    except OSError:
        return


def find_asleep(disk: Disk, notes: str = NOTES) -> tuple[UsbPort, datetime] | None:
    """Return the port of a disk that poolferry switched off and that is still plugged in, and since when it sleeps; or None."""
    path = os.path.join(notes, disk.identity)
    words = _read(path).split("\n")
    if len(words) != 3:
        return None
    socket = UsbPort(port=words[0], number=words[1], host=words[2])
    if _read(os.path.join(socket.port, "devnum")) != socket.number:
        return None
    try:
        return socket, datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except OSError:
        return None


def wake_disks(
    disks: Iterable[Disk], writer: Writer, notes: str = NOTES, links: str = "/dev/disk/by-uuid"
) -> tuple[Disk, ...]:
    """Rescan the ports of sleeping disks; return these disks. Their records stay until a visit begins."""
    asleep = (disk for disk in disks if not os.path.exists(os.path.join(links, disk.identity)))
    found = [(disk, told[0]) for disk in asleep if (told := find_asleep(disk, notes)) is not None]
    try_all(writer, (rescan_pipeline(socket.host) for _, socket in found))
    if found:
        try_all(writer, [single_command("udevadm", "settle", "--timeout=20", effect=Effect.READS)])
    return tuple(disk for disk, _ in found)


def forget_asleep(disk: Disk, notes: str = NOTES) -> None:
    """Remove the record of a disk that is used again."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(notes, disk.identity))


def rescan_pipeline(host: str) -> Pipeline:
    """Return the pipeline to rescan a SCSI host. Source: Documentation/ABI/testing/sysfs-class-scsi_host."""
    every = Command(argv=("printf", "%s", "- - -"), effect=Effect.READS)
    scan = Command(argv=("dd", f"of=/sys/class/scsi_host/{host}/scan", "status=none"), effect=Effect.WRITES)
    return Pipeline(stages=(every, scan))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return file.read().strip()
    except OSError:
        return ""
