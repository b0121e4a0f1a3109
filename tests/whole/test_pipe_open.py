"""mbuffer's own connection beside a real sshd: the engine's own commands, files in place of snapshots."""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import StreamBroken
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import MbufferConnection
from orchestrator.process.executor import StopReason, StopRequest, Writer
from tests.engines.zfs.sides import COPY, side
from tests.processes import argv_of, family
from tests.turns import turns
from tests.whole.house import wait_until
from tests.whole.open_pipe import MIB, Ends, listening, open_ends
from tests.whole.sshd import free_port

pytestmark = pytest.mark.slow
RECEIVER_SECRET, SENDER_SECRET = "0123456789abcdef" * 2, "fedcba9876543210" * 2


def started(command: str) -> list[int]:
    """The processes that this test started whose command line begins so: others may run beside it."""
    return [pid for pid, _ in family(os.getpid()) if re.match(command, " ".join(argv_of(pid)))]


@pytest.fixture
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    with open_ends(tmp_path, monkeypatch) as both:
        yield both


@pytest.mark.parametrize("pulls", [False, True])
def test_all_arrives_and_is_counted_once(ends: Ends, *, pulls: bool) -> None:
    ends.fill(9 * MIB + 17)
    pipeline = ends.pipeline(pulls=pulls)
    seen: list[int] = []
    errors: list[bytes] = []
    result = Writer(ssh_options=ends.options).stream(pipeline, on_bytes=seen.append, on_errors=errors.append)
    assert result.well, result
    assert ends.equal
    assert result.moved == seen[-1] == 9 * MIB + 17
    assert b"size\t" in b"".join(errors)


def has_ipv6() -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as requested:
        requested.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_it_goes_by_ipv6(ends: Ends) -> None:
    ends.fill(3 * MIB)
    assert ends.stream(ends.pipeline(pulls=False, address="::1")).well
    assert ends.equal


def test_an_address_that_is_not_the_receivers_is_told(ends: Ends) -> None:
    ends.fill(3 * MIB)
    pipeline = ends.pipeline(pulls=False, address="203.0.113.9")
    error = ends.explained(pipeline, ends.stream(pipeline))
    assert "does not have the address" in error.why


@pytest.mark.parametrize("pulls", [False, True])
def test_the_rate_holds_once(ends: Ends, *, pulls: bool) -> None:
    ends.fill(3 * MIB)
    pipeline = ends.pipeline(pulls=pulls, rate_limit=Bytes(MIB))
    assert str(pipeline).count(f" {MIB}") == 1
    began = time.monotonic()
    assert ends.stream(pipeline).well
    assert time.monotonic() - began > 1.5
    assert ends.equal


@pytest.mark.parametrize(("pulls", "killed"), turns((False, True), ("sender", "connecting", "listening", "receiver")))
@pytest.mark.sample(3)
def test_a_kill_on_either_side_ends_both(ends: Ends, killed: str, *, pulls: bool) -> None:
    ends.fill(40 * MIB)
    pipeline = ends.pipeline(pulls=pulls, rate_limit=Bytes(4 * MIB))
    done: list[str] = []

    def tick() -> None:
        if not done and ends.received.exists() and ends.received.stat().st_size > MIB:
            pattern = {
                "sender": f"cat {ends.sent}", "connecting": "mbuffer .*-m 4096k .*-W ", "listening": "mbuffer .*-m 2M -W ",
                "receiver": f"dd bs=64k of={ends.received}",
            }[killed]  # fmt: skip
            # The scripts of the shells hold all these words too: they begin with sh.
            found = started(f"(/bin/)?{pattern}")
            assert found
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            done.append(killed)

    began = time.monotonic()
    result = ends.stream(pipeline, on_tick=tick)
    assert done
    assert result.stopped is None
    error = ends.explained(pipeline, result)
    assert isinstance(error, StreamBroken), (error, result)
    assert time.monotonic() - began < 15
    whole, came = ends.sent.read_bytes(), ends.received.read_bytes()
    assert MIB < len(came) < len(whole)
    assert whole.startswith(came)


@pytest.mark.parametrize("pulls", [False, True])
def test_a_stop_keeps_what_came(ends: Ends, *, pulls: bool) -> None:
    ends.fill(40 * MIB)
    pipeline, stop = ends.pipeline(pulls=pulls, rate_limit=Bytes(8 * MIB)), StopRequest()

    def tick() -> None:
        if ends.received.exists() and ends.received.stat().st_size > MIB:
            stop.request("enough")

    began = time.monotonic()
    result = ends.stream(pipeline, on_tick=tick, stop=stop)
    assert result.stopped is StopReason.STOPPED
    # By itself: nobody had to be killed.
    assert time.monotonic() - began < 7
    assert -signal.SIGKILL not in result.exits
    assert ends.sent.read_bytes().startswith(ends.received.read_bytes())


@pytest.mark.parametrize(("transport", "pulls"), [("ssh", False), ("mbuffer", False), ("mbuffer", True)])
@pytest.mark.sample(1)
def test_a_receiver_that_freezes_is_a_stall(ends: Ends, transport: str, *, pulls: bool) -> None:
    ends.fill(60 * MIB)
    pipeline = ends.pipeline(pulls=pulls, transport=transport, rate_limit=Bytes(8 * MIB))
    frozen: list[int] = []

    def tick() -> None:
        if not frozen:
            frozen.extend(started(f"dd bs=64k of={ends.received}"))
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)

    try:
        result = ends.stream(pipeline, on_tick=tick, stall_after=Seconds(6))
    finally:
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert frozen, result
    assert result.stopped is StopReason.STALLED


# The listening end by itself, with secrets that the test knows.


class Listening:
    """The listening end; what is fed to it comes out of it. `sender_port`: of the only one that it talks to."""

    def __init__(self, *, patience: float = 60) -> None:
        self.port, self.sender_port = free_port(), free_port()
        line = MbufferConnection(sender="127.0.0.1", receiver="127.0.0.1", port=self.port)
        command = commands.listen_command(("cat",), side(COPY), line, PipeOptions())
        argv = [str(int(patience)) if word == "600" else word for word in command.argv]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def begin(self) -> None:
        self.notify(f"{RECEIVER_SECRET} {SENDER_SECRET} {self.sender_port}")

    def notify(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def connect(self, address: str = "127.0.0.1", port: int | None = None) -> socket.socket:
        """As soon as it listens; from the sender's port, if no other is given."""
        made: list[socket.socket] = []
        own = (address, self.sender_port if port is None else port)

        def reached() -> bool:
            with contextlib.suppress(ConnectionRefusedError):
                made.append(socket.create_connection(("127.0.0.1", self.port), 5, own))
            return bool(made)

        wait_until(reached)
        return made[0]

    def end(self) -> tuple[int, bytes, str]:
        """By itself: the way on which the secrets came stays open."""
        code = self.process.wait(20)
        out, said = self.process.communicate()
        return code, out, said.decode()


@pytest.fixture
def listener() -> Iterator[Listening]:
    one = Listening()
    yield one
    if one.process.poll() is None:
        one.process.kill()
        one.process.communicate()
    wait_until(lambda: not listening([str(one.port)]))


def test_each_end_proves_itself_and_then_the_stream_comes(listener: Listening) -> None:
    listener.begin()
    with listener.connect() as line:
        assert line.recv(100) == RECEIVER_SECRET.encode()
        line.sendall(SENDER_SECRET.encode() + b"the stream")
    listener.notify("sent")
    assert listener.end()[:2] == (0, b"the stream")


@pytest.mark.parametrize("said", [b"a stream of my own, much longer than a key", SENDER_SECRET[:-1].encode(), b""])
def test_a_sender_without_the_key_feeds_nothing(listener: Listening, said: bytes) -> None:
    listener.begin()
    with listener.connect() as line:
        line.sendall(said)
    code, out, words = listener.end()
    assert (code, out) == (1, b"")
    assert "the sender left before it proved itself" in words


@pytest.mark.parametrize(("address", "port"), [("127.0.0.2", None), ("127.0.0.1", 0)])
def test_another_address_or_port_is_turned_away_and_the_sender_still_comes(
    listener: Listening, address: str, port: int | None
) -> None:
    listener.begin()
    with listener.connect(address, port) as line:
        assert line.recv(1) == b""
    with listener.connect() as line:
        line.sendall(SENDER_SECRET.encode() + b"the stream")
    listener.notify("sent")
    code, out, words = listener.end()
    assert (code, out) == (0, b"the stream")
    assert "strangers that were turned away: 1" in words


@pytest.mark.parametrize(
    ("address", "port", "said"),
    [("127.0.0.2", None, "rejected connection from 127.0.0.2"), ("127.0.0.1", 0, "a stranger")],
)
def test_who_was_turned_away_is_told_when_no_sender_comes(address: str, port: int | None, said: str) -> None:
    one = Listening(patience=2)
    one.begin()
    with one.connect(address, port):
        code, out, words = one.end()
    assert (code, out) == (1, b"")
    assert said in words
    assert "no sender has connected" in words


def test_a_sender_that_never_comes_leaves_no_open_port(listener: Listening) -> None:
    listener.begin()
    wait_until(lambda: bool(listening([str(listener.port)])))
    assert listener.process.stdin is not None
    listener.process.stdin.close()
    listener.process.stdin = None
    assert "no sender" in listener.process.communicate(timeout=20)[1].decode()
    assert listener.end()[0] == 1


def test_who_hears_nothing_at_all_ends_by_himself() -> None:
    one = Listening(patience=2)
    one.begin()
    assert one.end()[0] == 1
    assert not listening([str(one.port)])
    two = Listening(patience=2)
    two.begin()
    with two.connect():
        assert two.end()[0] == 1


def test_without_secrets_nothing_begins(listener: Listening) -> None:
    listener.notify("")
    assert listener.end()[0] == 1


def test_mbuffer_is_there() -> None:
    assert shutil.which("mbuffer")
