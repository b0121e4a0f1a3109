"""The daemon and its files: what was right goes on, whatever somebody writes meanwhile, and it is said once."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from orchestrator.app.pidfile import ask_to_reload
from tests.daemon.daemon_world import copying, daemon, promise, runs, slow_job, until
from tests.ferry import Ferry

pytestmark = pytest.mark.slow
GOES_ON = "the last good one stays in use"


def broken(ferry: Ferry, name: str = "photos") -> str:
    """Breaks a job's file; what it was."""
    file = ferry.config / "jobs" / f"{name}.toml"
    good = file.read_text()
    file.write_text(good + "colour = 'red'\n")
    return good


def test_a_broken_file_changes_nothing_and_is_told_once(ferry: Ferry) -> None:
    ferry.job(more='every = "1m"\n')
    ferry.job("music")
    with daemon(ferry) as clock:
        clock.says("photos: done: ")
        broken(ferry)
        clock.send(signal.SIGHUP)
        clock.says(f"one mistake: {GOES_ON}".replace("one mistake", "1 mistake"))
        assert clock.log.count("colour: unknown key") == 1
        assert clock.end() == 0
    # Its clock is ahead, so that the job a run is due: it runs by what was right, also after a new start.
    with daemon(ferry, ahead=120) as clock:
        clock.says(GOES_ON)
        clock.says("photos: nothing-to-do: ")
        clock.end()
    assert ferry.run("run", "photos").code == 2


def test_a_file_that_was_written_but_not_read_breaks_no_run(ferry: Ferry) -> None:
    ferry.job(more='every = "1m"\n')
    with daemon(ferry) as clock:
        clock.says("photos: done: ")
    with daemon(
        ferry, ahead=50
    ) as clock:  # the run is due in ten seconds: one that begins just then reads the file itself
        clock.says("read ")
        broken(ferry)
        clock.says("photos: nothing-to-do: ")
        assert "the configuration has changed since it was read; SIGHUP" in clock.log
        assert "unknown key" not in clock.log
        clock.end()


def test_a_reload_leaves_the_run_that_goes_on_alone(ferry: Ferry) -> None:
    slow_job(ferry)
    with daemon(ferry) as clock:
        until(lambda: copying(ferry.target()), "the copy begins", lambda: clock.log)
        ferry.job("music", 'every = "1h"\n')
        clock.send(signal.SIGHUP)
        clock.says("2 jobs")
        clock.says("music: done: ")
        assert len(runs(ferry)) == 1
        assert runs(ferry)[0]["outcome"] is None
        clock.end()


def test_a_job_that_is_gone_owes_nothing(ferry: Ferry) -> None:
    ferry.job(more='every = "1m"\n')
    ferry.job("music", 'every = "1m"\n')
    ferry.run("pause", "photos")
    with daemon(ferry) as clock:
        clock.says("photos: a run is due")
        file = ferry.config / "jobs" / "photos.toml"
        held = file.read_text()
        file.unlink()
        clock.send(signal.SIGHUP)
        clock.says("1 job,")
        file.write_text(held.replace('every = "1m"\n', ""))
        clock.send(signal.SIGHUP)
        clock.says("2 jobs,", times=2)
        assert promise(ferry)["due"] is None
        clock.end()


def test_a_broken_configuration_without_one_before_it_is_refused(ferry: Ferry) -> None:
    ferry.job()
    broken(ferry)
    told = ferry.run("daemon")
    assert told.code == 2
    assert "colour: unknown key" in told.err


def test_the_copy_is_for_its_owner_alone_and_leads_to_hooks(ferry: Ferry) -> None:
    ferry.job()
    (ferry.config / "hooks").mkdir()
    (ferry.config / "hooks" / "mine").write_text("#!/bin/sh\n")
    with daemon(ferry) as clock:
        clock.says("read ")
        clock.end()
    copy = Path(ferry.state) / "last-good"
    assert os.stat(copy).st_mode & 0o777 == 0o700
    assert (copy / "hooks" / "mine").read_text() == "#!/bin/sh\n"
    assert (copy / "jobs" / "photos.toml").read_text() == (ferry.config / "jobs" / "photos.toml").read_text()


def test_a_copy_in_which_a_bit_flipped_is_not_used(ferry: Ferry) -> None:
    ferry.job(more='daily = "02:30"\n')
    with daemon(ferry) as clock:
        clock.says("read ")
        clock.end()
    broken(ferry)
    copy = ferry.state / "last-good" / "jobs" / "photos.toml"
    text = copy.read_text()
    copy.write_text(text.replace("02:30", "02:31"))
    told = ferry.run("daemon")
    assert (told.code, "colour: unknown key" in told.err) == (2, True), told
    copy.write_text(text)
    with daemon(ferry) as clock:
        clock.says(GOES_ON)
        clock.end()


def test_a_copy_that_cannot_be_kept_hinders_nothing(ferry: Ferry) -> None:
    ferry.job(more='every = "1m"\n')
    ferry.state.mkdir()
    (ferry.state / "last-good.new").write_text("in the way")
    with daemon(ferry) as clock:
        clock.says("no copy of the configuration could be kept")
        clock.says("photos: done: ")
        clock.end()


def test_a_number_that_is_not_the_daemons_is_sent_no_signal(ferry: Ferry) -> None:
    """SIGHUP ends any other program."""
    ferry.job()
    lock = ferry.state / "locks" / "daemon"
    with daemon(ferry) as clock, subprocess.Popen(["sleep", "60"]) as other:
        clock.says("read ")
        assert ask_to_reload(str(ferry.state)) == clock.process.pid
        lock.write_text(f"{other.pid}\n")
        assert ask_to_reload(str(ferry.state)) is None
        assert other.poll() is None
        other.kill()
        clock.end()


def test_a_job_that_init_adds_is_known_at_once(ferry: Ferry) -> None:
    ferry.job()
    with daemon(ferry) as clock:
        clock.says("1 job,")
        assert ferry.run("init", str(ferry.root / "music"), str(ferry.root / "copies-of-music")).code == 0
        clock.says("2 jobs,")
        assert clock.end() == 0
