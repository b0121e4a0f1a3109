"""Drills of datasets on real pools: clones and whole receives are compared, damage is loud, and nothing stays behind.

Changes things: in virtual machines.
"""

import os
import signal
from typing import Any

import pytest

from tests.lab.common import Machine
from tests.whole.house import wait_until

BOTH = pytest.mark.flavours("trixie", "bookworm")
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
MARK = b"a block like no other: "


def set_up(master: Machine, more: str = "", *, options: tuple[str, ...] = ()) -> None:
    """Two pools and a job of two datasets, copied; the marked file is not compressed, so that it can be found on the disk."""
    master.pool("tank", "200M")
    master.pool("vault", "200M", options=options)
    master.sh("zfs create vault/copies && zfs create -o compression=off tank/photos && zfs create tank/photos/sub")
    master.write("/tank/photos/marked", MARK * 1000)
    master.write("/tank/photos/sub/a b", "one")
    master.sh(
        "cd /tank/photos; echo x >'back\\\\slash'; echo y >plain; echo two >sub/two; zfs snapshot -r tank/photos@b"
    )
    master.job("photos", JOB + more, targets=PLACE)
    ran = master.poolferry("run", "photos", "--json", seconds=300)
    assert ran.code == 0, ran


def damage(master: Machine) -> None:
    """Changes a byte of the marked file's copy on the disk, behind the pool's back."""
    disk = master.lies_on("vault")
    master.sh("zpool export vault; sync")
    places = master.sh(f"grep -obUa 'a block like no other' {disk} | cut -d: -f1 | sort -n", check=False).lines
    assert len(places) > 100
    master.sh(f"printf A | dd of={disk} bs=1 seek={places[50]} conv=notrunc,fsync status=none")
    master.sh(f"zpool import -d {os.path.dirname(disk)} vault")


def drill(master: Machine, *more: str) -> dict[str, Any]:
    """How a drill ended, as JSON; the exit code fits the outcome."""
    ended = master.poolferry("drill", "photos", "--json", *more, seconds=400)
    assert ended.out, ended
    told: dict[str, Any] = ended.json
    assert ended.code == {"done": 0, "failed": 1, "refused": 3, "interrupted": 1}[told["outcome"]], ended
    return told


def left_behind(master: Machine) -> str:
    """What carries a drill's mark, or is mounted for one."""
    look = (
        "zfs list -Ho name | grep -e poolferry-drill -e tank/drill; grep -e poolferry-drill -e tank/drill /proc/mounts"
    )
    return master.sh(look, check=False).text


def guids(master: Machine, pool: str) -> str:
    return master.sh(["zfs", "list", "-Hp", "-r", "-t", "snapshot", "-o", "name,guid", pool]).text


@BOTH
def test_a_sample_is_compared_in_clones_and_can_fail(master: Machine) -> None:
    set_up(master, "[drill]\nfiles = 3\n")
    before = guids(master, "vault")
    told = drill(master)
    assert told["outcome"] == "done", f"{told['why']} {told['evidence']}"
    seen = told["drill"]
    assert (seen["passed"], seen["files"], seen["of_files"], seen["differences"]) == (True, 3, 5, []), seen
    assert "2 datasets, in clones" in told["why"]
    told = drill(master, "--prove", "--seed", "4")
    assert told["outcome"] == "done", f"{told['why']} {told['evidence']}"
    assert "rotten" in {line.split(": ")[1] for line in told["drill"]["differences"]}
    assert left_behind(master) == ""
    assert guids(master, "vault") == before
    state = master.poolferry("status", "photos", "--json").json["jobs"][0]
    assert (state["state"], state["last_drill"]["passed"]) == ("up", True)


def test_a_whole_copy_is_received_anew(master: Machine) -> None:
    set_up(master, '[drill]\nscratch = "tank/drill"\n')
    told = drill(master, "--whole")
    assert told["outcome"] == "done", f"{told['why']} {told['evidence']}"
    assert (told["drill"]["files"], told["drill"]["whole"]) == (5, True)
    assert "2 datasets, received anew" in told["why"]
    assert left_behind(master) == ""


def test_a_damaged_copy_fails_its_drill(master: Machine) -> None:
    set_up(master, options=("-O", "checksum=off"))
    damage(master)
    told = drill(master)
    assert told["outcome"] == "failed", f"{told['why']} {told['evidence']} {told['warnings']}"
    assert told["drill"]["differences"][0].startswith("@b/marked: rotten"), told
    assert left_behind(master) == ""
    status = master.poolferry("status", "photos", "--json")
    assert (status.code, status.json["jobs"][0]["state"]) == (4, "failing")


def test_what_a_killed_drill_left_goes_with_the_next(master: Machine) -> None:
    set_up(master)
    master.sh(
        "zfs create -o canmount=off vault/copies/poolferry-drill && zfs create vault/copies/poolferry-drill/photos"
    )
    told = drill(master)
    assert told["outcome"] == "failed", f"{told['why']} {told['evidence']} {told['warnings']}"
    assert "was made by no drill" in str(told)
    master.sh("zfs destroy -r vault/copies/poolferry-drill")
    began = master.popen(["poolferry", "drill", "photos"])
    wait_until(lambda: "poolferry-drill/photos/0" in master.sh("zfs list -Ho name").text, 200)
    began.kill(signal.SIGKILL)
    began.wait(120)
    assert drill(master)["outcome"] == "done"
    assert left_behind(master) == ""


def test_what_is_unreadable_comes_anew_by_the_commands_that_are_printed(master: Machine) -> None:
    set_up(master)
    damage(master)
    told = drill(master)
    assert told["outcome"] == "failed", f"{told['why']} {told['evidence']}"
    (line,) = [line for line in told["evidence"] if line.startswith("to heal ")]
    commands = line.partition("): ")[2].partition(" sends it anew")[0]
    assert commands.startswith("zfs rename -u vault/copies/photos vault/copies/photos.damaged && ")
    master.sh(commands, seconds=300)
    assert drill(master)["outcome"] == "done"
    assert left_behind(master) == ""
