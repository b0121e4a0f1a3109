"""Removable disks that are attached for a command that reads their content, and detached at its end."""

from typing import TYPE_CHECKING, Self

from orchestrator.app.hotplug import find_plugged_in
from orchestrator.domain.rotation import Disk, RotationSet

if TYPE_CHECKING:
    from orchestrator.app.session import Session
    from orchestrator.app.settings import Settings
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import IdentifiedDevice
    from orchestrator.process.executor import Reader
    from orchestrator.runner.disk.visit import AttachedDisk


class AttachedDisks:
    """The plugged-in disks of sets. Without a session none is attached: only attached disks can be read."""

    def __init__(self, settings: "Settings", session: "Session | None") -> None:
        self._settings, self._session = settings, session
        self._found: tuple[IdentifiedDevice, ...] | None = None
        self._told: dict[str, str] = {}
        self._stays: dict[str, AttachedDisk] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for attached_disk in self._stays.values():
            ended = attached_disk.end(power_off=False)
            if ended.safe:
                self._settings.say(f"disk {ended.disk.called} is let go, and may be unplugged")
            else:
                self._settings.say(f"disk {ended.disk.called}: {ended.why}; {ended.hint}")

    def bring(self, rotation: RotationSet, disk: Disk) -> str:
        """Attach a plugged-in disk, unless it is attached; return why its copies cannot be read, or empty."""
        if disk.name not in self._told:
            self._told[disk.name] = self._brought(rotation, disk)
        return self._told[disk.name]

    def did(self, disk: str, report: "RunReport") -> None:
        """Add a run on a disk to the record of its visit."""
        if disk in self._stays:
            self._stays[disk].reports.append(report)

    def _brought(self, rotation: RotationSet, disk: Disk) -> str:
        from orchestrator.disks import disk as medium
        from orchestrator.planners.identify_disk import DeviceState
        from orchestrator.process.executor import Reader

        if disk.name not in find_plugged_in(rotation):
            return "it is not plugged in"
        reader = Reader(log=self._settings.log)
        found = next((each for each in self._devices(reader) if each.disk == disk), None)
        if found is None:
            return "it is not plugged in"
        if found.state is not DeviceState.TO_VERIFY:
            return found.says
        if medium.use(disk, found.device, reader).attached:
            return ""
        if self._session is None:
            return f"it is plugged in, and is not attached only to look: poolferry disks attach {disk.name}"
        return self._attached(found, self._session)

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
        from orchestrator.runner.disk.visit import AttachedDisk, begin_visit

        begun = begin_visit(
            found,
            make_visit_context(self._settings.where, session.history, say=self._settings.say, log=self._settings.log),
        )
        if not isinstance(begun, AttachedDisk):
            return begun.why
        self._stays[begun.disk.name] = begun
        self._settings.say(f"disk {begun.disk.called} is attached; do not unplug it before it is let go")
        return ""
