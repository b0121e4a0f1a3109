"""Copies of encrypted disks: an older one, and one that is plugged in beside its original, are named and not written to."""

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.lab.common import Disk
from tests.lab.usb_disks import SET, TREE, UsbDisks, datasets
from tests.lab.virtual import VirtualMachine

pytestmark = [pytest.mark.virtual, pytest.mark.long, pytest.mark.timeout(900)]
KEY = "/etc/poolferry/keys/red"


def digest(disk: Disk) -> str:
    return hashlib.sha256(disk.path.read_bytes()).hexdigest()


@pytest.mark.parametrize("content", ["ext4", "zfs"])
def test_a_copy_of_an_encrypted_disk_is_named_and_not_written_to(
    master: VirtualMachine, tmp_path: Path, content: str
) -> None:
    drawer = datasets(master)
    if content == "ext4":
        master.job("photos", TREE.replace("/srv/photos", "/tank/photos"), targets=SET)
    master.write(KEY, "open sesame", mode=0o600)
    red = drawer.enroll("red", "--content", content, "--luks", "--key-file", KEY, size="192M")
    master.yank(red)
    older = shutil.copyfile(red.path, tmp_path / "older")
    master.plug(red)
    assert drawer.scan()["red"]["ending"] == "done"
    master.yank(red)
    newer = shutil.copyfile(red.path, tmp_path / "newer")

    shutil.copyfile(older, red.path)
    turned_away(drawer, red, "stale-clone", "it is at visit 0, and disk red has had 1")
    shutil.copyfile(newer, red.path)
    twin = master.disk("twin", "192M", bus="usb")
    shutil.copyfile(newer, twin.path)
    master.plug(red)
    master.plug(twin)
    before = digest(red), digest(twin)
    found = drawer.ferry("disks", "scan")
    assert (found["visits"], [each["state"] for each in found["others"]]) == ([], ["clone", "clone"]), found
    ran = drawer.ferry("run", "photos", code=75)
    assert "is there twice" in ran["why"], ran
    assert (digest(red), digest(twin)) == before
    master.yank(twin)
    assert drawer.scan()["red"]["ending"] == "done", "the hint ends it"


def turned_away(drawer: UsbDisks, red: Disk, state: str, says: str) -> None:
    """The disk is refused for this reason, nothing on it changes, and nothing of it stays open."""
    master = drawer.machine
    before = digest(red)
    master.plug(red)
    visit = drawer.scan(code=3)["red"]
    assert (visit["ending"], visit["state"], says in visit["why"]) == ("refused", state, True), visit
    ran = drawer.ferry("run", "photos", code=75)
    assert says in ran["why"], ran
    assert "not active" not in str((visit, ran))
    master.yank(red)
    assert digest(red) == before
    assert not master.sh("ls /dev/mapper | grep poolferry", check=False).text
    assert master.sh("zpool list -H -o name").text == "tank"
