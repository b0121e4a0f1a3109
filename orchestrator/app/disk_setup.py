"""Manual work on disks: enroll (the only use case that may erase), attach for inspection, eject, readopt."""

import os
from typing import TYPE_CHECKING

from orchestrator.app.config_files import replace_file
from orchestrator.app.disk_visits import find_disk
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.config.models import Configuration
    from orchestrator.domain.device import BlockDevice
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.rotation import Disk
    from orchestrator.planners.enroll import EnrollmentRequest
    from orchestrator.planners.identify_disk import IdentifiedDevice


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrollRequest:
    """A person's request to enroll a disk: the arguments of the command, each by its name."""

    device: str
    set: str
    name: str
    content: str = "ext4"
    adopt: bool = False
    erase: str = ""
    inner: bool = False
    luks: bool = False
    key_file: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """An enrolled disk. `id`: of its marker; `device`: its name for people; `daemon`: the process that was asked to take it in."""

    disk: "Disk"
    id: str
    device: str
    daemon: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """Result of an eject. `hinders`: why the disk may not be pulled out; `beside`: other disks in its case that are in use."""

    disk: "Disk"
    hinders: str
    hint: str
    beside: str


def enroll_disk(settings: Settings, request: EnrollRequest) -> "Enrolled | Refusal":
    """Make a device a disk of a set, and declare it in targets.toml. Raises: WrongRequest."""
    from orchestrator.disks.detect import find_path
    from orchestrator.planners.enroll import EnrollmentRequest, refuse_enrollment
    from orchestrator.process.executor import Writer

    known, name, content = settings.configuration(), request.name, request.content
    _require_free(known, request.set, name)
    _require_fit(known, request.set, content)
    _require_key(request)
    _require_valid(settings, request)
    looker = Writer(log=settings.log)
    found, devices = find_path(request.device, looker)
    if found is None:
        raise WrongRequest(f"there is no device {request.device}")
    enroll_request = EnrollmentRequest(
        name=name, set=request.set, content=content, adopt=request.adopt, erase=request.erase, inner=request.inner,
        locked=request.luks,
    )  # fmt: skip
    disks = [disk for each in known.sets for disk in each.disks]
    return refuse_enrollment(enroll_request, found, devices, disks) or _enrolled(
        settings, enroll_request, found, request
    )


def _require_key(request: EnrollRequest) -> None:
    key_file = request.key_file
    if request.luks and key_file is None:
        raise WrongRequest("--luks needs a --key-file")
    if key_file is not None and not os.path.isfile(key_file):
        raise WrongRequest(f"--key-file: there is no file {key_file}")
    if key_file is not None and not key_file.startswith("/"):
        raise WrongRequest("--key-file: expected an absolute path, as it is written to targets.toml")
    if key_file is not None and not request.luks and request.content != "zfs":
        raise WrongRequest("--key-file is for --luks or --content zfs: nothing else would be encrypted with it")


def _require_free(known: "Configuration", rotation: str, name: str) -> None:
    """Check before any change that the set exists, and that the disk's name is valid and free."""
    from orchestrator.domain.names import JOB_NAME

    if rotation not in [each.name for each in known.sets]:
        raise WrongRequest(f"there is no set {rotation}; write [set.{rotation}] into targets.toml first")
    taken = [*(place.name for place in known.places), *(each.name for each in known.sets)]
    taken += [disk.name for each in known.sets for disk in each.disks]
    if name in taken:
        from orchestrator.planners.identify_disk import next_disk_name

        raise WrongRequest(
            f"the name {name} is taken: history, copies and kits speak of what has it, so none is used twice; free is, for example: "
            f"--name {next_disk_name(name, taken)}"
        )
    if not JOB_NAME.fullmatch(name):
        raise WrongRequest(f"{name} is no name for a disk: letters, digits, dots, - and _")


def _require_fit(known: "Configuration", rotation: str, content: str) -> None:
    """Check that the disk's content fits the engines of all jobs of its set."""
    from orchestrator.runner.disk.state import jobs_of_set

    for job in jobs_of_set(known.rotation(rotation), known.jobs):
        datasets = not job.target.location.path.startswith("/")
        if (content == "zfs") is not datasets:
            wanted = "zfs" if datasets else "ext4, xfs or btrfs"
            raise WrongRequest(
                f"job {job.name} copies to the set {rotation}, and its engine {job.engine} needs --content {wanted}"
            )


def _enrolled(
    settings: Settings, enroll_request: "EnrollmentRequest", device: "BlockDevice", request: EnrollRequest
) -> "Enrolled | Refusal":
    from orchestrator.app.disk_visits import make_visit_context
    from orchestrator.app.pidfile import ask_to_reload
    from orchestrator.app.session import open_session
    from orchestrator.domain.plan import Refusal
    from orchestrator.runner.disk.enroll import enroll_disk
    from orchestrator.runner.disk.released import note_released

    with open_session(settings) as session:
        used = make_visit_context(settings.where, session.history, say=settings.say, log=settings.log)
        made = enroll_disk(enroll_request, device, used, key_file=request.key_file, note=request.note)
    if isinstance(made, Refusal):
        return made
    _declare(settings, made.disk)
    note_released(made.disk, device, settings.where.state)
    return Enrolled(
        disk=made.disk, id=made.marker.disk, device=device.called, daemon=ask_to_reload(settings.where.state)
    )


def _require_valid(settings: Settings, request: EnrollRequest) -> None:
    """Check before any change that the configuration is still valid with the disk. Raises: DeclarationError."""
    from orchestrator import compose
    from orchestrator.domain.rotation import Disk

    pool = request.content == "zfs"
    uuid, guid = "00000000-0000-4000-8000-000000000000", "1"
    disk = Disk(
        name=request.name, set=request.set, identity=uuid if request.luks or not pool else guid, content=request.content,
        inside=None if not request.luks else guid if pool else uuid.replace("4", "5"), key_file=request.key_file, note=request.note,
    )  # fmt: skip
    compose.read_configuration(settings.where, texts=_for_targets(settings, _with_disk(_targets(settings), disk)))


def _targets(settings: Settings) -> str:
    """Return the path of targets.toml; a link leads to the file itself, which is replaced."""
    return os.path.realpath(os.path.join(settings.where.config, "targets.toml"))


def _for_targets(settings: Settings, text: str) -> dict[str, bytes]:
    """Return a text to be read in place of targets.toml."""
    return {os.path.join(settings.where.config, "targets.toml"): text.encode()}


def _with_disk(path: str, disk: "Disk") -> str:
    """Return the text of targets.toml with the lines of one more disk."""
    from json import dumps  # JSON's form of a text is valid TOML

    told = [("set", disk.set), ("identity", disk.identity), ("content", disk.content), ("inside", disk.inside)]
    told += [("key-file", disk.key_file), ("note", disk.note)]
    lines = [f"{key} = {dumps(value, ensure_ascii=False)}" for key, value in told if value]
    with open(path, encoding="utf-8", newline="\n") as file:
        before = file.read()
    named = dumps(disk.name) if "." in disk.name else disk.name
    return before.rstrip("\n") + f"\n\n[disk.{named}]\n" + "\n".join(lines) + "\n"


def _declare(settings: Settings, disk: "Disk") -> None:
    """Add the disk's lines to targets.toml: all lines, or none, and only when the whole configuration is valid with them.

    Raises: OrchestratorError with the lines, as the disk is made.
    """
    from orchestrator import compose
    from orchestrator.domain.errors import DeclarationError, OrchestratorError

    path = _targets(settings)
    text = _with_disk(path, disk)
    try:
        compose.read_configuration(settings.where, texts=_for_targets(settings, text))
    except DeclarationError as error:
        lines = text[text.rindex("\n[disk.") + 1 :].rstrip("\n").replace("\n", " | ")
        why = f"disk {disk.name} is made, and targets.toml was not changed: with it the configuration would have a mistake: {error.mistakes[0]}"
        raise OrchestratorError(why, hint=f"mend that, and add these lines to {path}: {lines}") from None
    replace_file(path, text)


def eject_disk(settings: Settings, name: str) -> LetGo:
    """Release a disk that is still attached; nobody waits for it any more. Raises: WrongRequest; OrchestratorError; NotNow."""
    from orchestrator import compose
    from orchestrator.disks import disk as medium
    from orchestrator.disks.detect import pools_without_disk, survey_devices
    from orchestrator.disks.errors import with_disk_named
    from orchestrator.disks.power import note_asleep, socket_of
    from orchestrator.disks.release import release_disk
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.domain.rotation import POOL_PREFIX
    from orchestrator.planners.identify_disk import identify_lost_disk
    from orchestrator.process.executor import Writer
    from orchestrator.runner.disk.lease import DiskLeased, LeasePurpose, end_lease_by_hand, end_request, find_lease
    from orchestrator.runner.disk.released import note_released
    from orchestrator.runner.locks import lock_visit

    rotation, own = find_disk(settings.configuration(), name)
    state = settings.where.state
    writer = Writer(log=settings.log)
    here = [each for each in survey_devices(writer) if each.uuid == own.identity and not each.parts]
    # Devices above it are ours and may have the same identity, such as the device below a pool.
    devices = [each for each in here if not each.path.startswith(f"/dev/mapper/{POOL_PREFIX}")]
    if not devices and (waiting := pools_without_disk([own])):
        lost = identify_lost_disk(own, hangs=waiting[own.name])
        raise OrchestratorError(lost.says, hint=lost.hint)
    if len(devices) != 1:
        raise OrchestratorError(f"disk {name} is not here" if not devices else f"disk {name} is there twice", hint="")
    with lock_visit(own, state):
        lease = find_lease(own, state, compose.now(), requests=False)
        if lease is not None and lease.kind is LeasePurpose.COMMAND:
            raise DiskLeased(lease)
        asleep = socket_of(devices[0].disk)
        try:
            medium.detach(own, writer)
        except OrchestratorError as error:
            with_disk_named(error, own.name, devices[0].path)
            raise
        end_lease_by_hand(own, state)
        end_request(own, state)
        told = release_disk(devices[0], writer, power_off=rotation.power_off)
        if not told.hinders:
            off = not os.path.exists(f"/sys/block/{devices[0].disk}")
            note_released(own, devices[0], state)
            if asleep is not None and off:
                note_asleep(own, asleep)
            _record_release(settings, own, off=off, beside=told.beside)
    return LetGo(disk=own, hinders=told.hinders, hint=told.hint if told.hinders else "", beside=told.beside)


def _record_release(settings: Settings, disk: "Disk", *, off: bool, beside: str) -> None:
    """Record that a disk may be taken out. What cannot be recorded is said: the disk is released all the same.

    `off`: it was switched off; `beside`: as in DiskVisit.
    """
    from orchestrator import compose
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.domain.rotation import AT_MACHINE, IN_TRANSIT
    from orchestrator.runner.disk.state import find_disk_record

    now = compose.now()
    try:
        with compose.open_history(settings.where) as history:
            book = history.disks
            known = find_disk_record(book.known(), disk)
            if known is None:
                return
            with history.together():
                book.visits_died(known.disk, "it was ended by hand")
                for last in book.visits(known.disk, 1):
                    book.visit_ended(
                        last.id, jobs=last.jobs, outcome=last.outcome, why=last.why, released=now, safe=True, beside=beside
                    )  # fmt: skip
                book.is_at(known.disk, IN_TRANSIT if off else AT_MACHINE, note="", now=now)
    except OrchestratorError as error:
        settings.say(f"warning: that disk {disk.called} was let go could not be recorded: {error.why}")


def attach_disk(settings: Settings, name: str) -> "Mapping[str, str]":
    """Attach a disk and leave it attached; return where each job's copy lies on it.

    Raises: WrongRequest; OrchestratorError when it is not here, or cannot be used; NotNow while it is being visited.
    """
    from orchestrator import compose
    from orchestrator.app.disk_visits import PluggedInDisks, make_visit_context
    from orchestrator.app.session import open_session
    from orchestrator.domain.errors import NotNow, OrchestratorError
    from orchestrator.planners.identify_disk import NOT_NOW, DeviceState
    from orchestrator.runner.disk.lease import LeasePurpose, find_lease
    from orchestrator.runner.disk.state import job_on_disk, jobs_of_set
    from orchestrator.runner.disk.visit import AttachedDisk, begin_visit

    known = settings.configuration()
    rotation, own = find_disk(known, name)
    places = {job.name: str(job_on_disk(job, own).target.location) for job in jobs_of_set(rotation, known.jobs)}
    lease = find_lease(own, settings.where.state, compose.now(), requests=False)
    if lease is not None and lease.kind is LeasePurpose.BY_HAND:
        return places
    with open_session(settings) as session:
        arrivals = PluggedInDisks(
            known, make_visit_context(settings.where, session.history, say=settings.say, log=settings.log), awake=True
        )
        found = next((each for each in arrivals.found if each.disk == own), None)
        if found is None:
            raise OrchestratorError(f"disk {name} is not here", hint="plug it in")
        if found.state is not DeviceState.TO_VERIFY:
            raise OrchestratorError(found.says, hint=found.hint)
        attached_disk = begin_visit(found, arrivals.visit_context)
        if not isinstance(attached_disk, AttachedDisk):
            kind = NotNow if attached_disk.seen in NOT_NOW else OrchestratorError
            raise kind(attached_disk.why, hint=attached_disk.hint)
        attached_disk.leave()
    return places


def readopt_disk(settings: Settings, name: str) -> "IdentifiedDevice":
    """Accept a plugged-in disk as the one of that name, although its marker differs. Raises: WrongRequest."""
    from orchestrator.app.disk_visits import make_visit_context
    from orchestrator.app.session import open_session
    from orchestrator.runner.disk.enroll import readopt_disk

    known = settings.configuration()
    _, own = find_disk(known, name)
    with open_session(settings) as session:
        return readopt_disk(
            own, known.sets, make_visit_context(settings.where, session.history, say=settings.say, log=settings.log)
        )
