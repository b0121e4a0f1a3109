"""Stopping in time, whoever resists; and telling a stall from patience."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process import flow as ending
from orchestrator.process import pipeline
from orchestrator.process.executor import PipelineResult, StopReason, StopRequest, Writer
from orchestrator.process.flow import TerminationPolicy
from orchestrator.process.pipeline import PipelineStage
from tests.process.pipelines import python, sh, until, writes
from tests.processes import is_there, lives, state

SOON = TerminationPolicy(
    steps=((0.0, signal.SIGTERM, slice(1)), (0.6, signal.SIGTERM, slice(None)), (1.2, signal.SIGKILL, slice(None))),
    give_up=2.0,
)


def stopped(
    pipeline: Pipeline, ready: list[Path], manners: TerminationPolicy = ending.GENTLE
) -> tuple[PipelineResult, float]:
    """Runs it, asks it to stop once the files exist, and tells how long the stop took."""
    stop, requested = StopRequest(), list[float]()

    def ask() -> None:
        until(lambda: all(path.exists() for path in ready))
        requested.append(time.monotonic())
        stop.request("signal 15")

    thread = threading.Thread(target=ask)
    thread.start()
    result = Writer().stream(pipeline, stop=stop, manners=manners)
    took = time.monotonic() - requested[0]
    thread.join()
    return result, took


def test_the_sender_is_stopped_and_the_receiver_ends_by_itself(tmp_path: Path) -> None:
    ready, kept = tmp_path / "ready", tmp_path / "kept"
    sender = sh('echo part; echo > "$1"; exec sleep 300', str(ready))
    receiver = sh('trap "echo TERMED" TERM; cat; echo "kept the token"')
    result, took = stopped(writes(sender, ("cat",), receiver, keeps=kept), [ready])
    assert (result.stopped, result.well, result.culprit) == (StopReason.STOPPED, False, None)
    assert kept.read_text() == "part\nkept the token\n"
    assert took < 5  # far below the grace: nobody waits for what has ended


def test_a_real_rsync_keeps_what_it_has(tmp_path: Path) -> None:
    source, target = tmp_path / "big", tmp_path / "target"
    source.write_bytes(os.urandom(16 << 20))
    rsync = ("rsync", "--bwlimit=8M", "--partial-dir=.half", str(source), f"{target}/")
    stop = StopRequest()

    def watch() -> None:
        if any(path.stat().st_size > 1 << 20 for path in target.glob(".big.*")):
            stop.request("signal 15")

    result = Writer().stream(writes(rsync), stop=stop, on_tick=watch, stall_after=Seconds(30))
    assert (result.stopped, result.exits) == (StopReason.STOPPED, (20,))
    half = (target / ".half" / "big").read_bytes()
    assert len(half) > 1 << 20
    # Its last buffer may be there twice, when the signal came between a write and the note of it: what resumes compares bytes.
    assert source.read_bytes().startswith(half[: -(256 << 10)])


def test_the_stop_wakes_a_sleeping_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.process.flow.TICK", 60.0)
    ready = tmp_path / "ready"
    _, took = stopped(writes(sh('echo > "$1"; exec sleep 300', str(ready))), [ready])
    assert took < 5


def test_all_of_the_senders_children_are_stopped(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stopped(writes(sh('sleep 300 & echo $! > "$1.new"; mv "$1.new" "$1"; wait', str(ready))), [ready])
    assert not lives(int(ready.read_text()))


def test_children_that_still_put_things_in_order_are_waited_for(tmp_path: Path) -> None:
    ready, done = tmp_path / "ready", tmp_path / "done"
    child = '(trap "sleep .5; echo > \\"$2\\"; exit" TERM; echo > "$1"; while :; do sleep .1; done) >/dev/null 2>&1 &'
    leader = f'{child} trap "exit 20" TERM; while :; do sleep .1; done'
    stopped(writes(sh(leader, str(ready), str(done))), [ready])
    assert done.exists()


def test_who_ignores_the_signal_is_killed(tmp_path: Path) -> None:
    ready = [tmp_path / "one", tmp_path / "two"]
    stubborn = 'trap "" TERM HUP INT; echo $$ > "$1.new"; mv "$1.new" "$1"; while :; do sleep .05; done'
    result, took = stopped(writes(*(sh(stubborn, str(path)) for path in ready)), ready, SOON)
    assert result.stopped is StopReason.STOPPED
    assert 1.2 <= took < 6
    assert not any(lives(int(path.read_text())) for path in ready)


def test_who_left_the_group_is_killed_too(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    leaver = (
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"if os.fork() == 0:\n os.setpgid(0, 0)\n f = open({str(ready) + '.new'!r}, 'w')\n"
        f" f.write(str(os.getpid()))\n f.close()\n os.rename(f.name, {str(ready)!r})\n"
        "time.sleep(300)"
    )
    stopped(writes(python(leaver)), [ready], SOON)
    assert not lives(int(ready.read_text()))


def test_the_rest_is_asked_when_the_grace_is_over(tmp_path: Path) -> None:
    ready, how = tmp_path / "ready", tmp_path / "how"
    deaf = 'trap "echo asked > \\"$2\\"; exit" TERM; echo > "$1"; while :; do sleep .05; done'
    result, took = stopped(writes(("sleep", "300"), sh(deaf, str(ready), str(how))), [ready], SOON)
    assert how.read_text() == "asked\n"
    assert 0.6 <= took < 6
    assert result.stopped is StopReason.STOPPED


@pytest.mark.slow
def test_a_whole_stop_takes_less_than_ten_seconds(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    stubborn = sh('trap "" TERM; echo > "$1"; while :; do sleep .2; done', str(ready))
    result, took = stopped(writes(stubborn, ("cat",)), [ready])
    assert result.stopped is StopReason.STOPPED
    assert 8 < took < 10


def test_the_manners_keep_the_promise() -> None:
    assert ending.GENTLE.steps[1][0] == 8
    assert ending.GENTLE.give_up < 10
    assert ending.PATIENT.give_up - ending.PATIENT.steps[-1][0] <= 5


def test_a_stopped_process_hears_the_request(tmp_path: Path) -> None:
    ready, done = tmp_path / "ready", tmp_path / "done"
    body = 'trap "echo > \\"$2\\"; exit" TERM; echo > "$1"; kill -STOP $$; while :; do sleep .05; done'
    stopped(writes(sh(body, str(ready), str(done))), [ready])
    assert done.exists()


def test_the_end_of_the_time_window_stops_it() -> None:
    stop = StopRequest(deadline=Seconds(0.2))
    result = Writer().stream(writes(("sleep", "300")), stop=stop)
    assert (result.stopped, stop.reason) == (StopReason.STOPPED, "the time window has ended")
    assert result.took_s < 8


def test_what_ends_by_itself_is_not_called_stopped() -> None:
    stop = StopRequest()
    result = Writer().stream(writes(("true",)), stop=stop)
    stop.request("late")
    assert (result.stopped, result.exits) == (None, (0,))


def test_a_child_that_stands_still_is_a_stall(tmp_path: Path) -> None:
    ready = tmp_path / "pid"
    body = sh('echo $$ > "$1.new"; mv "$1.new" "$1"; while echo x; do :; done', str(ready))
    results: list[PipelineResult] = []

    def run() -> None:
        results.append(Writer().stream(writes(body, ("cat",)), stall_after=Seconds(1), on_output=lambda _: None))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert until(ready.exists)
        pid = int(ready.read_text())
        # It moves all the time: far longer than the limit, and nobody calls it a stall.
        thread.join(2.5)
        assert thread.is_alive()
    finally:
        os.kill(pid, signal.SIGSTOP)
        assert until(lambda: not lives(pid) or state(pid) == "T")
        thread.join(30)
    assert [result.stopped for result in results] == [StopReason.STALLED]
    assert not lives(pid)


def test_a_receiver_that_stands_still_is_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.process.flow.PATIENT", SOON)
    result = Writer().stream(writes(("yes",), sh("kill -STOP $$")), stall_after=Seconds(0.5), on_bytes=lambda _: None)
    assert result.stopped is StopReason.STALLED
    assert result.moved


def test_bytes_moved_inside_the_processes_are_no_silence() -> None:
    busy = python(
        "import os, time\nfor _ in range(40): os.write(os.open('/dev/null', 1), b'x' * 9999); time.sleep(.05)"
    )
    assert Writer().stream(writes(busy), stall_after=Seconds(0.7)).stopped is None


def test_bytes_moved_by_a_child_of_a_stage_are_no_silence() -> None:
    busy = python(
        "import os, time\nfor _ in range(40): os.write(os.open('/dev/null', 1), b'x' * 9999); time.sleep(.05)"
    )
    assert Writer().stream(writes(sh('"$@"; :', *busy)), stall_after=Seconds(0.7)).stopped is None


def test_keepalives_do_not_hide_a_stall() -> None:
    beating = python("import os, time\nf = os.open('/dev/null', 1)\nwhile True: os.write(f, b'x' * 4); time.sleep(.1)")
    result = Writer().stream(writes(beating), stall_after=Seconds(1))
    assert result.stopped is StopReason.STALLED
    assert result.took_s < 30


def test_what_cannot_be_killed_is_left_behind_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs on a dead disk hears no signal: so none is sent here."""
    monkeypatch.setattr("orchestrator.process.flow.PATIENT", SOON)
    monkeypatch.setattr(PipelineStage, "send", lambda *_: None)
    result = Writer().stream(writes(("sleep", "300"), ("cat",)), stall_after=Seconds(0.2))
    assert (result.stopped, result.exits) == (StopReason.STALLED, (None, None))
    assert result.took_s < 20
    pids = [int(words.partition("process ")[2].split()[0]) for words in result.last_output]
    assert "sleep: does not end even when killed: process " in result.last_output[0]
    assert all(map(lives, pids))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert until(lambda: not any(map(lives, pids)))
    # When it ends after all, the next start reaps it.
    Writer().stream(writes(("true",)))
    assert not any(is_there(pid) for pid in pids)
    assert pipeline._LEFT_BEHIND == []
