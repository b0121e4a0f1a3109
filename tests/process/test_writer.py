"""Streams: outputs, counted bytes, files, descriptors, callbacks, several at once."""

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from orchestrator.domain.units import Seconds
from orchestrator.process.executor import PipelineResult, StopReason, StopRequest, Writer
from orchestrator.process.pipeline import CHUNK, Relay
from tests.process.pipelines import open_descriptors, python, sh, until, writes
from tests.processes import lives

GIB = 1 << 30


def test_a_gibibyte_through_three_stages_is_counted_exactly() -> None:
    counts: list[int] = []
    said: list[bytes] = []
    result = Writer().stream(
        writes(("head", "-c", str(GIB), "/dev/zero"), ("cat",), ("wc", "-c")),
        on_bytes=counts.append,
        on_output=said.append,
    )
    assert (result.exits, result.moved) == ((0, 0, 0), GIB)
    assert b"".join(said) == b"%d\n" % GIB
    assert counts == sorted(counts)
    assert counts[-1] == GIB


def test_a_real_mbuffer_in_the_middle() -> None:
    pipeline = writes(("head", "-c", "60000000", "/dev/zero"), ("mbuffer", "-q", "-m", "8M"), ("wc", "-c"))
    result = Writer().stream(pipeline, on_bytes=lambda _: None, stall_after=Seconds(30))
    assert (result.exits, result.moved, result.last_output[2]) == ((0, 0, 0), 60_000_000, "60000000")


def test_odd_pieces_are_counted_exactly_too() -> None:
    pieces = python("import os\nfor n in range(3000): os.write(1, b'x' * (n % 97 + 1))")
    result = Writer().stream(writes(pieces, ("wc", "-c")), on_bytes=lambda _: None)
    assert result.moved == sum(n % 97 + 1 for n in range(3000)) == int(result.last_output[1])


def test_a_counted_sender_feels_that_nobody_reads() -> None:
    result = Writer().stream(writes(("yes",), ("head", "-c1")), on_bytes=lambda _: None)
    assert result.exits == (-13, 0)


def test_a_counted_sender_sees_that_nobody_listens_before_it_says_a_word() -> None:
    watching = python(
        "import select, sys\np = select.poll()\np.register(1, 0)\nsys.stderr.write(str(len(p.poll(20000))))"
    )
    result = Writer().stream(writes(watching, ("true",)), on_bytes=lambda _: None)
    assert result.last_output[0] == "1"


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For each turn of a relay, how long it wanted to rest after it, in seconds."""
    rests: list[float] = []
    turn = Relay.turn

    def counted(relay: Relay, failed: bool) -> None:
        turn(relay, failed)
        rests.append(max(0.0, relay.rests_until - time.monotonic()))

    monkeypatch.setattr(Relay, "turn", counted)
    return rests


def test_a_counted_slow_reader_gets_everything_and_nobody_spins(turns: list[float]) -> None:
    slow = python("import os, time\nn = 0\nwhile d := os.read(0, 65536): n += len(d); time.sleep(.01)\nprint(n)")
    result = Writer().stream(writes(("head", "-c", "5000000", "/dev/zero"), slow), on_bytes=lambda _: None)
    assert (result.exits, result.moved, result.last_output[1]) == ((0, 0), 5_000_000, "5000000")
    assert len(turns) < 1000
    assert not any(turns)  # its end would wait


SLOW = python("import os, time\nfor _ in range(400): os.write(1, bytes(65536)); time.sleep(.006)")


def test_a_long_slow_stream_gathers_before_it_is_moved(turns: list[float]) -> None:
    result = Writer().stream(writes(SLOW, ("wc", "-c")), on_bytes=lambda _: None)
    assert (result.moved, result.last_output[1]) == (400 << 16, str(400 << 16))
    assert len(turns) < 330
    assert 0 < max(turns) <= 0.1


def test_a_resting_stream_feels_at_once_that_nobody_reads(turns: list[float]) -> None:
    some = python("import os, sys\nn = 0\nwhile n < 12 << 20: n += len(os.read(0, 65536))")
    result = Writer().stream(writes(SLOW, some), on_bytes=lambda _: None)
    assert result.exits in ((-13, 0), (1, 0))
    assert max(turns) > 0


def test_uncounted_bytes_are_unknown_not_zero() -> None:
    assert Writer().stream(writes(("true",), ("true",))).moved is None
    assert Writer().stream(writes(("true",)), on_bytes=lambda _: None).moved is None


def test_pipes_between_stages_are_wide() -> None:
    seen: list[bytes] = []
    size = python(f"import fcntl; print(fcntl.fcntl(0, {fcntl.F_GETPIPE_SZ}), fcntl.fcntl(1, {fcntl.F_GETPIPE_SZ}))")
    Writer().stream(writes(("true",), size), on_output=seen.append)
    most = int(Path("/proc/sys/fs/pipe-max-size").read_text())
    assert b"".join(seen).split() == [b"%d" % min(1 << 20, most)] * 2


def test_output_comes_in_big_chunks_and_whole() -> None:
    chunks: list[bytes] = []
    Writer().stream(writes(("head", "-c", "20000000", "/dev/zero")), on_output=chunks.append)
    assert sum(map(len, chunks)) == 20_000_000
    assert max(map(len, chunks)) <= CHUNK
    assert len(chunks) < 2000


def test_files_feed_and_collect(tmp_path: Path) -> None:
    given, kept = tmp_path / "give\udcffn", tmp_path / "kept"
    given.write_bytes(b"body\n")
    kept.write_bytes(b"head\n")
    result = Writer().stream(writes(("cat",), ("cat", "-"), reads=given, keeps=kept))
    assert (result.exits, result.moved, result.last_output) == ((0, 0), 5, ("", ""))
    assert kept.read_bytes() == b"head\nbody\n"


def test_output_can_be_kept_and_heard(tmp_path: Path) -> None:
    kept, heard = tmp_path / "kept", list[bytes]()
    result = Writer().stream(writes(("seq", "200000"), keeps=kept), on_output=heard.append)
    assert kept.read_bytes() == b"".join(heard)
    assert result.moved == len(kept.read_bytes()) > 1_000_000
    assert kept.stat().st_mode & 0o777 == 0o600


def test_what_is_kept_is_heard_while_it_comes(tmp_path: Path) -> None:
    kept, heard = tmp_path / "kept", list[bytes]()
    kept.write_bytes(b"earlier\n")

    def hear(piece: bytes) -> None:
        heard.append(piece)
        (tmp_path / "on").touch()

    waits = f"echo one; until [ -e {tmp_path}/on ]; do sleep 0.02; done; echo two"
    result = Writer().stream(writes(sh(waits), keeps=kept), on_output=hear)
    assert (b"".join(heard), len(heard), result.moved) == (b"one\ntwo\n", 2, 8)
    assert kept.read_bytes() == b"earlier\none\ntwo\n"


def test_what_is_kept_does_not_pass_through_our_hands(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    result = Writer().stream(writes(("readlink", "/proc/self/fd/1"), keeps=kept), on_output=lambda _: None)
    assert result.well
    assert kept.read_text() == f"{kept}\n"


def test_a_file_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    before = open_descriptors()
    result = Writer().stream(writes(("true",), ("touch", str(tmp_path / "x")), keeps=tmp_path / "no" / "file"))
    assert (result.exits, result.culprit) == ((None, 1), 1)
    assert "No such file" in result.last_output[1]
    assert not (tmp_path / "x").exists()
    assert open_descriptors() == before


def test_output_nobody_wants_joins_the_last_words() -> None:
    result = Writer().stream(writes(("true",), sh("echo received 3 MB; echo warned >&2")))
    assert result.last_output == ("", "received 3 MB\nwarned")


def test_the_exact_line_is_logged_before_it_runs(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    lines: list[tuple[str, bool]] = []
    Writer(log=lambda line: lines.append((line, mark.exists()))).stream(writes(("touch", str(mark))))
    assert lines == [(f"touch {mark}", False)]
    assert mark.exists()


def test_children_hold_the_descriptors_given_and_no_others() -> None:
    source, sink = os.pipe()
    stray = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(stray, True)
    try:
        said: list[bytes] = []
        listing = python("import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))")
        Writer(inherit=(sink,)).stream(writes(("true",), listing), on_output=said.append)
    finally:
        for descriptor in (source, sink, stray):
            os.close(descriptor)
    inside = b"".join(said).decode()
    # One more than given: the listing itself.
    assert inside.startswith("[0, 1, 2, ")
    assert len(inside.split(",")) == 5
    assert f" {sink}," in inside.replace("]", ",")


def test_ticks_come_while_nothing_happens() -> None:
    ticks: list[None] = []
    stop = StopRequest()

    def tick() -> None:
        ticks.append(None)
        if len(ticks) == 2:
            stop.request("two ticks")

    assert Writer().stream(writes(("sleep", "300")), stop=stop, on_tick=tick).stopped is StopReason.STOPPED


@pytest.mark.parametrize("where", ["output", "tick", "bytes"])
def test_what_a_callback_raises_ends_the_stream_and_comes_out(where: str, tmp_path: Path) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    pid = tmp_path / "pid"
    before = open_descriptors()
    sender = sh('echo $$ > "$1"; echo x; exec sleep 300', str(pid))
    with pytest.raises(ZeroDivisionError) as failed:  # held, as a real caller would while it tells of it
        Writer().stream(
            writes(sender, ("cat",)),
            on_output=fail if where == "output" else None,
            on_tick=fail if where == "tick" else None,
            on_bytes=fail if where == "bytes" else None,
        )
    assert not lives(int(pid.read_text()))
    assert open_descriptors() == before
    assert failed.type is ZeroDivisionError


def test_a_request_before_the_start_starts_nothing(tmp_path: Path) -> None:
    stop = StopRequest()
    stop.request("signal 15")
    result = Writer().stream(writes(("touch", str(tmp_path / "x"))), stop=stop)
    assert (result.stopped, result.exits) == (StopReason.STOPPED, (None,))
    assert not (tmp_path / "x").exists()


def test_lanes_run_side_by_side_and_hear_one_stop(tmp_path: Path) -> None:
    stop, writer = StopRequest(), Writer()
    results: list[PipelineResult] = []
    marks = [tmp_path / str(number) for number in range(4)]

    def worker(mark: Path) -> None:
        body = sh('echo > "$1"; exec sleep 300', str(mark))
        results.append(writer.stream(writes(body, ("cat",)), stop=stop))

    threads = [threading.Thread(target=worker, args=(mark,)) for mark in marks]
    for thread in threads:
        thread.start()
    assert until(lambda: all(mark.exists() for mark in marks))
    stop.request("enough")
    for thread in threads:
        thread.join(60)
    assert [result.stopped for result in results] == [StopReason.STOPPED] * 4


def test_nothing_is_left_open(tmp_path: Path) -> None:
    before = open_descriptors()
    for _ in range(3):
        Writer().stream(writes(("echo", "x"), ("cat",), ("cat",), keeps=tmp_path / "k"), on_bytes=lambda _: None)
        Writer().stream(writes(("no-such-program",), ("cat",)), on_bytes=lambda _: None)
    assert open_descriptors() == before
