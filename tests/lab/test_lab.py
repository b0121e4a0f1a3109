"""The lab does what it promises: real pools, a wire that can be cut, disks that can be pulled, power that can fail."""

import time

import pytest

from tests.lab.common import CHECKOUT, LabError, Machine
from tests.lab.laboratory import Lab, Pair
from tests.lab.recipe import FLAVOURS
from tests.lab.virtual import VirtualMachine
from tests.processes import lives, strays
from tests.whole.house import wait_until

SSH = "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=1 -o ServerAliveCountMax=3"


IN_THE_GUEST = """
from tests.lab.native import NativeMachine, no_native_zfs
assert not no_native_zfs()
machine = NativeMachine()
machine.pool("tank", "128M")
machine.write("/tank/a", "one")
machine.job("photos", 'engine = "rsync"\\nsource = "/tank"\\ntarget = "here"\\nschedule = "manual"',
            targets='[place.here]\\npath = "' + str(machine.folder / "backup") + '"')
assert machine.poolferry("run", "photos", "--json").json["outcome"] == "done"
assert machine.read(str(machine.folder / "backup/latest/a")) == b"one"
waiting = machine.popen("sleep 600")
waiting.kill(9)
assert waiting.wait(10).code == -9
machine.close()
assert machine.folder.exists() is False
"""


@pytest.mark.virtual
@pytest.mark.flavours("trixie", "bookworm")
def test_openzfs_is_of_the_flavour(master: Machine, flavour: str) -> None:
    said = master.sh("zfs version").lines
    assert [line.removeprefix("zfs-kmod-").removeprefix("zfs-")[:4] for line in said] == [
        FLAVOURS[flavour].zfs + "."
    ] * 2


@pytest.mark.flavours("trixie", "bookworm")
def test_a_send_arrives(master: Machine) -> None:
    master.pool("tank")
    master.sh("zfs create tank/photos")
    master.write("/tank/photos/a", "one")
    master.sh("zfs snapshot tank/photos@a && zfs send tank/photos@a | zfs receive -u tank/copy")
    guids = master.sh("zfs get -H -p -o value guid tank/photos@a tank/copy@a").lines
    assert len(guids) == 2
    assert guids[0] == guids[1]


@pytest.mark.virtual
@pytest.mark.long
def test_a_host_with_openzfs_can_stand_in_for_a_machine(master: Machine) -> None:
    python = ["/opt/poolferry/bin/python", "-c", IN_THE_GUEST]
    master.sh(python, environment={"PYTHONPATH": "/mnt/poolferry"})
    assert master.sh("zpool list -H").text == ""


@pytest.mark.virtual
def test_a_machine_is_there_in_seconds_and_gone_at_once(lab: Lab) -> None:
    begun = time.monotonic()
    machine = lab.machine()
    assert machine.sh("zpool list").text == "no pools available"
    assert time.monotonic() - begun < 15  # half a second alone; other workers may keep the cores busy
    folder, pid = machine.run, machine.pid
    assert pid is not None
    assert lives(pid)
    lab.give_back(machine)
    assert not lives(pid)
    assert strays(folder) == []
    assert not folder.exists()


@pytest.mark.virtual
@pytest.mark.flavours("trixie", long=["bookworm"])
def test_the_working_tree_is_what_runs(master: Machine) -> None:
    said = master.poolferry("--version", check=True).text
    told = next(
        line for line in (CHECKOUT / "orchestrator/__init__.py").read_text().splitlines() if "__version__ =" in line
    )
    assert told.partition('"')[2].rstrip('"') in said
    assert master.read("/mnt/poolferry/pyproject.toml") == (CHECKOUT / "pyproject.toml").read_bytes()
    ended = master.sh("touch /mnt/poolferry/x", check=False)
    assert (ended.code, "Read-only" in ended.complaint) == (1, True)


@pytest.mark.virtual
@pytest.mark.flavours("trixie", long=["bookworm"])
@pytest.mark.long
def test_a_command_that_is_forked_is_as_one_that_is_started(master: Machine) -> None:
    """It says the same, to the same, ends alike, and dies with whom it answers."""
    master.job("p", 'engine = "rsync"\nsource = "/srv"\ntarget = "x"\n', targets='[place.x]\npath = "/root/x"\n')
    master.sh("chmod -R go+rX /etc/poolferry")
    for words, user in (
        (("--version",), ""), (("nonsense", "", "a b"), ""), (("check", "--config", "/nowhere"), ""), (("status",), "ferry"),
    ):  # fmt: skip
        forked, started = (how(master, *words, user=user) for how in (type(master).poolferry, Machine.poolferry))
        assert (forked.code, forked.out, forked.errors) == (started.code, started.out, started.errors)
    beside = "pgrep -fc '[l]ab/warm.py'"
    assert master.sh(beside).text == "1"
    asking = master.popen(["/usr/local/lib/lab/poolferry", "", "daemon"])
    wait_until(lambda: master.sh(beside).text == "2", 30)
    assert master.poolferry("--version").code == 0, "several go on side by side"
    asking.kill(9)
    asking.wait(20)
    wait_until(lambda: master.sh(beside).text == "1", 30)


def test_a_job_runs(master: Machine) -> None:
    master.pool("tank")
    master.write("/tank/photos/a", "one")
    master.job("photos", 'engine = "rsync"\nsource = "/tank/photos"\ntarget = "here"\nschedule = "manual"\n',
               targets='[place.here]\npath = "/tank/backup"\n')  # fmt: skip
    ran = master.poolferry("run", "photos", "--json")
    assert ran.json["outcome"] == "done", ran
    assert master.read("/tank/backup/latest/a") == b"one"


@pytest.mark.virtual
def test_the_programs_are_there(master: Machine) -> None:
    master.sh("command -v sanoid syncoid mbuffer rsync zfs zpool sqlite3 cryptsetup dmsetup udevadm systemctl sudo")
    assert master.sh("systemctl is-active lab-sshd.service systemd-udevd.service").lines == ("active", "active")
    assert master.sh("systemctl list-units --failed --no-legend").text == ""
    assert abs(float(master.sh("date +%s").text) - time.time()) < 5


@pytest.mark.virtual
def test_a_command_is_told_apart_from_the_machine(master: Machine) -> None:
    with pytest.raises(LabError, match="ended with 3"):
        master.sh("exit 3")
    assert master.sh("cat", given=b"\0\xff" * 100000).out == b"\0\xff" * 100000
    assert master.sh("id -un; echo $HOME", user="ferry").lines == ("ferry", "/home/ferry")
    sleeping = master.popen("sleep 600 & sleep 600")
    sleeping.kill(15)
    assert sleeping.wait(20).code == -15
    wait_until(lambda: master.sh("pgrep -x sleep", check=False).code == 1)
    with pytest.raises(LabError, match="still running"):
        master.sh("sleep 600", seconds=0.2)


def test_the_two_reach_each_other_and_nobody_else(pair: Pair) -> None:
    for here, there in ((pair.master, "backup"), (pair.backup, "master")):
        assert here.sh(f"{SSH} {there} hostname").text == there
        assert here.sh(f"{SSH} ferry@{there} id -un", user="ferry").text == "ferry"
        assert {line.split()[0] for line in here.sh("ip -o -4 route").lines} == {"10.99.0.0/24"}


def test_a_cut_wire_breaks_a_send_and_a_mended_one_carries(pair: Pair) -> None:
    master, backup = pair
    sending = master.popen(f"head -c 300M /dev/zero | {SSH} backup 'cat > /root/got'")
    wait_until(lambda: backup.sh("stat -c %s /root/got", check=False).text not in ("", "0"), 40)
    pair.cut()
    assert sending.wait(40).code == 255
    assert master.sh("ping -c 1 -W 1 backup", check=False).code != 0
    pair.mend()
    wait_until(lambda: master.sh("ping -c 1 -W 1 backup", check=False).code == 0, 20)
    assert master.sh(f"{SSH} backup echo hello").text == "hello"


def test_a_usb_disk_comes_goes_and_comes_back_elsewhere(pair: Pair) -> None:
    master, backup = pair
    red = master.plug_usb("RED", "128M")
    assert "ID_BUS=usb" in master.sh(f"udevadm info --query=property {red.device}").lines
    master.sh(f"mkfs.ext4 -q {red.device} && mount {red.device} /mnt && echo kept > /mnt/a && umount /mnt")
    master.yank(red)
    master.wait_for_device(red, there=False)
    backup.plug_usb(red)
    assert backup.sh(f"mount {red.device} /mnt && cat /mnt/a").text == "kept"
    backup.yank(red)
    backup.wait_for_device(red, there=False)
    wait_until(lambda: backup.sh("cat /mnt/a", check=False).code != 0)


@pytest.mark.virtual
@pytest.mark.long
def test_a_power_cut_keeps_what_was_synced(master: VirtualMachine) -> None:
    master.pool("tank", disk=True)
    master.sh("echo 600 > /sys/module/zfs/parameters/zfs_txg_timeout")  # nothing is written out by itself
    master.write("/tank/kept", "synced")
    master.write("/root/kept", "synced")
    master.sh("sync; zpool sync")
    master.write("/tank/lost", "not synced")
    waiting = master.popen("sleep 600")
    master.power_cut()
    with pytest.raises(LabError, match="went away"):
        waiting.wait(10)
    with pytest.raises(LabError, match="no power"):
        master.sh("true")
    master.boot_again()
    assert master.sh("zpool list -H -o name,health").text.split() == ["tank", "ONLINE"]
    assert master.read("/tank/kept") == master.read("/root/kept") == b"synced"
    assert master.sh("test -e /tank/lost", check=False).code == 1
    assert master.poolferry("--version").code == 0
