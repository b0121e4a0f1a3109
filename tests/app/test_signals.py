"""Signals end a run in good order, and a reader that goes away harms nothing."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.ferry import COMMAND, Ferry
from tests.processes import is_there

SLOW = '[pipe]\nrate-limit = "256K"\n'


@pytest.fixture
def slow(ferry: Ferry) -> Ferry:
    """A job whose copy takes half a minute."""
    source = ferry.job(more=SLOW)
    (source / "big").write_bytes(os.urandom(8 << 20))
    return ferry


def begun(ferry: Ferry, *arguments: str, **about: Any) -> "subprocess.Popen[bytes]":
    """A run in which the copy has begun."""
    child: subprocess.Popen[bytes] = subprocess.Popen(
        [*COMMAND, *arguments],
        env=ferry.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **about,
    )
    until(lambda: copying(ferry.target()), child)
    return child


def copying(target: Path) -> bool:
    """Return whether some bytes of the large file have arrived."""
    with contextlib.suppress(FileNotFoundError):  # a folder that only tries what the target can hold goes at any moment
        return any(path.stat().st_size > 0 for path in target.rglob("*big*") if path.is_file())
    return False


def until(holds: Callable[[], bool], child: "subprocess.Popen[bytes]") -> None:
    """Waits for a condition while the child lives."""
    end = time.monotonic() + 30
    while not holds():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_interrupts_a_run_in_good_order(slow: Ferry, number: signal.Signals) -> None:
    child = begun(slow, "run", "photos", "--json")
    requested = time.monotonic()
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert time.monotonic() - requested < 10
    assert child.returncode == (130 if number is signal.SIGINT else 1)
    value = json.loads(out)
    assert value["outcome"] == "interrupted"
    assert number.name in value["why"] or "Ctrl-C" in value["why"]
    assert b"Traceback" not in err
    assert slow.run("history", "--json").value["runs"][0]["outcome"] == "interrupted"


def test_a_run_that_waits_for_its_hook_before_ends_with_it(ferry: Ferry) -> None:
    """Nothing has begun then, and a hook may take five minutes."""
    hook = ferry.root / "waits"
    hook.write_text(f"#!/bin/sh\necho $$ > {ferry.root}/hook\nexec sleep 600\n")
    hook.chmod(0o755)
    ferry.job(more=f'[hooks]\nbefore = ["{hook}"]\n')
    child = subprocess.Popen(
        [*COMMAND, "run", "photos", "--json"], env=ferry.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until(lambda: (ferry.root / "hook").exists() and bool((ferry.root / "hook").read_text().strip()), child)
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=20)
    value = json.loads(out)
    assert (value["outcome"], "SIGTERM" in value["why"]) == ("interrupted", True), value
    assert not is_there(int((ferry.root / "hook").read_text()))
    assert not ferry.target().exists()


def test_a_second_interrupt_is_the_same_as_one(slow: Ferry) -> None:
    child = begun(slow, "run", "photos")
    for _ in range(3):
        child.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"photos: interrupted: " in out
    assert b"Traceback" not in err


def test_the_jobs_after_an_interrupted_one_are_not_begun(slow: Ferry) -> None:
    slow.job("music")
    child = begun(slow, "run", "photos", "music")
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=20)
    assert b"not begun: music" in err
    assert not slow.target("music").exists()


def test_a_hangup_that_is_ignored_stays_ignored(slow: Ferry) -> None:
    child = begun(slow, "run", "photos", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    child.send_signal(signal.SIGHUP)
    time.sleep(0.5)  # long enough for a request to stop to be seen
    assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=20)
    assert b"SIGTERM" in out


@pytest.mark.slow
def test_the_end_of_the_window_interrupts_too(slow: Ferry) -> None:
    now = datetime.now(UTC).astimezone()
    soon = (now + timedelta(minutes=1)).replace(second=0, microsecond=0)
    # A window ends with a whole minute: where that is far, the command's clock is set to 5 s before it.
    shift = max(0.0, (soon - now).total_seconds() - 5)
    text = (slow.config / "jobs" / "photos.toml").read_text()
    (slow.config / "jobs" / "photos.toml").write_text(text.replace("[pipe]", f'stop-at = "{soon:%H:%M}"\n[pipe]'))
    start = (
        "import sys\nfrom datetime import timedelta\nfrom orchestrator import compose\nreal = compose.now\n"
        f"compose.now = lambda: real() + timedelta(seconds={shift})\n"
        "from orchestrator.cli import main\nsys.exit(main(['run', 'photos', '--json']))"
    )
    told = subprocess.run([COMMAND[0], "-c", start], env=slow.variables(), capture_output=True, timeout=60)
    value = json.loads(told.stdout)
    assert value["outcome"] == "interrupted"
    assert f"{soon:%H:%M} (stop-at)" in value["why"]


def test_a_run_goes_on_when_nobody_listens(ferry: Ferry) -> None:
    ferry.job()
    reader, writer = os.pipe()
    os.close(reader)
    told = subprocess.run(
        [*COMMAND, "run", "photos"],
        env=ferry.variables(),
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=writer,
        timeout=60,
    )
    os.close(writer)
    assert told.returncode == 0
    assert ferry.run("history", "--json").value["runs"][0]["outcome"] == "done"


def test_a_reader_that_has_enough_is_no_error(ferry: Ferry) -> None:
    ferry.job()
    for command in (["--help"], ["config", "schema"], ["check"]):
        reader, writer = os.pipe()
        os.close(reader)
        told = subprocess.run(
            [*COMMAND, *command], env=ferry.variables(), stdout=writer, stderr=subprocess.PIPE, timeout=60
        )
        os.close(writer)
        assert told.stderr == b""


def test_a_full_disk_is_told(ferry: Ferry) -> None:
    ferry.job()
    with open("/dev/full", "wb") as full:
        told = subprocess.run(
            [*COMMAND, "check"], env=ferry.variables(), stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert told.returncode == 1
    assert b"No space left on device" in told.stderr
    assert b"Traceback" not in told.stderr


def test_a_log_on_a_full_disk_fails_no_run(ferry: Ferry) -> None:
    ferry.job()
    with open("/dev/full", "wb") as full:
        told = subprocess.run(
            [*COMMAND, "-v", "run", "photos"], env=ferry.variables(), stdout=subprocess.PIPE, stderr=full, timeout=60
        )
    assert told.returncode == 0
    assert told.stdout.startswith(b"photos: done: ")
