"""Programs of ours that read what strangers say: both ends of an mbuffer connection, and the hooks in shell.

As in test_fuzz_parsers, with a process for each answer: `make test-long` tries 20,000, all other runs a few.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.domain.job import PipeOptions
from orchestrator.domain.units import Seconds
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import MbufferConnection
from tests.engines.zfs.sides import COPY, SOURCE, side
from tests.hooks.conftest import HOOKS, PATH
from tests.hostile.answers import Target
from tests.hostile.fuzz import MANY, fuzz
from tests.whole.sshd import free_port

FEW = 12
PATIENCE = 50  # seconds; the ends wait 10 for who says nothing and stays
PIPE = PipeOptions(
    stall_after=Seconds(2)
)  # so long the receiving end waits for who said that all was sent, and does not come
STREAM = b"the stream\n"
OFTEN = pytest.mark.parametrize(
    "examples", [FEW, pytest.param(MANY, marks=(pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(7200)))]
)


def line_to(port: int) -> MbufferConnection:
    return MbufferConnection(sender="127.0.0.1", receiver="127.0.0.1", port=port)


@contextlib.contextmanager
def begun(argv: tuple[str, ...]) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the test, at the latest."""
    made = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        yield made
    finally:
        if made.poll() is None:
            os.killpg(made.pid, signal.SIGKILL)
        made.communicate()


def hear(line: socket.socket) -> bytes:
    """All that the other end says, until it leaves."""
    heard = b""
    with contextlib.suppress(ConnectionResetError):
        while said := line.recv(1 << 16):
            heard += said
    return heard


def tell(line: socket.socket, said: bytes) -> None:
    with contextlib.suppress(OSError):  # it has heard enough and left
        line.sendall(said)
        line.shutdown(socket.SHUT_WR)


@pytest.fixture
def door() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(PATIENCE)
        yield made


@OFTEN
def test_the_sending_end_sends_to_its_receiver_alone(door: socket.socket, examples: int) -> None:
    """The sample is its receiver's own answer; whatever differs in the first 32 signs gets not a byte."""

    def answer(said: bytes) -> None:
        argv = commands.connect_command(("echo", "the stream"), side(SOURCE), line_to(door.getsockname()[1]), PIPE, streams=None).argv  # fmt: skip
        with begun(argv) as sender:
            assert sender.stdout is not None
            receivers, senders, _ = sender.stdout.readline().split()
            said = said.replace(b"RECEIVER", receivers).replace(b"SENDER", senders)
            line, _ = door.accept()
            with line:
                line.settimeout(PATIENCE)
                tell(line, said)
                heard = hear(line)
            _, told = sender.communicate(timeout=PATIENCE)
        if said[: len(receivers)] == receivers:
            assert heard.startswith(senders) or (not heard and len(said) > len(receivers)), (heard, told)
        else:
            assert (heard, sender.returncode) == (b"", 1), (heard, told)
            assert told.decode().endswith("; nothing was sent\n"), told
            assert len(told) < 200, told

    fuzz(Target("sending end", answer, (b"RECEIVER", b"SENDERRECEIVER")), examples)


def test_a_stream_whose_shell_was_killed_is_no_whole_one(door: socket.socket) -> None:
    """Nobody said then how what makes the stream has ended."""
    argv = commands.connect_command(("exec", "true"), side(SOURCE), line_to(door.getsockname()[1]), PIPE, streams=None)
    with begun(argv.argv) as sender:
        assert sender.stdout is not None
        secret = sender.stdout.readline().split()[0]
        line, _ = door.accept()
        with line:
            line.sendall(secret)
            hear(line)
        said, told = sender.communicate(timeout=PATIENCE)
    assert (sender.returncode, said.strip(), told) == (1, b"sent", b"")


@OFTEN
def test_the_receiving_end_takes_the_stream_of_its_sender_alone(examples: int) -> None:
    """The answer is said through ssh up to the first bar, then at the port: the program behind gets what it sent, or nothing."""

    def answer(said: bytes) -> None:
        with socket.socket() as line:
            line.bind(("127.0.0.1", free_port()))  # one that the kernel chose would be given back while nobody listens
            line.settimeout(PATIENCE)
            words, _, stream = said.replace(b"PORT", b"%d" % line.getsockname()[1]).partition(b"|")
            port = free_port()
            argv = commands.listen_command(("cat",), side(COPY), line_to(port), PIPE).argv
            with begun(argv) as receiver:
                expected, heard = b"", b""
                assert receiver.stdin is not None
                with contextlib.suppress(BrokenPipeError):
                    receiver.stdin.write(words)
                    receiver.stdin.flush()
                named = re.match(rb"([0-9a-f]{32}) ([0-9a-f]{32}) ([0-9]+)\n", words)
                if named and int(named[3]) < 1 << 16 and reach(line, port, receiver):
                    heard = line.recv(32)
                    tell(line, stream)
                    if heard and stream.startswith(named[2]):
                        expected = stream[32:]
                    assert heard in (b"", named[1])
                got, told = receiver.communicate(timeout=PATIENCE)  # closes its stdin
        assert expected.startswith(got), (got, told)
        assert b"sh:" not in told, told
        assert len(told) < 300, told

    fuzz(Target("receiving end", answer, (b"%032x %032x PORT\nsent\n|%032xthe stream" % (7, 8, 8),)), examples)


def reach(line: socket.socket, port: int, receiver: subprocess.Popen[bytes]) -> bool:
    """Return whether the receiving end listens and can be connected to; False: it has ended."""
    while receiver.poll() is None:
        with contextlib.suppress(ConnectionRefusedError, ConnectionAbortedError):
            line.connect(("127.0.0.1", port))
            return True
    return False


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """call(hook, said, facts): the hook's end in a clean environment, where each program that it asks says `said`."""
    tools, said_file = tmp_path / "tools", tmp_path / "said"
    tools.mkdir()
    for program in ("zpool", "ssh", "upsc", "apcaccess", "df", "sleep", "mount", "umount"):
        (tools / program).write_text(f'#!/bin/sh\nexec cat "{said_file}"\n')
        (tools / program).chmod(0o755)

    def run(name: str, said: bytes, *words: str, **facts: bytes) -> subprocess.CompletedProcess[bytes]:
        said_file.write_bytes(said)
        environment: dict[str, bytes] = {
            f"POOLFERRY_{fact}": value.replace(b"\0", b"") for fact, value in facts.items()
        }
        return subprocess.run(
            [str(HOOKS / name), *words],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, cwd=tmp_path, check=False,
            env={"PATH": f"{tools}:{PATH}".encode(), **environment},
        )  # fmt: skip

    return run


RESILVER = (
    b"  pool: tank\n state: ONLINE\n  scan: resilver in progress since Fri Nov 20 18:41:16 2026\n"
    b"\t18.1M resilvered, 3.00% done, no estimated completion time\n"
)
# What would leave a mark, were any of it read by a shell.
SPELLS = b"$(touch MARK) `touch MARK`; touch MARK; 'touch MARK' \"$(touch MARK)\" a[$(touch MARK)] -oProxyCommand=touch${IFS}MARK\n"


@OFTEN
@pytest.mark.parametrize("hook", ["pool-resilvering", "ups-on-battery", "points-view"])
def test_no_answer_is_too_strange_for_a_hook(
    call: Callable[..., subprocess.CompletedProcess[bytes]], tmp_path: Path, hook: str, examples: int
) -> None:
    """It goes on, waits or fails as its contract says; nothing of what it hears or is given runs."""
    words = {"points-view": (str(tmp_path / "view"),), "ups-on-battery": ("--settle", "0")}.get(hook, ())
    target = str(tmp_path).encode() + b"/"

    def answer(said: bytes) -> None:
        source = said[:4096].replace(b"\0", b"")  # no path is longer
        ended = call(hook, said, *words, SOURCE=source, TARGET=target + source if hook == "points-view" else source)
        assert ended.returncode in (0, 1, 75), ended
        assert not re.search(rb"syntax|not found|bad |unexpected", ended.stderr), ended.stderr[-500:]
        assert not list(tmp_path.glob("**/*MARK*"))
        shutil.rmtree(tmp_path / "view", ignore_errors=True)

    samples = (RESILVER, b"OL CHRG\n", b"OB DISCHRG LB\n", b"ssh://root@box:22/tank/photos", b"/srv/photos", SPELLS)
    fuzz(Target(hook, answer, samples), examples)


@pytest.mark.parametrize(
    "path", ["tank;touch MARK", "$(touch MARK)/a", "`touch MARK`", "a b/c", "-x", "tank\ntouch MARK"]
)
def test_a_path_on_a_host_is_no_command_there(tmp_path: Path, path: str) -> None:
    """The far shell reads what the hook asks; the first part of a path is a pool's name only where a pool may be named so."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ssh").write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    (tools / "zpool").write_text('#!/bin/sh\necho "$*" >>asked\n')
    for program in tools.iterdir():
        program.chmod(0o755)
    ended = subprocess.run(
        [str(HOOKS / "pool-resilvering")],
        capture_output=True, timeout=PATIENCE, cwd=tmp_path, check=False,
        env={"PATH": f"{tools}:{PATH}", "POOLFERRY_SOURCE": f"ssh://box/{path}", "POOLFERRY_TARGET": "ssh://box/tank/a"},
    )  # fmt: skip
    assert ended.returncode == 0, ended
    assert not list(tmp_path.glob("*MARK*"))
    assert (tmp_path / "asked").read_text() == "status tank\n"
