"""The quick starts of README.md for datasets, removable disks and a lost pool, run as they stand, by root, on real pools.

What a person has to fill in is filled in: the disk's name, and the `zpool create` that was printed.
"""

import re

import pytest

from tests.lab.common import LabError, Machine
from tests.lab.pools import guids
from tests.lab.virtual import VirtualMachine
from tests.tour import README

_WITH_DATASETS = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "offsite"\n'
_WITH_FILES = 'engine = "rsync"\nsource = "/srv/photos"\ntarget = "offsite"\n'


def blocks(title: str, kind: str = "sh") -> list[str]:
    """The blocks of a section, without the remarks behind the commands."""
    section = README.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    found = re.findall(rf"^```{kind}\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert found, title
    return found


def paste(machine: Machine, block: str, *codes: int, disk: str = "") -> list[str]:
    """Return the output of each line of a block. `codes`: how they end, in order; 0 where none is told."""
    printed = []
    for at, line in enumerate(block.strip().splitlines()):
        command = line.replace("/dev/disk/by-id/usb-…", disk)
        assert "…" not in command
        done = machine.sh(f"export COLUMNS=160; exec 2>&1; {command}", check=False, seconds=300)
        if done.code != (codes[at] if at < len(codes) else 0):
            raise LabError(f"{command}: {done.code}\n{done.text}")
        printed.append(done.text)
    return printed


@pytest.mark.long
def test_datasets_that_syncoid_copied_go_on(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    master.sh("rm -rf /etc/poolferry; zfs create tank/photos && head -c 8M /dev/urandom > /tank/photos/first")
    line = "syncoid -r tank/photos vault/replica"
    master.sh(line, seconds=200)
    if master.sh(
        "command -v crontab", check=False
    ).code:  # the machine has no cron of its own: what `crontab -l` prints is all of it
        master.write("/usr/local/bin/crontab", f"#!/bin/sh\necho '30 2 * * * {line}'\n")
        master.sh("chmod 755 /usr/local/bin/crontab")
    else:
        master.sh(f"echo '30 2 * * * {line}' | crontab -")
    master.sh("mkdir -p /etc/sanoid")
    master.write("/etc/sanoid/sanoid.conf", "[tank/photos]\nrecursive = yes\nhourly = 0\ndaily = 3\nmonthly = 0\n")
    (block,) = blocks("Datasets, coming from syncoid")
    told = paste(master, block)
    assert ("became jobs/photos.toml" in told[0], "!!" in told[1]) == (True, False), told
    master.sh("head -c 1M /dev/urandom > /tank/photos/second && zfs snapshot tank/photos@next")
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], ran["moved_bytes"] < 3 << 20) == ("done", True), ran


def test_a_disk_is_enrolled_and_plugging_it_in_is_enough(master: VirtualMachine) -> None:
    master.sh("mkdir -p /srv/photos && head -c 3M /dev/urandom > /srv/photos/a")
    (targets,) = blocks("Disks that rotate", "toml")
    master.job("photos", _WITH_FILES, targets=targets)
    red = master.plug_usb("red", "192M")
    (block,) = blocks("Disks that rotate")
    paste(master, block, disk=red.device)
    master.yank(red)
    master.plug_usb(red)
    told = master.poolferry("disks", "scan", "--json", seconds=300).json
    assert [each["ending"] for each in told["visits"]] == ["done"], told


def test_a_pool_is_lost_and_comes_back_here_and_on_a_new_machine(master: VirtualMachine) -> None:
    master.pool("tank", "300M")
    master.sh("zfs create tank/photos; head -c 1M /dev/urandom > /tank/photos/one; zfs snapshot tank/photos@a")
    (targets,) = blocks("Disks that rotate", "toml")
    master.job("photos", _WITH_DATASETS, targets=targets)
    red = master.plug_usb("red", "512M")
    enroll = blocks("Disks that rotate")[0].splitlines()[0].replace("--name red", "--name red --content zfs")
    paste(master, enroll, disk=red.device)
    assert master.poolferry("run", "photos", "--json", seconds=300).json["outcome"] == "done"
    held = guids(master, "tank")
    here, anew = blocks("The day the pool is lost")

    def come_back(printed: str) -> None:
        """Type the `zpool create` that was printed, and the line after it in the block."""
        created = re.search(r"zpool create .*", printed)
        assert created, printed
        master.sh(created[0].replace("zpool create", "zpool create -f"))
        paste(master, "poolferry restore pool tank")
        assert guids(master, "tank") == held

    master.sh("zpool destroy -f tank")
    first, second = here.strip().splitlines()
    assert second.startswith("poolferry restore pool tank ")
    come_back(*paste(master, first, 75))

    master.sh("zpool destroy -f tank; rm -rf /etc/poolferry /var/lib/poolferry")
    master.yank(red)
    master.plug_usb(red)
    first, second = anew.strip().splitlines()
    assert second.startswith("poolferry restore pool tank")
    come_back(*paste(master, first, disk=red.device))
