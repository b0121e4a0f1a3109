"""The hint for a pool that a lost machine did not let go, typed as it is printed."""

import re

import pytest

from tests.lab.usb_disks import datasets, trees
from tests.lab.virtual import VirtualMachine

pytestmark = [pytest.mark.long, pytest.mark.virtual, pytest.mark.timeout(900)]
OTHER = "echo 305419896 >/sys/module/spl/parameters/spl_hostid"


def test_a_pool_that_another_machine_did_not_let_go_is_taken_over_by_its_hint(master: VirtualMachine) -> None:
    drawer = datasets(master)
    drawer.has_one_copy("--content", "zfs")
    drawer.replug(drawer.red)
    # As that machine: another number, the pool in use, and then no power.
    master.sh(
        f"set -e; {OTHER}; zpool import -N -o cachefile=none poolferry-red; zpool sync; sync -f /etc/poolferry; sync -f /var/lib/poolferry"
    )
    master.power_cut()
    master.boot_again()
    refused = drawer.scan(code=3)["red"]
    assert (refused["ending"], "was not let go by the machine that used it last" in refused["why"]) == (
        "refused",
        True,
    ), refused
    by_hand, again = re.findall(
        r"no more: (zpool import .*? && zpool export \S+); then poolferry (disks readopt red)$", refused["hint"]
    )[0]
    failed = master.poolferry(*again.split())
    assert (failed.code, by_hand in failed.complaint) == (1, True), "not before; and the hint is whole there, too"
    master.sh(by_hand)
    assert master.poolferry(*again.split()).code == 0
    assert drawer.scan()["red"]["ending"] == "done"


def test_a_disk_that_was_formatted_elsewhere_is_given_up_and_enrolled_anew_by_its_hint(master: VirtualMachine) -> None:
    """And by its former name, which a tired person types."""
    drawer = trees(master)
    drawer.has_one_copy()
    drawer.replug(drawer.red)
    device = drawer.red.device
    master.sh(f"wipefs -a {device} && mkfs.ext4 -q -F {device}; udevadm settle")
    (seen,) = drawer.ferry("disks", "scan")["others"]
    lost, enroll = re.findall(r"poolferry (disks lost red); then poolferry (disks enroll .*?);", seen["hint"])[0]
    assert master.poolferry(*lost.split()).code == 0
    refused = master.poolferry(*enroll.replace("red-2", "red").split())
    assert (refused.code, "for example: --name red-2" in refused.complaint) == (2, True), refused.complaint
    refused = master.poolferry(*enroll.split())
    assert (refused.code, "--erase and the disk's serial" in refused.text) == (3, True), refused
    assert master.poolferry(*enroll.split(), "--erase", "red").code == 0
    drawer.replug(drawer.red)
    assert drawer.scan()["red-2"]["ending"] == "done"


def test_what_helps_a_copy_on_a_disk_is_typed_after_its_visit(master: VirtualMachine) -> None:
    """By then its pool is not imported; seen: a rollback, and a rename, found no such pool."""
    drawer = datasets(master)
    drawer.has_one_copy("--content", "zfs")
    copy = "poolferry-red/photos/photos"
    harms = (
        (f"zfs snapshot {copy}@own", r"or (zfs rollback .*?);"),
        (f"zfs rename {copy} {copy}-old", r"back: (poolferry .*?); then"),
    )
    for number, (harm, pattern) in enumerate(harms):
        drawer.replug(drawer.red)
        master.sh(
            f"poolferry disks attach red && {harm} && poolferry disks eject red && zfs snapshot tank/photos@of{number}"
        )
        told = master.poolferry("run", "photos", "--json").json
        assert told["outcome"] == "refused", told
        assert "poolferry-red" not in master.sh("zpool list -H -o name").text
        (command,) = re.findall(pattern, told["hint"])
        if not number:
            attach, eject = re.findall(r"between `(.*?)` and `(.*?)`$", told["hint"])[0]
            command = f"{attach} && {command} && {eject}"
        master.sh(command)
        ran = master.poolferry("run", "photos", "--json").json
        assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
