"""`[verify] read-all-within`: all copies are read again bit by bit; what is late is told like a late copy, and its hint ends it."""

import contextlib
import os
import pty
import random
import signal
import sqlite3
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.daemon.daemon_world import daemon
from tests.ferry import Ferry
from tests.whole.house import House, Ran, wait_until
from tests.whole.kills import strike

PROMISE = {"read-all-within": "10d"}


@pytest.fixture
def read(house: House) -> House:
    """A house with four points of ten files each, which are read again within ten days."""
    house.job(verify=PROMISE)
    for number in range(40):
        house.write(f"{number % 10}", random.randbytes(10_000))
        if number % 10 == 9:
            assert house.run().outcome == "done"
    return house


def age(state: Path, days: float) -> None:
    """Lets so many days go by, as far as points, their readings and the last turn go."""
    span = int(days * 86400e6)
    with contextlib.closing(sqlite3.connect(state / "history.sqlite")) as history, history:
        history.execute(
            "UPDATE points SET made_at = made_at - ?1, taken_at = taken_at - ?1, whole_at = whole_at - ?1", [span]
        )
        for key, told in history.execute(
            "SELECT key, value FROM memory WHERE key LIKE 'promised reading on %'"
        ).fetchall():
            earlier = (datetime.fromisoformat(told) - timedelta(days=days)).isoformat()
            history.execute("UPDATE memory SET value = ? WHERE key = ?", (earlier, key))


def due(house: House, *jobs: str) -> list[dict[str, object]]:
    ended = house.call("verify", "--due", *jobs)
    assert ended.code == 0, ended
    return list(ended["read"])


def standing(house: House) -> dict[str, str]:
    return dict(house.call("status")["jobs"][0])


def test_each_turn_reads_its_part_and_all_is_read_within_the_promise(read: House) -> None:
    days = 0
    while house_never_read(read) and days < 10:
        (turn,) = due(read)
        assert turn["outcome"] == "done", turn
        assert due(read) == [], "once a day"
        age(read.state, 1)
        days += 1
        assert standing(read)["state"] == "up"
    assert 5 <= days < 10, "bit by bit"
    (told,) = read.call("promises")["reading"]
    assert (told["limit_s"], told["never_read"], told["share"], told["promise"]["overdue_bytes"]) == (864000, 0, 1.0, 0)


def house_never_read(house: House) -> int:
    (told,) = house.call("promises", "photos")["reading"]
    return int(told["never_read"])


def test_what_is_late_is_told_like_a_late_copy_and_its_hint_ends_it(read: House) -> None:
    age(read.state, 11)
    assert read.run().outcome == "nothing-to-do", "the copy itself is as new as can be"
    late = standing(read)
    assert (late["state"], late["hint"]) == ("late", "poolferry verify photos --due")
    assert "a part of the copies at photos was not read for 11 d" in late["why"]
    (told,) = read.call("promises")["reading"]
    assert told["forecast"].startswith("broken: ")
    followed: Ran = read.follow(late["hint"])
    assert (followed.code, followed["read"][0]["outcome"]) == (0, "done")
    assert standing(read)["state"] == "up"
    assert house_never_read(read) == 0


def test_one_that_is_killed_in_the_middle_promises_nothing_and_the_next_reads_the_rest(read: House) -> None:
    for number in range(2):
        house_file = read.write("large", random.Random(number).randbytes(1 << 20) * 96)
        assert read.run().outcome == "done"
    house_file.unlink()
    assert read.run().outcome == "done"
    age(read.state, 11)
    process = read.start_call("verify", "--due", "photos")
    wait_until(lambda: under_way(read.state))
    strike(process, "all")
    read.ended(process)
    assert process.returncode == -signal.SIGKILL
    assert house_never_read(read) > 0
    assert standing(read)["state"] == "late"
    (turn,) = due(read, "photos")
    assert turn["outcome"] == "done", turn
    assert (standing(read)["state"], house_never_read(read)) == ("up", 0)
    outcomes = [run["outcome"] for run in read.call("history")["runs"] if run["kind"] == "verify"]
    assert outcomes == ["done", "interrupted"]


def under_way(state: Path) -> bool:
    """Return whether a reading was begun and has not ended."""
    with contextlib.closing(sqlite3.connect(state / "history.sqlite")) as history:
        return bool(history.execute("SELECT 1 FROM runs WHERE kind = 'verify' AND ended_at IS NULL").fetchone())


def test_damage_in_an_old_point_is_found_by_its_turn(read: House) -> None:
    victim = read.point(0) / "3"
    before = victim.stat()
    victim.write_bytes(b"x" + victim.read_bytes()[1:])
    os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))
    age(read.state, 11)
    ended = read.call("verify", "--due")
    assert (ended.code, ended["read"][0]["outcome"]) == (1, "failed")
    assert f"point {read.points()[0]} does not match its manifest" in ended["read"][0]["why"]
    assert standing(read)["state"] == "failing"


def test_a_turn_with_nothing_to_read_says_so(read: House) -> None:
    due(read)
    told = read.call("verify", "--due")
    assert (told.code, told["read"]) == (0, []), told
    assert told["why"].startswith("nothing is read now: ")
    assert read.follow(told["why"].split("`")[1]).code == 0
    words = [each for each in read.argv("verify", "--due") if each != "--json"]
    for_cron = subprocess.run(words, capture_output=True, text=True, env=read.environment, timeout=60, check=True)
    assert for_cron.stdout == ""
    ours, its = pty.openpty()
    subprocess.run(words, stdout=its, env=read.environment, timeout=60, check=True)
    os.close(its)
    assert os.read(ours, 4096).startswith(b"nothing is read now: ")
    os.close(ours)


def test_so_much_a_day_and_within_a_window(read: House) -> None:
    age(read.state, 11)
    now = datetime.now().astimezone()
    closed = f"{now + timedelta(hours=2):%H:00}-{now + timedelta(hours=4):%H:00}"
    read.job(verify={**PROMISE, "window": closed})
    assert due(read) == []
    read.job(
        verify={
            **PROMISE,
            "window": f"{now - timedelta(hours=2):%H:00}-{now + timedelta(hours=4):%H:00}",
            "per-day": "60K",
        }
    )
    (turn,) = due(read)
    assert "read 58.6 KiB again" in str(turn["why"]), turn
    assert standing(read)["state"] == "late"
    age(read.state, 1)
    assert read.call("pause", "photos").code == 0
    assert due(read) == [], "it rests"
    assert read.call("resume", "photos").code == 0
    read.job(verify={**PROMISE, "window": closed, "per-day": "60K"})
    (turn,) = due(read, "photos")
    assert "the oldest reading is" in str(turn["why"]), "a person asks, and waits for no window"


@pytest.mark.parametrize(
    ("verify", "told"),
    [
        ({"per-day": "200G"}, 'expected read-all-within = "90d" beside it'),
        ({"window": "22:00-06:00"}, 'expected read-all-within = "90d" beside it'),
        ({"read-all-within": "0s"}, "a duration of a day or more"),
        ({**PROMISE, "per-day": "0"}, "a size above 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(house: House, verify: dict[str, str], told: str) -> None:
    house.job(verify=verify)
    ended = house.call("check")
    assert (ended.code, told in ended.errors) == (2, True), ended


def test_a_job_that_promises_nothing(house: House) -> None:
    house.job()
    assert due(house) == []
    ended = house.call("verify", "photos", "--due")
    assert (ended.code, "promises no reading" in ended.errors) == (2, True), ended
    assert house.call("verify", "photos", "--due", "--source").code == 2


def test_the_daemon_reads_by_itself(ferry: Ferry) -> None:
    ferry.job(more='schedule = "0 4 * * *"\n[verify]\nread-all-within = "10d"\n')
    assert ferry.run("run", "photos").code == 0
    with daemon(ferry) as clock:
        clock.says("read again: photos: done: read ")
        assert clock.end() == 0
