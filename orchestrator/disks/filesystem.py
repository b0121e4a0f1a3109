"""Disks with a filesystem: opened read-only to be recognized, then for copies, then released."""

import json

from orchestrator.disks import commands
from orchestrator.disks.detect import parse_probe
from orchestrator.disks.errors import explain
from orchestrator.disks.marker import marker_text, parse_marker, read_file_pipeline, write_file_pipelines
from orchestrator.disks.run import attempt, do, says, write_out
from orchestrator.domain.device import Device
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.rotation import Disk, Marker, Use
from orchestrator.process.executor import Reader, Writer
from orchestrator.process.pipeline import broken

_MENDED = (0, 1)  # Source: e2fsck(8): 0 no errors, 1 errors corrected


def peek(disk: Disk, device: Device, writer: Writer) -> Marker | None:
    """Read the marker on the disk without changing the disk. Raises: OrchestratorError."""
    tidy(disk, writer)
    do(writer, commands.make_mountpoint(disk.name))
    path = _opened(disk, device, writer, read_only=True)
    try:
        do(writer, commands.only_read(path, on=True), commands.mount_untouched(path, disk.content, disk.name))
        found = says(writer, read_file_pipeline(commands.mountpoint(disk.name)))
    finally:
        _tidied(disk, path, writer)
    return parse_marker(found) if found is not None else None


def _tidied(disk: Disk, path: str, writer: Writer) -> None:
    """Release a disk that was only read. Raises: Busy."""
    try:
        tidy(disk, writer)
    finally:
        if disk.inside is None:
            attempt(writer, commands.only_read(path, on=False))


def attach(disk: Disk, device: Device, writer: Writer) -> None:
    """Mount a verified disk. Raises: OrchestratorError; then all is as before."""
    do(writer, commands.make_mountpoint(disk.name))
    path = _opened(disk, device, writer, read_only=False)
    try:
        if disk.content == "ext4":
            _check(path, writer)
        do(writer, commands.mount(path, disk.content, disk.name))
    except OrchestratorError:
        tidy(disk, writer)
        raise


def _check(path: str, writer: Writer) -> None:
    result = attempt(writer, commands.check_filesystem(path))
    if result.exits[0] not in _MENDED:
        raise explain(broken(commands.check_filesystem(path), result))


def _opened(disk: Disk, device: Device, writer: Writer, *, read_only: bool) -> str:
    """Return the device that holds the filesystem. Raises: OrchestratorError when the key does not open it, or opens another one."""
    if disk.inside is None:
        return device.path
    do(writer, commands.unlock(device.path, disk.key_file or "", disk.name, read_only=read_only))
    told = parse_probe(says(writer, commands.inside_pipeline(disk.name)) or b"")
    found = next(iter(told.values()), {}).get("UUID", "").lower()
    if found != disk.inside:
        attempt(writer, commands.lock(disk.name))
        raise OrchestratorError(
            f"the LUKS container of disk {disk.name} holds {found or 'nothing that is known'}, not {disk.inside}",
            cure=f"look at inside in [disk.{disk.name}] of targets.toml",
        )
    return f"/dev/mapper/{commands.node(disk.name)}"


def mark(disk: Disk, marker: Marker, writer: Writer, notes: str) -> None:
    """Write the marker; it is on the medium when this returns. Raises: OrchestratorError."""
    given = f"{notes}/marker-{disk.name}"
    with open(given, "w", encoding="utf-8") as file:
        file.write(marker_text(marker))
    do(writer, *write_file_pipelines(commands.mountpoint(disk.name), given))


def use(disk: Disk, device: Device, reader: Reader) -> Use:
    """Return whether the disk is mounted where copies go, and the error of its filesystem, if that ends all writing."""
    found = says(reader, commands.mounted_pipeline(disk.name))
    if found is None:
        return Use(attached=False)
    (there,) = json.loads(found)["filesystems"]
    wanted = device.path if disk.inside is None else f"/dev/mapper/{commands.node(disk.name)}"
    writable = "rw" in there["options"].split(",")
    return Use(attached=there["source"] == wanted and writable, ails=_ails(disk, there, reader, writable=writable))


def _ails(disk: Disk, there: dict[str, str], reader: Reader, *, writable: bool) -> str:
    kernel_name = (says(reader, commands.is_here(there["source"])) or b"").decode().strip()
    # Since Linux 6.12 an ext4 that lets nobody write any more still calls itself rw; but it counts the errors.
    counted = says(reader, commands.ext4_errors(kernel_name)) if there["fstype"] == "ext4" else None
    if writable and counted in (None, b"0\n"):
        return ""
    return (
        f"the kernel met damage in the filesystem of disk {disk.name}, or the disk failed to write, and nothing more can be "
        "written to it; what was copied before is kept"
    )


def detach(disk: Disk, writer: Writer) -> None:
    """Unmount and lock the disk; all is on the medium then. Raises: OrchestratorError, Busy among them."""
    if (found := says(writer, commands.mounted_pipeline(disk.name))) is not None:
        (there,) = json.loads(found)["filesystems"]
        write_out(writer, commands.unmount(disk.name), commands.works(there["maj:min"]))
    if disk.inside is not None:
        do(writer, commands.lock(disk.name))


def tidy(disk: Disk, writer: Writer) -> None:
    """Remove what is left of an earlier visit, or of a disk that is gone. Raises: Busy when a present disk is in use."""
    while (found := says(writer, commands.mounted_pipeline(disk.name))) is not None:
        result = attempt(writer, commands.unmount(disk.name))
        if result.well:
            continue
        (there,) = json.loads(found)["filesystems"]
        if says(writer, commands.is_here(there["source"])) is not None:
            raise explain(broken(commands.unmount(disk.name), result))
        do(writer, commands.unmount_lazily(disk.name))
    if disk.inside is not None:
        attempt(writer, commands.lock(disk.name))


abandon = tidy
