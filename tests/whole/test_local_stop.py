"""Asked to end, told when to end, and met by another run of the same job."""

import os
import random
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.processes import strays
from tests.whole.house import House, facts, kill, rsyncs, wait_until
from tests.whole.kills import MIB, half_copied


def slow_copy(house: House, **toml: object) -> None:
    """A job whose copy takes some ten seconds, most of them in one file."""
    house.write("big", random.randbytes(20 * MIB))
    for number in range(20):
        house.write(f"small/{number}", random.randbytes(1000))
    house.job(pipe={"rate_limit": "2M"}, **toml)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.sample(1)
def test_a_signal_ends_a_run_in_good_order(house: House, number: signal.Signals) -> None:
    slow_copy(house)
    process = house.start()
    wait_until(lambda: half_copied(house) > 2 * MIB)
    sent = time.monotonic()
    os.kill(process.pid, number)
    ran = house.ended(process)
    assert time.monotonic() - sent < 10
    assert (ran.code, ran.outcome) == (130 if number is signal.SIGINT else 1, "interrupted"), ran
    assert strays(house.folder) == []
    house.job()
    second = house.run()
    assert (second.outcome, second["resumed"]) == ("done", True)
    assert facts(house.source) == facts(house.point())
    assert ran["moved_bytes"] + second["moved_bytes"] <= 20 * MIB * 1.1
    assert [run["outcome"] for run in house.call("history")["runs"]] == ["done", "interrupted"]


@pytest.mark.slow
def test_a_signal_at_any_moment_ends_a_run_within_ten_seconds(house: House) -> None:
    for number in range(200):
        house.write(f"{number}", random.randbytes(2000))
    house.job()
    for moment in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7):
        house.write("changes", str(moment))
        process = house.start()
        time.sleep(moment)
        sent = time.monotonic()
        kill(process.pid, signal.SIGTERM)
        ran = house.ended(process)
        assert time.monotonic() - sent < 10
        assert ran.code == -15 or ran.outcome in ("interrupted", "done", "nothing-to-do"), ran
        assert strays(house.folder) == []
    assert house.run().code == 0
    assert facts(house.source) == facts(house.point())


@pytest.mark.slow
def test_a_run_ends_with_its_time_window(house: House) -> None:
    """The clock of the run's own time zone shows the next full minute four seconds from now."""
    now = datetime.now(UTC)
    ahead = (60 - now.second - 4) % 60
    house.environment["TZ"] = f"ODD-00:00:{ahead:02d}"
    window = (now + timedelta(seconds=ahead + 4)).replace(microsecond=0)
    slow_copy(house, stop_at=f"{window:%H:%M}")
    began = time.monotonic()
    ran = house.run()
    assert time.monotonic() - began < 14
    assert (ran.code, ran.outcome) == (1, "interrupted"), ran
    assert "stop-at" in ran["why"]
    house.job()
    assert (house.run()["resumed"], facts(house.source) == facts(house.point())) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize("state", ["the same", "another"])
@pytest.mark.sample(1)
def test_of_two_runs_at_once_one_waits(house: House, state: str) -> None:
    house.write("first")
    house.run(house.job())
    slow_copy(house)
    process = house.start()
    wait_until(lambda: half_copied(house) > MIB // 2)
    if state == "another":
        house.state = house.folder / "another state"
    second = house.run()
    assert (second.code, second.outcome) == (75, "waiting"), second
    assert house.ended(process).outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert len(house.points()) == 2
    assert house.run().outcome == "nothing-to-do"


def test_a_stray_rsync_of_a_killed_run_keeps_the_next_one_waiting(house: House) -> None:
    """It cannot be told to end while it is stopped; a second rsync must not meet it."""
    house.write("big", random.randbytes(4 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "1M"}))
    wait_until(lambda: half_copied(house) > 100_000)
    frozen = rsyncs(process)
    for pid in frozen:
        kill(pid, signal.SIGSTOP)
    kill(process.pid)
    house.ended(process)
    house.job()
    assert house.run().code == 75
    for pid in frozen:
        kill(pid)
    wait_until(lambda: not strays(house.folder))
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())


@pytest.mark.parametrize("where", ["same place", "same path", "inside", "around", "in the source"])
def test_two_jobs_into_one_place_are_refused_by_check(house: House, where: str) -> None:
    house.job("one", source="/srv/one", target=house.target)
    path = {
        "same path": house.target,
        "inside": house.target / "deeper",
        "around": house.folder,
        "in the source": Path("/srv/two/copies"),
    }.get(where, house.folder / "elsewhere")
    house.job("two", source="/srv/two", target=path)
    if where == "same place":
        file = house.config / "jobs/two.toml"
        file.write_text(file.read_text().replace('target = "two"', 'target = "one"'))
    checked = house.call("check")
    assert checked.code == 2, checked
    assert any(mistake["line"] for mistake in checked["mistakes"])
    assert house.run("one").code == 2
    assert not house.target.exists()
