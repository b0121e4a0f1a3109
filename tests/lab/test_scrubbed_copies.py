"""Scrubs of real pools that nobody watches: of a rotating disk, wherever it was scrubbed, and of a pool of this machine."""

from typing import Any

import pytest

from tests.lab.usb_disks import DATASETS, UsbDisks, datasets
from tests.lab.virtual import VirtualMachine

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])  # zpool's JSON, and its text
VAULT = '[place.offsite]\ndataset = "vault/copies"\n'
STANDSTILL = "echo {0} > /sys/module/zfs/parameters/zfs_scan_suspend_progress"
AHEAD = "date -u -s @$(($(date +%s) + {0} * 86400))"  # by so many days


def read_points(machine: VirtualMachine, job: str) -> list[str]:
    """Return the points of a job that were read again since they came."""
    points: list[dict[str, Any]] = machine.poolferry("points", job, "--json").json["points"]
    return sorted(str(point["point"]) for point in points if point["verified"] is not None)


class DiskVisits:
    """Disk red, away between its visits; each visit brings something new."""

    def __init__(self, machine: VirtualMachine) -> None:
        self.machine = machine
        self.drawer: UsbDisks = datasets(machine)
        self.drawer.enroll("red", "--content", "zfs")

    def visit(self, name: str) -> list[str]:
        """Make a snapshot and a visit; return the points that were read again since they came."""
        self.machine.sh(f"date >/tank/photos/a; zfs snapshot tank/photos@{name}")
        self.drawer.replug(self.drawer.red)
        assert self.drawer.scan()["red"]["ending"] == "done"
        return read_points(self.machine, "photos")

    def scrubbed_elsewhere(self, how: str) -> None:
        """Import the pool as another machine does, scrub it, and export it."""
        self.drawer.replug(self.drawer.red)
        self.machine.sh(
            f"zpool import -N poolferry-red && {how}; zpool status poolferry-red; zpool export poolferry-red"
        )


@pytest.mark.long
@BOTH
@pytest.mark.virtual
def test_a_scrub_of_a_disk_counts_at_its_next_visit(master: VirtualMachine) -> None:
    """Count all that had come before it began: a paused or cancelled one says nothing, and no clock that was ahead says more."""
    red = DiskVisits(master)
    assert red.visit("two") == []
    master.sh(STANDSTILL.format(1))
    red.scrubbed_elsewhere("zpool scrub poolferry-red && zpool scrub -p poolferry-red")
    assert red.visit("three") == []
    master.sh(STANDSTILL.format(0))
    red.scrubbed_elsewhere("zpool scrub -s poolferry-red")
    assert red.visit("four") == []
    master.sh(AHEAD.format(3))
    red.scrubbed_elsewhere("zpool scrub poolferry-red && zpool wait -t scrub poolferry-red")
    master.sh(AHEAD.format(-3))
    assert red.visit("five") == ["four", "one", "three", "two"]
    master.sh(AHEAD.format(4))
    assert red.visit("six") == ["four", "one", "three", "two"]


@BOTH
@pytest.mark.virtual
@pytest.mark.long
def test_a_scrub_of_a_pool_that_nobody_watches_counts_after_a_run(master: VirtualMachine) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    master.sh("zfs create tank/photos; zfs snapshot tank/photos@one")
    master.job("photos", DATASETS, targets=VAULT)
    master.kitted("photos")
    for at, name in enumerate(("two", "three")):
        assert master.poolferry("run", "photos").code == 0
        assert read_points(master, "photos") == (["one"] if at else [])
        master.sh(f"sleep 1.1; zpool scrub -w vault; {AHEAD.format(1)}; zfs snapshot tank/photos@{name}")
    declare_promise(master)
    assert master.poolferry("verify", "--due", "--json").json["read"][0]["outcome"] == "done"
    master.sh(AHEAD.format(11))
    late = master.poolferry("status", "--json").json["jobs"][0]
    assert (late["state"], late["hint"]) == ("late", "poolferry verify photos --due")
    assert master.sh(late["hint"]).code == 0, "each dataset is sent, and goes nowhere"
    assert read_points(master, "photos") == ["one", "two"]
    assert master.poolferry("run", "photos").code == 0
    assert master.poolferry("status", "--json").json["jobs"][0]["state"] == "up"


def declare_promise(machine: VirtualMachine) -> None:
    machine.job("photos", f'{DATASETS}[verify]\nread-all-within = "10d"\n', targets=VAULT)
