"""Reading: whole outputs, streamed records, and what a Reader refuses."""

import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from orchestrator.domain.errors import OrchestratorError, RetryClass
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process import executor
from orchestrator.process.executor import (
    Forbidden,
    PipelineFailed,
    Reader,
    Records,
    StopReason,
    StopRequest,
    Writer,
    pipeline_failure,
)
from tests.process.pipelines import open_descriptors, python, reads, sh, until, writes
from tests.processes import lives


def test_the_whole_output_and_the_end() -> None:
    result = Reader().read(reads(("printf", "a\\nb"), ("cat",)))
    assert (result.stdout, result.exits, result.last_output) == (b"a\nb", (0, 0), ("", ""))
    assert result.well
    assert result.stopped is None
    assert 0 < result.took_s < 60


def test_what_is_done_meanwhile_begins_once_when_a_program_has_started(tmp_path: Path) -> None:
    told, reader = tmp_path / "told", Reader()
    times: list[object] = []
    reader.meanwhile(lambda: times.append("not this, but what was asked for last"))
    reader.meanwhile(lambda: times.append(told.write_text("go on")))
    assert not reader.read(reads(("no-such-program",))).well
    assert not times
    waiting = sh(f"until [ -e '{told}' ]; do sleep 0.01; done; cat '{told}'")
    for _ in range(2):
        assert reader.read(reads(waiting), timeout=Seconds(30)).stdout == b"go on"
    assert times == [5]


def test_exits_raise_nothing_and_each_stage_has_its_last_words() -> None:
    result = Reader().read(reads(sh("echo first >&2; exit 3"), sh("cat; echo second >&2; exit 0")))
    assert (result.exits, result.last_output, result.culprit) == ((3, 0), ("first", "second"), 0)
    assert not result.well


def test_a_death_by_signal_is_told() -> None:
    assert Reader().read(reads(sh("kill -9 $$"))).exits == (-9,)


def test_a_stage_that_reads_no_further_ends_the_one_before() -> None:
    result = Reader().read(reads(("yes",), ("cat",), ("head", "-n1")))
    assert (result.stdout, result.exits, result.culprit) == (b"y\n", (-13, -13, 0), 2)


@pytest.mark.parametrize("key", [Reader, Writer])
def test_what_changes_things_is_refused(key: type[Reader], tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    only_kept = Pipeline(stages=reads(("echo",)).stages, keeps=str(mark))
    for pipeline in (writes(("touch", str(mark))), only_kept):
        with pytest.raises(Forbidden) as refused:
            key().read(pipeline)
        with pytest.raises(Forbidden):
            key().records(pipeline)
        assert isinstance(refused.value, OrchestratorError)
        assert refused.value.retry is RetryClass.NEVER
    assert not mark.exists()


@pytest.mark.parametrize("leash", [True, False])
def test_a_missing_program_is_told_as_such(leash: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not leash:
        monkeypatch.setattr("orchestrator.process.pipeline._SETPRIV", "/nowhere/setpriv")
    pipeline = reads(("echo", "x"), ("no-such-program", "-x"))
    result = Reader().read(pipeline)
    assert (result.exits, result.culprit) == ((None, 127), 1)
    assert result.last_output == ("", "no-such-program: command not found")
    with pytest.raises(PipelineFailed) as failed:
        list(Reader().records(pipeline))
    assert failed.value.evidence.exits == (None, 127)
    assert "command not found" in str(failed.value)


@pytest.mark.parametrize("leash", [True, False])
def test_a_program_that_cannot_run_is_told(leash: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if not leash:
        monkeypatch.setattr("orchestrator.process.pipeline._SETPRIV", "/nowhere/setpriv")
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    before = open_descriptors()
    result = Reader().read(reads(("yes",), (str(script),)))
    assert result.exits[1] == 127
    assert "No such file" in result.last_output[1]
    assert open_descriptors() == before


def test_an_input_that_cannot_be_opened_is_told() -> None:
    result = Reader().read(Pipeline(stages=reads(("cat",), ("cat",)).stages, reads="/no/such/file"))
    assert (result.exits, result.last_output[0]) == ((1, None), "/no/such/file: No such file or directory")


def test_the_environment_is_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RSYNC_RSH", "evil")
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    monkeypatch.setenv("PATH", "/usr/bin:/odd place")
    command = Command(argv=("env", "-0"), effect=Effect.READS, environment=(("OWN", "a b"), ("TMPDIR", "/t")))
    said = Reader().read(Pipeline(stages=(command,))).stdout
    assert dict(pair.split("=", 1) for pair in os.fsdecode(said).split("\0")[:-1]) == {
        "PATH": "/usr/bin:/odd place:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
        "HOME": os.environ["HOME"],
        "LC_ALL": "C.UTF-8",
        "SSH_AUTH_SOCK": "/agent",
        "TMPDIR": "/t",
        "OWN": "a b",
    }


def test_the_variables_of_a_remote_command_stay_out_of_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "ssh"
    fake.write_text('#!/bin/sh\necho "[$OWN]"; for word; do :; done; exec sh -c "$word"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    far = Command(argv=("printenv", "OWN"), effect=Effect.READS, host=Host(name="box"), environment=(("OWN", "x"),))
    assert Reader().read(Pipeline(stages=(far,))).stdout == b"[]\nx\n"


def test_children_read_nothing_and_find_no_terminal() -> None:
    look = "cat; readlink /proc/self/fd/0; read -r pid name state parent group session rest < /proc/$$/stat; "
    result = Reader().read(reads(sh(look + "echo $((pid == session)); (: < /dev/tty) 2> /dev/null || echo none")))
    assert result.stdout == b"/dev/null\n1\nnone\n"


def test_every_byte_but_null_passes_as_an_argument() -> None:
    word = bytes(range(1, 256))
    assert Reader().read(reads(("printf", "%s", os.fsdecode(word)))).stdout == word


def test_a_flood_on_stderr_blocks_nobody() -> None:
    flood = "head -c 4000000 /dev/zero | tr '\\0' e >&2; "
    result = Reader().read(reads(sh(flood + "echo out"), sh(flood + "cat"), sh("cat; " + flood)), timeout=Seconds(60))
    assert (result.stdout, result.exits) == (b"out\n", (0, 0, 0))
    assert all(len(words) > 8000 for words in result.last_output)


def test_more_than_the_limit_is_never_taken_for_the_whole() -> None:
    result = Reader().read(reads(("yes",)), limit=100_000)
    assert (result.stopped, len(result.stdout), result.well) == (StopReason.FLOODED, 100_000, False)
    exactly = Reader().read(reads(("head", "-c", "100000", "/dev/zero")), limit=100_000)
    assert exactly.well


def test_a_reading_ends_at_its_timeout() -> None:
    result = Reader().read(reads(("sleep", "300")), timeout=Seconds(0.1))
    assert (result.stopped, result.well, result.culprit) == (StopReason.TIMED_OUT, False, None)
    assert result.took_s < 60


def test_a_reading_hears_the_stop() -> None:
    stop = StopRequest()
    reader = Reader(stop=stop)
    threading.Timer(0.1, stop.request, ["signal 15"]).start()
    assert reader.read(reads(("sleep", "300"))).stopped is StopReason.STOPPED
    with pytest.raises(PipelineFailed, match="stopped"):
        list(reader.records(reads(("sleep", "300"))))


def test_the_line_is_logged_without_the_leash() -> None:
    lines: list[str] = []
    Reader(log=lines.append).read(reads(("echo", "a b"), ("cat",)))
    assert lines == ["echo 'a b' | cat"]


def test_records_come_one_by_one() -> None:
    assert list(Reader().records(reads(("printf", "a\\0\\0b c\\0")))) == [b"a", b"", b"b c"]
    assert list(Reader().records(reads(("printf", "a\\nb")), separator=b"\n")) == [b"a", b"b"]
    assert list(Reader().records(reads(("true",)))) == []


def test_records_come_while_the_program_still_runs() -> None:
    with Reader().records(reads(sh("echo $$; exec sleep 300")), separator=b"\n") as records:
        pid = int(next(records))
        assert lives(pid)
    assert until(lambda: not lives(pid))


def test_records_of_a_failing_stage_raise_at_the_end() -> None:
    seen: list[bytes] = []
    with pytest.raises(PipelineFailed) as failed:
        seen.extend(Reader().records(reads(sh("echo a; echo b; echo no >&2; exit 4"), ("cat",)), separator=b"\n"))
    assert seen == [b"a", b"b"]
    evidence = failed.value.evidence
    assert (evidence.exits, evidence.last_output, evidence.host) == ((4, 0), ("no", ""), None)
    assert evidence.lines[1] == "cat"
    assert failed.value.result.exits == (4, 0)


def test_an_empty_answer_of_a_failing_stage_raises() -> None:
    with pytest.raises(PipelineFailed), Reader().records(reads(("false",))) as records:
        assert list(records) == []


def test_records_left_early_end_the_program_and_say_nothing() -> None:
    before = open_descriptors()
    with Reader().records(reads(("yes",), ("cat",)), separator=b"\n") as records:
        for record in records:
            assert record == b"y"
            break
    assert open_descriptors() == before


def test_an_error_of_the_reader_itself_ends_the_program() -> None:
    pids: list[int] = []

    def use(records: Records) -> None:
        with records:
            pids.append(int(next(records)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        use(Reader().records(reads(sh("echo $$; exec sleep 300")), separator=b"\n"))
    assert until(lambda: not lives(pids[0]))


def test_records_need_constant_memory() -> None:
    much = python("import os\nfor _ in range(400): os.write(1, (b'x' * 4095 + b'\\0') * 64)")
    tracemalloc.start()
    try:
        with Reader().records(reads(much)) as records:
            assert sum(len(record) for record in records) == 400 * 64 * 4095
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_record_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "LONGEST_RECORD", 1 << 20)
    with pytest.raises(PipelineFailed, match="too much output"):
        list(Reader().records(reads(("cat", "/dev/zero")), separator=b"\n"))


def test_a_child_that_keeps_the_output_open_is_waited_for_only_while_it_is_ours() -> None:
    away = python(
        "import os, time\nif os.fork() == 0:\n os.setsid()\n print(os.getpid(), flush=True)\n time.sleep(300)\n"
        "else: time.sleep(.5)"
    )
    result = Reader().read(reads(away))
    assert result.well
    assert result.took_s < 60
    assert lives(int(result.stdout))  # like a connection that ssh shares with later runs
    os.kill(int(result.stdout), 9)


def test_a_child_that_outlives_its_stage_is_waited_for() -> None:
    result = Reader().read(reads(sh("(sleep .3; echo late; echo words >&2) & echo early")))
    assert (result.stdout, result.last_output, result.well) == (b"early\nlate\n", ("words",), True)


def test_a_child_that_never_ends_does_not_hold_us(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.process.flow.LINGER", 0.2)
    began = time.monotonic()
    result = Reader().read(reads(sh("trap '' TERM; sleep 300 & echo $!")))
    assert (result.exits, result.stopped, result.well) == ((0,), None, True)
    assert time.monotonic() - began < 60
    assert until(lambda: not lives(int(result.stdout)))


def test_where_nobody_may_know_the_exit_it_is_not_taken_for_well() -> None:
    asks = (
        "import signal\nfrom orchestrator.process.executor import Reader\n"
        "from orchestrator.domain.plan import *\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "r = [Reader().read(single_command('false', effect=Effect.READS)) for _ in range(20)]\n"
        "print({(one.exits, one.well) for one in r})"
    )
    root = Path(__file__).resolve().parents[2]
    command = Command(argv=python(asks), effect=Effect.READS, environment=(("PYTHONPATH", str(root)),))
    assert Reader().read(Pipeline(stages=(command,))).stdout == b"{((None,), False)}\n"


def test_the_evidence_names_the_host() -> None:
    near = Command(argv=("zfs", "send"), effect=Effect.READS)
    far = Command(argv=("zfs", "receive"), effect=Effect.WRITES, host=Host(name="box", user="ann"))
    pipeline = Pipeline(stages=(near, far))
    result = executor.PipelineResult(exits=(-13, 255), last_output=("", "ssh: no route"), stopped=None)
    failed = pipeline_failure(pipeline, result, ("-4",))
    assert failed.evidence.host == "ann@box"
    assert "-4" in failed.evidence.lines[1]
    assert str(failed).endswith("exit 255: ssh: no route")
    assert pipeline_failure(pipeline, executor.PipelineResult(exits=(1, 0))).evidence.host is None
