"""A quarter of a year with three disks that rotate, on real pools and with real sends; the machine's clock is moved.

Every ten days a disk is brought; once nobody comes, and once one disk is left out for too long. What is late, and which disk
is overdue, is told on the right day and by name; and every copy after a disk's first holds what is new since that disk was
here, and no more, though the source keeps only its last two snapshots.

Costs some five minutes: nine visits of pools, each some forty commands.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.lab.common import Disk
from tests.lab.kits import history_with_kits
from tests.lab.usb_disks import DATASETS, UsbDisks, datasets
from tests.lab.virtual import VirtualMachine

pytestmark = [pytest.mark.virtual, pytest.mark.long, pytest.mark.timeout(1500)]
BEGAN = datetime(2027, 1, 4, 9, 0, tzinfo=UTC)
NAMES = ("red", "blue", "green")
TARGETS = '[set.offsite]\nfresh-within = "12d"\neach-within = "45d"\n'
HOOK = '#!/bin/sh\necho "$POOLFERRY_EVENT $POOLFERRY_DISK" >>/root/heard\n'
FULL, NEW = 8 << 20, 512 << 10
# By the day: who is asked for, and who is brought.
DAYS = {
    0: ("red", "red"), 10: ("blue", "blue"), 20: ("green", "green"), 30: ("red", "red"), 40: ("blue", "blue"),
    50: ("green", ""), 60: ("green", "green"), 70: ("red", "red"), 80: ("blue", "green"), 90: ("blue", "blue"),
}  # fmt: skip


class Quarter:
    """The disks, and the machine's clock. `missed`: of each disk that was here, how much has come since."""

    def __init__(self, machine: VirtualMachine) -> None:
        self.machine = machine
        self.drawer: UsbDisks = datasets(machine, TARGETS)
        kits = history_with_kits(("photos",), NAMES, BEGAN + timedelta(days=365))
        machine.write(f"{machine.state}/history.sqlite", kits, mode=0o600)
        machine.write("/root/hear", HOOK, mode=0o755)
        machine.job("photos", DATASETS + '[hooks]\nlate = ["/root/hear"]\ndisk-overdue = ["/root/hear"]\n')
        machine.sh(f"head -c {FULL} /dev/urandom >/tank/photos/much; touch /root/heard")
        self.at(0)
        self.disks: dict[str, Disk] = {}
        self.missed: dict[str, int] = {}
        for name in NAMES:
            self.disks[name] = self.drawer.enroll(name, "--content", "zfs", size="128M")
            machine.yank(self.disks[name])

    def at(self, day: float) -> None:
        self.machine.sh(f"date -u -s @{int((BEGAN + timedelta(days=day)).timestamp())}")

    def stands(self) -> dict[str, Any]:
        """Return how the set stands."""
        (found,) = self.drawer.ferry("disks")["sets"]
        return dict(found)

    def brings(self, name: str) -> None:
        """Something new, and a disk that is brought and taken away again."""
        self.machine.sh(
            f"head -c {NEW} /dev/urandom >/tank/photos/$(date +%F); zfs snapshot tank/photos@$(date +%F); "
            "zfs list -H -o name -t snapshot tank/photos | head -n -2 | xargs -r -n 1 zfs destroy"
        )
        self.missed = {each: count + 1 for each, count in self.missed.items()}
        self.machine.plug_usb(self.disks[name])
        visit = self.drawer.scan()[name]
        self.machine.yank(self.disks[name])
        (run,) = visit["runs"]
        assert (visit["ending"], visit["safe"], run["outcome"]) == ("done", True, "done"), visit
        least = self.missed[name] * NEW if name in self.missed else FULL
        most = least * 1.1 if name in self.missed else 2 * FULL
        assert least <= run["moved_bytes"] <= most, (name, run)
        self.missed[name] = 0

    def heard(self) -> tuple[str, ...]:
        """Return what the hooks heard; people are told what there is to tell before."""
        self.machine.poolferry("notices", "send", check=True)
        return self.machine.sh("cat /root/heard; : >/root/heard").lines


def test_a_quarter_with_three_disks(master: VirtualMachine) -> None:
    quarter = Quarter(master)
    for day, (requested, brought) in DAYS.items():
        quarter.at(day)
        stands = quarter.stands()
        assert stands["expected"] == requested, (day, stands["request"])
        assert bool(stands["late"]) is (day == 60), (day, stands)
        assert list(stands["overdue"]) == (["blue"] if day == 90 else []), (day, stands)
        if brought:
            quarter.brings(brought)
        if day == 50:
            at_the_limit_of_the_set(quarter)
        if day == 80:
            at_the_limit_of_a_disk(quarter)
    stands = quarter.stands()
    assert (stands["late"], stands["overdue"]) == ("", {})
    assert len(master.sh("zfs list -H -o name -t snapshot tank/photos").lines) == 2


def at_the_limit_of_the_set(quarter: Quarter) -> None:
    """The newest copy is of day 40."""
    quarter.at(51.9)
    assert quarter.stands()["late"] == ""
    quarter.at(52.1)
    late = quarter.stands()["late"]
    assert late.startswith("the newest whole copy on the set offsite is 12 d "), late
    assert late.endswith("old (limit 12 d)"), late


def at_the_limit_of_a_disk(quarter: Quarter) -> None:
    """Blue's copy is of day 40."""
    quarter.at(84.9)
    assert (quarter.stands()["overdue"], quarter.heard()) == ({}, ())
    quarter.at(85.1)
    ((name, told),) = quarter.stands()["overdue"].items()
    assert name == "blue"
    assert told.startswith("no whole copy on disk blue for 45 d "), told
    assert "(limit 45 d)" in told
    assert (quarter.heard(), quarter.heard()) == (("disk-overdue blue",), ()), "once"
