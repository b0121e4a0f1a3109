"""Rotating disks with real ext4 on loop devices: visits, who is turned away, and that nothing is written to those."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from orchestrator.domain.rotation import Disk
from orchestrator.runner.locks import lock_visit
from tests.ferry import COMMAND
from tests.processes import argv_of, folder_of, is_there, living
from tests.whole.house import mounted, wait_until
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def test_without_a_disk_a_job_waits_and_asks_for_one(drawer: LoopDisks) -> None:
    ended = drawer.run("run", "photos", "--json")
    assert (ended.code, ended.value["outcome"]) == (75, "waiting")
    assert ended.value["why"] == "no disk of the set offsite is here"
    (enroll,) = re.findall(r"has no disk: poolferry (disks enroll DEVICE .*)", drawer.run("disks").out)
    typed = enroll.replace("DEVICE", drawer.blank("red")).split()
    assert drawer.run(*typed, "--name", drawer.full("red"), "--note", "red sticker", "--inner").code == 0
    drawer.pull("red")
    told = drawer.run("run", "photos").out
    assert f"Please plug in disk {drawer.full('red')} (red sticker): it has no whole copy yet." in told
    planned = drawer.run("plan", "photos", "--json")
    assert (planned.code, planned.value["decision"]) == (75, "waiting")
    assert drawer.run("status").code == 0, "to wait is no failure"


def test_two_disks_take_turns_each_with_its_own_points(drawer: LoopDisks) -> None:
    drawer.job("photos", '[rsync]\nexcludes = [".cache/"]\n')
    for number in range(25):  # more than guards let pass: all are new on the second disk, and none has changed
        (drawer.source / f"{number}.txt").write_text("many\n")
    for name in ("red", "blue"):
        drawer.enrolled(name)
        drawer.pull(name)
    red, blue = drawer.full("red"), drawer.full("blue")
    drawer.plug("red")
    ended = drawer.run("run", "photos", "--json")
    assert (ended.code, ended.value["outcome"]) == (0, "done")
    assert f"SAFE TO REMOVE: {red}. photos: copied and verified. Bring next: {blue}." in ended.err
    assert not drawer.mounted("red")
    drawer.pull("red")
    (drawer.source / "c.txt").write_text("more\n")
    drawer.plug("blue")
    assert drawer.scan()["visits"]["blue"]["ending"] == "done"
    drawer.pull("blue")
    points = drawer.run("points", "--json").value["points"]
    assert sorted(point["place"] for point in points) == sorted([red, blue])
    (found,) = drawer.run("disks", "list", "--json").value["sets"]
    assert (found["expected"], found["accepted"]) == (red, [blue])
    drawer.plug("red")
    visit = drawer.scan()["visits"]["red"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("done", True, "done")
    assert visit["runs"][0]["moved_bytes"] < 1000, "what was on the disk already is not copied again"


def test_a_disk_is_asked_for_while_a_run_waits_for_it_and_not_right_after_its_visit(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.pull("red")
    drawer.plug("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    assert "No disk is needed now: the last visit ended" in drawer.run("disks").out
    waits = drawer.run("run", "photos", "--json")
    asks = f"Please plug in disk {drawer.full('red')}: its copy is the oldest."
    assert (waits.code, waits.value["hint"].startswith(asks)) == (75, True), waits
    assert asks in drawer.run("disks").out
    drawer.plug("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    assert "No disk is needed now: the last visit ended" in drawer.run("disks").out


def test_all_jobs_of_the_set_run_in_one_visit_and_a_second_has_nothing_to_do(drawer: LoopDisks) -> None:
    drawer.job("mail")
    drawer.enrolled("red")
    visit = drawer.scan()["visits"]["red"]
    assert [run["job"] for run in visit["runs"]] == ["mail", "photos"]
    ended = drawer.run("run", "photos", "mail", "--json")
    assert [run["outcome"] for run in ended.value["runs"]] == ["nothing-to-do", "nothing-to-do"]
    assert ended.err.count("SAFE TO REMOVE") == 1, "one visit for both"
    shown = drawer.run("disks", "show", drawer.full("red"), "--json").value
    assert [each["jobs"] for each in shown["history"]] == [["photos", "mail"], ["mail", "photos"]]
    assert shown["visits"] == 2


def test_a_copy_beside_its_disk_shuts_both_out(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.pull("red")
    drawer.image("copy").write_bytes(drawer.image("red").read_bytes())
    drawer.plug("red")
    drawer.plug("copy")
    before = drawer.digest("red"), drawer.digest("copy")
    found = drawer.scan()
    assert found["visits"] == {}
    assert [each["state"] for each in found["others"] if each["disk"] == drawer.full("red")] == ["clone", "clone"]
    assert (drawer.digest("red"), drawer.digest("copy")) == before
    assert drawer.run("run", "photos").out.count("is there twice") == 1, "both are told by the same words"
    scan = drawer.run("disks", "scan")
    assert (scan.code, (scan.out + scan.err).count("is there twice")) == (3, 1), scan


def test_a_disk_is_let_go_where_its_visit_cannot_be_recorded(drawer: LoopDisks) -> None:
    """It stayed mounted, and no word said that it must not be unplugged."""
    drawer.enrolled("red")
    kept = drawer.root / "kept"
    drawer.ferry.state.rename(kept)
    with mounted(drawer.ferry.state, "size=6m,mode=700"):
        shutil.copytree(kept, drawer.ferry.state, dirs_exist_ok=True)
        with open(drawer.ferry.state / "fill", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        scan = drawer.run("disks", "scan")
        assert (scan.code, "has no space" in scan.out + scan.err) == (1, True), scan
        assert not drawer.mounted("red")
        (drawer.ferry.state / "fill").unlink()
        assert drawer.run("disks", "scan").code == 0
        assert not drawer.mounted("red")


def test_twins_are_not_to_be_fetched(drawer: LoopDisks) -> None:
    """Its copies cannot be used until one of the two is unplugged."""
    drawer.enrolled("red")
    assert drawer.run("run", "photos").code == 0
    drawer.pull("red")
    drawer.image("copy").write_bytes(drawer.image("red").read_bytes())
    drawer.plug("red")
    drawer.plug("copy")
    told = drawer.run("restore", "plan", "photos").out
    assert ("and cannot be used: disk" in told, "fetch it" in told) == (True, False), told


def test_the_end_of_a_visit_says_what_it_did(drawer: LoopDisks) -> None:
    """A restore, a reading and a restore test copy nothing, and a refused run does not continue by itself."""
    drawer.enrolled("red")
    red = drawer.full("red")
    ran = drawer.run("run", "photos")
    assert f"SAFE TO REMOVE: {red}. photos: copied and verified." in ran.out + ran.err, ran
    out = str(drawer.root / "out")
    for words in (("restore", "run", "photos", "--to", out), ("verify", "photos"), ("drill", "photos")):
        ran = drawer.run(*words)
        assert (ran.code, f"SAFE TO REMOVE: {red}. photos: read." in ran.out + ran.err) == (0, True), ran
    ran = drawer.run("restore", "run", "photos", "--to", out)
    assert (ran.code, "continues next time" in ran.out + ran.err) == (3, False), ran
    (drawer.source / "a.txt").unlink()
    (drawer.source / "b.bin").unlink()
    ran = drawer.run("run", "photos")
    assert (ran.code, "continues next time" in ran.out + ran.err) == (3, False), ran


def turned_away(drawer: LoopDisks, state: str, says: str) -> None:
    """The disk is not used, for this reason, and not a bit of it changes."""
    before = drawer.digest("red")
    visit = drawer.scan()["visits"]["red"]
    assert (visit["ending"], visit["state"], visit["runs"]) == ("refused", state, [])
    assert says in visit["why"]
    assert visit["hint"]
    assert drawer.digest("red") == before
    assert not drawer.mounted("red")
    ended = drawer.run("run", "photos", "--json")
    assert (ended.code, ended.value["outcome"]) == (75, "waiting")
    assert says in ended.value["why"]
    refused = drawer.run("disks", "show", drawer.full("red"), "--json").value["history"]
    assert [says in each["why"] for each in refused if each["outcome"] == "refused"] == [True], "once, for the channels"
    assert says in drawer.run("disks").out


def test_an_older_copy_of_a_disk_is_turned_away(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    older = drawer.image("red").read_bytes()
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    drawer.image("red").write_bytes(older)
    drawer.plug("red")
    turned_away(drawer, "stale-clone", "it is at visit 0")


@pytest.mark.parametrize(
    ("more", "state", "says"),
    [
        ({"owner": "b" * 32, "host": "nas"}, "another-host", 'of the machine "nas"'),
        ({"generation": 7}, "newer-than-we-know", "it has had 7 visits"),
        ({"name": "green"}, "not-verified", "says disk green"),
        ({}, "not-verified", "no marker of ours"),
    ],
)
@pytest.mark.sample(2)
def test_a_disk_that_is_not_proved_is_turned_away_until_it_is_readopted(
    drawer: LoopDisks, more: dict[str, object], state: str, says: str
) -> None:
    drawer.enrolled("red")
    drawer.edit_marker("red", **more)
    turned_away(drawer, state, says)
    assert drawer.run("disks", "readopt", drawer.full("red")).code == 0
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


def test_a_disk_that_can_only_be_read_is_told(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.pull("red")
    drawer.plug("red", read_only=True)
    (found,) = [each for each in drawer.scan()["others"] if each["disk"] == drawer.full("red")]
    assert (found["state"], "can only be read" in found["why"]) == ("read-only", True)


def test_a_disk_whose_marker_another_visit_reads_is_not_said_to_be_read_only(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.pull("red")
    device = drawer.plug("red")
    disk = Disk(name=drawer.full("red"), set="offsite", identity=drawer.identity("red"), content="ext4")
    with lock_visit(disk, str(drawer.ferry.state)):
        subprocess.run(["blockdev", "--setro", device], check=True)
        ended = drawer.run("disks", "scan", "--identity", drawer.identity("red"))
        assert "can only be read" not in drawer.run("disks").out
        subprocess.run(["blockdev", "--setrw", device], check=True)
    assert ended.code == 75, ended
    assert "another visit of disk" in ended.out
    assert "can only be read" not in ended.out
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


def test_a_disk_that_somebody_else_mounted_is_left_alone(drawer: LoopDisks) -> None:
    device = drawer.enrolled("red")
    place = drawer.root / "their place"
    place.mkdir()
    subprocess.run(["mount", device, place], check=True)
    try:
        (found,) = [each for each in drawer.scan()["others"] if each["disk"] == drawer.full("red")]
        assert (found["state"], found["hint"][:6]) == ("in-use", "umount")
        assert next(iter(place.iterdir())).name, "it is still mounted"
        subprocess.run(["sh", "-c", found["hint"].partition(";")[0]], check=True)
        assert drawer.scan()["visits"]["red"]["ending"] == "done", "the hint as it stands"
    finally:
        subprocess.run(["umount", place], check=False, capture_output=True)


def test_a_held_disk_is_not_enrolled_and_not_a_bit_changes(drawer: LoopDisks) -> None:
    device = drawer.blank("red")
    subprocess.run(["mkfs.ext4", "-q", "-L", "PHOTOS", device], check=True)
    before = drawer.digest("red")
    arguments = ("disks", "enroll", device, "--set", "offsite", "--name", drawer.full("red"), "--inner", "--json")
    for more in ((), ("--erase", "1"), ("--adopt", "--content", "xfs")):
        ended = drawer.run(*arguments, *more)
        assert (ended.code, ended.value["outcome"]) == (3, "refused")
        assert drawer.digest("red") == before
    assert drawer.run(*arguments, "--erase", str(48 << 20)).code == 0
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


def test_a_disk_with_a_filesystem_is_adopted_with_all_that_is_on_it(drawer: LoopDisks) -> None:
    device = drawer.blank("red")
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    with drawer.opened("red") as place:
        (place / "theirs.txt").write_text("old photos")
    requested = ("--set", "offsite", "--name", drawer.full("red"), "--inner", "--adopt")
    assert drawer.run("disks", "enroll", device, *requested).code == 0
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    with drawer.opened("red", "ro") as place:
        assert (place / "theirs.txt").read_text() == "old photos"
        assert (place / "photos" / "latest" / "a.txt").exists()


def test_a_disk_that_is_still_used_is_never_said_to_be_safe(drawer: LoopDisks) -> None:
    hook = drawer.root / "stay"
    hook.write_text(f"#!/bin/sh\ncd {drawer.mountpoint('red')} && setsid sleep 60 >/dev/null 2>&1 </dev/null &\n")
    hook.chmod(0o755)
    drawer.job("photos", f'[hooks]\ndone = ["{hook}"]\n')
    drawer.enrolled("red")
    visit = drawer.scan()["visits"]["red"]
    own = [pid for pid in living() if argv_of(pid) == ["sleep", "60"] and folder_of(pid) == drawer.mountpoint("red")]
    try:
        assert own
        assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("busy", False, "done")
        assert drawer.run("disks", "eject", drawer.full("red")).code == 1
    finally:
        for pid in own:
            os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not any(map(is_there, own)))
    ended = drawer.run("disks", "eject", drawer.full("red"))
    assert (ended.code, "SAFE TO REMOVE" in ended.out) == (0, True), ended
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


def holding(device: str, seconds: float, then: str) -> list[str]:
    """The command of a process with a copy of all mounts, of which it lets go all loop devices but one."""
    return [
        "setsid", "unshare", "--mount", "--propagation", "private", "sh", "-c",
        f"awk '/^.dev.loop/ && $1 != \"{device}\" {{ print $2 }}' /proc/self/mounts | xargs -r umount -l; {then}; exec sleep {seconds}",
    ]  # fmt: skip


@pytest.mark.namespace
def test_a_disk_that_is_held_a_little_longer_is_waited_for(drawer: LoopDisks) -> None:
    """By a process with a copy of all mounts, as each service with a private /tmp has one: unmounting here does not reach there."""
    device, place = drawer.enrolled("red"), drawer.root / "elsewhere"
    place.mkdir()
    subprocess.run(["mount", device, place], check=True)
    with subprocess.Popen(holding(device, 3, "echo there"), stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"there\n"
        subprocess.run(["umount", place], check=True)
        visit = drawer.scan()["visits"]["red"]
    assert (visit["ending"], visit["safe"]) == ("done", True), visit


@pytest.mark.namespace
@pytest.mark.long
def test_a_disk_that_is_mounted_in_another_namespace_is_never_said_to_be_safe(drawer: LoopDisks) -> None:
    started, hook = drawer.root / "started", drawer.root / "hold"
    hold = shlex.join(holding(drawer.enrolled("red"), 60, f"echo $$ >{started}"))
    hook.write_text(f"#!/bin/sh\n{hold} >/dev/null 2>&1 </dev/null &\nuntil [ -s {started} ]; do sleep 0.1; done\n")
    hook.chmod(0o755)
    drawer.job("photos", f'[hooks]\ndone = ["{hook}"]\n')
    visit = drawer.scan()["visits"]["red"]
    holder = int(started.read_text())
    try:
        assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("busy", False, "done"), visit
        assert f"`sleep 60` (process {holder}, since " in visit["why"]
        ended = drawer.run("disks", "eject", drawer.full("red"))
        assert (ended.code, ended.out.split(":")[0]) == (1, "NOT SAFE TO REMOVE"), ended
        assert f"(`kill {holder}`), then: poolferry disks eject {drawer.full('red')}" in ended.out
    finally:
        os.kill(holder, signal.SIGKILL)
    ended = drawer.run("disks", "eject", drawer.full("red"))
    assert (ended.code, "SAFE TO REMOVE" in ended.out) == (0, True), ended


def test_a_lost_disk_is_not_asked_for_and_its_copies_count_no_more(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    red = drawer.full("red")
    assert drawer.run("disks", "locate", red, "office", "--note", "top shelf").code == 0
    (member,) = drawer.run("disks", "--json").value["sets"][0]["disks"]
    assert (member["place"], member["standing"], member["newest"] is not None) == ("office", "active", True)
    assert drawer.run("disks", "lost", red).code == 0
    assert drawer.run("points", "--json").value["points"] == []
    (found,) = drawer.run("disks", "--json").value["sets"]
    assert (found["expected"], found["disks"][0]["standing"]) == (None, "lost")
    drawer.plug("red")
    assert [each["state"] for each in drawer.scan()["others"] if each["disk"] == red] == ["set-aside"]
    assert drawer.run("disks", "readopt", red).code == 0
    assert drawer.scan()["visits"]["red"]["runs"][0]["outcome"] == "nothing-to-do"


def test_a_lost_history_does_not_make_a_disk_unusable(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    (drawer.ferry.state / "history.sqlite").unlink()
    visit = drawer.scan()["visits"]["red"]
    assert (visit["ending"], visit["runs"][0]["outcome"]) == ("done", "nothing-to-do")


def test_hooks_hear_of_a_disk_that_came_and_of_one_that_may_go(drawer: LoopDisks) -> None:
    hook, heard = drawer.root / "hear", drawer.root / "heard"
    hook.write_text(f'#!/bin/sh\necho "$POOLFERRY_EVENT $POOLFERRY_DISK $POOLFERRY_WHY" >>{heard}\n')
    hook.chmod(0o755)
    drawer.job("photos", f'[hooks]\ndisk-arrived = ["{hook}"]\ndisk-safe = ["{hook}"]\n')
    drawer.enrolled("red")
    drawer.scan()
    red = drawer.full("red")
    assert heard.read_text() == f"disk-arrived {red} \ndisk-safe {red} disk {red} may be unplugged\n"
    assert drawer.run("run", "photos").code == 0
    assert heard.read_text().count("disk-safe") == 2


def test_a_disk_is_attached_by_hand_to_restore_from_it(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.scan()
    red, back = drawer.full("red"), drawer.root / "back"
    reads = (("plan", "photos", "--files"), ("points", "photos", "--look"), ("restore", "plan", "photos", "--to", str(back)))  # fmt: skip
    for words in reads:
        (attach,) = re.findall(r"plug it in, and: poolferry (disks attach \S+)$", drawer.run(*words).err, re.MULTILINE)
    place = drawer.run(*attach.split(), "--json").value["places"]["photos"]
    assert drawer.mounted("red")
    for words in reads:
        assert drawer.run(*words).err == "", "each command goes on when it is typed again"
    assert drawer.run("restore", "run", "--from", place, "--to", str(back)).code == 0
    assert (back / "a.txt").read_text() == "some words\n"
    assert drawer.run("disks", "eject", red).code == 0
    assert not drawer.mounted("red")


def test_a_disk_is_verified_in_a_visit_of_its_own(drawer: LoopDisks) -> None:
    assert drawer.run("verify", "photos").code == 75
    drawer.enrolled("red")
    drawer.scan()
    assert drawer.run("verify", "photos", "--json").value["outcome"] == "done"
    assert not drawer.mounted("red")


def test_a_job_is_not_run_again_within_its_interval_or_while_it_rests(drawer: LoopDisks) -> None:
    drawer.job("photos", 'on = "attach"\nmin-interval = "1h"\n')
    drawer.job("mail")
    drawer.enrolled("red")
    assert [run["job"] for run in drawer.scan()["visits"]["red"]["runs"]] == ["mail", "photos"]
    assert drawer.run("pause", "mail").code == 0
    visit = drawer.scan()["visits"]["red"]
    assert (visit["runs"], visit["ending"], visit["safe"]) == ([], "done", True)


def test_what_udev_tells_of_other_disks_is_nobodys_business(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    ended = drawer.run("disks", "scan", "--identity", "00000000-0000-4000-8000-000000000000")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    (disk,) = drawer.run("disks", "--json").value["sets"][0]["disks"]
    drawer.pull("red")
    drawer.plug("red")
    assert "SAFE TO REMOVE" in drawer.run("disks", "scan", "--identity", disk["identity"].upper()).out


def test_status_shows_the_members_and_is_late_by_name(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.scan()
    drawer.enrolled("blue")
    told = drawer.run("status").out
    assert drawer.full("red") in told
    assert f"Requested, and plugged in, is disk {drawer.full('blue')}" in told
    text = (drawer.ferry.config / "targets.toml").read_text()
    (drawer.ferry.config / "targets.toml").write_text(text.replace("power-off", 'each-within = "1s"\npower-off'))
    both = sorted([drawer.full("red"), drawer.full("blue")])
    wait_until(lambda: sorted(drawer.run("status", "--json").value["sets"][0]["overdue"]) == both)
    assert drawer.run("status").code == 4
    assert f"no whole copy on disk {drawer.full('red')} for" in drawer.run("status").out


def test_a_visit_that_is_asked_to_stop_lets_the_disk_go_and_the_next_goes_on(drawer: LoopDisks) -> None:
    (drawer.source / "large").write_bytes(bytes(range(256)) * (20 << 12))
    drawer.job("photos", '[pipe]\nrate-limit = "2M"\n')
    drawer.enrolled("red")
    argv = [*COMMAND, "disks", "scan", "--json"]
    going = subprocess.Popen(argv, env=drawer.ferry.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(drawer.mountpoint("red").rglob("*large*")), going=going)
    going.terminate()
    (visit,) = json.loads(going.communicate(timeout=60)[0])["visits"]
    assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("incomplete", True, "interrupted")
    assert not drawer.mounted("red")
    drawer.job("photos")
    visit = drawer.scan()["visits"]["red"]
    assert (visit["ending"], visit["runs"][0]["resumed"]) == ("done", True)


def test_two_visits_of_one_disk_do_not_meet(drawer: LoopDisks) -> None:
    (drawer.source / "large").write_bytes(bytes(range(256)) * (20 << 12))
    drawer.job("photos", '[pipe]\nrate-limit = "4M"\n')
    drawer.enrolled("red")
    argv = [*COMMAND, "disks", "scan", "--json"]
    going = subprocess.Popen(argv, env=drawer.ferry.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(drawer.mountpoint("red").rglob("*large*")), going=going)
    second = drawer.scan()["visits"]["red"]
    assert (second["ending"], second["state"]) == ("refused", "being-visited")
    assert "another visit of disk" in second["why"]
    (visit,) = json.loads(going.communicate(timeout=60)[0])["visits"]
    assert (visit["ending"], visit["safe"]) == ("done", True)


def test_a_disk_that_stays_away_is_overdue_by_its_name_and_its_return_ends_it(drawer: LoopDisks) -> None:
    hook, heard = drawer.root / "hear", drawer.root / "heard"
    hook.write_text(f'#!/bin/sh\necho "$POOLFERRY_EVENT $POOLFERRY_DISK: $POOLFERRY_WHY" >>{heard}\n')
    hook.chmod(0o755)
    drawer.job("photos", f'[hooks]\ndisk-overdue = ["{hook}"]\n')
    for name in ("red", "blue"):
        drawer.enrolled(name)
    drawer.scan()
    drawer.pull("blue")
    text = (drawer.ferry.config / "targets.toml").read_text()
    (drawer.ferry.config / "targets.toml").write_text(text.replace("power-off", 'each-within = "3s"\npower-off'))
    blue = drawer.full("blue")
    wait_until(lambda: drawer.run("run", "photos").code == 0 and heard.exists())
    assert f"disk-overdue {blue}: no whole copy on disk {blue} for" in heard.read_text()


def test_a_source_with_attributes_lets_the_disk_go(drawer: LoopDisks) -> None:
    os.setxattr(drawer.source / "a.txt", "user.note", b"kept")
    drawer.enrolled("red")
    assert drawer.scan()["visits"]["red"]["safe"]


def test_who_uses_a_disk_is_named_and_once_it_has_ended_the_disk_can_be_ejected(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    assert drawer.run("disks", "attach", drawer.full("red")).code == 0
    with subprocess.Popen(["sleep", "1000"], cwd=drawer.mountpoint("red")) as user:
        try:
            ended = drawer.run("disks", "eject", drawer.full("red"))
            assert ended.code == 1, ended
            assert f"`sleep 1000` (process {user.pid}, since 20" in ended.err, ended
            assert f"uses {drawer.mountpoint('red')}" in ended.err, ended
            hint = r"leave the folder, or end what uses it \(`(kill \d+)`\), then: poolferry (disks eject \S+)$"
            kill, eject = re.findall(hint, ended.err, re.MULTILINE)[0]
            subprocess.run(["sh", "-c", kill], check=True)
            assert user.wait(10) == -signal.SIGTERM
        finally:
            user.kill()
    assert f"SAFE TO REMOVE: {drawer.full('red')}" in drawer.run(*eject.split()).out


def test_a_disk_that_is_mounted_elsewhere_is_not_safe_and_the_hint_unmounts_it(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    place = drawer.root / "my place"
    place.mkdir()
    subprocess.run(["mount", drawer.loops["red"], place], check=True)
    try:
        ended = drawer.run("disks", "eject", drawer.full("red"))
        assert ended.out.startswith(f"NOT SAFE TO REMOVE: {drawer.full('red')}: it is mounted at {place}\n"), ended
        (hint,) = re.findall(r"`(umount .*)`", ended.out)
        subprocess.run(["sh", "-c", hint], check=True)
    finally:
        subprocess.run(["umount", place], capture_output=True)
    assert drawer.run("disks", "eject", drawer.full("red")).code == 0
