"""A drawer of USB disks in a machine of the lab, and a configuration that rotates them."""

from dataclasses import dataclass
from typing import Any

from tests.lab.common import Disk
from tests.lab.virtual import VirtualMachine

SET = "[set.offsite]\n"
TREE = 'engine = "rsync"\nsource = "/srv/photos"\ntarget = "offsite"\n'
DATASETS = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "offsite"\n'


@dataclass(frozen=True, slots=True)
class UsbDisks:
    """The disks of a machine."""

    machine: VirtualMachine

    def enroll(self, name: str, *more: str, size: str = "512M") -> Disk:
        """A new disk of the set, enrolled and still plugged in."""
        disk = self.machine.plug_usb(name, size)
        self.ferry("disks", "enroll", disk.device, "--set", "offsite", "--name", name, *more)
        return disk

    def ferry(self, *arguments: str, code: int = 0) -> Any:
        ended = self.machine.poolferry(*arguments, "--json", seconds=300)
        assert ended.code == code, (ended.text, ended.complaint)
        return ended.json

    def scan(self, code: int = 0) -> dict[str, Any]:
        found = self.ferry("disks", "scan", code=code)
        return {each["disk"]: each for each in found["visits"]}

    @property
    def red(self) -> Disk:
        """The disk of that name."""
        return self.machine.disk("red", bus="usb")

    def has_one_copy(self, *more: str) -> None:
        """Enrolls disk red, small, and makes the first visit."""
        self.enroll("red", *more, size="192M")
        self.replug(self.red)
        assert self.scan()["red"]["ending"] == "done"

    def replug(self, disk: Disk) -> None:
        if disk.plugged:
            self.machine.yank(disk)
        self.machine.plug_usb(disk)


def trees(machine: VirtualMachine, targets: str = SET) -> UsbDisks:
    machine.sh(
        "mkdir -p /srv/photos && head -c 3M /dev/urandom >/srv/photos/a && head -c 1M /dev/urandom >/srv/photos/b"
    )
    machine.job("photos", TREE, targets=targets)
    return UsbDisks(machine)


def datasets(machine: VirtualMachine, targets: str = SET) -> UsbDisks:
    machine.pool("tank", "1G")
    machine.sh("zfs create tank/photos && head -c 4M /dev/urandom >/tank/photos/a && zfs snapshot tank/photos@one")
    machine.job("photos", DATASETS, targets=targets)
    machine.kitted("photos", at=("red", "blue"))
    return UsbDisks(machine)
