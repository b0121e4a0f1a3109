"""Server and state are lost: a fresh machine takes over from a USB disk with a pool, or from a dataset of kits, and goes on."""

import shlex

import pytest

from orchestrator.process.scripts import script
from tests.lab.common import Machine
from tests.lab.laboratory import Pair
from tests.lab.pools import create, guids

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])
TARGETS = '[place.vault]\ndataset = "vault/copies"\n'
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
OURS = "/etc/poolferry /var/lib/poolferry"


def copied(master: Machine, pool: str) -> None:
    master.pool("tank", "200M")
    master.sh(
        f"zfs create {pool}/copies; zfs create tank/photos; head -c 1M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a"
    )
    master.job("photos", JOB.replace("vault", pool), targets=TARGETS.replace("vault", pool))
    assert master.poolferry("run", "photos", "--json").code == 0


@BOTH
@pytest.mark.parametrize("access", ["ro", "rw"])
def test_no_link_is_followed_in_what_is_mounted(master: Machine, access: str) -> None:
    """OpenZFS itself takes no nosymfollow."""
    master.pool("vault", "100M")
    master.sh("zfs create -o mountpoint=legacy vault/poolferry-kit")
    master.sh("mount -t zfs vault/poolferry-kit /mnt; ln -s /etc/hostname /mnt/link; umount /mnt")
    master.sh("zfs snapshot vault/poolferry-kit@a; mkdir /made")
    options = {access, "nosuid", "nodev", "noexec", "nosymfollow"}
    refused = master.sh("mount -t zfs -o ro,nosymfollow vault/poolferry-kit /made", check=False)
    assert "invalid option 'nosymfollow'" in refused.complaint
    what = "vault/poolferry-kit@a" if access == "ro" else "vault/poolferry-kit"
    master.sh(f"{script('engines/zfs', 'mount-safely.sh')}mount_safely {access} {what} /made")
    assert options <= set(master.sh("findmnt -no VFS-OPTIONS /made").text.strip().split(","))
    assert "symbolic links" in master.sh("cat /made/link", check=False).complaint
    written = master.sh("touch /made/new", check=False)
    assert (written.code == 0) == (access == "rw"), written
    master.sh("umount /made")
    kits = "mount -t tmpfs none /mnt && mount_kit_datasets vault\ncat /proc/self/mountinfo"
    text = shlex.quote(script("disks", "kit-files.sh") + kits)
    look = master.sh(f"unshare --mount --propagation slave sh -c {text}")
    mounted = next(line.split()[5] for line in look.lines if " /mnt/1 " in line)
    assert {"ro", *(options - {access})} <= set(mounted.split(","))


@BOTH
@pytest.mark.long
def test_from_a_dataset_of_kits(master: Machine) -> None:
    master.pool("vault", "200M")
    copied(master, "vault")
    held, folder = guids(master, "tank/photos"), master.lies_on("vault").rpartition("/")[0]
    master.sh(f"mkdir /old; cp -a /etc/poolferry /old; zpool destroy -f tank; rm -rf {OURS}; zpool export vault")
    failed = master.poolferry("restore", "bootstrap", "vault/poolferry-kit", "--json")
    assert (failed.code, "vault" in failed.json["error"]) == (1, True), failed
    master.sh(f"zpool import -N -d {folder} vault")
    for place in ("vault/copies", "vault"):
        told = master.poolferry("restore", "bootstrap", place, "--plan", "--json")
        assert told.code == 0, told
    told = master.poolferry("restore", "bootstrap", "vault/copies/poolferry-kit", "--json")
    assert (told.code, told.json["jobs"], told.json["runs"]) == (0, ["photos"], 1), told
    assert not master.sh("diff -r /old/poolferry /etc/poolferry", check=False).text
    assert not master.sh("grep -e poolferry-kit -e ' /mnt ' /proc/self/mounts", check=False).text
    again = master.poolferry("restore", "bootstrap", "vault", "--json")
    assert again.code == 3, again
    told = master.poolferry("restore", "pool", "tank", "--json")
    assert told.code == 75, told
    assert told.json["next"][0].startswith("zpool create -o ashift=12 "), (
        told.json
    )  # never asked for: the pool's own, on both
    master.sh(told.json["next"][0].replace("zpool create", "zpool create -f"))
    ended = master.poolferry("restore", "pool", "tank", "--json", seconds=300)
    assert (ended.code, ended.json["differences"]) == (0, []), ended
    assert guids(master, "tank/photos") == held


@pytest.mark.virtual
@pytest.mark.long
def test_from_one_disk_that_another_machine_wrote(pair: Pair) -> None:
    master, backup = pair
    disk = master.plug_usb("red", "256M")
    create(master, f"red {disk.device}")
    copied(master, "red")
    held = guids(master, "tank/photos")
    master.sh("zpool sync red")
    master.yank(disk)
    backup.plug_usb(disk)
    backup.sh(f"rm -rf {OURS}")
    told = backup.poolferry("restore", "bootstrap", disk.device, "--json")
    assert (told.code, told.json["jobs"], told.json["host"]) == (0, ["photos"], "master"), told
    assert backup.sh("zpool list -H -o name").text == "", "it is exported again"
    assert backup.sh("ls /etc/poolferry").lines == ("jobs", "targets.toml")
    backup.sh("zpool import -f -N red; zpool create -f tank $(truncate -s 200M /var/tank; echo /var/tank)")
    ended = backup.poolferry("restore", "run", "photos", "--to", "tank/photos", "--json", seconds=300)
    assert (ended.code, ended.json["outcome"]) == (0, "done"), ended
    assert guids(backup, "tank/photos") == held
