"""Enrollment of a device as a disk of a set: made or adopted, marked, recorded. The only place that erases anything."""

from collections.abc import Sequence
from uuid import uuid4

from orchestrator.disks import commands
from orchestrator.disks import disk as medium
from orchestrator.disks import format as making
from orchestrator.disks.detect import find_path, parse_probe, signatures
from orchestrator.disks.run import attempt, do
from orchestrator.disks.run import look as told
from orchestrator.domain.device import Device
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.plan import Refusal
from orchestrator.domain.rotation import Disk, Known, Marker, RotationSet, Standing
from orchestrator.planners.enroll import KINDS, Wish, changed
from orchestrator.planners.identify_disk import Recognised, State
from orchestrator.runner.disk.state import find_known
from orchestrator.runner.disk.visit import Dock, look
from orchestrator.runner.locks import enrolling, visiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """An enrolled disk, to be declared in targets.toml."""

    disk: Disk
    marker: Marker


def enroll(wish: Wish, device: Device, dock: Dock, *, key_file: str | None, note: str) -> Enrolled | Refusal:
    """Make or adopt the disk and mark it; nothing on it is in use when this returns.

    Refuses: to erase what has changed since `device` was looked at. Raises: OrchestratorError, NotNow among them.
    """
    with enrolling(device, dock.state):
        return _enrolled(wish, device, dock, key_file, note)


def _enrolled(wish: Wish, device: Device, dock: Dock, key_file: str | None, note: str) -> Enrolled | Refusal:
    refusal = None if wish.adopt else _looked_again(device, dock)
    if refusal is not None:
        return refusal
    if wish.adopt:
        disk = _adopted(wish, device, dock, key_file, note)
    elif wish.content == "zfs":
        disk = _made_pool(wish, device, dock, key_file, note)
    else:
        disk = _made(wish, device, dock, key_file, note)
    attempt(dock.writer, making.settle())
    marker = Marker(disk=str(uuid4()), name=wish.name, set=wish.set, owner=dock.owner, host=dock.host, generation=0)
    _marked(disk, device, marker, dock)
    dock.history.disks.keep(_known(disk, device, marker, dock))
    return Enrolled(disk=disk, marker=marker)


def _looked_again(device: Device, dock: Dock) -> Refusal | None:
    """Check the medium itself for the last time before anything is erased."""
    again, devices = find_path(device.path, dock.writer)
    family = [each for each in devices if again and each.name in (again.name, *again.parts)]
    held = [signatures(each.path, each.size, dock.writer) for each in family]
    kinds = None if None in held else [kind for each in held if each for kind in each]
    return changed(device, again, kinds)


def _disk(wish: Wish, identity: str, inside: str | None, key_file: str | None, note: str) -> Disk:
    return Disk(
        name=wish.name,
        set=wish.set,
        identity=identity,
        content=wish.content,
        inside=inside,
        key_file=key_file,
        note=note,
    )


def _adopted(wish: Wish, device: Device, dock: Dock, key_file: str | None, note: str) -> Disk:
    """Return the disk as it is. Refuses a container that holds another content than requested."""
    if not wish.locked or key_file is None:
        return _disk(wish, device.uuid, None, key_file, note)
    do(dock.writer, commands.unlock(device.path, key_file, wish.name, read_only=True))
    try:
        inner = next(iter(parse_probe(told(dock.writer, commands.inside_pipeline(wish.name))).values()), {})
    finally:
        attempt(dock.writer, commands.lock(wish.name))
    if inner.get("TYPE") != KINDS.get(wish.content, wish.content):
        raise OrchestratorError(
            f"the container holds {inner.get('TYPE') or 'nothing that is known'}, not {wish.content}; nothing was written to it",
            cure="tell what is in it by --content",
        )
    return _disk(wish, device.uuid, inner["UUID"].lower(), key_file, note)


def _made(wish: Wish, device: Device, dock: Dock, key_file: str | None, note: str) -> Disk:
    do(dock.writer, *making.erase(device.path, device.parts))
    uuid, inside, path = str(uuid4()), None, device.path
    if wish.locked and key_file is not None:
        do(dock.writer, making.make_luks(device.path, uuid, key_file))
        do(dock.writer, commands.unlock(device.path, key_file, wish.name, read_only=False))
        inside, path = str(uuid4()), f"/dev/mapper/{commands.node(wish.name)}"
    try:
        do(dock.writer, making.make_filesystem(path, wish.content, wish.name, inside or uuid))
    finally:
        if inside is not None:
            attempt(dock.writer, commands.lock(wish.name))
    return _disk(wish, uuid, inside, key_file if inside else None, note)


def _made_pool(wish: Wish, device: Device, dock: Dock, key_file: str | None, note: str) -> Disk:
    key = _read(key_file) if key_file else b""
    do(dock.writer, *making.erase(device.path, device.parts))
    lowest, uuid, writer = wish.name, None, dock.writer
    if wish.locked and key_file is not None:
        lowest, uuid = commands.below(wish.name), str(uuid4())
        do(writer, making.make_luks(device.path, uuid, key_file))
    sectors = int(told(writer, commands.sectors_pipeline(device.path)))
    do(writer, commands.make_node(device.path, sectors, lowest))
    try:
        if uuid is not None and key_file is not None:
            path = f"/dev/mapper/{commands.node(lowest)}"
            do(writer, commands.unlock(path, key_file, wish.name, read_only=False))
        do(writer, making.make_pool(wish.name, None if uuid else key_file, key))
        guid = told(writer, making.pool_guid(wish.name)).decode().strip()
        do(writer, commands.export_pool(wish.name))
    finally:
        if uuid is not None:
            attempt(writer, commands.lock(wish.name))
        attempt(writer, commands.remove_node(lowest))
    return _disk(wish, uuid or guid, guid if uuid else None, key_file, note)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be read: {error.strerror}", cure="look at --key-file") from None


def _marked(disk: Disk, device: Device, marker: Marker, dock: Dock) -> None:
    """Attach the disk, once without verification, and write the marker. Raises: OrchestratorError."""
    medium.attach(disk, device, dock.writer)
    try:
        if disk.content == "zfs":
            do(dock.writer, making.be_patient(disk.name))
        medium.mark(disk, marker, dock.writer, f"{dock.state}/notes")
    finally:
        medium.detach(disk, dock.writer)


def _known(disk: Disk, device: Device, marker: Marker, dock: Dock) -> Known:
    return Known(
        disk=marker.disk, name=disk.name, set=disk.set, identity=disk.identity, content=disk.content, size=device.size,
        serial=device.serial, model=device.model, wwn=device.wwn, generation=marker.generation, written=marker.generation,
        enrolled=dock.clock(), standing=Standing.ACTIVE,
    )  # fmt: skip


def readopt(disk: Disk, sets: Sequence[RotationSet], dock: Dock) -> Recognised:
    """Accept a present disk as the one of that name, whatever its marker says.

    Raises: OrchestratorError; NotNow while a visit of it goes on.
    """
    found = next((each for each in look(sets, dock) if each.disk == disk), None)
    if found is None:
        raise OrchestratorError(f"disk {disk.name} is not here", cure="plug it in")
    if found.state not in (State.TO_PROVE, State.SET_ASIDE):
        return found
    with visiting(disk, dock.state):
        return _readopted(disk, found, dock)


def _readopted(disk: Disk, found: Recognised, dock: Dock) -> Recognised:
    own = find_known(dock.history.disks.known(), disk)
    there = medium.peek(disk, found.device, dock.writer)
    number = max(there.generation if there else 0, own.generation if own else 0) + 1
    name = own.disk if own else there.disk if there else str(uuid4())
    marker = Marker(disk=name, name=disk.name, set=disk.set, owner=dock.owner, host=dock.host, generation=number)
    _marked(disk, found.device, marker, dock)
    dock.history.disks.keep(_known(disk, found.device, marker, dock))
    return replace(found, state=State.READY, says=f"disk {disk.called} is one of ours again", cure="")
