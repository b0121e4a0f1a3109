"""The key of a disk with LUKS comes late, or is lost: the disk is named with that, let go, and used once the key is there."""

import pytest

from tests.lab.usb_disks import trees
from tests.lab.virtual import VirtualMachine

pytestmark = pytest.mark.virtual
KEY = "/etc/poolferry/keys/red"
_LOST = "the file with the disk's key cannot be read"


def closed(machine: VirtualMachine) -> bool:
    """Nothing of the disk is mounted or open."""
    return bool(machine.sh("findmnt -M /run/poolferry/disks/red || ls /dev/mapper | grep poolferry", check=False).code)


def test_a_disk_whose_key_is_late_is_named_and_used_once_it_is_there(master: VirtualMachine) -> None:
    drawer = trees(master)
    master.write(KEY, "open sesame", mode=0o600)
    red = drawer.enroll("red", "--luks", "--key-file", KEY)
    drawer.replug(red)
    assert drawer.scan()["red"]["ending"] == "done"
    master.sh(f"mv {KEY} /root/late; echo more >/srv/photos/more")
    drawer.replug(red)
    ended = master.poolferry("run", "photos", "--json", seconds=300)
    assert (ended.json["outcome"], _LOST in str(ended.json)) == ("waiting", True), ended
    found = master.poolferry("disks").text
    assert "Please plug in" not in found, found
    restored = master.poolferry("restore", "run", "photos", "--to", "/root/back", "--json", seconds=300)
    assert (restored.code != 0, _LOST in restored.text + restored.complaint) == (True, True), restored
    assert closed(master)
    master.sh(f"mv /root/late {KEY}")
    visit = drawer.scan()["red"]  # as the hint says
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("done", True, "done"), visit
    assert closed(master)
