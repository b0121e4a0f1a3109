"""One interface for disks with a filesystem or a pool: peek, attach, mark, detach, abandon."""

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from orchestrator.disks import commands, filesystem, pool
from orchestrator.disks.errors import DiskBusy
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.names import printable_word, unescape_mount_path
from orchestrator.domain.rotation import Disk, DiskMarker, DiskUsability
from orchestrator.process.executor import Reader, Writer

_FEW = 3
_TRY_AGAIN = "poolferry disks scan"


def _of(disk: Disk) -> ModuleType:
    return pool if disk.content == "zfs" else filesystem


@contextmanager
def _named_holders(disk: Disk, again: str) -> Iterator[None]:
    """Let a DiskBusy name what uses the disk, and the command that then does what was tried."""
    try:
        yield
    except DiskBusy as busy:
        why, hint = _holders(disk)
        raise DiskBusy(why or busy.why, evidence=busy.evidence, hint=f"{hint}, then: {again}") from busy


def _holders(disk: Disk) -> tuple[str, str]:
    """Return what uses the disk, empty when nothing is found, and what ends that."""
    from orchestrator.process.holders import find_mount_holders

    mounts = _mounts(disk)
    holders = find_mount_holders(mounts)
    told = [f"{each} uses {printable_word(each.at)}" for each in holders[:_FEW]]
    more = f"; and {len(holders) - _FEW} more" if len(holders) > _FEW else ""
    if any(holder.pid == os.getpid() for holder in holders):
        return "; ".join(told) + more, "restart poolferry"
    if holders:
        pids = " ".join(str(each.pid) for each in holders)
        return "; ".join(told) + more, f"leave the folder, or end what uses it (`kill {pids}`)"
    folder = commands.mountpoint(disk.name)
    if below := [path for path in mounts if path.startswith(f"{folder}/")]:
        return f"{printable_word(below[-1])} is mounted on it", f"unmount that (`umount {shlex.quote(below[-1])}`)"
    return "", "wait a minute"


def _mounts(disk: Disk) -> list[str]:
    """Return where something of the disk is mounted here. Source: proc(5): mountinfo, octal escapes for blanks."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        mounts = [(line.split(" ", 5)[4], line.rpartition(" - ")[2].split(" ")[1]) for line in file]
    name, folder = commands.node(disk.name), commands.mountpoint(disk.name)
    return [
        unescape_mount_path(path)
        for path, source in mounts
        if path == folder or path.startswith(f"{folder}/") or source == name or source.startswith(f"{name}/")
    ]


def peek(disk: Disk, device: BlockDevice, writer: Writer) -> DiskMarker | None:
    """Read the marker on the disk without changing the disk; None: there is none. Raises: OrchestratorError."""
    with _named_holders(disk, _TRY_AGAIN):
        return pool.peek(disk, device, writer) if disk.content == "zfs" else filesystem.peek(disk, device, writer)


def attach(disk: Disk, device: BlockDevice, writer: Writer) -> None:
    """Make a verified disk usable. Raises: OrchestratorError; then nothing has changed."""
    with _named_holders(disk, _TRY_AGAIN):
        _of(disk).attach(disk, device, writer)


def mark(disk: Disk, marker: DiskMarker, writer: Writer, notes: str) -> None:
    """Write the marker; it is on the medium when this returns. Raises: OrchestratorError."""
    _of(disk).mark(disk, marker, writer, notes)


def use(disk: Disk, device: BlockDevice, reader: Reader) -> DiskUsability:
    """Return whether copies may be written to a present disk."""
    if disk.content == "zfs":
        return pool.use(disk, device, reader)
    return filesystem.use(disk, device, reader)


def prepare(disk: Disk, path: str, writer: Writer) -> None:
    """Create the parents of a job's copies below `path` on the disk. Raises: OrchestratorError."""
    if disk.content == "zfs":
        pool.prepare(disk, path.rpartition("/")[0], writer)


def is_still_imported(disk: Disk, reader: Reader) -> bool:
    """Return True when a mount or pool of a disk that is gone cannot be removed."""
    return disk.content == "zfs" and pool.is_still_imported(disk, reader)


def detach(disk: Disk, writer: Writer) -> None:
    """Release the disk; all is on the medium then. Raises: OrchestratorError, such as DiskBusy."""
    with _named_holders(disk, f"poolferry disks eject {disk.name}"):
        _of(disk).detach(disk, writer)


def abandon(disk: Disk, writer: Writer) -> None:
    """Remove the remains of a pulled-out disk, as far as the kernel allows it. Raises: OrchestratorError."""
    _of(disk).abandon(disk, writer)
