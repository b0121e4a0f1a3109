"""Disks with a filesystem: opened read-only to be recognized, then for copies, then released."""

from orchestrator.disks import commands
from orchestrator.disks.detect import parse_probe
from orchestrator.disks.marker import marker_text, parse_marker, read_file_pipeline, write_file_pipelines
from orchestrator.disks.run import ask, read_if_any, run_all, run_flush, run_when_free, try_run
from orchestrator.domain.answers import parse_json
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.rotation import Disk, DiskMarker, DiskUsability
from orchestrator.process.executor import Reader, Writer

_MENDED = (0, 1)  # Source: e2fsck(8): 0 no errors, 1 errors corrected


def peek(disk: Disk, device: BlockDevice, writer: Writer) -> DiskMarker | None:
    """Read the marker on the disk without changing the disk. Raises: OrchestratorError."""
    tidy(disk, writer)
    run_all(writer, commands.make_mountpoint(disk.name))
    path = _opened(disk, device, writer, read_only=True)
    try:
        run_all(writer, commands.set_read_only(path, on=True), commands.mount_untouched(path, disk.content, disk.name))
        found = read_if_any(writer, read_file_pipeline(commands.mountpoint(disk.name)))
    finally:
        _tidied(disk, path, writer)
    return parse_marker(found) if found is not None else None


def _tidied(disk: Disk, path: str, writer: Writer) -> None:
    """Release a disk that was only read. Raises: DiskBusy."""
    try:
        tidy(disk, writer)
    finally:
        if disk.inside is None:
            try_run(writer, commands.set_read_only(path, on=False))


def attach(disk: Disk, device: BlockDevice, writer: Writer) -> None:
    """Mount a verified disk. Raises: OrchestratorError; then nothing has changed."""
    run_all(writer, commands.make_mountpoint(disk.name))
    path = _opened(disk, device, writer, read_only=False)
    try:
        if disk.content == "ext4":
            run_when_free(writer, commands.check_filesystem(path), good=_MENDED)
        run_all(writer, commands.mount(path, disk.content, disk.name))
    except OrchestratorError:
        tidy(disk, writer)
        raise


def _opened(disk: Disk, device: BlockDevice, writer: Writer, *, read_only: bool) -> str:
    """Return the device that holds the filesystem. Raises: OrchestratorError when the key fails, or opens another one."""
    if disk.inside is None:
        return device.path
    run_all(writer, commands.unlock(device.path, disk.key_file or "", disk.name, read_only=read_only))
    told = ask(writer, commands.inside_pipeline(disk.name), parse_probe) or {}
    found = next(iter(told.values()), {}).get("UUID", "").lower()
    if found != disk.inside:
        try_run(writer, commands.lock(disk.name))
        raise OrchestratorError(
            f"the LUKS container of disk {disk.name} holds {found or 'nothing that is known'}, not {disk.inside}",
            hint=f"look at inside in [disk.{disk.name}] of targets.toml",
        )
    return f"/dev/mapper/{commands.node(disk.name)}"


def mark(disk: Disk, marker: DiskMarker, writer: Writer, notes: str) -> None:
    """Write the marker; it is on the medium when this returns. Raises: OrchestratorError."""
    given = f"{notes}/marker-{disk.name}"
    with open(given, "w", encoding="utf-8") as file:
        file.write(marker_text(marker))
    run_all(writer, *write_file_pipelines(commands.mountpoint(disk.name), given))


def use(disk: Disk, device: BlockDevice, reader: Reader) -> DiskUsability:
    """Return whether the disk is mounted where copies go, and its filesystem's error, if that prevents all writing."""
    there = _mounted(disk, reader)
    if there is None:
        return DiskUsability(attached=False)
    wanted = device.path if disk.inside is None else f"/dev/mapper/{commands.node(disk.name)}"
    writable = "rw" in there["options"].split(",")
    return DiskUsability(
        attached=there["source"] == wanted and writable, ails=_ails(disk, there, reader, writable=writable)
    )


def _mounted(disk: Disk, reader: Reader) -> dict[str, str] | None:
    """Return findmnt's report about the disk's folder; None where nothing is mounted there. Raises: OrchestratorError."""
    return ask(reader, commands.mounted_pipeline(disk.name), _parse_mount)


def _parse_mount(text: bytes) -> dict[str, str]:
    (there,) = parse_json(text)["filesystems"]
    return {name: str(there[name]) for name in ("source", "fstype", "options", "maj:min")}


def _ails(disk: Disk, there: dict[str, str], reader: Reader, *, writable: bool) -> str:
    kernel_name = (read_if_any(reader, commands.is_here(there["source"])) or b"").decode(errors="replace").strip()
    # Since Linux 6.12 an ext4 that no longer accepts writes is still shown as rw; but it counts the errors.
    counted = read_if_any(reader, commands.ext4_errors(kernel_name)) if there["fstype"] == "ext4" else None
    if writable and counted in (None, b"0\n"):
        return ""
    return (
        f"the kernel met damage in the filesystem of disk {disk.name}, or the disk failed to write, and nothing more can be "
        "written to it; what was copied before is kept"
    )


def detach(disk: Disk, writer: Writer) -> None:
    """Unmount and lock the disk; all is on the medium then. Raises: OrchestratorError, such as DiskBusy."""
    if (there := _mounted(disk, writer)) is not None:
        run_flush(writer, commands.unmount(disk.name), commands.io_counters(there["maj:min"]))
    if disk.inside is not None and read_if_any(writer, commands.node_table(disk.name)) is not None:
        run_all(writer, commands.lock(disk.name))


def tidy(disk: Disk, writer: Writer) -> None:
    """Remove the remains of an earlier visit, or of a disk that is gone. Raises: DiskBusy when a present disk is in use."""
    while (there := _mounted(disk, writer)) is not None:
        if read_if_any(writer, commands.is_here(there["source"])) is not None:
            run_all(writer, commands.unmount(disk.name))
        elif not try_run(writer, commands.unmount(disk.name)).well:
            run_all(writer, commands.unmount_lazily(disk.name))
    if disk.inside is not None:
        try_run(writer, commands.lock(disk.name))


abandon = tidy
