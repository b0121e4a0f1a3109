"""Disks with pools in trouble: no room, kill -9, a power cut, pulled out for ever, pulled out while they are let go.

The rows of the fault table that test_disk_mishaps.py has for disks with a filesystem; one machine for all of them. A disk that
is pulled out while an export still writes makes all of OpenZFS hang until a restart, which poolferry cannot mend: it looks for
the disk once more after its own sync, and names the hang where it meets it all the same. That row is the last.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.common import Running
from tests.lab.laboratory import Lab
from tests.lab.pools import age
from tests.lab.service import TREE as MOUNTED_AT_BOOT
from tests.lab.usb_disks import DATASETS, UsbDisks, datasets
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

pytestmark = [pytest.mark.virtual, pytest.mark.long, pytest.mark.timeout(900)]
KEEP = "[keep]\ndaily = 2\n"
SLOWLY = '[pipe]\nrate-limit = "1M"\n'
COPY = "poolferry-red/photos/photos"
DATED = tuple(f"autosnap_{days}_daily" for days in range(9, 1, -1))  # as sanoid calls what it took so long ago
# Stands before the real zpool, so that a disk can be pulled out at the very instant that a row is about: after the sync that
# /run/armed names, or while an export waits for its writes.
ZPOOL = """#!/bin/sh
[ "$(cat /run/armed 2>/dev/null)" = "$1" ] || exec /usr/sbin/zpool "$@"
rm /run/armed
case $1 in
sync) /usr/sbin/zpool "$@"; s=$?; touch /run/reached; until [ -e /run/on ]; do sleep 0.1; done; exit $s;;
esac
dmsetup suspend --noflush --nolockfs poolferry-red; touch /run/reached; exec /usr/sbin/zpool "$@"
"""
# The hooks of a run that is done: what the copy holds; and from here on it is the end of the visit.
LISTS = f"#!/bin/sh\nzfs list -H -d 1 -t snapshot -o name {COPY} | cut -d@ -f2 >/run/listed\n"
ARMS = "#!/bin/sh\nprintf %s {} >/run/armed\n"
# Visits begin by udev only where a row is about that.
FOR_TESTS = "[Unit]\nRequiresMountsFor=/mnt/poolferry\nConditionPathExists=!/run/by-hand\n"


@pytest.fixture(scope="module")
def drawer(lab: Lab) -> Iterator[UsbDisks]:
    """A machine with a disk that has one copy, pulled out."""
    machine = lab.machine("master")
    made = datasets(machine)
    machine.sh("echo 1 >/sys/module/zfs/parameters/zfs_txg_timeout")
    machine.write("/usr/local/sbin/zpool", ZPOOL, mode=0o755)
    machine.write("/etc/systemd/system/poolferry-disk@.service.d/test.conf", FOR_TESTS)
    machine.sh(f"touch /run/by-hand; echo '{MOUNTED_AT_BOOT}' >>/etc/fstab")
    made.ferry("setup", "systemd")
    age(machine, *((9 - at, f"tank/photos@{name}") for at, name in enumerate(DATED)))
    grow(machine, "old", 8)
    grow(machine, "new", 1)
    made.has_one_copy("--content", "zfs")
    yield made
    lab.give_back(machine)


def grow(machine: VirtualMachine, name: str, megabytes: int) -> None:
    machine.sh(f"head -c {megabytes}M /dev/urandom >/tank/photos/large && zfs snapshot tank/photos@{name}", seconds=200)


def arrived(machine: VirtualMachine) -> int:
    """Bytes on disk red of a receive that is under way."""
    return int(machine.sh(f"zfs list -Hp -o used {COPY}/%recv", check=False).text or 0)


def sending(drawer: UsbDisks, name: str) -> Any:
    """A visit that is in the middle of sending 12 MiB, one in each second."""
    grow(drawer.machine, name, 12)
    drawer.machine.job("photos", DATASETS + SLOWLY)
    drawer.replug(drawer.red)
    running = drawer.machine.popen(["poolferry", "disks", "scan", "--json"])
    in_the_middle(drawer, running)
    return running


def in_the_middle(drawer: UsbDisks, running: Running | None = None) -> None:
    (running.until if running else wait_until)(lambda: arrived(drawer.machine) > 3 << 20, 150, pause=0.2)
    drawer.machine.job("photos", DATASETS)


def being_let_go(drawer: UsbDisks, at: str) -> Any:
    """A visit whose run is done, and whose end stands at this word of zpool's."""
    machine = drawer.machine
    machine.write("/root/arms", ARMS.format(at), mode=0o755)
    machine.job("photos", DATASETS + '[hooks]\ndone = ["/root/arms"]\n')
    machine.sh("rm -f /run/reached /run/on")
    grow(machine, at, 2)
    drawer.replug(drawer.red)
    running = machine.popen(["poolferry", "disks", "scan", "--json"])
    machine.sh("until [ -e /run/reached ]; do sleep 0.1; done", seconds=150)
    machine.job("photos", DATASETS)
    return running


def ended(running: Any, seconds: float = 200) -> dict[str, Any]:
    (visit,) = json.loads(running.wait(seconds).out)["visits"]
    return dict(visit)


def outcomes(drawer: UsbDisks) -> list[str]:
    """Return how the visits of disk red ended, the newest first."""
    return [visit["outcome"] for visit in drawer.ferry("disks", "show", "red")["history"]]


def nothing_is_left(drawer: UsbDisks) -> bool:
    return not drawer.machine.sh(
        "ls /dev/mapper | grep poolferry; zpool list -H -o name | grep -v tank", check=False
    ).text


def test_36_poolferry_is_killed_in_the_middle_of_a_send(drawer: UsbDisks) -> None:
    running = sending(drawer, "killed")
    running.kill(9)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["resumed"]) == ("done", True, True), visit
    assert outcomes(drawer)[:2] == ["done", "interrupted"]
    assert nothing_is_left(drawer)


def test_24_pulled_out_while_snapshots_are_removed(drawer: UsbDisks) -> None:
    """The copy is whole before the first of them goes; the next copy removes what is left to be removed."""
    machine = drawer.machine
    machine.write("/root/lists", LISTS, mode=0o755)
    grow(machine, "kept", 1)
    machine.job("photos", DATASETS + KEEP + '[hooks]\ndone = ["/root/lists"]\n')
    drawer.replug(drawer.red)
    running = machine.popen(["poolferry", "disks", "scan", "--json"])
    gone = f"zfs list {COPY}@kept && ! zfs list {COPY}@{DATED[0]}"
    machine.sh(f"until {gone}; do sleep 0.1; done >/dev/null 2>&1", seconds=150)
    machine.yank(drawer.red)
    visit = ended(running)
    assert (visit["ending"], visit["safe"]) == ("pulled-out", False), visit
    grow(machine, "after", 1)
    drawer.replug(drawer.red)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("done", True, "done"), visit
    left = machine.sh("cat /run/listed").lines
    assert [name for name in DATED if name in left] == list(DATED[-2:])
    assert {"one", "old", "new", "kept", "after"} <= set(left)
    assert nothing_is_left(drawer)


def test_33_a_pool_without_room(drawer: UsbDisks) -> None:
    """Refused before a byte is sent; told to go on all the same, it fills up, and what it holds is whole."""
    machine = drawer.machine
    machine.sh("zfs create tank/photos/much && head -c 80M /dev/urandom >/tank/photos/much/a", seconds=200)
    machine.sh("zfs snapshot -r tank/photos@full")
    machine.job("photos", DATASETS + KEEP)
    drawer.replug(drawer.red)
    visit = drawer.scan(code=1)["red"]
    (run,) = visit["runs"]
    assert (visit["ending"], visit["safe"], run["outcome"]) == ("incomplete", True, "failed"), visit
    assert run["moved_bytes"] < 4 << 20, "all that fits without the largest"
    assert "tank/photos/much does not fit on the target beside the others: 80." in run["why"], run
    lines = [line.strip() for line in run["evidence"]]
    no_room = r".*not enough space: 8\d\.\d MiB are to be sent, and \d+\.\d MiB are free in poolferry-red.*"
    assert re.fullmatch(no_room, lines[1]), run
    could_go = (
        r"\d+ snapshots of the copy, which \[keep\] does not keep, could go, @one to @\w+; that frees 2\d\.\d MiB"
    )
    assert re.fullmatch(could_go, lines[3]), run
    assert re.match(f"zfs destroy -r {COPY}@one,.*,old,new,killed", lines[4])
    assert "between `poolferry disks attach red` and `poolferry disks eject red`" in run["hint"]
    assert nothing_is_left(drawer)
    drawer.replug(drawer.red)
    run = drawer.ferry("run", "photos", "--allow", "target-room", code=1)
    assert run["outcome"] == "failed", run
    assert "the target pool has no space left" in run["why"]
    assert "were free before" in run["why"]
    assert nothing_is_left(drawer)
    machine.sh(
        "zfs list -H -o name -t snapshot -r tank/photos | grep @full | xargs zfs holds -H | while read s t _; do zfs release $t $s; done"
    )
    machine.sh("zfs destroy -r tank/photos@full && rm /tank/photos/much/a && zfs snapshot tank/photos/much@less")
    grow(machine, "less", 1)
    drawer.replug(drawer.red)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["runs"][0]["outcome"]) == ("done", "done"), visit
    assert visit["runs"][0]["moved_bytes"] < 4 << 20, "from the newest that it held before"


def test_26_pulled_out_for_ever_is_told_and_harms_nothing_else(drawer: UsbDisks) -> None:
    machine = drawer.machine
    running = sending(drawer, "ever")
    machine.yank(drawer.red)
    visit = ended(running)
    assert (visit["ending"], visit["state"], visit["safe"]) == ("pulled-out", "pool-suspended", False), visit
    assert "only a restart of this machine takes the pool away" in visit["hint"]
    scanned = drawer.ferry("disks", "scan")
    (lost,) = [each for each in scanned["others"] if each["disk"] == "red"]
    assert (scanned["visits"], lost["state"]) == ([], "pool-suspended")
    says = "the pool of disk red is still held, and its disk is gone"
    assert says in lost["why"]
    assert "plug disk red in again, in any port" in lost["hint"]
    told = machine.poolferry("disks").text
    assert says in told
    assert "Please plug in disk red" in told
    assert says in drawer.ferry("run", "photos", code=75)["why"]
    ejected = machine.poolferry("disks", "eject", "red")
    assert (ejected.code, says in ejected.complaint) == (1, True), ejected
    machine.sh("systemctl start poolferry && systemctl restart poolferry", seconds=120)
    assert machine.sh("systemctl show -P NRestarts -P ActiveState poolferry").text.split() == ["0", "active"]
    machine.sh("systemctl stop poolferry")
    machine.yank(drawer.enroll("blue", "--content", "zfs", size="128M"))


def test_25_pulled_out_between_the_last_write_and_the_export(drawer: UsbDisks) -> None:
    machine = drawer.machine
    running = being_let_go(drawer, "sync")
    machine.yank(drawer.red)
    machine.sh("touch /run/on")
    visit = ended(running)
    assert (visit["ending"], visit["state"], visit["safe"]) == ("pulled-out", "pool-suspended", False), visit
    assert visit["runs"][0]["outcome"] == "done"
    assert "plug it in again" in visit["hint"]
    assert not machine.sh("pgrep -x zpool", check=False).text, "no export was begun"
    drawer.replug(drawer.red)
    visit = drawer.scan()["red"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("done", True, "nothing-to-do"), visit
    assert nothing_is_left(drawer)


def test_35_the_power_fails_in_the_middle_of_a_visit_which_goes_on_after_the_boot(drawer: UsbDisks) -> None:
    """With the disk plugged in all the time: nobody but udev's coldplug begins the next visit."""
    machine = drawer.machine
    machine.sh("rm -f /run/by-hand")
    if drawer.red.plugged:
        machine.yank(drawer.red)
    grow(machine, "power", 12)
    machine.job("photos", DATASETS + SLOWLY)
    machine.sh("sync")
    before = outcomes(drawer)
    machine.plug_usb(drawer.red)
    in_the_middle(drawer)
    machine.sh("sync -f /etc/poolferry")
    machine.power_cut()
    machine.boot_again()
    wait_until(lambda: outcomes(drawer)[0] == "done", 300, pause=2)
    assert outcomes(drawer)[1] == "interrupted"
    assert len(outcomes(drawer)) == min(10, len(before) + 2)
    check = "import sqlite3; print(*sqlite3.connect('/var/lib/poolferry/history.sqlite').execute('PRAGMA integrity_check').fetchone())"
    assert machine.sh(["/opt/poolferry/bin/python", "-c", check]).text == "ok"


def test_25_pulled_out_in_the_export_hangs_zfs_and_is_whole_after_a_restart(drawer: UsbDisks) -> None:
    machine = drawer.machine
    machine.sh("touch /run/by-hand")
    running = being_let_go(drawer, "export")
    machine.sh("until ps -eo stat,args | grep -q '^D.*[z]pool export'; do sleep 0.1; done", seconds=60)
    machine.yank(drawer.red)
    machine.sh("dmsetup resume poolferry-red")
    visit = ended(running, 400)
    assert (visit["ending"], visit["state"], visit["safe"]) == ("pulled-out", "pool-suspended", False), visit
    assert "OpenZFS hangs in the kernel" in visit["why"]
    assert visit["hint"].startswith("restart this machine")
    told = machine.poolferry("disks", "scan", seconds=300)
    assert "hangs in the kernel" in told.text + told.complaint, "its disk is away now"
    drawer.replug(drawer.red)
    again = drawer.scan(code=3)["red"]
    assert (again["ending"], again["state"]) == ("refused", "pool-suspended"), again
    assert "hangs in the kernel" in again["why"]
    assert again["hint"].startswith("restart this machine")
    machine.power_cut()
    machine.boot_again()
    wait_until(lambda: outcomes(drawer)[0] == "done", 300, pause=2)
    newest = drawer.ferry("show", "photos")
    assert newest["outcome"] == "nothing-to-do", "all that was copied is there"
    assert nothing_is_left(drawer)
