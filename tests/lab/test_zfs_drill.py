"""Drills of datasets on real pools: clones and whole receives are compared, damage is loud, and nothing stays behind."""

import os
import re
import signal
from typing import Any

import pytest

from tests.lab.common import ENCRYPTED, GIVE_KEY, Machine
from tests.lab.laboratory import Pair
from tests.lab.pools import guids

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
MARK = b"a block like no other: "


def set_up(master: Machine, more: str = "", *, options: tuple[str, ...] = (), kit: bool = False) -> None:
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
    if not kit:
        master.kitted("photos")
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
    """Return how a drill ended, as JSON; the exit code fits the outcome."""
    ended = master.poolferry("drill", "photos", "--json", *more, seconds=400)
    assert ended.out, ended
    told: dict[str, Any] = ended.json
    assert ended.code == {"done": 0, "failed": 1, "refused": 3, "interrupted": 1}[told["outcome"]], ended
    return told


def left_behind(master: Machine) -> str:
    """Return what carries a drill's mark, or is mounted for one."""
    look = (
        "zfs list -Ho name | grep -e poolferry-drill -e tank/drill; grep -e poolferry-drill -e tank/drill /proc/mounts"
    )
    return master.sh(look, check=False).text


@BOTH
@pytest.mark.long
def test_a_sample_is_compared_in_clones_and_can_fail(master: Machine) -> None:
    set_up(master, "[drill]\nfiles = 3\n")
    before = guids(master, "vault")
    told = drill(master)
    assert told["outcome"] == "done", f"{told['why']} {told['evidence']}"
    seen = told["drill"]
    assert (seen["passed"], seen["files"], seen["of_files"], seen["differences"]) == (True, 3, 5, []), seen
    assert "2 datasets, in clones" in told["why"]
    told = drill(master, "--self-test", "--seed", "4")
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
    assert "2 datasets, received again" in told["why"]
    assert left_behind(master) == ""


@pytest.mark.long
def test_a_damaged_copy_fails_its_drill(master: Machine) -> None:
    set_up(master, options=("-O", "checksum=off"))
    damage(master)
    told = drill(master)
    assert told["outcome"] == "failed", f"{told['why']} {told['evidence']} {told['warnings']}"
    assert told["drill"]["differences"][0].startswith("@b/marked: rotten"), told
    assert left_behind(master) == ""
    status = master.poolferry("status", "photos", "--json")
    assert (status.code, status.json["jobs"][0]["state"]) == (4, "failing")


@pytest.mark.long
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
    began.until(lambda: "poolferry-drill/photos/0" in master.sh("zfs list -Ho name").text, 200)
    began.kill(signal.SIGKILL)
    began.wait(120)
    assert drill(master)["outcome"] == "done"
    assert left_behind(master) == ""


@pytest.mark.long
def test_what_is_unreadable_comes_anew_by_the_commands_that_are_printed(master: Machine) -> None:
    set_up(master)
    damage(master)
    told = drill(master)
    assert told["outcome"] == "failed", f"{told['why']} {told['evidence']}"
    (line,) = [line for line in told["evidence"] if line.startswith("to heal ")]
    commands = line.partition("): ")[2].partition(" (it is sent again in full")[0]
    assert commands.startswith("zfs rename -u vault/copies/photos vault/copies/photos.damaged && ")
    master.sh(commands, seconds=300)
    assert drill(master)["outcome"] == "done"
    assert left_behind(master) == ""


@pytest.mark.long
def test_what_is_encrypted_is_tried_as_it_lies_until_its_key_is_there(master: Machine) -> None:
    master.pool("tank", "200M")
    master.pool("vault", "200M")
    master.sh(
        f"zfs create vault/copies && {ENCRYPTED} tank/photos && echo one >/tank/photos/one && zfs snapshot tank/photos@a"
    )
    master.job("photos", JOB + '[drill]\nscratch = "tank/drill"\n', targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    told = drill(master)
    assert (told["outcome"], told["drill"]["files"]) == ("done", 0), told
    assert "of 1 encrypted dataset without its key no file was seen" in told["why"]
    assert "a trial receive (poolferry drill photos --whole) verify all of it" in told["why"]
    told = drill(master, "--self-test")
    assert (told["outcome"], "without its key" in told["why"]) == ("refused", True), told
    (load,) = re.findall("^(zfs load-key -r .*), where the copy lies; then poolferry drill photos$", told["hint"])
    told = drill(master, "--whole")
    assert told["outcome"] == "done", told
    assert told["why"].startswith("1 encrypted dataset came as it lies, and its snapshots by guid"), told["why"]
    assert left_behind(master) == ""
    master.sh(f"{GIVE_KEY} | {load}")
    assert drill(master, "--self-test")["outcome"] == "done"
    told = drill(master)
    assert (told["outcome"], told["drill"]["files"]) == ("done", 1), told
    master.sh("zfs unmount tank/photos; zfs unload-key tank/photos")
    told = drill(master)
    assert (told["outcome"], told["drill"]["files"]) == ("done", 1), told
    assert "compared with the copy itself, as the source's key is not loaded" in told["why"]
    assert left_behind(master) == ""


@pytest.mark.long
def test_a_source_without_the_snapshot_or_without_anything_and_the_owners_look(master: Machine) -> None:
    look = '["sh", "-c", "test -f sub/two && grep -c block marked && echo $POOLFERRY_POINT >&2"]'
    set_up(master, f"[drill]\ncheck-command = {look}\n", kit=True)
    master.sh("zfs snapshot -r tank/photos@c; zfs destroy -r tank/photos@b")
    told = drill(master)
    assert (told["outcome"], told["drill"]["files"], told["drill"]["check"]["exit"]) == ("done", 5, 0), told
    assert told["drill"]["check"]["output"].split() == ["1", "b"], told["drill"]
    assert "5 files of point b (2 datasets, in clones) can be read" in told["why"]
    assert "by guid 2 snapshots of those are what the source had" in told["why"], "bookmarks tell it"
    assert drill(master, "--self-test")["outcome"] == "done", "what was damaged in a clone differs from the copy"
    master.sh("zfs destroy -r tank/photos")
    told = drill(master)
    assert (told["outcome"], "by guid 2 snapshots of those are what the source had" in told["why"]) == ("done", True), (
        told
    )
    master.job("photos", JOB + '[drill]\ncheck-command = ["false"]\n')
    told = drill(master)
    assert (told["outcome"], "but false ended with 1" in told["why"]) == ("failed", True), told
    assert left_behind(master) == ""
    master.sh(
        "for one in vault/copies/photos vault/copies/photos/sub; do zfs rename $one@b $one@old && zfs snapshot $one@b; done"
    )
    told = drill(master)
    assert (told["outcome"], "another snapshot than the source had" in told["why"]) == ("failed", True), told


@pytest.mark.long
@pytest.mark.virtual
def test_a_copy_of_what_another_host_holds_is_compared_with_it(pair: Pair) -> None:
    master, backup = pair
    backup.pool("tank", "200M")
    master.pool("vault", "200M")
    backup.sh(
        "zfs create tank/photos && cd /tank/photos && echo one >'a b' && echo two >two && zfs snapshot tank/photos@a"
    )
    master.sh("zfs create vault/copies")
    master.job("photos", JOB.replace('"tank', '"ssh://root@backup/tank'), targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json", seconds=300).code == 0
    told = drill(master)
    assert (told["outcome"], told["drill"]["files"]) == ("done", 2), told
    assert "are as on the source" in told["why"]
    backup.sh("systemctl stop lab-sshd.service")
    told = drill(master)
    assert (told["outcome"], told["drill"]["files"]) == ("done", 2), told
    assert "compared with the copy itself, as the source's host backup cannot be reached" in told["why"]
