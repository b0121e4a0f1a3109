"""Test that an older state of a place, or another copy of it with the same marker, is not taken for what the last run left there."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.whole.house import House


def twin_of(house: House, name: str) -> Path:
    """A copy of the target with its marker, as a clone of its disk has it."""
    twin = house.folder / name
    subprocess.run(["cp", "-a", str(house.target), str(twin)], check=True)
    return twin


def swap(house: House, there: Path, away: str) -> Path:
    """Put another folder in the place; the path under which what lay there is kept."""
    kept = house.folder / away
    house.target.rename(kept)
    there.rename(house.target)
    return kept


def test_two_copies_of_a_place_that_take_turns_are_told(house: House) -> None:
    """Before, a run went on in either without a word of its own."""
    house.write("file", "1")
    house.run(house.job())
    twin = twin_of(house, "twin")
    house.write("file", "two")
    assert house.run()["warnings"] == []
    first = swap(house, twin, "first")
    house.write("file", "three")
    ran = house.run()
    assert ran.outcome == "done", ran
    assert "shows an older state: its newest point is" in str(ran["warnings"]), ran
    swap(house, first, "second")
    ran = house.run()
    assert "two copies of photos" in str(ran["warnings"]), ran
    assert "take turns" in str(ran["warnings"]), ran
    (job,) = house.call("status").value["jobs"]
    assert (job["state"], job["problems"][0]["kind"]) == ("failing", "points-gone"), job


def test_a_look_alike_with_the_marker_alone_is_told(house: House) -> None:
    house.write("file", "1")
    house.run(house.job())
    swap(house, twin_of(house, "other"), "first")
    shutil.rmtree(house.target / "points")
    (house.target / "latest").unlink()
    ran = house.run()
    assert "none of the 1 point that history knows is at photos" in str(ran["warnings"]), ran
    (job,) = house.call("status").value["jobs"]
    assert (job["state"], job["problems"][0]["kind"]) == ("failing", "points-gone"), job


def test_points_that_somebody_removed_are_no_other_copy(house: House) -> None:
    """Of those in the middle, and of what [keep] let go, nothing is said beyond what is gone."""
    house.job()
    for number in range(3):
        house.write("file", "x" * (number + 1))
        house.run()
    name = house.points()[1]
    shutil.rmtree(house.target / "points" / name)
    (house.target / "points" / f"{name}.manifest.gz").unlink()
    ran = house.run()
    assert not any("older state" in told or "take turns" in told for told in ran["warnings"]), ran


@pytest.mark.parametrize("by", ["run", "verify", "run with nothing to do", "run with nothing to do, the clock ahead"])
@pytest.mark.sample(1)
def test_an_older_state_of_a_mirror_is_told(house: House, by: str) -> None:
    """Before, `verify` called it sound, and `status` called the job up; where nothing differed the run said nothing, and `verify` failed on."""
    for number in range(5):
        house.write(f"{number}", "x")
    house.run(house.job(rsync={"points": False}))
    assert house.call("verify", "photos").code == 0
    twin, before = twin_of(house, "twin"), house.source.stat()
    house.write("file", "two")
    assert house.run()["warnings"] == []
    assert house.call("verify", "photos").code == 0
    swap(house, twin, "first")
    if by.startswith("run with nothing to do"):
        (house.source / "file").unlink()
        away = (
            3600 * 10**9
        )  # of an older state by the server's clock; one that is ahead made it after ours told the last
        manifest = (house.target / ".poolferry/manifest.gz", away if by.endswith("clock ahead") else -away)
        for path, later in ((house.source, 0), manifest):
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + later))
    if by == "verify":
        ran = house.call("verify", "photos")
        assert ran.code == 1, ran
        assert "shows an older state: its manifest is of" in ran["why"], ran
        assert house.call("status").value["jobs"][0]["state"] == "failing"
    ran = house.run()
    assert ran.outcome == "done", ran
    assert "shows an older state: its manifest is of" in str(ran["warnings"]), ran
    assert (house.call("verify", "photos").code, house.run()["warnings"]) == (0, [])
    assert house.call("status").value["jobs"][0]["state"] == "up"
