"""Disks in trouble in the middle of a visit: damage, no room, errors, resets, kill -9, a dock, one that nobody takes away.

The rows of the fault table that are about what happens to a disk of ours, while test_disk_faults.py holds those about disks
that are not to be used. What the emulation cannot produce: a bridge that lies about having flushed (QEMU's disks keep what they
say they keep), a dock that cuts the power of both disks together, SMART values that get worse. A copy that will not fit is told
before as far as it is known, and not refused before it begins: holes and compression make what is known an upper bound.

One machine for all rows of a kind: each begins with the disk plugged in anew.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.common import Disk
from tests.lab.emulator import disk_device, disk_node
from tests.lab.laboratory import Lab
from tests.lab.usb_disks import TREE, UsbDisks, trees
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(900)]
SLOWLY = '[pipe]\nrate-limit = "1M"\n'
RED = "/run/poolferry/disks/red"
WORK = f"{RED}/photos/.poolferry/work"


@pytest.fixture(scope="module")
def drawer(lab: Lab) -> Iterator[UsbDisks]:
    """A machine with a disk that has one copy, pulled out."""
    machine = lab.machine("master")
    made = trees(machine)
    machine.kitted("photos", at=("red", "shared"))
    made.has_one_copy()
    yield made
    lab.give_back(machine)


def copying(drawer: UsbDisks, megabytes: int) -> Any:
    """A visit that is in the middle of copying a new file of so many megabytes, one in each second."""
    drawer.machine.job("photos", TREE + SLOWLY)
    drawer.machine.sh(f"head -c {megabytes}M /dev/urandom >/srv/photos/large")
    drawer.replug(drawer.red)
    return begun(drawer)


def begun(drawer: UsbDisks) -> Any:
    running = drawer.machine.popen(["poolferry", "disks", "scan", "--json"])
    half = f"find {WORK} -newer {RED}/.poolferry-disk.json -name '*large*' -size +1M -type f"
    running.until(lambda: drawer.machine.sh(half, check=False).text, 90)
    drawer.machine.job("photos", TREE)
    return running


def ended(running: Any) -> dict[str, Any]:
    (visit,) = json.loads(running.wait(200).out)["visits"]
    return dict(visit)


def told(visit: dict[str, Any]) -> tuple[str, str, bool, str]:
    return visit["ending"], visit["state"], visit["safe"], visit["runs"][0]["outcome"]


def goes_on(drawer: UsbDisks) -> dict[str, Any]:
    """The next visit comes to its end."""
    drawer.replug(drawer.red)
    visit: dict[str, Any] = drawer.scan()["red"]
    assert told(visit) == ("done", "ours-ready", True, "done"), visit
    assert nothing_is_left(drawer)
    return visit


def nothing_is_left(drawer: UsbDisks) -> bool:
    return not drawer.machine.sh("findmnt -n -l | grep /run/poolferry; pgrep -x rsync", check=False).text


def plug(drawer: UsbDisks, disk: Disk, **between: Any) -> None:
    """Plugs a disk in with something between it and its file."""
    if disk.plugged:
        drawer.machine.yank(disk)
    disk.plugged = f"{disk.name}-{between['driver']}"
    node = dict(disk_node(disk, f"n-{disk.plugged}"))
    below = "image" if between["driver"] == "blkdebug" else "file"
    node["file"] = {**between, below: node["file"]}
    drawer.machine.qmp.ask("blockdev-add", **node)
    drawer.machine.qmp.ask("device_add", **disk_device(disk, f"n-{disk.plugged}"))
    drawer.machine.wait_for_device(disk)


@pytest.mark.long
def test_19_ext4_meets_damage_in_the_middle_of_a_copy(drawer: UsbDisks) -> None:
    running = copying(drawer, 8)
    drawer.machine.sh(
        f"sync -f {WORK}; echo damage >/sys/fs/ext4/$(findmnt -n -o SOURCE -M {RED} | cut -d/ -f3)/trigger_fs_error"
    )
    visit = ended(running)
    assert told(visit) == ("incomplete", "needs-check", True, "failed"), visit
    assert "the kernel met damage in the filesystem of disk red" in visit["why"]
    assert visit["hint"].startswith("unplug it and plug it in again: it is checked then")
    assert nothing_is_left(drawer)
    assert goes_on(drawer)["runs"][0]["resumed"]


@pytest.mark.long
def test_33_the_disk_fills_up_in_the_middle_of_a_copy(drawer: UsbDisks) -> None:
    points = drawer.ferry("points")["points"]
    running = copying(drawer, 12)
    drawer.machine.sh(f"fallocate -l $(df -B1 --output=avail {RED} | tail -1) {RED}/theirs; true")
    visit = ended(running)
    assert told(visit) == ("incomplete", "ours-ready", True, "failed"), visit
    assert "the target has no space left" in visit["why"]
    assert "let [keep] keep fewer points: the next run removes those first" in visit["hint"]
    assert drawer.ferry("points")["points"] == points
    drawer.replug(drawer.red)
    drawer.machine.sh(f"mount {drawer.red.device} /mnt && rm /mnt/theirs && umount /mnt")


def test_34_writes_that_fail_and_reads_that_do_not(drawer: UsbDisks) -> None:
    drawer.machine.job("photos", TREE)
    drawer.machine.sh("head -c 40M /dev/urandom >/srv/photos/large")
    failing = [{"event": "none", "iotype": "write", "errno": 5, "sector": at} for at in range(60_000, 190_000, 128)]
    plug(drawer, drawer.red, driver="blkdebug", **{"inject-error": failing})
    visit = drawer.scan(code=1)["red"]
    assert (visit["ending"], visit["safe"]) == ("incomplete", True), visit
    assert "smartctl -a" in visit["hint"] or "another cable" in visit["hint"], visit
    assert nothing_is_left(drawer)
    goes_on(drawer)


@pytest.mark.long
def test_34_a_slow_disk_whose_bridge_is_reset_and_37_a_second_scheduler(drawer: UsbDisks) -> None:
    drawer.machine.job("photos", TREE + SLOWLY)
    drawer.machine.sh("head -c 10M /dev/urandom >/srv/photos/large")
    limits = {"bps-write": 1 << 20}
    drawer.machine.qmp.ask("object-add", **{"qom-type": "throttle-group", "id": "slow", "limits": limits})
    plug(drawer, drawer.red, driver="throttle", **{"throttle-group": "slow"})
    running = begun(drawer)
    another = ("--state", "/var/lib/another")
    (other,) = drawer.ferry("disks", "scan", *another, code=75)["visits"]
    assert (other["ending"], other["state"], other["runs"]) == ("refused", "being-visited", []), other
    assert "another visit of disk red is going on" in other["why"]
    waits = drawer.ferry("run", "photos", *another, code=75)
    assert "another visit of disk red is going on" in waits["why"]
    drawer.machine.sh("for n in 1 2 3; do usbreset 46f4:0001; done; dmesg | grep -c 'reset .* USB device'")
    visit = ended(running)
    assert told(visit) == ("done", "ours-ready", True, "done"), visit


def test_36_poolferry_is_killed_in_the_middle_of_a_visit(drawer: UsbDisks) -> None:
    running = copying(drawer, 8)
    running.kill(9)
    wait_until(lambda: not drawer.machine.sh("pgrep -x rsync", check=False).text, 30)
    visit = drawer.scan()["red"]  # the disk was not pulled out
    assert told(visit) == ("done", "ours-ready", True, "done"), visit
    assert visit["runs"][0]["resumed"]
    newest, killed = drawer.ferry("disks", "show", "red")["history"][:2]
    assert (newest["outcome"], killed["outcome"], killed["released"]) == ("done", "interrupted", None)
    assert "ended in the middle of it" in killed["why"]


def test_41_a_disk_that_nobody_takes_away_is_told_of_and_used_again(drawer: UsbDisks) -> None:
    drawer.machine.job("photos", TREE)
    drawer.replug(drawer.red)
    assert drawer.scan()["red"]["safe"]
    drawer.machine.wait_for_device(drawer.red, there=False)  # switched off, and still in its socket
    found = drawer.machine.poolferry("disks").text
    assert "disk red is still plugged in, and safe to remove since 20" in found, found
    drawer.machine.sh("date >/srv/photos/a")
    ran = drawer.machine.poolferry("run", "photos", seconds=200)
    assert "disk red was switched off and is still plugged in: it is used again" in ran.complaint
    assert (ran.code, "photos: done: made" in ran.text, "SAFE TO REMOVE: red" in ran.complaint) == (0, True, True), ran
    drawer.machine.yank(drawer.red)
    found = drawer.machine.poolferry("disks").text
    assert "The next one is disk red" in found, found
    assert "still plugged in" not in found
    waits = drawer.ferry("run", "photos", code=75)
    assert (waits["outcome"], waits["hint"].startswith("Please plug in disk red")) == ("waiting", True), waits
    assert "Please plug in disk red" in drawer.machine.poolferry("disks").text, "the run that waits needs it"


@pytest.mark.long
def test_24_pulled_out_while_points_are_removed(drawer: UsbDisks) -> None:
    drawer.machine.job("photos", TREE)
    drawer.machine.sh("mkdir /srv/photos/many; cd /srv/photos/many && seq 1500 | xargs touch; rm -f /srv/photos/large")
    goes_on(drawer)
    drawer.machine.sh("date >/srv/photos/a")
    drawer.machine.job("photos", TREE + "[keep]\ndaily = 1\n")
    drawer.replug(drawer.red)
    running = drawer.machine.popen(["poolferry", "disks", "scan", "--json"])
    trash = f"{RED}/photos/.poolferry/trash"
    drawer.machine.sh(f"until set -- {trash}/*; [ -e $1 ]; do sleep 0.02; done", seconds=120)
    drawer.machine.yank(drawer.red)
    visit = ended(running)
    assert (visit["ending"], visit["safe"]) == ("pulled-out", False), visit
    drawer.replug(drawer.red)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["safe"]) == ("done", True), visit
    drawer.replug(drawer.red)
    drawer.machine.sh(f"mount -o ro {drawer.red.device} /mnt")
    try:
        assert len(drawer.machine.sh("ls -d /mnt/photos/points/*Z").lines) == 1
        assert not drawer.machine.sh("ls /mnt/photos/.poolferry/trash", check=False).text
    finally:
        drawer.machine.sh("umount /mnt")


def test_40_a_disk_in_a_dock_beside_one_that_is_in_use(drawer: UsbDisks) -> None:
    machine = drawer.machine
    machine.job("photos", TREE)
    if drawer.red.plugged:
        machine.yank(drawer.red)
    dock(machine, drawer.red, machine.disk("theirs", "16M", bus="usb"))
    ours, theirs = "/dev/disk/by-path/*-usb-*:0", "/dev/disk/by-path/*-usb-*:1"
    machine.sh(f"until [ -e {ours} ] && [ -e {theirs} ]; do sleep 0.1; done; udevadm settle")
    machine.sh(f"mkfs.ext4 -q $(readlink -f {theirs}) && udevadm settle && mkdir -p /mnt/theirs")
    machine.sh(f"mount $(readlink -f {theirs}) /mnt/theirs")
    stays(machine, "/mnt/theirs")
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["safe"]) == ("done", True), visit
    assert "is mounted at /mnt/theirs" in visit["beside"]
    machine.sh(f"[ ! -e {ours} ] && echo text >/mnt/theirs/a && sync -f /mnt/theirs && umount /mnt/theirs")


def stays(machine: VirtualMachine, place: str) -> None:
    """It is mounted there, also when systemd has looked at it: one whose device it does not know yet it takes away again."""
    machine.sh(f"sleep 1; udevadm settle; findmnt {place}")


def dock(machine: VirtualMachine, *disks: Disk) -> None:
    """Plugs in a bridge with several disks, each a unit of it."""
    machine.qmp.ask("device_add", driver="usb-bot", id="dock", bus="xhci.0", attached=False)
    for unit, disk in enumerate(disks):
        node = f"n-{disk.name}-docked"
        machine.qmp.ask("blockdev-add", **disk_node(disk, node))
        machine.qmp.ask("device_add", driver="scsi-hd", bus="dock.0", lun=unit, drive=node, id=f"{disk.name}-docked")
    machine.qmp.ask("qom-set", path="/machine/peripheral/dock", property="attached", value=True)


@pytest.mark.long
def test_40_a_disk_of_which_another_part_is_in_use_is_not_safe(drawer: UsbDisks) -> None:
    machine = drawer.machine
    shared = machine.plug_usb("shared", "64M")
    machine.sh(f"printf 'size=32M\\n,\\n' | sfdisk -q {shared.device} && udevadm settle")
    drawer.ferry("disks", "enroll", f"{shared.device}-part1", "--set", "offsite", "--name", "shared")
    machine.sh(f"mkfs.ext4 -q {shared.device}-part2 && udevadm settle && mkdir -p /mnt/part")
    machine.sh(f"mount {shared.device}-part2 /mnt/part")
    stays(machine, "/mnt/part")
    visit = drawer.scan(code=1)["shared"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("busy", False, "done"), visit
    assert "another part of the same disk, is mounted at /mnt/part" in visit["why"]
    machine.sh("echo text >/mnt/part/a && sync -f /mnt/part && umount /mnt/part")
    assert drawer.ferry("disks", "eject", "shared")["safe"]
    machine.wait_for_device(shared, there=False)
