"""Disks with a pool: imported through a mapped device, which is redirected to the disk when it comes back.

Why: OpenZFS keeps the device under which it imported a pool. A disk that was pulled out comes back as another device, and only
a reboot would help; with the mapped device redirected, the pool continues, and so does a receive that was running.
"""

import re

from orchestrator.disks import commands
from orchestrator.disks.errors import PoolHangs
from orchestrator.disks.marker import parse_properties, read_properties_pipeline, write_properties_pipeline
from orchestrator.disks.run import ask, read_if_any, read_output, run_all, run_flush, try_run, understood
from orchestrator.domain.answers import parse_count, parse_guid
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import OrchestratorError, Stalled
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import Disk, DiskMarker, DiskUsability
from orchestrator.process.executor import Reader, Writer

_WRITTEN, _READ = b"off\n", b"on\n"  # import modes, by the pool's property readonly


def peek(disk: Disk, device: BlockDevice, writer: Writer) -> DiskMarker | None:
    """Read the marker of the pool, imported so that nothing on it can change.

    The mapped device stays for `attach`; a caller that does not attach must detach. A pool that lost its disk and is still
    imported is redirected to the disk, and stays imported. Raises: OrchestratorError; then nothing has changed.
    """
    if _has_node(disk, writer):  # our pools are imported only through a mapped device
        mode = _mode(disk, writer)
        if mode == _WRITTEN:
            come_back(disk, device, writer)
            return _marker(disk, writer)
        _take_away(disk, writer, mode)
    try:
        _make_node(disk, device, writer)
        _import(disk, writer, read_only=True)
        _load_keys(disk, writer, try_only=True)
        found = _marker(disk, writer)
    except BaseException:
        detach(disk, writer)
        raise
    _close(disk, writer, _READ, commands.io_counters_of(device.name))
    return found


def _marker(disk: Disk, reader: Reader) -> DiskMarker | None:
    found = read_if_any(reader, read_properties_pipeline(commands.node(disk.name)))
    return parse_properties(found) if found is not None else None


def is_still_imported(disk: Disk, reader: Reader) -> bool:
    """Return True when the pool of an earlier visit is still imported for writing."""
    return _mode(disk, reader) == _WRITTEN


def _mode(disk: Disk, reader: Reader) -> bytes | None:
    """Return how the pool is imported; None when it is not."""
    return read_if_any(reader, commands.pool_is_read_only(disk.name))


def attach(disk: Disk, device: BlockDevice, writer: Writer) -> None:
    """Import a verified pool. Raises: OrchestratorError; then nothing has changed.

    Why an existing mapped device is used: `peek` made it, and one for another disk would not show a pool of this guid. A pool
    that is imported already had lost its disk, and `peek` has redirected it.
    """
    try:
        if not _has_node(disk, writer):
            _make_node(disk, device, writer)
        _import(disk, writer, read_only=False)
    except OrchestratorError:
        if is_still_imported(disk, writer):
            return
        tidy(disk, writer)
        raise
    try:
        _load_keys(disk, writer)
    except OrchestratorError:
        tidy(disk, writer)
        raise


def _load_keys(disk: Disk, writer: Writer, *, try_only: bool = False) -> None:
    """Load the keys. Raises: DiskLocked. Why not always all: replicas that were sent raw have other keys of their own."""
    if disk.key_file is None or disk.inside is not None:
        return
    root = read_if_any(writer, commands.encryption_root(disk.name))
    own = root is not None and root.decode(errors="replace").strip() == commands.node(disk.name)
    run_all(writer, commands.load_keys(disk.name, disk.key_file, below=not own, try_only=try_only))


def _guid(disk: Disk) -> str:
    return disk.inside or disk.identity


def _has_node(disk: Disk, reader: Reader) -> bool:
    return read_if_any(reader, commands.node_table(_lowest(disk))) is not None


def _make_node(disk: Disk, device: BlockDevice, writer: Writer) -> None:
    """Create the mapped device that leads to the disk. Raises: OrchestratorError."""
    requested = commands.sectors_pipeline(device.path)
    sectors = understood(requested, read_output(writer, requested), parse_count)
    run_all(writer, commands.make_node(device.path, sectors, _lowest(disk)))


def _import(disk: Disk, writer: Writer, *, read_only: bool) -> None:
    """Import the pool; with LUKS the mapped device is below the container. Raises: OrchestratorError, such as DiskLocked."""
    if disk.inside is not None:
        path = f"/dev/mapper/{commands.node(_lowest(disk))}"
        run_all(writer, commands.unlock(path, disk.key_file or "", disk.name, read_only=read_only))
    run_all(writer, commands.import_pool(_guid(disk), disk.name, read_only=read_only))


def _lowest(disk: Disk) -> str:
    """Return the name of the mapped device that leads to the disk itself."""
    return disk.name if disk.inside is None else commands.below(disk.name)


def mark(disk: Disk, marker: DiskMarker, writer: Writer, notes: str) -> None:
    """Write the marker; it is on the medium when this returns. Raises: OrchestratorError.

    Why no sync: `zfs set` waits for the transaction with its change. Source: OpenZFS 2.1 and 2.3, dsl_synctask.c.
    """
    del notes
    run_all(writer, write_properties_pipeline(commands.node(disk.name), marker))


def use(disk: Disk, device: BlockDevice, reader: Reader) -> DiskUsability:
    """Return whether the pool is imported, and what OpenZFS reports of one that does not work."""
    del device
    told = (read_if_any(reader, commands.pool_health(disk.name)) or b"").decode(errors="replace").split()
    if len(told) < 2 or told[1] == "ONLINE":
        return DiskUsability(attached=told[:1] == [_guid(disk)])
    return DiskUsability(
        attached=False, ails=f"the pool of disk {disk.name} is {told[1]}: the disk failed to read or to write"
    )


def prepare(disk: Disk, dataset: str, writer: Writer) -> None:
    """Create the dataset below which a job's copies lie, and its parents; the pool's own exists. Raises: OrchestratorError."""
    if dataset != commands.node(disk.name):
        run_all(writer, commands.make_dataset(dataset))


def detach(disk: Disk, writer: Writer) -> None:
    """Export the pool and remove the mapped device. Raises: OrchestratorError, such as DiskBusy and PoolHangs."""
    _take_away(disk, writer, _mode(disk, writer))


def _take_away(disk: Disk, writer: Writer, mode: bytes | None) -> None:
    """Release, in the same way, a pool whose import mode is known."""
    _close(disk, writer, mode, _works(disk, writer) if mode else "")
    if _has_node(disk, writer):
        run_all(writer, commands.remove_node(_lowest(disk)))


def _close(disk: Disk, writer: Writer, mode: bytes | None, works: str) -> None:
    """Export the pool and lock its container. `works`: the kernel's I/O statistics file of the disk below.

    Why a sync before, and a check for the disk: a disk pulled out while an export still writes leaves a hang that only a
    restart ends, and until then no pool of the machine answers; one pulled out before comes back as after any other removal.
    """
    if mode == _WRITTEN:
        _still_here(disk, writer)
        run_flush(writer, commands.sync_pool(disk.name), works)
        _still_here(disk, writer)
    if mode:
        _export(disk, writer, works)
    if disk.inside is not None and read_if_any(writer, commands.node_table(disk.name)) is not None:
        run_all(writer, commands.lock(disk.name))


def _still_here(disk: Disk, writer: Writer) -> None:
    """Check that the disk is present. Raises: OrchestratorError where the disk below a writable pool is gone."""
    table = ask(writer, commands.node_table(_lowest(disk)), parse_table)
    if table is not None and read_if_any(writer, commands.number_is_here(table.device)) is None:
        raise OrchestratorError(f"disk {disk.name} was pulled out", hint="plug it in again")


def _works(disk: Disk, reader: Reader) -> str:
    """Return the kernel's I/O statistics file of the disk below a pool; empty when it is unknown."""
    table = ask(reader, commands.node_table(_lowest(disk)), parse_table)
    return commands.io_counters(table.device) if table else ""


def _export(disk: Disk, writer: Writer, works: str) -> None:
    try:
        run_flush(writer, commands.export_pool(disk.name), works)
    except Stalled as error:
        raise PoolHangs(error.why, evidence=error.evidence, hint="restart this machine") from error


def tidy(disk: Disk, writer: Writer) -> None:
    """Remove the remains of an earlier visit of a present disk. Raises: OrchestratorError, such as DiskBusy."""
    detach(disk, writer)


def abandon(disk: Disk, writer: Writer) -> None:
    """Do nothing to the pool. Why: without the disk an export, or a clear, would hang for ever and ignore a kill."""


def come_back(disk: Disk, device: BlockDevice, writer: Writer) -> None:
    """Redirect a pool that lost its disk to the disk again. Raises: OrchestratorError when it is not certainly the same.

    Why so strict: redirected to another disk, one pool would overwrite another.
    """
    requested = commands.sectors_pipeline(device.path)
    sectors = understood(requested, read_output(writer, requested), parse_count)
    requested = commands.node_table(_lowest(disk))
    table = understood(requested, read_output(writer, requested), parse_table)
    if table is None or table.sectors != sectors:
        raise _not_the_same(
            disk, f"it has {sectors} sectors, and the pool's device {table.sectors if table else 'none'}"
        )
    label = parse_label(_label(disk, device, writer))
    ours = parse_vdev(read_output(writer, commands.vdev_pipeline(disk.name)))
    if label is None or label.pool != _guid(disk) or label.vdev != ours or not label.active:
        raise _not_the_same(disk, "its label is not that of the pool that lost it")
    run_all(writer, *commands.lead_node(device.path, sectors, _lowest(disk)), commands.clear_pool(disk.name))
    if not use(disk, device, writer).attached:
        told = read_if_any(writer, commands.pool_health(disk.name)) or b"nothing"
        raise OrchestratorError(
            f"the pool of disk {disk.name} did not come back: it says {told.decode(errors='replace').strip()}",
            hint="restart the machine with the disk unplugged, then plug it in again; other pools are not harmed",
        )


def _label(disk: Disk, device: BlockDevice, writer: Writer) -> bytes:
    """Return the label on the device that came back; a LUKS container is opened to be read and closed again."""
    if disk.inside is None:
        return read_if_any(writer, commands.label_pipeline(device.path)) or b""
    name = f"{disk.name}+look"
    try_run(writer, commands.lock(name))
    run_all(writer, commands.unlock(device.path, disk.key_file or "", name, read_only=True))
    try:
        return read_if_any(writer, commands.label_pipeline(f"/dev/mapper/{commands.node(name)}")) or b""
    finally:
        run_all(writer, commands.lock(name))


def _not_the_same(disk: Disk, why: str) -> OrchestratorError:
    return OrchestratorError(
        f"a pool of disk {disk.name} that lost its disk is still held, and this disk could not be identified as that one: {why}",
        hint="plug in the disk that was pulled out; if it was used elsewhere since, restart this machine first",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DmTable:
    """Target of a mapped device. `device`: the kernel's number of it."""

    sectors: int
    device: str


def parse_table(text: bytes) -> DmTable | None:
    """Parse the output of `dmsetup table`: "0 2097152 linear 8:16 0"."""
    words = text.decode().split()
    return DmTable(sectors=int(words[1]), device=words[3]) if len(words) == 5 and words[2] == "linear" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class VdevLabel:
    """ZFS label on a device. `active`: the pool was not exported since its import."""

    pool: str
    vdev: str
    active: bool


_LABEL = re.compile(r"^ {4}(pool_guid|guid|state): (\d+)$", re.MULTILINE)


def parse_label(text: bytes) -> VdevLabel | None:
    """Parse the output of `zdb -l`; None when there is no label."""
    told = dict(_LABEL.findall(text.decode("utf-8", "surrogateescape")))
    if not {"pool_guid", "guid", "state"} <= told.keys():
        return None
    return VdevLabel(pool=told["pool_guid"], vdev=told["guid"], active=told["state"] == "0")


def parse_vdev(text: bytes) -> str:
    """Parse `zpool status -g` for the guid of the pool's only device; empty when there is not exactly one."""
    rows = re.findall(r"^\t {2}(\d+)\s", text.decode("utf-8", "surrogateescape"), re.MULTILINE)
    return rows[0] if len(rows) == 1 else ""


def read_guid(pool: str, reader: Reader) -> int | None:
    """Return the guid of a pool of this machine; None: it is not imported, or this machine has no ZFS. Raises: OrchestratorError."""
    return ask(reader, commands.guid_of_pool(pool), lambda said: parse_guid(said.removesuffix(b"\n")))
