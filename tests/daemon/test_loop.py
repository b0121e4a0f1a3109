"""The real daemon as a process, with real copies: at its time, killed, ended, started again, beside others."""

import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from tests.daemon.daemon_world import copying, daemon, promise, quicken, runs, slow_job, until
from tests.ferry import COMMAND, Ferry
from tests.processes import strays

pytestmark = pytest.mark.slow


def seconds_to_the_minute() -> float:
    """Return how long until the clock shows the next whole minute."""
    now = datetime.now(UTC)
    return 60 - now.second - now.microsecond / 1e6


def test_a_job_runs_at_its_minute(ferry: Ferry) -> None:
    ferry.job(more='schedule = "* * * * *"\n')
    # Where the minute is far, the daemon's clock is set to 3 s before it.
    ahead = max(0.0, seconds_to_the_minute() - 3)
    began = datetime.now(UTC) + timedelta(seconds=ahead)
    with daemon(ferry, ahead=ahead) as clock:
        clock.says("photos: done: ")
        clock.says("photos: is no longer due: run 1 served it")
        (run,) = runs(ferry)
        assert run["outcome"] == "done"
        schedule, due = run["requested"].split("; due ")
        assert schedule == 'at "* * * * *"'
        assert datetime.fromisoformat(due).astimezone() > began  # a job that is new owes no minute from before
        assert clock.end() == 0
    assert strays(ferry.root) == []


def test_a_daemon_that_is_killed_leaves_nothing_behind_and_goes_on_when_it_is_back(ferry: Ferry) -> None:
    slow_job(ferry)
    with daemon(ferry) as clock:
        until(lambda: copying(ferry.target()), "the copy begins", lambda: clock.log)
        clock.end(signal.SIGKILL)
        until(lambda: strays(ferry.root) == [], "all that it started ends", lambda: "\n".join(strays(ferry.root)))
    (run,) = runs(ferry)
    assert run["outcome"] == "interrupted"
    assert "SIGTERM" in run["why"]
    quicken(ferry)
    with daemon(ferry) as clock:
        clock.says("the daemon was not running from")
        clock.says("photos: done: ")
        clock.says("served it")
        newest, cut = runs(ferry)
        assert (newest["outcome"], newest["resumed"], newest["requested"]) == ("done", True, cut["requested"])
        assert clock.end() == 0


def beats(ferry: Ferry) -> int:
    """Return the number of daemons that recorded that they were there."""
    with closing(sqlite3.connect(ferry.state / "history.sqlite", timeout=30)) as history:
        return int(history.execute("SELECT count(*) FROM beats").fetchone()[0])


def test_a_restart_in_order_is_no_downtime_and_after_a_kill_its_begin_is_not_known(ferry: Ferry) -> None:
    ferry.job(more='schedule = "0 4 * * *"\n')
    with daemon(ferry) as clock:
        clock.says("read ")
        assert clock.end() == 0
    with daemon(ferry, ahead=3) as clock:
        clock.says("read ")
        until(lambda: beats(ferry) == 2, "it has recorded that it is there", lambda: clock.log)
        assert clock.end(signal.SIGKILL) != 0
        assert "not running" not in clock.log, clock.log
    for command in (("status",), ("schedule",), ("history",)):
        assert "not running" not in ferry.run(*command).out
    with daemon(ferry, ahead=120) as clock:
        clock.says("the daemon was not running from")
        assert clock.end() == 0
        (line,) = [line for line in clock.log.splitlines() if "not running" in line]
        assert " or later to " in line, line
        assert "(at most 1 min 5" in line or "(at most 2 min" in line, line
    with daemon(ferry, ahead=120 + 90) as clock:
        clock.says("the daemon was not running from")
        assert clock.end() == 0
        assert "or later" not in clock.log


def test_a_daemon_that_is_asked_to_end_asks_its_runs_to_end(ferry: Ferry) -> None:
    slow_job(ferry)
    with daemon(ferry) as clock:
        until(lambda: copying(ferry.target()), "the copy begins", lambda: clock.log)
        requested = time.monotonic()
        assert clock.end() == 0
        assert time.monotonic() - requested < 15
        assert "ends (SIGTERM); asks photos to end too" in clock.log
        assert "photos: interrupted: " in clock.log
    assert strays(ferry.root) == []
    assert runs(ferry)[0]["outcome"] == "interrupted"
    assert promise(ferry)["due"] is not None
    assert "daemon was ended" in ferry.run("schedule").out


def test_one_daemon_is_enough(ferry: Ferry) -> None:
    ferry.job()
    with daemon(ferry) as clock:
        clock.says("read ")
        second = ferry.run("daemon")
        assert second.code == 75
        assert f"another daemon, process {clock.process.pid}" in second.err


def test_a_run_by_hand_and_the_daemon_never_run_into_one_place_together(ferry: Ferry) -> None:
    slow_job(ferry)
    with daemon(ferry) as clock:
        until(lambda: copying(ferry.target()), "the copy begins", lambda: clock.log)
        second = ferry.run("run", "photos")
        assert second.code == 75
        assert "another run of photos" in second.out
        clock.end()


def test_the_daemon_waits_for_a_run_by_hand_and_takes_it_for_its_own(ferry: Ferry) -> None:
    slow_job(ferry, schedule="")
    with subprocess.Popen(
        [*COMMAND, "run", "photos"], env=ferry.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as by_hand:
        until(lambda: copying(ferry.target()), "the copy begins")
        file = ferry.config / "jobs" / "photos.toml"
        file.write_text(file.read_text().replace("[pipe]", 'every = "1m"\n[pipe]'))
        with daemon(ferry, ahead=90) as clock:
            clock.says("photos: a run is due")
            until(lambda: promise(ferry)["due"], "it is written down")
            assert promise(ferry)["due"]["waits"] == "its run before this one is going on"
            assert len(runs(ferry)) == 1
            clock.end()
        by_hand.send_signal(signal.SIGTERM)
        by_hand.communicate(timeout=30)


def test_a_job_that_rests_is_made_up_for(ferry: Ferry) -> None:
    ferry.job(more='every = "1m"\n')
    assert ferry.run("pause", "photos", "--for", "2h", "--why", "the disk is lent").code == 0
    with daemon(ferry) as clock:
        clock.says("photos: a run is due")
        due_run = promise(ferry)
        assert due_run["due"]["waits"].startswith("paused until ")
        assert due_run["due"]["waits"].endswith(": the disk is lent")
        assert due_run["paused"]["why"] == "the disk is lent"
        assert ferry.run("resume", "photos").out == "photos: runs again\n"
        clock.send(signal.SIGHUP)  # it would look by itself within half a minute
        clock.says("photos: done: ")
        clock.end()
    assert ferry.run("resume", "photos").out == "photos: did not rest\n"


def test_places_are_filled_side_by_side_as_many_as_may(ferry: Ferry) -> None:
    for name in ("a", "b", "c"):
        slow_job(ferry, name)
    (ferry.config / "poolferry.toml").write_text("[clock]\nparallel = 2\n")
    with daemon(ferry) as clock:
        until(lambda: copying(ferry.target("a")) and copying(ferry.target("b")), "two copies begin", lambda: clock.log)
        assert not ferry.target("c").exists()
        assert promise(ferry, "c")["due"]["waits"] == "2 runs are going on, as many as may at once"
        clock.end()
