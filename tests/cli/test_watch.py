"""A run that goes on is watched from another shell: `status`, `status --watch`, `show --follow`."""

import os
import pty
import select
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.ferry import COMMAND, Ferry

SLOW = '[pipe]\nrate-limit = "400K"\n[retry]\nattempts = 1\n'


@contextmanager
def running(ferry: Ferry, size: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A run that copies so many bytes at 400 KiB a second, in a process group of its own; ended with the block."""
    source = ferry.job(more=SLOW)
    (source / "big").write_bytes(os.urandom(size))
    child = subprocess.Popen(
        [*COMMAND, "run", "photos"], env=ferry.variables(), cwd=ferry.root, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait(30)


def when(found: Callable[[], Any]) -> Any:
    """The first value that is true, within half a minute."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        if value := found():
            return value
        time.sleep(0.1)
    raise AssertionError("it did not come")


def progress(ferry: Ferry) -> dict[str, Any] | None:
    goes_on = ferry.run("status", "--json").value["jobs"][0]["running"]
    rate = goes_on["progress"]["bytes_per_s"] if goes_on and goes_on["progress"] else None
    return (
        goes_on if rate and 100_000 < rate < 900_000 else None
    )  # not at once: rsync sends the first bytes as they come


@pytest.mark.slow
def test_a_run_is_seen_from_another_shell(ferry: Ferry) -> None:
    with running(ferry, 3_500_000) as child:
        told = when(lambda: progress(ferry))
        assert told["run"] == 1
        assert told["step"]
        assert 0 < told["progress"]["done_bytes"] <= 3_600_000
        folder = ferry.state / "running"
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "1.json")]
        assert modes == [0o700, 0o600]
        shown = ferry.run("status").out
        assert "now: " in shown
        assert "KiB/s" in shown
        followed = ferry.run("show", "last", "--follow")
        assert child.wait(30) == 0
    assert followed.code == 0
    lines = followed.out.splitlines()
    assert lines[0].startswith("run 1: run of photos, begun ")
    assert lines[-1].startswith("run 1 done: made ")
    assert len(lines) > 3, "its steps, too"
    assert not list(folder.iterdir()), "the note is gone with the run"
    assert ferry.run("status", "--json").value["jobs"][0]["running"] is None


@pytest.mark.slow
def test_what_a_killed_run_left_is_no_progress_and_is_cleared_by_the_next(ferry: Ferry) -> None:
    with running(ferry, 4_000_000) as child:
        when(lambda: progress(ferry))
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert (ferry.state / "running" / "1.json").exists()
        assert ferry.run("status", "--json").value["jobs"][0]["running"] is None
        ended = ferry.run("show", "1", "--follow")
        assert ended.code != 0
        assert "interrupted" in ended.out
    again = subprocess.Popen(
        [*COMMAND, "run", "photos"],
        env=ferry.variables(),
        cwd=ferry.root,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    when((ferry.state / "running" / "2.json").exists)
    assert not (ferry.state / "running" / "1.json").exists()
    again.terminate()
    again.wait(30)


@pytest.mark.slow
def test_who_stops_watching_stops_nothing(ferry: Ferry) -> None:
    with running(ferry, 3_000_000) as child:
        when(lambda: progress(ferry))
        watcher = subprocess.Popen(
            [*COMMAND, "show", "photos", "--follow"],
            env=ferry.variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert watcher.stdout is not None
        assert watcher.stdout.readline().startswith(b"run 1: ")
        watcher.send_signal(signal.SIGINT)
        _, said = watcher.communicate(timeout=20)
        assert watcher.returncode == 130
        assert b"run 1 goes on; `poolferry show 1 --follow` watches it again" in said
        assert child.wait(30) == 0


def test_a_run_that_ended_is_followed_to_its_end_at_once(ferry: Ferry) -> None:
    source = ferry.job()
    assert ferry.run("run", "photos").code == 0
    folder = ferry.state / "running"
    assert not folder.exists() or not list(folder.iterdir())
    shutil.rmtree(folder, ignore_errors=True)
    assert ferry.run("run", "photos", "--json").value["outcome"] == "nothing-to-do"
    assert not folder.exists(), "a run with nothing to do writes none"
    assert ferry.run("show", "1", "--follow", "--json").value["outcome"] == "done"
    source.rename(source.with_name("away"))
    failed = ferry.run("run", "photos")
    followed = ferry.run("show", "last", "--follow")
    assert followed.code == failed.code != 0
    assert "what to do: " in followed.out
    assert ferry.run("show", "77", "--follow").code == 2


def test_the_status_is_drawn_again_until_ctrl_c(ferry: Ferry) -> None:
    ferry.job()
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ferry.root)
        os.execve(COMMAND[0], [*COMMAND, "status", "--watch"], {**ferry.variables(), "TERM": "xterm"})  # noqa: S606
    shown = b""
    until = time.monotonic() + 30
    while shown.count(b"photos") < 2 and time.monotonic() < until:
        if select.select([terminal], [], [], 1.0)[0]:
            shown += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    assert shown.count(b"\x1b[H") >= 2
    assert b"Traceback" not in shown
    assert code == 0


def test_a_watch_needs_a_terminal(ferry: Ferry) -> None:
    ferry.job()
    for words in (["status", "--watch"], ["status", "--watch", "--json"]):
        told = ferry.run(*words)
        assert told.code == 2
        assert "poolferry status --json" in told.err
