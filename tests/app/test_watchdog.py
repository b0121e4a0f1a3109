"""A run that shows no sign of life is ended by the daemon; one that was killed or never began is tried again."""

import gc
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app import worker as module
from orchestrator.app.worker import RunProcess
from orchestrator.domain.due import DueRun
from orchestrator.domain.units import Seconds
from orchestrator.planners.watchdog import silence_limit
from orchestrator.process.meter import process_activity
from tests.daemon.daemon_world import copying, daemon, promise, runs, slow_job, until
from tests.ferry import ROOT, Ferry
from tests.processes import argv_of, living

pytestmark = pytest.mark.slow
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Begun:
    """A run begun as the daemon begins it."""

    def __init__(self, ferry: Ferry) -> None:
        self.said: list[str] = []
        self.ended: list[bool] = []
        where = compose.Directories(config=str(ferry.config), state=str(ferry.state))
        job = compose.read_configuration(where).job("photos")
        due_run = DueRun(job="photos", scheduled_at=NOW, newest=NOW, slots=1, why="as expected", noted=NOW, after_run=0)
        self.run = RunProcess(job, due_run, where, {**os.environ, "PYTHONPATH": str(ROOT)})
        self.run.begin(self.said.append, lambda: self.ended.append(True))

    def processes(self) -> list[int]:
        """All that it consists of."""
        return [each.pid for pid in self.run._watch.first for each in process_activity(pid)]


@pytest.fixture
def begun(ferry: Ferry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begun]:
    """A run in the middle of its copy, whose daemon has 2 s of patience."""
    monkeypatch.setattr(module, "silence_limit", lambda _: Seconds(2))
    slow_job(ferry, schedule="")
    made = Begun(ferry)
    until(lambda: copying(ferry.target()), "the copy begins", lambda: "\n".join(made.said))
    yield made
    made.run.end("the test is over")
    made.run.wait(30)


def test_a_run_that_stands_still_is_ended_and_said_so(ferry: Ferry, begun: Begun) -> None:
    for pid in begun.processes():
        os.kill(pid, signal.SIGSTOP)
    assert begun.run.wait(30)
    assert begun.run.stuck
    assert any("photos: stuck: for " in line for line in begun.said)
    (run,) = runs(ferry)
    assert run["outcome"] == "interrupted"
    assert begun.ended == [True]


def test_a_run_that_goes_on_is_left_alone(begun: Begun) -> None:
    time.sleep(4)  # twice its patience
    assert not begun.run.stuck
    assert begun.run.result is None


def test_what_does_not_hear_is_killed(ferry: Ferry, begun: Begun, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, *_) = begun.processes()
    os.kill(first, signal.SIGKILL)
    assert begun.run.wait(30)
    assert begun.run.outcome().startswith("was killed by signal 9")


def test_a_thousand_runs_leave_no_descriptor(ferry: Ferry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a collection of garbage: a daemon that starts few objects may have none for days."""
    monkeypatch.setattr("sys.executable", "/bin/true")
    ferry.job()
    before = len(os.listdir("/proc/self/fd"))
    gc.disable()
    try:
        for _ in range(1000):
            assert Begun(ferry).run.wait(30)
        after = len(os.listdir("/proc/self/fd"))
    finally:
        gc.enable()
    assert after <= before + 1


def test_a_run_that_was_killed_is_recorded_and_tried_again(ferry: Ferry) -> None:
    slow_job(ferry)
    with daemon(ferry) as clock:
        until(lambda: copying(ferry.target()), "the copy begins", lambda: clock.log)
        (pid,) = (one for one in living() if {"--why", str(ferry.state)} <= set(argv_of(one)))
        os.kill(pid, signal.SIGKILL)
        clock.says(
            "ended without a record: killed, crashed, or the state directory was full; it is recorded as interrupted"
        )
        until(lambda: promise(ferry)["due"]["tries"] == 1, "it is to be tried again", lambda: clock.log)
        assert "tried 1 time: the process ended without a record; again at" in promise(ferry)["due"]["waits"]
        clock.end()


def test_a_run_that_could_not_begin_is_told_and_tried_again(ferry: Ferry, tmp_path: Path) -> None:
    ferry.job(more='every = "1m"\n')
    (tmp_path / "broken" / "orchestrator").mkdir(parents=True)
    (tmp_path / "broken" / "sitecustomize.py").write_text(
        "import os, sys\nif '--why' in sys.orig_argv:\n    sys.stderr.write('no room for anything\\n')\n    os._exit(9)\n"
    )
    with daemon(ferry, PYTHONPATH=f"{tmp_path}/broken:{ROOT}") as clock:
        clock.says("photos: it ended with 9: no room for anything; it is tried again at ")
        assert promise(ferry)["due"]["tries"] == 1
        assert runs(ferry) == []
        clock.end()


def test_patience_is_the_jobs_own(ferry: Ferry) -> None:
    ferry.job()
    where = compose.Directories(config=str(ferry.config), state=str(ferry.state))
    job = compose.read_configuration(where).job("photos")
    longer = replace(job, pipe=replace(job.pipe, stall_after=Seconds(3600)))
    assert silence_limit(longer) == Seconds(7200)
