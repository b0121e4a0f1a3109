"""A target without room, without inodes, or not writable: earlier points stay whole, and the message says what is missing."""

import os
import random
import shutil
import subprocess

import pytest

from tests.whole.house import House, facts, mounted

MIB = 1 << 20
pytestmark = pytest.mark.root


def test_a_full_target_keeps_what_it_has_and_says_what_is_missing(house: House) -> None:
    with mounted(house.target, "size=20m"):
        house.write("first", random.randbytes(4 * MIB))
        assert house.run(house.job()).outcome == "done"
        kept = facts(house.point())
        house.write("big", random.randbytes(30 * MIB))
        ran = house.run()
        assert (ran.code, ran.outcome, ran["points"]) == (1, "failed", []), ran
        assert "no space" in ran["why"]
        assert "30.0 MiB to be copied" in ran["why"]
        assert "are missing" in ran["why"]
        assert "free space" in ran["hint"]
        assert len(house.points()) == 1
        assert facts(house.point()) == kept
        assert house.call("verify", "photos").code == 0
        subprocess.run(["mount", "-o", "remount,size=60m", str(house.target)], check=True)
        second = house.run()
        assert (second.outcome, second["resumed"]) == ("done", True), second
        assert ran["moved_bytes"] + second["moved_bytes"] <= 33 * MIB
        assert facts(house.point()) == facts(house.source)


def test_a_first_copy_that_does_not_fit_says_so_too(house: House) -> None:
    with mounted(house.folder / "disk", "size=4m"):
        house.write("big", random.randbytes(6 * MIB))
        ran = house.run(house.job(target=house.folder / "disk/photos"))
        assert (ran.code, "6.0 MiB to be copied" in ran["why"]) == (1, True), ran
        house.write("big", random.randbytes(MIB))
        house.target = house.folder / "disk/photos"
        assert house.run().outcome == "done", "a smaller file fits where the half of the larger one lay"
        assert facts(house.point()) == facts(house.source)


def test_a_restore_to_where_too_little_is_free_says_so_before_and_goes_on_after(house: House) -> None:
    for name in "abc":
        house.write(name, random.randbytes(4 * MIB))
    assert house.run(house.job()).outcome == "done"
    with mounted(house.folder / "disk", "size=9m"):
        back = str(house.folder / "disk/back")
        wanted = ("restore", "run", "photos", "--to", back)
        ran = house.call(*wanted)
        assert (ran.code, ran["outcome"]) == (1, "failed"), ran
        (warned,) = ran["warnings"]
        assert "12.0 MiB are to come back, and 9.0 MiB are free" in warned
        assert "No space left" in ran["why"]
        assert "the same command goes on" in ran["hint"]
        assert "[keep]" not in ran["hint"], "what a restore lacks is no older point"
        subprocess.run(["mount", "-o", "remount,size=30m", str(house.folder / "disk")], check=True)
        second = house.call(*wanted)
        assert (second["outcome"], second["resumed"], second["warnings"]) == ("done", True, []), second
        assert ran["moved_bytes"] + second["moved_bytes"] <= 15 * MIB
        assert facts(house.folder / "disk/back") == facts(house.source)


def test_a_target_without_inodes(house: House) -> None:
    with mounted(house.target, "size=20m,nr_inodes=200"):
        for number in range(50):
            house.write(f"a/{number}", "x")
        assert house.run(house.job()).outcome == "done"
        for number in range(300):
            house.write(f"b/{number}", "x")
        ran = house.run()
        assert (ran.code, ran.outcome) == (1, "failed"), ran
        assert "inodes were free" in ran["why"]
        assert len(house.points()) == 1
        assert house.call("verify", "photos").code == 0
        shutil.rmtree(house.source / "b")
        house.write("c")
        assert house.run().outcome == "done"
        assert facts(house.point()) == facts(house.source)


@pytest.mark.parametrize("room", [0, 8192, 100_000])
@pytest.mark.sample(1)
def test_no_room_for_the_manifest(house: House, room: int) -> None:
    """Empty files take no room there, but their names do in the manifest."""
    with mounted(house.target, "size=8m"):
        house.write("first")
        assert house.run(house.job()).outcome == "done"
        for _ in range(3000):
            house.write(f"names/{random.randbytes(60).hex()}")
        seen = os.statvfs(house.target)
        (house.target / "filler").write_bytes(bytes(max(0, seen.f_bavail * seen.f_frsize - room)))
        ran = house.run()
        assert (ran.code, ran.outcome) == (1, "failed"), ran
        assert "no space" in ran["why"]
        assert len(house.points()) == 1
        (house.target / "filler").unlink()
        assert house.run().outcome == "done"
        assert facts(house.point()) == facts(house.source)
        assert house.call("verify", "photos").code == 0


def test_a_read_only_target(house: House) -> None:
    with mounted(house.target):
        house.write("first", "x")
        assert house.run(house.job()).outcome == "done"
        before = facts(house.target)
        house.write("second", "x")
        subprocess.run(["mount", "-o", "remount,ro", str(house.target)], check=True)
        ran = house.run()
        assert (ran.code, ran.outcome) == (1, "failed"), ran
        assert "read-only" in ran["why"].lower()
        assert facts(house.target) == before
        assert house.call("verify", "photos").code == 0
        subprocess.run(["mount", "-o", "remount,rw", str(house.target)], check=True)
        assert house.run().outcome == "done"


def test_a_read_only_target_with_nothing_to_do(house: House) -> None:
    with mounted(house.target):
        house.write("first", "x")
        assert house.run(house.job()).outcome == "done"
        subprocess.run(["mount", "-o", "remount,ro", str(house.target)], check=True)
        ran = house.run()
        assert (ran.code, ran.outcome) == (0, "nothing-to-do"), ran
