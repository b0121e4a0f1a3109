"""One interface for disks with a filesystem or a pool: peek, attach, mark, detach, abandon."""

from types import ModuleType

from orchestrator.disks import filesystem, pool
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.rotation import Disk, DiskMarker, DiskUsability
from orchestrator.process.executor import Reader, Writer


def _of(disk: Disk) -> ModuleType:
    return pool if disk.content == "zfs" else filesystem


def peek(disk: Disk, device: BlockDevice, writer: Writer) -> DiskMarker | None:
    """Read the marker on the disk without changing the disk; None: there is none. Raises: OrchestratorError."""
    if disk.content == "zfs":
        return pool.peek(disk, device, writer)
    return filesystem.peek(disk, device, writer)


def attach(disk: Disk, device: BlockDevice, writer: Writer) -> None:
    """Make a verified disk usable. Raises: OrchestratorError; then nothing has changed."""
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
    _of(disk).detach(disk, writer)


def abandon(disk: Disk, writer: Writer) -> None:
    """Remove the remains of a pulled-out disk, as far as the kernel allows it. Raises: OrchestratorError."""
    _of(disk).abandon(disk, writer)
