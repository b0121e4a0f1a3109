"""Commands as forks end, speak and stop as those that were started anew."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.ferry import COMMAND, Ferry
from tests.fork_server import ForkServer, run_command
from tests.processes import is_there


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("--version",), ("status", "--json"), ("check",), ("run", "no-such"), ("--no-such",)]
)
def test_a_fork_ends_and_speaks_as_a_new_start(ferry: Ferry, arguments: tuple[str, ...]) -> None:
    ferry.job("a", 'late-after = "26h"\n')
    forked = run_command(arguments, environment=ferry.variables(), folder=str(ferry.root), timeout=60)
    anew = subprocess.run([*COMMAND, *arguments], env=ferry.variables(), cwd=ferry.root, capture_output=True)
    assert (forked.returncode, forked.stderr) == (anew.returncode, anew.stderr)
    if "--json" not in arguments:  # which holds the time
        assert forked.stdout == anew.stdout


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_killed(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job()
    hook = tmp_path / "waits"
    hook.write_text(f"#!/bin/sh\necho $PPID > {tmp_path}/asks\nexec sleep 600\n")
    hook.chmod(0o755)
    ferry.job("slow", f'[hooks]\nbefore = ["{hook}"]\n')
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(("run", "slow"), environment=ferry.variables(), folder=str(ferry.root), timeout=8)
    command, until = int((tmp_path / "asks").read_text()), time.monotonic() + 30
    while is_there(command) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_there(command)


def test_what_python_takes_in_at_its_start_starts_it_anew() -> None:
    server = ForkServer()
    try:
        usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        usual["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
        assert server.may_fork({**usual, "HOME": "/elsewhere", "PATH": "/bin"})
        for name in ("TZ", "LC_ALL", "LANG", "PYTHONPATH", "PYTHONUNBUFFERED", "COVERAGE_PROCESS_START"):
            assert not server.may_fork({**usual, name: "another"}), name
    finally:
        server.end()
    assert sys.executable == COMMAND[0]
