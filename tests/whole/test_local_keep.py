"""[keep]: which points go, which never do, and a removal that is cut in the middle."""

import os
import random
import shutil
import signal
import time
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.history.store import open_history
from tests.processes import family, strays
from tests.whole.house import House, facts, kill, rsyncs, wait_until

DAYS = timedelta(days=1)


def aged(house: House, days: int) -> list[str]:
    """So many points, the newest of yesterday and each a day older than the next."""
    newest = datetime.now(UTC).replace(hour=12, minute=0, second=0) - DAYS
    names = [f"{newest - number * DAYS:%Y-%m-%dT%H%M%SZ}" for number in reversed(range(days))]
    for number, name in enumerate(names):
        house.write("file", f"content {number}")
        assert house.run().outcome == "done"
        house.redate(house.points()[-1], name)
    return names


def newest_is_past(house: House) -> None:
    """Wait until the newest point is not dated ahead: of several that are made within a second, each is named a second later."""
    wait_until(lambda: f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}" > house.points()[-1])


def test_points_go_by_plan(house: House) -> None:
    house.write("same", "in all")
    house.job()
    names = aged(house, 5)
    house.job(keep={"daily": 3})
    planned = house.call("plan", "photos")
    assert [each["point"] for each in planned["removes"]] == names[:2]
    assert all(each["reason"] for each in planned["removes"])
    assert house.points() == names, "a plan removes nothing"
    house.write("file", "newest")
    ran = house.run()
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    assert house.points() == [*names[3:], ran["points"][0]]
    assert sorted(os.listdir(house.target / "points")) == sorted(
        f"{name}{end}" for name in house.points() for end in ("", ".manifest.gz")
    )
    for name in house.points():
        assert house.call("verify", "photos", "--point", name).code == 0
    listed = [point["point"] for point in house.call("points", "photos")["points"]]
    assert sorted(listed) == house.points()


def test_nothing_to_copy_prunes_too_but_never_the_newest(house: House) -> None:
    house.job()
    names = aged(house, 3)
    house.job(keep={"yearly": 1})
    assert house.run().outcome == "nothing-to-do"
    assert house.points() == names[-1:]
    assert house.run().outcome == "nothing-to-do"
    assert house.points() == names[-1:]


def test_the_newest_verified_point_stays(house: House) -> None:
    house.job()
    names = aged(house, 4)
    assert house.call("verify", "photos", "--point", names[1]).code == 0
    house.job(keep={"daily": 1})
    house.write("file", "newest")
    assert house.run().outcome == "done"
    assert house.points() == [names[1], house.points()[-1]]


def test_the_newest_sound_point_stays_when_newer_ones_are_damaged(house: House) -> None:
    house.job()
    names = aged(house, 3)
    assert house.call("verify", "photos", "--point", names[0]).code == 0
    rot(house, names[2])
    assert house.call("verify", "photos", "--point", names[2]).code == 1
    house.job(keep={"daily": 1})
    house.write("file", "newest")
    assert house.run().outcome == "done"
    assert names[0] in house.points()


def rot(house: House, point: str) -> None:
    path = house.target / "points" / point / "file"
    seen = path.stat()
    path.write_text("CONTENT 2")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


@pytest.mark.slow
def test_a_point_that_a_restore_reads_stays(house: House) -> None:
    house.job()
    house.write("big", random.randbytes(50 << 20))
    names = aged(house, 3)
    back = house.folder / "back"
    house.job(pipe={"rate_limit": "8M"})
    process = house.start_call("restore", "run", "photos", "--point", names[0], "--to", str(back))
    wait_until(lambda: any(path.stat().st_size > 0 for path in back.rglob("*big*")))
    frozen = rsyncs(process)
    for pid in frozen:
        kill(pid, signal.SIGSTOP)
    house.job(keep={"daily": 1})
    house.write("file", "newest")
    assert house.run().outcome == "done"
    assert house.points() == [names[0], house.points()[-1]]
    for pid in frozen:
        kill(pid, signal.SIGCONT)
    assert house.ended(process).outcome == "done"
    assert facts(back) == facts(house.target / "points" / names[0])
    newest_is_past(house)
    assert house.run().outcome == "nothing-to-do"
    assert len(house.points()) == 1


@pytest.mark.slow
def test_a_removal_that_is_killed_is_finished_by_the_next_run(house: House) -> None:
    for number in range(3000):
        house.write(f"{number % 50}/{number}", "x")
    house.job()
    names = aged(house, 4)
    house.job(keep={"daily": 1})
    house.write("file", "newest")
    process = house.start()
    wait_until((house.target / ".poolferry/trash").exists, pause=0.0005)
    for pid in [process.pid, *(pid for pid, _ in family(process.pid))]:
        kill(pid)
    house.ended(process)
    wait_until(lambda: not strays(house.folder))
    newest_is_past(house)
    assert house.run().code == 0
    left(house, names)


@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.parametrize("cut", ["renamed", "half removed", "manifest left", "tree left"])
@pytest.mark.sample(3)
def test_a_removal_cut_anywhere_is_finished_by_the_next_run(house: House, cut: str, *, changed: bool) -> None:
    house.write("folder/same", "x")
    house.job()
    names = aged(house, 2)
    trash, points = house.target / ".poolferry/trash", house.target / "points"
    trash.mkdir()
    if cut != "tree left":
        (points / names[0]).rename(trash / names[0])
    if cut == "half removed":
        (points / f"{names[0]}.manifest.gz").unlink()
        shutil.rmtree(trash / names[0] / "folder")
    if cut == "manifest left":
        shutil.rmtree(trash)
    if cut == "tree left":
        (points / f"{names[0]}.manifest.gz").unlink()
    with open_history(str(house.state / "history.sqlite")) as history:
        history.removing("photos", "photos", names[:1])  # as it is written before anything is removed
    house.job(keep={"daily": 1})
    if changed:
        house.write("file", "newest")
    assert house.run().outcome == ("done" if changed else "nothing-to-do")
    left(house, names)


def left(house: House, names: list[str]) -> None:
    """Only the newest point, whole, and nothing of what went."""
    assert len(house.points()) == 1
    assert not set(house.points()) & set(names[:-1])
    assert sorted(os.listdir(house.target / "points")) == [house.points()[0], f"{house.points()[0]}.manifest.gz"]
    assert not (house.target / ".poolferry/trash").exists()
    assert facts(house.point()) == facts(house.source)
    assert house.call("verify", "photos").code == 0


def test_a_stop_during_a_removal_leaves_a_run_that_is_done(house: House) -> None:
    """The copy is made and proved by then: what is left of the removal is the next run's."""
    for number in range(1000):
        house.write(f"{number % 50}/{number}", "x")
    house.job()
    aged(house, 3)
    house.job(keep={"daily": 1})
    house.write("file", "newest")
    process = house.start()
    began = time.monotonic()
    wait_until(lambda: (house.target / ".poolferry/trash").exists() or process.poll() is not None, pause=0.0005)
    kill(process.pid, signal.SIGTERM)
    ran = house.ended(process)
    assert time.monotonic() - began < 30
    assert ran.outcome in ("done", "interrupted"), ran
    assert facts(house.point()) == facts(house.source)
    assert house.run().code == 0
    assert len(house.points()) == 1
