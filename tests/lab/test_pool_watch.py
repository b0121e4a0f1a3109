"""Real pools that lose devices, bytes and room: what a person is told, and scrubs that let backups go first."""

import re
from typing import Any

import pytest

from tests.lab.common import Disk, Machine, Running
from tests.lab.frail import FrailPool
from tests.lab.pools import create
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

LATER = pytest.mark.flavours("trixie", long=["bookworm"])  # zpool's JSON, and its text
JOB = 'engine = "pool"\nsource = "tank"\nlate-after = "2h"\n[pool]\n{more}\n'
PLACES = '[place.unused]\npath = "/backup"\n'
SCRUBS = 'scrub-every = "30d"'
# ZFS's own tunable: scans go on, and get nowhere.
STANDSTILL = "echo {0} > /sys/module/zfs/parameters/zfs_scan_suspend_progress"
MARK = "here lies a block"

pytestmark = pytest.mark.virtual  # they plug disks, and set a tunable of the whole machine


def watch(machine: Machine, more: str = "") -> dict[str, Any]:
    """The report of one run of a job that watches tank; every advice of a small new pool is accepted."""
    accept = 'accept = ["old-scrub", "arc", "device-names"]'
    machine.job("watch", JOB.format(more=f"{accept}\n{more}"), targets=PLACES)
    ended = machine.poolferry("run", "watch", "--json")
    told: dict[str, Any] = ended.json
    assert "outcome" in told, (told, ended.complaint)
    return told


def state(machine: Machine) -> str:
    """The job's state as `status` has it."""
    (job,) = machine.poolferry("status", "--json").json["jobs"]
    return str(job["state"])


def scan(machine: Machine) -> str:
    """Return what `zpool status` says of scans."""
    return machine.sh("zpool status tank | grep -A 2 scan:", check=False).text


def mirror(machine: VirtualMachine) -> tuple[Disk, Disk]:
    """A mirror called tank, with a dataset."""
    red, blue = (machine.plug(machine.disk(name, "1G")) for name in ("red", "blue"))
    create(machine, f"-O compression=off tank mirror {red.device} {blue.device}")
    machine.sh("zfs create tank/photos")
    return red, blue


def follow(machine: Machine, hint: str, new: Disk | None = None) -> None:
    """Does what the cure says, to the letter."""
    command = hint.split("`")[-2 if new else 1].replace("NEW-DEVICE", new.device if new else "")
    machine.sh(command)


@LATER
def test_a_sound_pool_is_scrubbed_when_it_is_due_and_reported(master: VirtualMachine) -> None:
    mirror(master)
    first = watch(master, SCRUBS)
    assert (first["outcome"], [step["confirmed"] for step in first["steps"]]) == ("done", [True]), first
    assert first["steps"][0]["why"] == "it was never scrubbed"
    master.sh("zpool wait -t scrub tank")
    again = watch(master, SCRUBS)
    assert again["outcome"] == "nothing-to-do", again
    assert again["why"].startswith("tank is sound, 0% full; the last scrub ended ")
    assert again["warnings"] == []
    assert state(master) == "up"


@LATER
def test_a_degraded_mirror_and_its_cures(master: VirtualMachine) -> None:
    _, blue = mirror(master)
    assert watch(master)["outcome"] == "nothing-to-do"
    master.sh(f"zpool offline tank {blue.device}")
    told = watch(master, SCRUBS)
    assert told["outcome"] == "failed", told
    assert told["why"] == (
        f"{blue.device}-part1 in mirror-0 of tank is OFFLINE: somebody took it out of use; mirror-0 has no redundancy left"
    )
    assert state(master) == "failing"
    follow(master, told["hint"])
    wait_until(lambda: watch(master)["outcome"] == "nothing-to-do", 60, pause=0.3)
    assert state(master) == "up"
    master.sh(f"zpool offline -f tank {blue.device}")
    told = watch(master)
    assert "is FAULTED" in told["why"], told
    follow(master, told["hint"], new=master.plug(master.disk("green", "1G")))
    master.sh("zpool wait -t resilver,replace tank")
    assert watch(master)["outcome"] == "nothing-to-do"
    assert master.poolferry("run", "watch").code == 0


@LATER
@pytest.mark.long
def test_a_disk_that_is_gone(master: VirtualMachine) -> None:
    _, blue = mirror(master)
    master.sh("zpool export tank")
    master.yank(blue)
    master.sh("udevadm settle; zpool import -d /dev/disk/by-id tank")
    told = watch(master)
    assert told["outcome"] == "failed", told
    assert f"is UNAVAIL: it is missing, or can no longer be read (was {blue.device}-part1" in told["why"]
    assert "no redundancy left" in told["why"]
    master.plug(blue)
    follow(master, told["hint"][told["hint"].index("`") :])
    wait_until(lambda: watch(master)["outcome"] == "nothing-to-do", 60, pause=0.3)


def test_a_suspended_pool_is_told_and_hangs_nothing(master: VirtualMachine) -> None:
    pool = FrailPool(master, "tank")
    pool.fail()
    told = watch(master)
    assert told["outcome"] == "failed", told
    assert told["why"].startswith("tank is SUSPENDED: it lost its disks, and all that uses it hangs")
    assert "zpool clear tank" in told["hint"]
    pool.mend()


def overwrite(machine: Machine, disk: Disk) -> None:
    """Changes bytes of a marked file on a disk, behind the pool's back; it is imported anew, so nothing is cached."""
    machine.sh("zpool export tank")
    part = f"{disk.device}-part1"
    places = machine.sh(f"grep -obUa '{MARK}' {part} | cut -d: -f1 | head -n 40", check=False).lines
    assert len(places) > 20
    machine.sh(
        f"printf HERE | dd of={part} bs=1 seek={places[10]} conv=notrunc,fsync status=none; blockdev --flushbufs {part}; "
        f"blockdev --flushbufs {disk.device}; zpool import -d /dev/disk/by-id tank"
    )


@LATER
@pytest.mark.long
def test_a_scrub_finds_bytes_that_changed_and_a_mirror_repairs_them(master: VirtualMachine) -> None:
    _, blue = mirror(master)
    master.sh(f"yes '{MARK}' | head -c 4M > /tank/photos/a; zpool sync")
    overwrite(master, blue)
    assert watch(master, SCRUBS)["outcome"] == "done"
    master.sh("zpool wait -t scrub tank")
    told = watch(master, SCRUBS)
    assert (told["outcome"], told["why"]) == ("failed", f"{blue.device}-part1 of tank gave 1 checksum error"), told
    assert any("the scrub of tank repaired " in line for line in told["evidence"])
    master.sh("zpool clear tank")
    told = watch(master, SCRUBS)
    assert told["outcome"] == "nothing-to-do", told
    assert told["warnings"][0].startswith("the scrub of tank repaired ")


@LATER
def test_a_file_that_is_lost_is_named(master: VirtualMachine) -> None:
    disk = master.plug(master.disk("red", "1G"))
    create(master, f"-O compression=off tank {disk.device}")
    master.sh("zfs create 'tank/my own'")
    master.sh(f"yes '{MARK}' | head -c 4M > '/tank/my own/a b'; zpool sync")
    overwrite(master, disk)
    master.sh("zpool scrub tank && zpool wait -t scrub tank")
    told = watch(master)
    assert told["outcome"] == "failed", told
    words = " ".join([told["why"], *told["evidence"]])
    assert "tank has 1 error that nothing could repair, so data is lost: /tank/my own/a b" in words
    assert "restore these files from a copy" in words


@pytest.mark.long
def test_a_pool_that_becomes_full(master: VirtualMachine) -> None:
    """Not to 97 %, as ZFS keeps 128 MB for itself, and that takes gigabytes: the test below does it."""
    options = ("compression=off", "recordsize=1M", "copies=3")
    master.pool("tank", "512M", options=[word for option in options for word in ("-O", option)])
    assert watch(master)["warnings"] == []
    master.sh("dd if=/dev/zero of=/tank/a bs=1M status=none; zpool sync tank", check=False, seconds=300)
    taken, size = map(int, master.sh("zpool list -H -p -o allocated,size tank").text.split())
    used = round(100 * taken / size)
    assert used > 60
    told = watch(master, f'capacity-warn = "{used - 5}%"')
    assert told["outcome"] == "nothing-to-do", told
    assert told["warnings"][0].startswith(f"tank is {used} % full, with 1"), told
    assert ": writing to it becomes slow: " in told["warnings"][0]
    assert "zfs list -o space -r tank" in told["warnings"][0]
    told = watch(master, f'capacity-warn = "{used - 5}%"\ncapacity-fail = "{used - 1}%"')
    assert told["outcome"] == "failed", told
    assert told["why"].endswith("writing to it stops soon"), told


@pytest.mark.long
def test_a_pool_that_is_really_full(master: VirtualMachine) -> None:
    """97 % by zpool's own word: gigabytes are written for it. Of the room that ZFS keeps for itself the least is left to it."""
    disk = master.plug(master.disk("big", "5G"))
    master.sh("echo 6 > /sys/module/zfs/parameters/spa_slop_shift")
    options = "-O compression=off -O recordsize=1M -O copies=3 -O primarycache=metadata"
    create(master, f"{options} tank {disk.device}")
    assert watch(master)["warnings"] == []
    filled = master.sh("dd if=/dev/zero of=/tank/a bs=1M; zpool sync tank", check=False, seconds=1800)
    assert "No space left on device" in filled.complaint
    assert int(master.sh("zpool list -H -p -o capacity tank").text) >= 97
    told = watch(master)
    assert told["outcome"] == "failed", told
    assert re.fullmatch(r"tank is 9[78] % full, with [0-9.]+ MiB left: writing to it stops soon", told["why"]), told
    assert "zfs list -o space -r tank" in told["hint"]
    assert master.poolferry("status").code == 4
    master.sh("rm /tank/a; zpool sync tank")
    wait_until(lambda: watch(master)["outcome"] == "nothing-to-do", 120)
    assert state(master) == "up"


def sending(machine: Machine) -> Running:
    """A send that goes on until it is killed."""
    machine.sh("head -c 4M /dev/urandom > /tank/photos/a; zfs snapshot tank/photos@now")
    running = machine.popen("zfs send tank/photos@now | sleep 600")
    wait_until(lambda: machine.sh("pgrep -x zfs", check=False).code == 0, 30, pause=0.1)
    return running


def end(machine: Machine, running: Running) -> None:
    """Ends it, and waits until it is gone."""
    running.kill(9)
    wait_until(lambda: machine.sh("pgrep -x zfs", check=False).code != 0, 30, pause=0.1)


@LATER
@pytest.mark.long
def test_a_backup_goes_before_a_scrub(master: VirtualMachine) -> None:
    mirror(master)
    first = sending(master)
    told = watch(master, SCRUBS)
    assert told["outcome"] == "waiting", told
    assert told["why"] == "tank is sound; its scrub waits until nothing is at work there (it was never scrubbed)"
    assert told["evidence"] == ["at work: zfs send of tank/photos"]
    assert master.poolferry("run", "watch").code == 75
    assert "scrub" not in scan(master)
    end(master, first)
    master.sh(STANDSTILL.format(1))
    assert watch(master, SCRUBS)["outcome"] == "done"
    assert "in progress" in scan(master)
    assert "a scrub is running, 0% done" in watch(master, SCRUBS)["why"]
    master.sh("zfs destroy -r tank/photos@now", check=False)
    second = sending(master)
    told = watch(master, SCRUBS)
    assert (told["outcome"], told["steps"][0]["action"]) == ("done", "pause the scrub of tank"), told
    assert "paused since" in scan(master)
    assert watch(master, SCRUBS)["outcome"] == "waiting"
    end(master, second)
    told = watch(master, SCRUBS)
    assert (told["outcome"], told["steps"][0]["action"]) == ("done", "go on with the scrub of tank"), told
    master.sh(f"{STANDSTILL.format(0)}; zpool wait -t scrub tank")
    assert "the last scrub ended" in watch(master, SCRUBS)["why"]


@pytest.mark.long
def test_a_resilver_is_left_alone_and_a_hook_puts_backups_off(master: VirtualMachine) -> None:
    red, _ = mirror(master)
    master.kitted("copy")
    master.sh(f"{STANDSTILL.format(1)}; head -c 8M /dev/urandom > /tank/photos/a; zfs snapshot tank/photos@now")
    master.sh(f"zpool attach tank {red.device} {master.plug(master.disk('green', '1G')).device}")
    wait_until(lambda: "resilver in progress" in scan(master), 30, pause=0.2)
    told = watch(master, SCRUBS)
    assert told["outcome"] == "nothing-to-do", told
    assert "a resilver is running, 0% done" in told["why"]
    job = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n[hooks]\nbefore = "pool-resilvering"\n'
    master.pool("vault")
    master.job("copy", job, targets='[place.vault]\ndataset = "vault/copies"\n')
    told = master.poolferry("run", "copy", "--json").json
    assert (told["outcome"], "tank resilvers" in told["why"]) == ("waiting", True), told
    master.sh(f"{STANDSTILL.format(0)}; zpool wait -t resilver tank")
    assert master.poolferry("run", "copy", "--json").json["outcome"] == "done"


@pytest.mark.long
def test_a_pool_that_is_not_there(master: VirtualMachine) -> None:
    mirror(master)
    master.sh("zpool export tank")
    told = watch(master)
    assert (told["outcome"], "the pool is not imported" in told["why"]) == ("failed", True), told
    assert watch(master, "may-be-away = true")["outcome"] == "waiting"


@pytest.mark.long
def test_check_tells_the_findings(master: VirtualMachine) -> None:
    master.sh("truncate -s 200M /root/one && zpool create tank /root/one && zfs set sync=disabled tank")
    assert watch(master)["outcome"] == "nothing-to-do"
    told = master.poolferry("check", "--system")
    assert "sync=disabled is set on tank" in told.text + told.complaint
    assert "`zfs inherit sync tank`" in told.text + told.complaint


@pytest.mark.long
def test_what_is_set_unwisely_is_mended_by_the_commands_that_are_printed(master: VirtualMachine) -> None:
    """A pool by names that change, with a dataset that promises what it does not keep; its name has a blank."""
    red = master.plug(master.disk("red", "512M"))
    create(master, f"tank $(readlink -f {red.device})")
    master.sh("zfs create -o sync=disabled 'tank/two words'")
    master.job("watch", JOB.format(more='accept = ["old-scrub", "arc"]'), targets=PLACES)
    warned = "\n".join(master.poolferry("run", "watch", "--json").json["warnings"])
    commands = re.findall(r"`(z(?:fs inherit|pool export) [^`]*)`", warned)
    assert len(commands) == 2, warned
    for command in commands:
        master.sh(command)
    assert master.sh("zfs get -Ho value sync 'tank/two words'").text == "standard"
    assert "by-id" in master.lies_on("tank")
    assert not re.findall(
        r"`(z(?:fs inherit|pool export) [^`]*)`", str(master.poolferry("run", "watch", "--json").json["warnings"])
    )


@pytest.mark.long
def test_a_weak_vdev_and_large_dedup_tables_are_mended_by_the_commands_that_are_printed(master: VirtualMachine) -> None:
    mirror(master)
    alone, special, *new = (master.plug(master.disk(name, "512M")).device for name in ("a", "s", "n", "m"))
    master.sh(
        f"zpool add -f tank {alone}; zpool add -f tank special {special}; echo $((64 << 20)) >/sys/module/zfs/parameters/zfs_arc_max"
    )
    master.sh(
        "zfs create -o dedup=on -o recordsize=512 tank/twice; head -c 64M /dev/urandom >/tank/twice/a; zpool sync",
        seconds=300,
    )
    (dedup,) = [line for line in watch(master)["warnings"] if "the dedup tables of tank take" in line]
    follow(master, dedup)
    assert master.sh("zfs get -Ho value dedup tank/twice").text == "off"
    assert "dedup is off already; tables shrink" in str(watch(master)["warnings"])
    for weak in (alone, special):
        (told,) = [line for line in watch(master)["warnings"] if " alone" in line]
        assert weak in told, told
        master.sh(told.split("`")[1].replace("NEW-DEVICE", new.pop()))
    assert " alone" not in str(watch(master)["warnings"])
