"""After a kill -9 of poolferry nothing it started lives on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.pipelines import until
from tests.processes import argv_of, children, lives

ROOT = Path(__file__).resolve().parents[2]
PARENT = """
import sys, threading
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.process.executor import Reader, Writer

def two(effect):
    return Pipeline(stages=tuple(Command(argv=argv, effect=effect) for argv in (("sleep", "301"), ("sleep", "302"))))

lane = threading.Thread(target=lambda: Writer().stream(two(Effect.WRITES)))
lane.start()
Reader().read(two(Effect.READS))
"""


@pytest.mark.skipif(not os.access("/usr/bin/setpriv", os.X_OK), reason="needs setpriv (util-linux)")
def test_kill_9_leaves_no_child() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        assert until(
            lambda: (
                len(children(parent.pid)) == 4 and all(argv_of(pid)[:1] == ["sleep"] for pid in children(parent.pid))
            )
        )
        pids = children(parent.pid)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert until(lambda: not any(map(lives, pids)), 10)
