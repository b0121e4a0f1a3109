"""A process that is watched from apart ends with whoever watches it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from tests.processes import members
from tests.whole.house import wait_until

_WATCHED = """
import os, sys
from orchestrator.process.confine import run_apart
def action():
    print(os.getpid(), flush=True)
    os.execvp("sh", ("sh", "-c", "sleep 600 & wait"))
sys.exit(run_apart(action, may_go_on=lambda: 60.0))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_stop_of_the_watcher_ends_all_that_it_watches(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", _WATCHED], stdout=subprocess.PIPE, text=True) as watcher:
        assert watcher.stdout
        session = int(watcher.stdout.readline())
        wait_until(lambda: len(members(session)) == 2, 20)
        watcher.send_signal(number)
        try:
            assert watcher.wait(20) == 128 + signal.SIGTERM
            wait_until(lambda: not members(session), 20)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)
