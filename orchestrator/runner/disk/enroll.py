"""Enrollment of a device as a disk of a set: made or adopted, marked, recorded. The only module that erases anything."""

from collections.abc import Sequence
from uuid import uuid4

from orchestrator.disks import commands
from orchestrator.disks import disk as medium
from orchestrator.disks import format as making
from orchestrator.disks.detect import find_path, parse_probe, signatures
from orchestrator.disks.errors import with_disk_named
from orchestrator.disks.run import read_output, run_all, try_run
from orchestrator.domain.authentication import tag_marker
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.plan import Refusal
from orchestrator.domain.rotation import Disk, DiskMarker, DiskRecord, DiskState, RotationSet
from orchestrator.history.authentication_key import obtain_key
from orchestrator.planners.enroll import CONTENT_SIGNATURES, EnrollmentRequest, refuse_changed_device
from orchestrator.planners.identify_disk import DeviceState, IdentifiedDevice
from orchestrator.runner.disk.state import find_disk_record
from orchestrator.runner.disk.visit import VisitContext, survey_disks
from orchestrator.runner.locks import lock_device, lock_visit


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolledDisk:
    """An enrolled disk, to be declared in targets.toml."""

    disk: Disk
    marker: DiskMarker


def enroll_disk(
    enroll_request: EnrollmentRequest,
    device: BlockDevice,
    visit_context: VisitContext,
    *,
    key_file: str | None,
    note: str,
) -> EnrolledDisk | Refusal:
    """Make or adopt the disk and mark it; nothing on it is in use when this returns.

    Refuses: to erase a device that has changed since the survey that made `device`. Raises: OrchestratorError, NotNow among
    them.
    """
    with lock_device(device, visit_context.state):
        return _enrolled(enroll_request, device, visit_context, key_file, note)


def _enrolled(
    enroll_request: EnrollmentRequest, device: BlockDevice, visit_context: VisitContext, key_file: str | None, note: str
) -> EnrolledDisk | Refusal:
    refusal = None if enroll_request.adopt else _looked_again(device, visit_context)
    if refusal is not None:
        return refusal
    if enroll_request.adopt:
        disk = _adopted(enroll_request, device, visit_context, key_file, note)
    elif enroll_request.content == "zfs":
        disk = _made_pool(enroll_request, device, visit_context, key_file, note)
    else:
        disk = _made(enroll_request, device, visit_context, key_file, note)
    try_run(visit_context.writer, making.settle())
    marker = DiskMarker(
        disk=str(uuid4()),
        name=enroll_request.name,
        set=enroll_request.set,
        owner=visit_context.owner,
        host=visit_context.host,
        generation=0,
    )
    _marked(disk, device, marker, visit_context)
    visit_context.history.disks.keep(_disk_record(disk, device, marker, visit_context))
    return EnrolledDisk(disk=disk, marker=marker)


def _looked_again(device: BlockDevice, visit_context: VisitContext) -> Refusal | None:
    """Check the medium itself for the last time before anything is erased."""
    again, devices = find_path(device.path, visit_context.writer)
    family = [each for each in devices if again and each.name in (again.name, *again.parts)]
    held = [signatures(each.path, each.size, visit_context.writer) for each in family]
    kinds = None if None in held else [kind for each in held if each for kind in each]
    return refuse_changed_device(device, again, kinds)


def _disk(
    enroll_request: EnrollmentRequest, identity: str, inside: str | None, key_file: str | None, note: str
) -> Disk:
    return Disk(
        name=enroll_request.name,
        set=enroll_request.set,
        identity=identity,
        content=enroll_request.content,
        inside=inside,
        key_file=key_file,
        note=note,
    )


def _adopted(
    enroll_request: EnrollmentRequest, device: BlockDevice, visit_context: VisitContext, key_file: str | None, note: str
) -> Disk:
    """Return the disk unchanged. Refuses: a container with another content than requested."""
    if not enroll_request.locked or key_file is None:
        return _disk(enroll_request, device.uuid, None, key_file, note)
    run_all(visit_context.writer, commands.unlock(device.path, key_file, enroll_request.name, read_only=True))
    try:
        inner = next(
            iter(
                parse_probe(read_output(visit_context.writer, commands.inside_pipeline(enroll_request.name))).values()
            ),
            {},
        )
    finally:
        try_run(visit_context.writer, commands.lock(enroll_request.name))
    if inner.get("TYPE") != CONTENT_SIGNATURES.get(enroll_request.content, enroll_request.content):
        raise OrchestratorError(
            f"the container holds {inner.get('TYPE') or 'nothing that is known'}, not {enroll_request.content}; nothing was written to it",
            hint="say what is in it by --content",
        )
    return _disk(enroll_request, device.uuid, inner["UUID"].lower(), key_file, note)


def _made(
    enroll_request: EnrollmentRequest, device: BlockDevice, visit_context: VisitContext, key_file: str | None, note: str
) -> Disk:
    run_all(visit_context.writer, *making.erase_device(device.path, device.parts))
    uuid, inside, path = str(uuid4()), None, device.path
    if enroll_request.locked and key_file is not None:
        run_all(visit_context.writer, making.make_luks(device.path, uuid, key_file))
        run_all(visit_context.writer, commands.unlock(device.path, key_file, enroll_request.name, read_only=False))
        inside, path = str(uuid4()), f"/dev/mapper/{commands.node(enroll_request.name)}"
    try:
        run_all(
            visit_context.writer,
            making.make_filesystem(path, enroll_request.content, enroll_request.name, inside or uuid),
        )
    finally:
        if inside is not None:
            try_run(visit_context.writer, commands.lock(enroll_request.name))
    return _disk(enroll_request, uuid, inside, key_file if inside else None, note)


def _made_pool(
    enroll_request: EnrollmentRequest, device: BlockDevice, visit_context: VisitContext, key_file: str | None, note: str
) -> Disk:
    key = _read(key_file) if key_file else b""
    run_all(visit_context.writer, *making.erase_device(device.path, device.parts))
    lowest, uuid, writer = enroll_request.name, None, visit_context.writer
    if enroll_request.locked and key_file is not None:
        lowest, uuid = commands.below(enroll_request.name), str(uuid4())
        run_all(writer, making.make_luks(device.path, uuid, key_file))
    sectors = int(read_output(writer, commands.sectors_pipeline(device.path)))
    run_all(writer, commands.make_node(device.path, sectors, lowest))
    try:
        if uuid is not None and key_file is not None:
            path = f"/dev/mapper/{commands.node(lowest)}"
            run_all(writer, commands.unlock(path, key_file, enroll_request.name, read_only=False))
        run_all(writer, making.make_pool(enroll_request.name, None if uuid else key_file, key))
        guid = read_output(writer, making.pool_guid(enroll_request.name)).decode().strip()
        run_all(writer, commands.export_pool(enroll_request.name))
    finally:
        if uuid is not None:
            try_run(writer, commands.lock(enroll_request.name))
        try_run(writer, commands.remove_node(lowest))
    return _disk(enroll_request, uuid or guid, guid if uuid else None, key_file, note)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError as error:
        raise OrchestratorError(f"{path} cannot be read: {error.strerror}", hint="look at --key-file") from None


def _marked(disk: Disk, device: BlockDevice, marker: DiskMarker, visit_context: VisitContext) -> None:
    """Attach the disk, once without verification, and write the marker with its tag. Raises: OrchestratorError."""
    key = obtain_key(visit_context.state, visit_context.clock())
    medium.attach(disk, device, visit_context.writer)
    try:
        if disk.content == "zfs":
            run_all(visit_context.writer, making.set_patient_failmode(disk.name))
        medium.mark(disk, tag_marker(marker, disk, key), visit_context.writer, f"{visit_context.state}/notes")
    finally:
        medium.detach(disk, visit_context.writer)


def _disk_record(disk: Disk, device: BlockDevice, marker: DiskMarker, visit_context: VisitContext) -> DiskRecord:
    return DiskRecord(
        disk=marker.disk, name=disk.name, set=disk.set, identity=disk.identity, content=disk.content, size=device.size,
        serial=device.serial, model=device.model, wwn=device.wwn, generation=marker.generation, written=marker.generation,
        enrolled=visit_context.clock(), standing=DiskState.ACTIVE,
    )  # fmt: skip


def readopt_disk(disk: Disk, sets: Sequence[RotationSet], visit_context: VisitContext) -> IdentifiedDevice:
    """Accept a present disk as the one of that name, whatever its marker says.

    Raises: OrchestratorError; NotNow while a visit of it goes on.
    """
    found = next((each for each in survey_disks(sets, visit_context) if each.disk == disk), None)
    if found is None:
        raise OrchestratorError(f"disk {disk.name} is not here", hint="plug it in")
    if found.state not in (DeviceState.TO_VERIFY, DeviceState.SET_ASIDE):
        return found
    with lock_visit(disk, visit_context.state):
        try:
            return _readopted(disk, found, visit_context)
        except OrchestratorError as error:
            with_disk_named(error, disk.name, found.device.path)
            raise


def _readopted(disk: Disk, found: IdentifiedDevice, visit_context: VisitContext) -> IdentifiedDevice:
    own = find_disk_record(visit_context.history.disks.known(), disk)
    there = medium.peek(disk, found.device, visit_context.writer)
    number = max(there.generation if there else 0, own.generation if own else 0) + 1
    name = own.disk if own else there.disk if there else str(uuid4())
    marker = DiskMarker(
        disk=name, name=disk.name, set=disk.set, owner=visit_context.owner, host=visit_context.host, generation=number
    )
    _marked(disk, found.device, marker, visit_context)
    visit_context.history.disks.keep(_disk_record(disk, found.device, marker, visit_context))
    return replace(found, state=DeviceState.READY, says=f"disk {disk.called} is one of ours again", hint="")
