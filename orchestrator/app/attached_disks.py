"""Removable disks that are attached for a command that reads their content, and detached at its end."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from orchestrator import compose
from orchestrator.app.hotplug import find_plugged_in
from orchestrator.domain.errors import NotNow
from orchestrator.domain.rotation import Disk, RotationSet
from orchestrator.runner.disk.lease import end_request, hold_disk, request_disk

if TYPE_CHECKING:
    from orchestrator.app.session import Session
    from orchestrator.app.settings import Settings
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import IdentifiedDevice
    from orchestrator.process.executor import Reader
    from orchestrator.runner.disk.visit import AttachedDisk


class AttachedDisks:
    """The plugged-in disks of sets. Without a session none is attached: only attached disks can be read.

    A disk that a person attached is read where it is and held meanwhile. `command`: what goes on with the work when it is said
    again; a disk that it still needs stays on, and is not visited.
    """

    def __init__(self, settings: "Settings", session: "Session | None", command: str = "a restore") -> None:
        self._settings, self._session, self._command = settings, session, command
        self._found: tuple[IdentifiedDevice, ...] | None = None
        self._told: dict[str, str] = {}
        self._needed: dict[str, Disk] = {}
        self._stays: dict[str, AttachedDisk] = {}
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()
        for attached_disk in self._stays.values():
            ended = attached_disk.end(power_off=False)
            if ended.safe:
                self._settings.say(f"disk {ended.disk.called} is let go, and may be unplugged")
            else:
                self._settings.say(f"disk {ended.disk.called}: {ended.why}; {ended.hint}")

    def settle(self, *, over: bool) -> None:
        """Record whether the disks that were asked for are needed again when the command is said again."""
        state = self._settings.where.state
        for disk in self._needed.values() if self._session is not None else ():
            if over:
                end_request(disk, state)
            else:
                request_disk(disk, self._command, state, compose.now())

    def bring(self, rotation: RotationSet, disk: Disk) -> str:
        """Attach a plugged-in disk, unless it is attached; return why its copies cannot be read, or empty."""
        if disk.name not in self._told:
            self._needed[disk.name] = disk
            self._told[disk.name] = self._brought(rotation, disk)
        return self._told[disk.name]

    def did(self, disk: str, report: "RunReport") -> None:
        """Add a run on a disk to the record of its visit."""
        if disk in self._stays:
            self._stays[disk].reports.append(report)

    def _brought(self, rotation: RotationSet, disk: Disk) -> str:
        from orchestrator.planners.identify_disk import DeviceState

        if disk.name not in find_plugged_in(rotation):
            return "it is not plugged in"
        found = self._awake(disk)
        if isinstance(found, str):
            return found
        if found.state is not DeviceState.TO_VERIFY:
            return found.says
        if self._in_place(found, disk):
            return self._hold(disk)
        if self._session is None:
            return f"it is plugged in, and is not attached only to look: poolferry disks attach {disk.name}"
        return self._attached(found, self._session)

    def _awake(self, disk: Disk) -> "IdentifiedDevice | str":
        """Return the disk's device, which is woken where it was switched off; or why there is none."""
        from orchestrator.disks.power import wake_disks
        from orchestrator.process.executor import Reader, Writer

        def found() -> "IdentifiedDevice | None":
            return next((each for each in self._devices(Reader(log=self._settings.log)) if each.disk == disk), None)

        if here := found():
            return here
        if self._session is None:
            return f"it is plugged in and switched off; without --plan it is woken, as by: poolferry disks attach {disk.name}"
        wake_disks([disk], Writer(log=self._settings.log))
        self._found = None
        return found() or (
            "it is plugged in and switched off, and does not wake: unplug it, plug it in again, and say the command again; "
            "it is left switched on for it"
        )

    def _in_place(self, found: "IdentifiedDevice", disk: Disk) -> bool:
        from orchestrator.disks import disk as medium
        from orchestrator.process.executor import Reader

        return medium.use(disk, found.device, Reader(log=self._settings.log)).attached

    def _hold(self, disk: Disk) -> str:
        """Hold a disk that is attached already; return why that is not possible, or empty."""
        try:
            self._held.enter_context(hold_disk(disk, self._command, self._settings.where.state, compose.now()))
        except NotNow as error:
            return error.why
        return ""

    def _devices(self, reader: "Reader") -> "tuple[IdentifiedDevice, ...]":
        from orchestrator.disks.detect import survey_devices
        from orchestrator.planners.identify_disk import identify_devices

        if self._found is None:
            disks = [disk for rotation in self._settings.configuration().sets for disk in rotation.disks]
            with self._settings.views() as views:
                self._found = identify_devices(survey_devices(reader), disks, views.disks.known())
        return self._found

    def _attached(self, found: "IdentifiedDevice", session: "Session") -> str:
        from orchestrator.app.disk_visits import make_visit_context
        from orchestrator.domain.run import VisitCause
        from orchestrator.runner.disk.visit import AttachedDisk, begin_visit

        begun = begin_visit(
            found,
            make_visit_context(
                self._settings.where,
                session.history,
                say=self._settings.say,
                log=self._settings.log,
                cause=VisitCause.RESTORE,
            ),
        )
        if not isinstance(begun, AttachedDisk):
            return begun.why
        self._stays[begun.disk.name] = begun
        self._settings.say(f"disk {begun.disk.called} is attached; do not unplug it before it is let go")
        return ""
