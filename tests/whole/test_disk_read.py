"""Copies are read again in each visit as far as the budget goes, and the next visit continues: real ext4 on loop devices."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
PIECE = 100_000


@pytest.fixture
def drawer(tmp_path: Path) -> Iterator[LoopDisks]:
    made = LoopDisks(tmp_path)
    for old in made.source.iterdir():
        old.unlink()
    for number in range(6):
        (made.source / f"{number}.bin").write_bytes(bytes([number]) * PIECE)
    made.declare('verify = "250K"\n')
    made.enrolled("red")
    yield made
    made.close()


def visit(drawer: LoopDisks) -> dict[str, Any]:
    found: dict[str, Any] = drawer.scan()["visits"]["red"]
    return found


def test_short_visits_read_everything_in_the_end_and_begin_anew(drawer: LoopDisks) -> None:
    told = [visit(drawer)["read"][0] for _ in range(4)]
    assert [each["outcome"] for each in told] == ["done"] * 4
    assert "some of it was never read" in told[0]["why"]
    assert "some of it was never read" in told[1]["why"]
    assert "1 point to the end" in told[2]["why"], "two files of six in each visit"
    assert "the oldest reading is" in told[2]["why"]
    assert "0 points to the end" in told[3]["why"], "and again from the start"
    assert "  read again: all of it, the oldest part " in drawer.run("disks", "show", drawer.full("red")).out


def flip(drawer: LoopDisks, name: str) -> None:
    """One bit of a copy, as an old disk does it: neither its size nor its time tells."""
    with drawer.opened("red") as place:
        (copy,) = [path for path in place.rglob(name) if "points" in path.parts and path.is_file()][:1]
        times = copy.stat()
        data = bytearray(copy.read_bytes())
        data[70_000] ^= 1
        copy.write_bytes(data)
        subprocess.run(["touch", "-d", f"@{times.st_mtime_ns / 1e9:.9f}", copy], check=True)


def test_rot_is_found_by_the_visit_that_comes_to_it_and_is_mended_by_the_next(drawer: LoopDisks) -> None:
    assert visit(drawer)["ending"] == "done"
    flip(drawer, "5.bin")
    assert visit(drawer)["ending"] == "done", "its turn has not come"
    found = visit(drawer)
    assert (found["ending"], found["safe"], found["read"][0]["outcome"]) == ("incomplete", True, "failed")
    assert "does not match its manifest: 1 " in found["why"]
    assert "5.bin" in str(found["read"][0]["evidence"])
    (drawer.source / "more").write_text("a reason for another point")
    mended = visit(drawer)
    assert mended["runs"][0]["outcome"] == "done"
    assert drawer.run("verify", "photos", "--json").value["outcome"] == "done", "the newest point has a good copy"


def test_the_same_budget_holds_for_a_visit_of_one_job_alone(drawer: LoopDisks) -> None:
    ended = drawer.run("run", "photos")
    assert "read 195.3 KiB again" in ended.out
    assert ended.out.index("read 195.3 KiB again") < (ended.out + ended.err).index("SAFE TO REMOVE")
    shown = drawer.run("disks", "show", drawer.full("red"), "--json").value
    assert ([visit["jobs"] for visit in shown["history"]], shown["read"]) == ([["photos"]], None)
    assert "  read again: 1 of 1 point not yet" in drawer.run("disks", "show", drawer.full("red")).out
    assert drawer.run("verify", "photos").code == 0, "a visit for a reading reads no more than that"


def test_a_promise_is_kept_by_visits(tmp_path: Path) -> None:
    """Without a budget of the set; each visit reads the part of the time since the last one, and what is overdue."""
    made = LoopDisks(tmp_path)
    try:
        made.declare()
        made.job("photos", '[verify]\nread-all-within = "90d"\n')
        made.enrolled("red")
        (told,) = visit(made)["read"]
        assert (told["outcome"], told["why"].startswith("read ")) == ("done", True), told
        assert made.run("verify", "--due", "--json").value["read"] == [], "disks are read by their visits"
    finally:
        made.close()
