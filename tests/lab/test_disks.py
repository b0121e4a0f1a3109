"""Rotating USB disks in virtual machines: real udev, ext4, LUKS and ZFS; plugged in, pulled out, and pulled out too early."""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.lab.usb_disks import DATASETS, SET, UsbDisks, datasets, trees
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual
BOTH = pytest.mark.flavours("trixie", long=["bookworm"])  # util-linux, udev and dmsetup are others there, too


@BOTH
def test_ext4_disks_rotate(master: VirtualMachine) -> None:
    drawer = trees(master)
    red = drawer.enroll("red")
    drawer.replug(red)
    ended = master.poolferry("run", "photos", seconds=300)
    assert ended.code == 0, ended.complaint
    assert "SAFE TO REMOVE: red" in ended.complaint
    assert master.sh("findmnt -M /run/poolferry/disks/red", check=False).code
    master.wait_for_device(red, there=False)  # switched off
    master.yank(red)
    assert drawer.ferry("run", "photos", code=75)["outcome"] == "waiting"
    master.write("/etc/poolferry/keys/blue", "open sesame", mode=0o600)
    blue = drawer.enroll("blue", "--luks", "--key-file", "/etc/poolferry/keys/blue")
    drawer.replug(blue)
    visit = drawer.scan()["blue"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("done", True, "done")
    assert not master.sh("ls /dev/mapper | grep poolferry", check=False).text, "its container is closed"
    (found,) = drawer.ferry("disks")["sets"]
    assert (found["expected"], found["accepted"]) == ("red", ["blue"])


@pytest.mark.long
@pytest.mark.parametrize("more", [(), ("--luks", "--key-file", "/etc/poolferry/keys/red")], ids=["plain", "luks"])
def test_an_ext4_disk_is_pulled_out_too_early_and_goes_on(master: VirtualMachine, more: tuple[str, ...]) -> None:
    drawer = trees(master)
    master.write("/etc/poolferry/keys/red", "open sesame", mode=0o600)
    master.sh("head -c 120M /dev/urandom >/srv/photos/large")
    red = drawer.enroll("red", *more)
    drawer.replug(red)
    running = master.popen(["poolferry", "disks", "scan", "--json"])
    running.until(lambda: master.sh("find /run/poolferry/disks/red -size +8M -type f", check=False).text, 180)
    master.yank(red)
    visit = json.loads(running.wait(120).out)["visits"][0]
    assert (visit["ending"], visit["safe"]) == ("pulled-out", False)
    assert "plug it in again" in visit["hint"]
    assert master.sh("findmnt -M /run/poolferry/disks/red", check=False).code, "nothing is left of it"
    drawer.replug(red)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["runs"][0]["outcome"]) == ("done", "done")
    drawer.replug(red)
    assert drawer.ferry("verify", "photos")["outcome"] == "done"


@BOTH
@pytest.mark.long
def test_udev_begins_the_visit(master: VirtualMachine) -> None:
    drawer = trees(master)
    red = drawer.enroll("red")
    drawer.ferry("setup", "systemd")
    master.yank(red)
    for turn in range(2):
        master.plug(red)
        seen = float(master.sh("date +%s.%N").text)
        newest = wait_until(lambda: done(visits(drawer), turn + 1), 120, pause=1)  # noqa: B023
        came, left = (datetime.fromisoformat(newest[name]).timestamp() for name in ("arrived", "released"))
        print(f"{came - seen:.1f} s from the settled device to the visit, which took {left - came:.1f} s")
        master.yank(red)


def visits(drawer: UsbDisks) -> list[dict[str, Any]]:
    """Of disk red, the newest first."""
    found: list[dict[str, Any]] = drawer.ferry("disks", "show", "red")["history"]
    return found or [{"outcome": "none yet"}]


def done(found: list[dict[str, Any]], count: int) -> dict[str, Any] | None:
    """The newest of so many visits, when it is over."""
    return found[0] if len(found) == count and found[0]["outcome"] == "done" else None


def held(machine: VirtualMachine) -> int:
    """Bytes that are in the pool of disk red for good."""
    return int(machine.sh("zpool list -Hp -o alloc poolferry-red", check=False).text or 0)


@pytest.mark.long
def test_disks_with_pools_rotate_each_from_its_own_base(master: VirtualMachine) -> None:
    drawer = datasets(master, SET + 'verify = "1G"\n')
    master.write("/etc/poolferry/keys/red", "a1" * 32, mode=0o600)
    keys = {"red": ("--key-file", "/etc/poolferry/keys/red"), "blue": ()}
    disks = {name: drawer.enroll(name, "--content", "zfs", *more) for name, more in keys.items()}
    for turn in range(2):
        for name, disk in disks.items():
            master.sh(f"head -c 1M /dev/urandom >/tank/photos/{name}{turn} && zfs snapshot tank/photos@{name}{turn}")
            drawer.replug(disk)
            visit = drawer.scan()[name]
            assert (visit["ending"], visit["safe"]) == ("done", True), visit
            assert "1 dataset to the end, and all sound; the oldest reading is" in visit["read"][0]["why"], visit[
                "read"
            ]
            master.yank(disk)
            moved = visit["runs"][0]["moved_bytes"]
            assert turn == 0 or moved < 4 << 20, "an increment"
    assert master.sh("zpool list -H -o name").text == "tank"
    assert not master.sh("ls /dev/mapper | grep poolferry", check=False).text


@BOTH
@pytest.mark.parametrize(
    "more",
    [(), pytest.param(("--luks", "--key-file", "/etc/poolferry/keys/red"), marks=pytest.mark.long)], ids=["plain", "luks"],
)  # fmt: skip
@pytest.mark.long
def test_a_pool_is_pulled_out_in_mid_send_and_goes_on_without_a_reboot(
    master: VirtualMachine, more: tuple[str, ...]
) -> None:
    drawer = datasets(master)
    master.sh("head -c 30M /dev/urandom >/tank/photos/large && zfs snapshot tank/photos@large", seconds=120)
    master.job("photos", DATASETS + '[pipe]\nrate-limit = "2M"\n')
    master.write("/etc/poolferry/keys/red", "open sesame", mode=0o600)
    red, blue = (drawer.enroll(name, "--content", "zfs", *more) for name in ("red", "blue"))
    master.yank(blue)
    drawer.replug(red)
    running = master.popen(["poolferry", "disks", "scan", "--json"])
    running.until(lambda: held(master) > 12 << 20, 200)
    before = held(master)
    master.yank(red)
    visit = json.loads(running.wait(200).out)["visits"][0]
    assert (visit["ending"], visit["safe"]) == ("pulled-out", False)
    master.job("photos", DATASETS)
    drawer.replug(blue)
    assert drawer.scan()["blue"]["ending"] == "done", "another disk is not harmed"
    master.yank(blue)
    drawer.replug(red)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["resumed"]) == ("done", True, True), visit
    moved, rest = visit["runs"][0]["moved_bytes"], (34 << 20) + (64 << 10) - before
    print(f"after the yank {moved} bytes were moved, and {rest} had been left")
    assert moved <= rest * 1.1
    assert master.sh("zpool list -H -o name").text == "tank"
