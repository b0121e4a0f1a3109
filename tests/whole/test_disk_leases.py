"""Test that who uses a disk, or waits for it, is left alone by visits; and after SAFE TO REMOVE nothing automatic touches it: real ext4."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ferry import COMMAND, Ended
from tests.whole.house import wait_until
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def by_udev(drawer: LoopDisks, name: str) -> Ended:
    """Return what udev's rule does when the disk was plugged in."""
    return drawer.run("disks", "scan", "--identity", drawer.identity(name))


def by_daemon(drawer: LoopDisks) -> Ended:
    """Return what the daemon does when a run is due."""
    return drawer.run("run", "--scheduled", "--why", "on attach; due today", "--", "photos")


def runs(drawer: LoopDisks) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = drawer.run("history", "photos", "--json").value["runs"]
    return found


def replug(drawer: LoopDisks, name: str) -> None:
    drawer.pull(name)
    drawer.plug(name)


def test_a_disk_attached_by_hand_is_left_alone_until_it_is_ejected(drawer: LoopDisks, tmp_path: Path) -> None:
    drawer.enrolled("red")
    red = drawer.full("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    replug(drawer, "red")
    assert drawer.run("disks", "attach", red).code == 0
    assert drawer.run("disks", "attach", red).code == 0, "the same command again ends the same"
    before = len(runs(drawer))
    for ended in (by_udev(drawer, "red"), by_daemon(drawer), drawer.run("run", "photos"), drawer.run("disks", "scan")):
        assert (ended.code, drawer.mounted("red")) == (75, True), ended
        assert f"disk {red} was attached by hand" in ended.out + ended.err
        assert f"poolferry disks eject {red}" in ended.out + ended.err
    assert len(runs(drawer)) == before, "nothing ran, and nothing waits in history"
    assert f"disk {red} was attached by hand" in drawer.run("disks").out
    assert f"disk {red} was attached by hand" in drawer.run("status").out
    restored = drawer.run("restore", "run", "photos", "--to", str(tmp_path / "back"))
    assert (restored.code, drawer.mounted("red")) == (0, True), restored
    assert (tmp_path / "back" / "a.txt").read_text() == "some words\n"
    place = drawer.mountpoint("red") / "photos"
    there = drawer.run("restore", "run", "--from", str(place), "--to", str(tmp_path / "again"))
    assert (there.code, drawer.mounted("red")) == (0, True), there
    ended = drawer.run("disks", "eject", red)
    assert (ended.code, f"SAFE TO REMOVE: {red}" in ended.out, drawer.mounted("red")) == (0, True, False)
    replug(drawer, "red")
    assert by_udev(drawer, "red").code == 0


@contextlib.contextmanager
def restoring(drawer: LoopDisks, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A restore from the attached disk that is stopped in its middle, and goes on afterwards."""
    place = drawer.mountpoint("red") / "photos"
    argv = [*COMMAND, "restore", "run", "--from", str(place), "--to", str(tmp_path / "back")]
    going = subprocess.Popen(argv, env=drawer.ferry.variables(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until((tmp_path / "back").exists, going=going)
        going.send_signal(signal.SIGSTOP)
        yield going
    finally:
        going.send_signal(signal.SIGCONT)
        going.wait(60)


def test_a_restore_holds_its_disk_as_long_as_it_lives(drawer: LoopDisks, tmp_path: Path) -> None:
    drawer.enrolled("red")
    red = drawer.full("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    replug(drawer, "red")
    assert drawer.run("disks", "attach", red).code == 0
    with restoring(drawer, tmp_path) as going:
        for ended in (drawer.run("disks", "eject", red), by_udev(drawer, "red"), by_daemon(drawer)):
            assert (ended.code, drawer.mounted("red")) == (75, True), ended
            assert f"disk {red} is in use since" in ended.out + ended.err
            assert f"(process {going.pid})" in ended.out + ended.err
        assert f"disk {red} is in use since" in drawer.run("disks").out
    assert going.returncode == 0
    assert (tmp_path / "back" / "a.txt").read_text() == "some words\n"
    assert drawer.run("disks", "eject", red).code == 0


def test_a_restore_that_is_killed_holds_nothing(drawer: LoopDisks, tmp_path: Path) -> None:
    drawer.enrolled("red")
    red = drawer.full("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    replug(drawer, "red")
    assert drawer.run("disks", "attach", red).code == 0
    with restoring(drawer, tmp_path) as going:
        os.kill(going.pid, signal.SIGKILL)
        going.wait(30)
    wait_until(lambda: drawer.run("disks", "eject", red).code == 0)
    replug(drawer, "red")
    assert by_udev(drawer, "red").code == 0


def test_a_disk_that_a_restore_waits_for_is_not_visited_and_stays_on(drawer: LoopDisks, tmp_path: Path) -> None:
    drawer.enrolled("red")
    red = drawer.full("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    again = ("restore", "run", "photos", "--to", str(tmp_path / "back"))
    assert drawer.run(*again).code == 75
    drawer.plug("red")
    before = len(runs(drawer))
    for ended in (by_udev(drawer, "red"), by_daemon(drawer)):
        assert ended.code == 75, ended
        assert f"disk {red} is wanted since" in ended.out + ended.err
        assert f"poolferry restore run photos --to {tmp_path / 'back'}" in ended.out + ended.err
    assert len(runs(drawer)) == before
    assert f"disk {red} is wanted since" in drawer.run("disks").out
    assert drawer.run(*again).code == 0, "the hint"
    assert f"disk {red} is wanted" not in drawer.run("disks").out
    replug(drawer, "red")
    assert by_udev(drawer, "red").code == 0


def test_a_restore_that_is_given_up_wants_no_disk(drawer: LoopDisks, tmp_path: Path) -> None:
    drawer.enrolled("red")
    red = drawer.full("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    assert drawer.run("restore", "run", "photos", "--to", str(tmp_path / "back")).code == 75
    drawer.plug("red")
    assert by_udev(drawer, "red").code == 75
    assert drawer.run("disks", "eject", red).code == 0, "the hint"
    replug(drawer, "red")
    assert by_udev(drawer, "red").code == 0


def test_after_safe_nothing_automatic_touches_a_disk_until_it_was_away(drawer: LoopDisks) -> None:
    drawer.job("mail")
    drawer.enrolled("red")
    red = drawer.full("red")
    for ended in (by_udev(drawer, "red"), by_daemon(drawer)):
        assert ended.code == 75, "enroll said that it may be unplugged"
    ended = drawer.run("disks", "scan", red)
    assert (ended.code, f"SAFE TO REMOVE: {red}" in ended.out) == (0, True), ended
    marker, before = drawer.digest("red"), len(runs(drawer))
    assert by_udev(drawer, "red").code == 75
    waits = by_daemon(drawer)
    assert (waits.code, f"disk {red} was said to be safe to remove" in waits.out) == (75, True), waits
    assert drawer.digest("red") == marker, "not a bit changed"
    assert f"poolferry disks scan {red}" in waits.out
    assert drawer.run("disks", "scan", red).code == 0, "the hint"
    replug(drawer, "red")
    first = by_daemon(drawer)
    assert (first.code, "mail: " in first.out, f"SAFE TO REMOVE: {red}" in first.err) == (0, True, True), first
    assert by_udev(drawer, "red").code == 75
    drawer.declare_again("use-again = true\n")
    assert by_daemon(drawer).code == 0, "a set may say so"
    assert len(runs(drawer)) > before


def test_daemon_and_udev_meet_at_a_plugged_in_disk_and_one_of_them_visits_it(drawer: LoopDisks) -> None:
    drawer.job("mail")
    drawer.enrolled("red")
    visit = drawer.scan()["visits"]["red"]
    assert visit["ending"] == "done", visit
    for turn in range(3):
        replug(drawer, "red")
        before = {job: len(drawer.run("history", job, "--json").value["runs"]) for job in ("photos", "mail")}
        words = (
            ["disks", "scan", "--identity", drawer.identity("red")],
            ["run", "--scheduled", "--why", "on attach; due today", "--", "photos"],
            ["run", "--scheduled", "--why", "on attach; due today", "--", "mail"],
        )
        going = [
            subprocess.Popen(
                [*COMMAND, *each], env=drawer.ferry.variables(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            for each in words
        ]
        ended = [(each.communicate(timeout=120)[0].decode(), each.returncode) for each in going]
        assert sorted(code for _, code in ended) == [0, 75, 75], (turn, ended)
        for job, count in before.items():
            found = drawer.run("history", job, "--json").value["runs"]
            assert len(found) == count + 1, (turn, job, ended)
            assert found[0]["outcome"] in ("done", "nothing-to-do")
    assert json.loads(drawer.run("status", "--json").out)["jobs"]
