"""Messages of what answers a request: the perl that asked shuts itself in as the gate would, and becomes just that, or the program."""

import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from orchestrator.domain.plan import Command, Effect
from orchestrator.process.handover import HAND_OVER, PERL
from orchestrator.process.recorded_answers import _packed, _unpacked, answer_message
from tests.gate.one_gate import OneGate

_TOLD = """id -u; pwd; umask; env | grep -v ^_= | sort; grep NoNewPrivs /proc/self/status; cat {secret}; echo x > {made}
cat /etc/passwd > /dev/null && echo read; command -v sh; printf '%s\\n' "$@"; exit 7"""
_BECOME = """import sys
from orchestrator.cli.terminal.inherited import make_safe
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.confine import become_for_datasets
make_safe()
become_for_datasets(Command(argv=tuple(sys.argv[1:]), effect=Effect.READS))"""


class MessageGate(OneGate):
    """A gate whose program says only that it was started, and in whose place a test says what a request becomes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.program = folder / "started"
        self.program.write_text("#!/bin/sh\necho started\n")
        self.program.chmod(0o755)
        self.by_perl = (PERL, HAND_OVER, str(self.program), *self.words)

    @contextmanager
    def saying(self, *messages: bytes) -> Iterator[list[bytes]]:
        """Answer one request with these messages, one after each that comes; yield what came."""
        came: list[bytes] = []
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            before = os.open(self.state, os.O_PATH)
            listener.bind(f"/proc/self/fd/{before}/{self.door.name}")
            os.close(before)
            listener.listen()

            def answer() -> None:
                with listener.accept()[0] as asker:
                    for each in messages:
                        said, descriptors, *_ = socket.recv_fds(asker, 1 << 18, 3)
                        came.append(said)
                        for descriptor in descriptors:
                            os.close(descriptor)
                        asker.send(each)

            thread = Thread(target=answer)
            thread.start()
            try:
                yield came
            finally:
                thread.join()
                self.door.unlink()

    def message(self, *words: str) -> bytes:
        """Return the message of an answer."""
        return b"become" + answer_message(Command(argv=words, effect=Effect.READS), most=100, shown="cat")


@pytest.fixture
def gate(tmp_path: Path) -> MessageGate:
    return MessageGate(tmp_path)


def test_an_answer_is_shut_in_as_by_the_gate_itself(gate: MessageGate) -> None:
    secret, made = gate.state / "secret", gate.state / "made"
    secret.write_text("secret")
    words = ("sh", "-c", _TOLD.format(secret=secret, made=made), "x.sh", "a b", "*", "")
    with gate.saying(gate.message(*words)) as came:
        told = gate.ask("line", argv=gate.by_perl)
    assert came[0].endswith(b"\x0010.0.0.9\0line\0becomes")
    assert (told[0], b"secret\n" in told[1], made.exists()) == (7, False, False), told
    variables = gate.variables("line")
    by_python = subprocess.run(
        [sys.executable, "-c", _BECOME, *words],
        env=variables, stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    assert told == (by_python.returncode, by_python.stdout, by_python.stderr)


def test_an_answer_holds_open_no_more_than_its_place_and_the_connection_by_which_its_end_is_heard(
    gate: MessageGate,
) -> None:
    """Not the state directory: where Landlock is not there, a program could open what lies in it."""
    with gate.saying(gate.message("sh", "-c", "for n in 3 4 5 6 7 8 9; do readlink /proc/$$/fd/$n; done")):
        told = gate.ask("line", argv=gate.by_perl)[1].decode().split()
    places = f"{gate.state}/gate-laptop.places"
    assert sorted(each.partition(":")[0] for each in told) == [places, "socket"], told


@pytest.mark.parametrize(("script", "ends"), [("end-receive.sh", True), ("survey.sh", False)])
def test_only_the_answer_that_ends_a_receive_reaches_a_process_that_it_did_not_start(
    gate: MessageGate, script: str, ends: bool
) -> None:
    """An earlier request became such a process. The kernel keeps signals in since Linux 6.12."""
    ends = ends or int(ctypes.CDLL(None).syscall(444, 0, 0, 1)) < 6  # a kernel that keeps no signals in
    for by_perl in (False, True):
        with subprocess.Popen(["sleep", "9"]) as receiver:
            words = ("sh", "-c", 'kill "$1" || kill -0 $$', script, str(receiver.pid))
            if by_perl:
                with gate.saying(gate.message(*words)):
                    assert gate.ask("line", argv=gate.by_perl)[0] == 0
            else:
                variables = gate.variables("line")
                assert (
                    subprocess.run([sys.executable, "-c", _BECOME, *words], env=variables, check=False).returncode == 0
                )
            with suppress(subprocess.TimeoutExpired):
                receiver.wait(5 if ends else 0.1)
            assert (receiver.returncode is not None) == ends, by_perl
            receiver.kill()


def _exchanged(number: int, value: bytes) -> Callable[[MessageGate, bytes], bytes]:
    def change(_: MessageGate, told: bytes) -> bytes:
        fields = list(_unpacked(told[6:]))
        fields[number] = value
        return b"become" + _packed(fields)

    return change


@pytest.mark.parametrize(
    "change",
    [
        _exchanged(0, b"0"), _exchanged(1, b"99"), lambda _, __: b"become", lambda _, told: told[:-3],
        lambda _, __: b"become" + b"\xff" * 40, lambda _, __: b"gathered", lambda _, __: b"nothing",
    ],
    ids=["no place", "another kernel", "nothing", "cut", "no message", "another word", "no word"],
)  # fmt: skip
def test_what_is_not_as_it_was_told_is_for_the_program(
    gate: MessageGate, change: Callable[[MessageGate, bytes], bytes]
) -> None:
    told = gate.message("sh", "-c", "echo answered")
    with gate.saying(told):
        assert gate.ask("line", argv=gate.by_perl)[1] == b"answered\n"
    with gate.saying(change(gate, told)):
        assert gate.ask("line", argv=gate.by_perl)[1] == b"started\n"


@pytest.mark.parametrize("size", [0, 5, (256 << 10) - 1])
def test_what_was_gathered_is_the_input_of_the_answer(gate: MessageGate, size: int) -> None:
    with gate.saying(b"gather", gate.message("wc", "-c")) as came:
        assert gate.ask("line", argv=gate.by_perl, stdin=b"x" * size)[:2] == (0, b"%d\n" % size)
    assert came[1:] == [b"whole"]


def test_no_more_is_gathered_than_may_be(gate: MessageGate) -> None:
    with gate.saying(b"gather", b"taken") as came:
        assert gate.ask("line", argv=gate.by_perl, stdin=b"x" * (3 << 20))[0] == 255
    assert came[1:] == [b"part"]


def test_what_was_gathered_and_nobody_takes_is_lost(gate: MessageGate) -> None:
    with gate.saying(b"gather"):
        assert gate.ask("line", argv=gate.by_perl, stdin=b"x")[:2] == (255, b"")
