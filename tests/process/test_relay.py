"""A relay feeds a program from our input: all of it, no more than it may have, and as long as the program lives."""

import os
import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator.process.relay import _SLICE, SilentInput, _Buffer
from tests.whole.house import wait_until

_PROGRAM = """
import sys
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.relay import InputBegin, TooMuchInput, feed
script, most, long = sys.argv[1:]
command = Command(argv=("sh", "-c", script), effect=Effect.WRITES)
class Watch:
    def follow(self, data):
        if b"!" in data:
            raise ValueError
class Limit:
    def __init__(self, left):
        self.left = left
    def take(self, most):
        count = min(most, self.left)
        self.left -= count
        return count
    def give_back(self, count):
        self.left += count
try:
    head = InputBegin(b"", None).head(lambda data: int(long) - len(data))
    sys.exit(feed(command, head, limit=Limit(int(most) - len(head)) if most.isdigit() else None, watch=Watch() if most == "watched" else None))
except ValueError:
    sys.exit(97)
except TooMuchInput:
    sys.exit(99)
except EOFError:
    sys.exit(98)
"""


def relayed(script: str, given: bytes, *, most: str = "", head: int = 10) -> "subprocess.CompletedProcess[bytes]":
    """Relay what is given to a script."""
    words = [sys.executable, "-c", _PROGRAM, script, most, str(head)]
    return subprocess.run(words, input=given, capture_output=True, timeout=60, check=False)


@pytest.mark.parametrize("size", [10, 11, 100_000, 5_000_000])
def test_all_of_it_passes(size: int) -> None:
    given = bytes(range(250)) * (size // 250) + b"x" * (size % 250)
    ended = relayed("cat; exit 7", given)
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, given, b"")


def test_what_is_watched_is_seen_before_it_passes(tmp_path: Path) -> None:
    given, kept = bytes(range(34, 234)) * 15_000, tmp_path / "kept"
    assert relayed(f"cat > {kept}", given, most="watched").returncode == 0
    assert kept.read_bytes() == given
    assert relayed(f"cat > {kept}; touch {kept}.ended", given + b"!" * 50_000 + given, most="watched").returncode == 97
    assert given.startswith(kept.read_bytes())
    assert (tmp_path / "kept.ended").exists(), "the program was not waited for"


@pytest.mark.parametrize(("most", "code"), [("3000000", 0), ("2999999", 99), ("10", 99)])
def test_no_more_than_it_may_have(most: str, code: int, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    ended = relayed(f"cat > {kept}", b"y" * 3_000_000, most=most)
    assert (ended.returncode, kept.stat().st_size) == (code, int(most)), ended


def test_a_program_that_ends_early_ends_the_relay_though_the_input_goes_on() -> None:
    words = [sys.executable, "-c", _PROGRAM, "head -c 5; echo why >&2; exit 3", "", "10"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as relay:
        assert relay.stdin
        assert relay.stdout
        assert relay.stderr
        relay.stdin.write(b"0123456789")
        relay.stdin.flush()
        assert relay.wait(30) == 3  # its input is still open
        assert (relay.stdout.read(), relay.stderr.read()) == (b"01234", b"why\n")


def test_a_program_that_is_killed_is_told_as_a_shell_tells_it() -> None:
    assert relayed("kill -9 $$", b"0123456789").returncode == 137


def test_an_input_that_ends_in_its_head_begins_nothing() -> None:
    ended = relayed("echo begun", b"012")
    assert (ended.returncode, ended.stdout) == (98, b"")


_WHOLE = """
import sys
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.relay import InputBegin, SilentInput, become_fed, feed
command = Command(argv=("sh", "-c", sys.argv[1]), effect=Effect.WRITES)
class Watch:
    def follow(self, data):
        if b"!" in data:
            raise ValueError
try:
    begin = InputBegin(sys.argv[4].encode(), float(sys.argv[3]))
    data, whole = begin.rest(begin.head(lambda data: 10 - len(data)), int(sys.argv[2]), Watch())
    if whole:
        become_fed(command, data)
    sys.exit(feed(command, data, limit=None, watch=Watch(), memory=int(sys.argv[5]), patience=float(sys.argv[3])))
except SilentInput:
    sys.exit(96)
except ValueError:
    sys.exit(97)
"""


def begun(
    script: str, most: int, *, patience: float = 60, came: str = "", memory: int = 100_000
) -> "subprocess.Popen[bytes]":
    """Begin a script that is fed with what came before and is there by then, at most so many bytes, and then with the rest."""
    words = [sys.executable, "-c", _WHOLE, script, str(most), str(patience), came, str(memory)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("more", [-1, 0, 1, 500_000])
def test_a_program_gets_all_whether_the_whole_of_it_was_there_or_not(more: int) -> None:
    given = b"0123456789" * 20_000 + b"x" * 500_000
    with begun("cat; echo $PPID >&2; exit 7", 200_000) as relay:
        told, parent = relay.communicate(given[: 200_000 + more], timeout=60)
        assert (relay.returncode, told) == (7, given[: 200_000 + more])
        assert (int(parent) == relay.pid) == (more >= 0), "what is there as a whole needs nobody beside its program"


def test_an_input_that_falls_silent_in_its_middle_ends(tmp_path: Path) -> None:
    with begun(f"cat > {tmp_path}/kept; touch {tmp_path}/ended", 10, patience=0.5) as relay:
        assert relay.stdin
        relay.stdin.write(b"0" * 300_000)
        relay.stdin.flush()
        assert relay.wait(60) == 96
    assert (tmp_path / "kept").stat().st_size == 300_000


def test_a_program_that_takes_nothing_is_ended() -> None:
    with begun("exec sleep 600", 10, patience=0.5) as relay:
        relay.communicate(b"0" * 5_000_000, timeout=60)
        assert relay.returncode == 96


@pytest.mark.parametrize("trickles", [False, True])
def test_a_program_that_takes_nothing_is_ended_though_there_is_room_for_what_comes(trickles: bool) -> None:
    """Also once all has come, which waits here as well."""
    with begun("exec sleep 600", 10, patience=2, memory=8 << 20) as relay:
        assert relay.stdin
        with suppress(BrokenPipeError):
            relay.stdin.write(b"0" * (2 << 20))
            while trickles and relay.poll() is None:
                relay.stdin.write(b"0")
                relay.stdin.flush()
                time.sleep(0.1)
            relay.stdin.close()
        assert relay.wait(60) == 96


@pytest.fixture
def waiting() -> Iterator[tuple[_Buffer, int]]:
    """A buffer of a MiB, and where what it writes can be read."""
    source, sink = os.pipe()
    buffer = _Buffer(sink, 1 << 20)
    buffer.start()
    yield buffer, source
    os.close(source)
    buffer.end()


def test_a_program_that_takes_some_has_as_long_for_the_next(
    waiting: tuple[_Buffer, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    buffer, source = waiting
    now = [0.0]
    monkeypatch.setattr("orchestrator.process.relay.time.monotonic", lambda: now[0])
    buffer.put(b"0" * 900_000, 10)
    now[0] = 9
    taken = 0
    while taken < 300_000:
        taken += len(os.read(source, 300_000 - taken))
    wait_until(lambda: buffer._size == 900_000 - 2 * _SLICE, 20)
    now[0] = 18
    assert buffer.put(b"1", 10)
    now[0] = 20
    with pytest.raises(SilentInput):
        buffer.put(b"2", 10)


def test_little_pieces_take_little_more_memory_than_their_bytes(waiting: tuple[_Buffer, int]) -> None:
    buffer, source = waiting
    given = random.Random(1).randbytes(600_000)
    tracemalloc.start()
    try:
        at = 0
        for size in (*[3] * 100_000, *[3, 3, 5000] * 50):
            buffer.put(given[at : at + size], None)
            at += size
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.5 * at
    told = b""
    while len(told) < at:
        told += os.read(source, 1 << 20)
    assert told == given[:at]


@pytest.mark.parametrize("before", [1, 10, 11, 5000])
def test_what_was_read_before_comes_first(before: int) -> None:
    given = b"0123456789" * 30_000
    with begun("cat", 200_000, came=given[:before].decode()) as relay:
        assert relay.communicate(given[before:], timeout=60)[0] == given


def test_what_was_read_before_is_seen_too() -> None:
    with begun("echo begun", 200_000, came="0123456789-!") as relay:
        told, _ = relay.communicate(b"more", timeout=60)
    assert (relay.returncode, told) == (97, b"")


@pytest.mark.parametrize("at", [10, 199_999, 200_001, 400_000])
def test_a_program_begins_only_with_what_was_seen(at: int, tmp_path: Path) -> None:
    began, given = tmp_path / "began", bytearray(b"0123456789" * 50_000)
    given[at] = ord("!")
    with begun(f"touch {began}; cat > /dev/null", 200_000) as relay:
        assert relay.stdin
        _, said = relay.communicate(bytes(given), timeout=60)
    assert (began.exists(), b"ValueError" in said or relay.returncode == 97) == (at >= 200_000, True)


@pytest.mark.parametrize("came", [b"0123456789 and more", b"01234", b""])
def test_an_input_that_falls_silent_begins_nothing(tmp_path: Path, came: bytes) -> None:
    with begun(f"touch {tmp_path}/began", 200_000, patience=0.2) as relay:
        assert relay.stdin
        relay.stdin.write(came)
        relay.stdin.flush()
        assert relay.wait(60) == 96
    assert not list(tmp_path.iterdir())
