"""kill -9 at any moment, of any process: the next run ends right, goes on from what is there, and leaves no stray."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.processes import family, strays
from tests.whole.house import House, facts, kill, wait_until
from tests.whole.kills import MIB, half_copied, only_ours, strike

VICTIMS = ("poolferry", "sender", "receiver", "all")


@pytest.mark.slow
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.sample(2)
def test_a_large_file_cut_in_the_middle_is_not_sent_again(house: House, victim: str) -> None:
    size = 200 * MIB
    with open(house.write("big"), "wb") as file:
        file.writelines(random.randbytes(MIB) for _ in range(size // MIB))
    for number in range(50):
        house.write(f"small/{number}", b"x" * 1000)
    whole = size + 50 * 1000
    process = house.start(house.job(pipe={"rate_limit": "60M"}))
    wait_until(lambda: half_copied(house) > size * 0.4)
    before = half_copied(house)
    strike(process, victim)
    first = house.ended(process)
    assert first.code != 0
    assert house.points() == []
    sent = max(before, first.value.get("moved_bytes", 0))
    house.job()
    ran = house.run()
    assert (ran.code, ran.outcome, ran["resumed"]) == (0, "done", True), ran
    assert sent + ran["moved_bytes"] <= whole * 1.1
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").code == 0
    assert strays(house.folder) == []
    only_ours(house)


@pytest.mark.slow
def test_a_file_with_holes_keeps_them_when_it_was_cut_in_the_middle(house: House) -> None:
    image = house.write("disk.img", b"")
    with image.open("r+b") as file:
        file.truncate(400 * MIB)
        for place in (0, 3, 200, 390):
            file.seek(place * MIB)
            file.write(random.randbytes(2 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "2M"}))
    wait_until(lambda: half_copied(house) > 2 * MIB)
    strike(process, "all")
    house.ended(process)
    house.job()
    ran = house.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert any(step["action"] == "go on with disk.img" for step in ran["steps"]), ran
    assert facts(house.source) == facts(house.point())
    assert (house.point() / "disk.img").stat().st_blocks * 512 < 20 * MIB


@pytest.mark.slow
def test_a_run_mends_itself_when_rsync_is_killed(house: House) -> None:
    size = 60 * MIB
    house.write("big", random.randbytes(size))
    process = house.start(house.job(pipe={"rate_limit": "30M"}, retry={"attempts": 3, "wait": "1s"}))
    wait_until(lambda: half_copied(house) > size * 0.4)
    strike(process, "receiver")
    ran = house.ended(process)
    assert (ran.code, ran.outcome, ran["resumed"], ran["attempts"]) == (0, "done", True, 2), ran
    assert ran["moved_bytes"] <= size * 1.1
    assert facts(house.source) == facts(house.point())


def busy_tree(house: House, chance: random.Random) -> None:
    for number in range(4):
        house.write(f"big/{number}", chance.randbytes(MIB))
    for number in range(150):
        house.write(f"small/{number % 10}/{number}", chance.randbytes(chance.randrange(3000)))
    os.link(house.source / "big/0", house.source / "small/link to big")


def change(house: House, chance: random.Random) -> None:
    """Some files are new, some other, some gone, one grows, one shrinks."""
    for _ in range(2):
        house.write(f"big/{chance.randrange(5)}", chance.randbytes(chance.randrange(2 * MIB)))
    for _ in range(10):
        house.write(f"small/{chance.randrange(10)}/{chance.randrange(300)}", chance.randbytes(100))
    (house.source / f"big/{chance.randrange(5)}").unlink(missing_ok=True)
    shutil.rmtree(house.source / f"small/{chance.randrange(10)}", ignore_errors=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 5))])
@pytest.mark.sample(2)
def test_random_kills(house: House, seed: int) -> None:
    """25 in all, 10 of them in `make test`: each is followed at once by a run that ends right; some while the source changes in between."""
    chance = random.Random(seed)
    busy_tree(house, chance)
    for round_ in range(5):
        house.job(pipe={"rate_limit": "3M"}, rsync={"parallel": chance.choice((1, 1, 2))})
        process = house.start()
        moment = chance.uniform(0.1, 1.6)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            everybody = [process.pid, *(pid for pid, _ in family(process.pid))]
            for pid in everybody if chance.random() < 0.3 else [chance.choice(everybody)]:
                kill(pid)
        house.ended(process)
        if chance.random() < 0.6:
            change(house, chance)
        house.job()
        ran = house.run()
        assert (ran.code, ran.outcome in ("done", "nothing-to-do")) == (0, True), (round_, moment, ran)
        assert facts(house.source) == facts(house.point()), (round_, moment, ran)
        assert strays(house.folder) == []
        only_ours(house)
        change(house, chance)
    for name in house.points():
        verified = house.call("verify", "photos", "--point", name)
        assert verified.code == 0, verified


def test_a_run_that_died_is_recorded_as_interrupted(house: House) -> None:
    house.write("big", random.randbytes(4 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "1M"}))
    wait_until(lambda: half_copied(house) > 100_000)
    strike(process, "all")
    house.ended(process)
    house.job()
    assert house.run().outcome == "done"
    runs = house.call("history")["runs"]
    assert [run["outcome"] for run in runs] == ["done", "interrupted"]


def test_no_process_outlives_a_killed_run(house: House) -> None:
    house.write("big", random.randbytes(4 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "1M"}))
    wait_until(lambda: half_copied(house) > 100_000)
    os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not strays(house.folder))
    house.ended(process)


@pytest.mark.parametrize("step", ["publish", "manifest"])
def test_a_cut_around_publishing_is_mended(house: House, tmp_path: Path, step: str) -> None:
    """The manifest has its name and the tree has not, or the tree has and `latest` has not."""
    house.write("file", "content")
    house.run(house.job())
    point = house.points()[0]
    if step == "manifest":
        os.rename(house.target / "points" / point, house.target / ".poolferry/work")
        with closing(sqlite3.connect(house.state / "history.sqlite")) as history, history:
            history.execute("DELETE FROM points")  # a point is recorded once it has its name
    (house.target / "latest").unlink()
    house.write("file", "changed")
    ran = house.run()
    assert ran.outcome == "done", ran
    assert facts(house.source) == facts(house.point())
    assert os.readlink(house.target / "latest") == f"points/{house.points()[-1]}"
    only_ours(house)


def test_latest_is_mended_when_there_is_nothing_to_copy(house: House) -> None:
    """A cut between the point's name and `latest`: the point counts, and `latest` must come to name it."""
    house.write("file", "content")
    house.run(house.job())
    (house.target / "latest").unlink()
    (house.target / "latest").symlink_to("points/2001-01-01T000000Z")
    assert house.run().code == 0
    assert os.readlink(house.target / "latest") == f"points/{house.points()[-1]}"
