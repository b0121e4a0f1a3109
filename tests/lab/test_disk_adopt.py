"""Disks that hold something are adopted with all of it: xfs, btrfs, ext4 in a LUKS container, a pool, a pool in a container."""

import pytest

from tests.lab.common import Disk
from tests.lab.virtual import VirtualMachine

pytestmark = [pytest.mark.virtual, pytest.mark.long, pytest.mark.timeout(1200)]
KEY = "--key-file /root/key"
OPEN = f"cryptsetup luksFormat --type luks2 --batch-mode --pbkdf pbkdf2 --pbkdf-force-iterations 1000 {KEY} {{0}} && cryptsetup open {KEY} {{0}} made"
MADE = {
    "xfs": "mkfs.xfs -q {0} && mount {0} /theirs",
    "btrfs": "mkfs.btrfs -q {0} && mount {0} /theirs",
    "ext4": OPEN + " && mkfs.ext4 -q /dev/mapper/made && mount /dev/mapper/made /theirs",
    "pool": 'dmsetup create made --table "0 $(blockdev --getsz {0}) linear {0} 0" && zpool create -f -m /theirs theirs /dev/mapper/made',
    "deep": OPEN + " && zpool create -f -m /theirs theirs /dev/mapper/made",
}
LEFT = {
    "xfs": "umount /theirs",
    "btrfs": "umount /theirs",
    "ext4": "umount /theirs && cryptsetup close made",
    "pool": "zpool export theirs && dmsetup remove --retry made",
    "deep": "zpool export theirs && cryptsetup close made",
}


def hold(machine: VirtualMachine, name: str) -> Disk:
    """A disk as its owner has it."""
    disk = machine.plug_usb(name, "320M" if name == "xfs" else "128M")
    machine.sh(f"{MADE[name].format(disk.device)} && echo mine >/theirs/theirs.txt && {LEFT[name]} && udevadm settle")
    return disk


def test_disks_are_adopted_with_all_that_is_on_them(master: VirtualMachine) -> None:
    master.write("/root/key", "open sesame")
    master.sh("mkdir -p /theirs /srv/photos && echo text >/srv/photos/a")
    master.pool("tank", "256M")
    master.sh("zfs create tank/photos && echo text >/tank/photos/a && zfs snapshot tank/photos@one")
    master.job("photos", 'engine = "rsync"\nsource = "/srv/photos"\ntarget = "trees"\n')
    master.job(
        "sets", 'engine = "zfs"\nsource = "tank/photos"\ntarget = "pools"\n', targets="[set.trees]\n[set.pools]\n"
    )
    disks = {name: hold(master, name) for name in MADE}
    for name, disk in disks.items():
        content = {"pool": "zfs", "deep": "zfs"}.get(name, name)
        rotation = "pools" if content == "zfs" else "trees"
        more = ("--luks", "--key-file", "/root/key") if name in ("ext4", "deep") else ()
        requested = ("disks", "enroll", disk.device, "--set", rotation, "--name", name, "--content", content, *more)
        ended = master.poolferry(*requested, seconds=300)
        assert ended.code == 3, "what holds something is not enrolled as if it were blank"
        ended = master.poolferry(*requested, "--adopt", seconds=300)
        assert ended.code == 0, ended.complaint
    found = master.poolferry("disks", "scan", "--json", seconds=600)
    told = {each["disk"]: (each["ending"], each["safe"], each["runs"][0]["outcome"]) for each in found.json["visits"]}
    assert told == dict.fromkeys(MADE, ("done", True, "done")), (found.text, found.complaint)
    assert not master.sh("ls /dev/mapper | grep -E 'poolferry|made'", check=False).text
    for name in ("xfs", "btrfs", "ext4", "pool"):
        master.yank(disks[name])
        master.plug(disks[name])
        ended = master.poolferry("disks", "attach", name, seconds=300)
        assert ended.code == 0, ended.complaint
        if name == "pool":
            master.sh(f"zfs mount poolferry-{name}")
        assert master.sh(f"find /run/poolferry/disks/{name} -name theirs.txt -exec cat {{}} +").text == "mine", name
        ended = master.poolferry("disks", "eject", name, seconds=300)
        assert ended.code == 0, ended.complaint
