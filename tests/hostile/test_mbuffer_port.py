"""Strangers at the port of an mbuffer connection: who holds it first gets nothing; who connects first stops nothing.

The engine's own commands beside a real sshd, files in place of snapshots; strangers are another user where we are root.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import OrchestratorError, StreamBroken
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.plan import Pipeline
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import MbufferConnection
from orchestrator.process.pipeline import PipelineResult
from tests.engines.zfs.sides import COPY, SOURCE, side
from tests.hostile.conftest import AS_STRANGER
from tests.whole.house import wait_until
from tests.whole.open_pipe import MIB, Ends, listening, open_ends
from tests.whole.sshd import free_port

# Holds the port that it is given, answers each that connects, and prints what it got from each, once that has left.
_HOLDER = """
import os, socket, sys, threading
answer = {"nothing": b"", "garbage": b"x" * 32, "half": b"0123456789abcdef", "flood": b"0" * (1 << 24), "leave": b""}[sys.argv[2]]
door = socket.socket()
door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
door.bind(("127.0.0.1", int(sys.argv[1])))
door.listen()
print("holds", flush=True)
while True:
    line, _ = door.accept()
    if sys.argv[2] == "leave":
        line.close()
        print("got", 0, flush=True)
        continue
    def send():
        try:
            line.sendall(answer)
        except OSError:
            pass
    threading.Thread(target=send, daemon=True).start()
    got = 0
    try:
        while data := line.recv(1 << 16):
            got += len(data)
    except OSError:
        pass
    print("got", got, flush=True)
"""
# Connects as soon as somebody listens, again and again; prints what it has heard in all when its stdin ends.
_INTRUDER = """
import os, socket, sys, threading
port, says, address = int(sys.argv[1]), sys.argv[2], sys.argv[3]
said = {"nothing": b"", "garbage": b"x" * 64, "half": b"0123456789abcdef", "flood": b"0" * (1 << 22)}[says]
heard, came, kept = 0, 0, []
threading.Thread(target=lambda: (sys.stdin.read(), print("heard", heard, "came", came, flush=True), os._exit(0))).start()
print("tries", flush=True)
while True:
    try:
        line = socket.create_connection(("127.0.0.1", port), 1, (address, 0))
    except OSError:
        continue
    came += 1
    try:
        line.sendall(said)
        line.settimeout(0.3)
        heard += len(line.recv(100))
    except OSError:
        pass
    kept = [*kept, line][-50:]
"""


@pytest.fixture
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ends]:
    with open_ends(tmp_path, monkeypatch) as both:
        yield both


def as_stranger(text: str, *words: str) -> subprocess.Popen[str]:
    """A program of another user's, where we may start one."""
    first = AS_STRANGER if os.geteuid() == 0 else ()
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    argv = (*first, python, "-c", text, *words)
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@contextlib.contextmanager
def holder(port: int, answer: str) -> Iterator[subprocess.Popen[str]]:
    """Somebody who holds the port."""
    process = as_stranger(_HOLDER, str(port), answer)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "holds\n"
        yield process
    finally:
        ended(process)


def got(process: subprocess.Popen[str]) -> int:
    """The bytes that the holder of a port was sent by the first who came."""
    assert process.stdout is not None
    return int(process.stdout.readline().split()[1])


def port_of(pipeline: Pipeline) -> int:
    """The port of the pipeline's connection."""
    argv = next(stage.argv for stage in pipeline.stages if "connect.sh" in stage.argv)
    return int(argv[5])


def judge(found: Ends, pipeline: Pipeline, result: PipelineResult) -> OrchestratorError:
    """The error; nothing has arrived."""
    error = found.explained(pipeline, result)
    assert isinstance(error, StreamBroken), (error, result)
    assert "nothing was sent" in error.why
    assert not found.received.exists() or not found.received.stat().st_size
    return error


@pytest.mark.parametrize("pulls", [False, True])
@pytest.mark.parametrize("answer", ["nothing", "garbage", "half", "flood", "leave"])
@pytest.mark.sample(5)
def test_who_holds_the_port_first_gets_not_a_byte(ends: Ends, answer: str, *, pulls: bool) -> None:
    ends.fill(3 * MIB)
    pipeline = ends.pipeline(pulls=pulls)
    began = time.monotonic()
    with holder(port_of(pipeline), answer) as stranger:
        result = ends.stream(pipeline)
        error = judge(ends, pipeline, result)
        assert got(stranger) == 0
    told = "in place of our receiver" if answer in ("garbage", "half", "flood") else "does not prove to be our receiver"
    assert told in "".join(result.last_output), result
    assert "another port" in error.hint
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("pulls", [False, True])
@pytest.mark.parametrize("says", ["nothing", "garbage", "half", "flood"])
def test_who_connects_first_hears_nothing_and_stops_nothing(ends: Ends, says: str, *, pulls: bool) -> None:
    ends.fill(3 * MIB)
    pipeline = ends.pipeline(pulls=pulls)
    came = 0
    for _ in range(5):  # the sender may be quicker, once
        result, visits = with_intruders(ends, pipeline, says)
        assert result.well, result
        assert ends.equal
        assert not any(heard for heard, _ in visits)
        came += sum(often for _, often in visits)
        if came:
            return
    pytest.fail("nobody came before the sender: this shows nothing")


def with_intruders(found: Ends, pipeline: Pipeline, says: str) -> tuple[PipelineResult, list[tuple[int, int]]]:
    """The stream's result; and of one stranger on the sender's machine and one elsewhere, the bytes heard and the visits."""
    with contextlib.ExitStack() as stack:
        strangers = []
        for address in ("127.0.0.1", "127.0.0.2"):
            stranger = as_stranger(_INTRUDER, str(port_of(pipeline)), says, address)
            stack.callback(ended, stranger)
            strangers.append(stranger)
        for stranger in strangers:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == "tries\n"
        result = found.stream(pipeline)
        told = [stranger.communicate(timeout=10)[0].split() for stranger in strangers]
    return result, [(int(heard), int(often)) for _, heard, _, often in told]


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


# One end by itself.


class Connecting:
    """The connecting end, fed by one line; it leads to a port on this machine."""

    def __init__(self, port: int) -> None:
        line = MbufferConnection(sender="127.0.0.1", receiver="127.0.0.1", port=port)
        words = ("sh", "-c", "echo the stream; exec sleep 0.2")
        command = commands.connect_command(words, side(SOURCE), line, PipeOptions(), streams=None)
        self.process = subprocess.Popen(
            command.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def words(self) -> list[str]:
        """Return what it says through ssh: both secrets and its port."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def leave(self) -> None:
        """Stops listening to it: then it ends by itself."""
        with self.process:
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process.wait(10)

    def end(self) -> tuple[int, str]:
        """Its status, and its complaint."""
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said


def test_a_stranger_who_takes_the_port_of_a_receiver_that_died_gets_nothing() -> None:
    """It listened already, for the same sender, and had heard the secrets."""
    port = free_port()
    line = MbufferConnection(sender="127.0.0.1", receiver="127.0.0.1", port=port)
    receiver = subprocess.Popen(
        commands.listen_command(("cat",), side(COPY), line, PipeOptions()).argv,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert receiver.stdin is not None
    # It expects a sender that does not come; ours finds it dead.
    receiver.stdin.write(f"{'0' * 32} {'1' * 32} {free_port()}\n")
    receiver.stdin.flush()
    wait_until(lambda: bool(listening([str(port)])), 10)
    os.killpg(receiver.pid, signal.SIGKILL)
    receiver.communicate()
    with holder(port, "half") as stranger:
        connecting = Connecting(port)
        code, said = connecting.end()
        assert code != 0
        assert "nothing was sent" in said
        assert got(stranger) == 0


def test_the_senders_port_is_its_own_before_anybody_listens() -> None:
    """The receiver hears of that port and answers no other: so nobody can come from there meanwhile."""
    connecting = Connecting(free_port())
    first, second, port = connecting.words()
    assert (len(first), len(second)) == (32, 32)
    assert first != second
    time.sleep(0.7)  # it was refused a few times
    taken = as_stranger(
        "import socket, sys; socket.socket().bind(('127.0.0.1', int(sys.argv[1]))); print('mine')", port
    )
    try:
        assert taken.communicate(timeout=20)[0] == ""
    finally:
        ended(taken)
    connecting.leave()


def test_a_relay_hears_nothing_of_the_receivers_secret(tmp_path: Path) -> None:
    """A stranger with a foot on both machines holds the port, lets the sender come, and only then makes room for the receiver."""
    port, heard = free_port(), []
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen()
        connecting = Connecting(port)
        words = connecting.words()
        senders_line, _ = door.accept()
    line = MbufferConnection(sender="127.0.0.1", receiver="127.0.0.1", port=port)
    with subprocess.Popen(
        commands.listen_command(("cat",), side(COPY), line, PipeOptions()).argv,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as receiver:  # fmt: skip
        assert receiver.stdin is not None
        receiver.stdin.write(" ".join(words) + "\n")
        receiver.stdin.flush()
        relay = _connected(port)
        with relay, senders_line:
            heard.append(relay.recv(100))
            senders_line.sendall(heard[0] or b"0" * 32)
            code, said = connecting.end()
            assert (code, senders_line.recv(100)) == (1, b"")
        receiver.stdin.close()
        receiver.wait(10)
    assert heard == [b""]
    assert "in place of our receiver; nothing was sent" in said


def _connected(port: int) -> socket.socket:
    made: list[socket.socket] = []

    def reached() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            made.append(socket.create_connection(("127.0.0.1", port), 5))
        return bool(made)

    wait_until(reached, 10)
    return made[0]
