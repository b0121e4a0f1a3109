"""A question that a key asked before is answered by what is recorded of it, without Python, as long as nothing that admits it has changed."""

import os
import random
import shlex
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.plan import Command, Effect
from orchestrator.gate.request import parse_request
from orchestrator.process.handover import HAND_OVER, PERL
from orchestrator.process.recorded_answers import _MOST, GateQuestion, _packed, _unpacked, mark_file, with_question
from tests.gate.mutations import mutated
from tests.gate.one_gate import CHECKOUT, ROOT, WORDS, OneGate
from tests.gate.zfs_requests import looks
from tests.whole.house import wait_until

QUESTION = ssh_argv(looks(f"{ROOT}/photos", target=True)[0])[-1]
# Nothing of these is a question of ours: what the answer is started with, and what it may do.
_TOLD = """id -u; pwd; umask; env | grep -v ^_= | sort; grep NoNewPrivs /proc/self/status; cat {secret}; echo x > {made}
cat /etc/passwd > /dev/null && echo read; command -v sh; printf '%s\\n' "$@"; exit 7"""
_SOON = "import orchestrator.process.recorded_answers as one\none._AGE = -99\nfrom orchestrator.__main__ import program\nprogram()\n"
# As often as the kernel allows.
_SHUT_IN_OFTEN = """import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
for _ in range(16):
    libc.syscall(446, libc.syscall(444, ctypes.byref(ctypes.c_uint64(1 << 9)), 8, 0), 0)
os.execv(sys.argv[1], sys.argv[1:])"""
_IDENTITY = """import sys
from orchestrator.process.handover import program_identity
sys.argv[:] = sys.argv[1:]
sys.stdout.buffer.write(program_identity().encode())"""
# Becomes an answer as a gate does, with one of its places.
_BECOME = """import sys
from orchestrator.cli.terminal.inherited import make_safe
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.confine import become_for_datasets
make_safe()
become_for_datasets(Command(argv=tuple(sys.argv[1:]), effect=Effect.READS))"""


class RecordedGate(OneGate):
    """A gate in which a question is recorded. Its program says only that it was started."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.utime(self.file, (1, 1))
        self.folder, self.program = folder, folder / "started"
        self.program.write_text("#!/bin/sh\necho started\n")
        self.program.chmod(0o755)
        self.by_record = (PERL, HAND_OVER, str(self.program), *self.words)
        self.now = time.time()
        self.recorded = self.state / "gate-laptop.asked"

    def says(self, line: str = QUESTION, more: dict[str, str] | None = None) -> tuple[int, bytes, bytes]:
        return self.ask(line, argv=self.by_record, more=more)

    def is_answered(self, line: str = QUESTION) -> bool:
        """Return whether a question is answered by what is recorded of it."""
        return self.says(line)[1] != b"started\n"

    def record(self, *argv: str, line: str = QUESTION, most: int = 100) -> None:
        """Record a question with any answer."""
        mark = mark_file(str(self.file), self.file.stat().st_ctime + 9)
        asked = GateQuestion(line=line, shown="survey.sh", file=str(self.file), mark=mark, most=most)
        known = self.recorded.read_bytes() if self.recorded.exists() else b""
        answer = Command(argv=argv, effect=Effect.READS)
        sys.argv, before = [str(self.program), *self.words], sys.argv
        try:
            self.recorded.write_bytes(with_question(known, asked, answer, now=self.now))
        finally:
            sys.argv = before

    def by_program_in(self, package: Path) -> None:
        """Let the record be one of the program whose package is there."""
        asked = (sys.executable, "-B", "-c", _IDENTITY, str(self.program), *self.words)
        told = subprocess.run(asked, cwd=package.parent, stdout=subprocess.PIPE, check=True)
        _exchange(self, 0, told.stdout)


@pytest.fixture
def gate(tmp_path: Path) -> RecordedGate:
    made = RecordedGate(tmp_path)
    made.record("sh", "-c", "echo answered")
    return made


@pytest.mark.parametrize("name", ["plain", "no UTF-8 \udcff"])
def test_the_question_of_a_run_is_recorded_and_answered_alike(tmp_path: Path, name: str) -> None:
    gate, started = RecordedGate(tmp_path / name), tmp_path / "starts"
    argv = gate.made_program("started", f"open({str(started)!r}, 'a').write('x')\n{_SOON}")
    try:
        first = gate.ask(QUESTION, argv=argv)
        assert gate.says() == first
        assert started.read_text() == "x"
        before = gate.recorded.stat()
        assert before.st_mode & 0o777 == 0o600
        assert gate.ask(QUESTION, argv=argv) == first
        assert gate.recorded.stat().st_ino == before.st_ino, "the same was written once more"
        future = gate.file.stat().st_ctime + 999
        os.utime(gate.file, (future, future))
        gate.ask(QUESTION.replace("photos", "other"), argv=argv)
        assert f"{ROOT}/other".encode() not in gate.recorded.read_bytes(), "the gate's file was changed just now"
        gate.recorded.unlink()
        os.utime(gate.file, (1, 1))
        _put_link(gate.file.parent, gate.folder / "gates")
        assert gate.ask(QUESTION, argv=argv) == first
        assert not gate.recorded.exists(), "through a link it would not be answered by it"
    finally:
        gate.end()


def test_an_answer_is_shut_in_as_by_the_gate_itself(gate: RecordedGate) -> None:
    secret, made = gate.folder / "secret", gate.folder / "made"
    secret.write_text("secret")
    words = ("sh", "-c", _TOLD.format(secret=secret, made=made), "survey.sh", "a b", "*", "")
    gate.record(*words)
    told = gate.says()
    assert (told[0], b"secret\n" in told[1], made.exists()) == (7, False, False), told
    assert (b"NoNewPrivs:\t1" in told[1], b"read\n" in told[1], b"Permission denied" in told[2]) == (
        True,
        True,
        True,
    ), told
    variables = gate.variables(QUESTION)
    by_python = subprocess.run(
        [sys.executable, "-c", _BECOME, *words],
        env=variables,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert told == (by_python.returncode, by_python.stdout, by_python.stderr)


def _changes(gate: RecordedGate) -> dict[str, Callable[[], object]]:
    gates, other = gate.file.parent, gate.folder / "other"
    return {
        "a gate that lets less through": lambda: gate.file.write_text('receives = "vault/other"\n'),
        "a gate of the same length": lambda: gate.file.write_text(gate.file.read_text().replace("1T", "2T")),
        "a gate that is gone": gate.file.unlink,
        "a gate that others may write": lambda: gate.file.chmod(0o666),
        "a folder that others may write": lambda: gates.chmod(0o777),
        "a folder above that others may write": lambda: gate.folder.chmod(0o777),
        "a folder of another user": lambda: os.chown(gates, 1234, 1234),
        "a folder that is a link": lambda: _put_link(gates, other),
        "a record of another user": lambda: os.chown(gate.recorded, 1234, 1234),
        "a record that others may write": lambda: gate.recorded.chmod(0o666),
        "a record that is a link": lambda: _put_link(gate.recorded, other),
        "a record that is cut": lambda: os.truncate(gate.recorded, gate.recorded.stat().st_size - 1),
        "a record of nothing": lambda: gate.recorded.write_bytes(b""),
        "a record that is none": lambda: gate.recorded.write_bytes(random.Random(7).randbytes(4000)),
        "a record of another kernel": lambda: _exchange(gate, 6, b"99"),
        "a record of another version": lambda: _exchange(gate, 0, b"other"),
        "no place": lambda: _exchange(gate, 5, b"0"),
        "a record of the day before": lambda: _exchange(gate, 2, b"%d" % (gate.now - 86401)),
        "a record of tomorrow": lambda: _exchange(gate, 2, b"%d" % (gate.now + 86400)),
        "a record of no time": lambda: _exchange(gate, 2, b""),
        "a program that leads elsewhere": lambda: _lead_elsewhere(gate.program, other),
    }


def _put_link(path: Path, moved: Path) -> None:
    path.rename(moved)
    path.symlink_to(moved)


def _lead_elsewhere(path: Path, other: Path) -> None:
    shutil.copy2(path, other)
    path.unlink()
    path.symlink_to(other)


def _exchange(gate: RecordedGate, number: int, value: bytes) -> None:
    """Put another value into the record."""
    (entry,) = _unpacked(gate.recorded.read_bytes())
    fields = list(_unpacked(entry))
    fields[number] = value
    gate.recorded.write_bytes(_packed([_packed(fields)]))


def test_what_is_not_as_it_was_is_for_the_gate_itself(tmp_path: Path) -> None:
    for name in _changes(RecordedGate(tmp_path)):
        gate = RecordedGate(tmp_path / name)
        gate.record("sh", "-c", "echo answered")
        assert gate.says()[1] == b"answered\n"
        _changes(gate)[name]()
        assert gate.says()[1] == b"started\n", name


def test_another_file_of_the_program_is_another_program(gate: RecordedGate) -> None:
    package = gate.folder / "new/orchestrator"
    shutil.copytree(CHECKOUT / "orchestrator", package, ignore=shutil.ignore_patterns("__pycache__"))
    gate.by_record = (PERL, str(package / "process/scripts/hand-over.pl"), *gate.by_record[2:])
    second = int(time.time())
    wait_until(lambda: int(time.time()) > second, 20)
    for place in (
        "__init__.py",
        "gate/receive.py",
        "engines/zfs/scripts/survey.sh",
        "domain/gate.py",
        "trees/beneath.py",
    ):
        gate.by_program_in(package)
        assert gate.is_answered(), place
        shutil.copy2(package / place, package / "process/new")
        (package / "process/new").rename(package / place)
        assert not gate.is_answered(), place


def test_directories_that_variables_name_are_for_the_gate_itself(gate: RecordedGate) -> None:
    gate.words = gate.words[:2] + gate.words[4:]
    gate.by_record = (PERL, HAND_OVER, str(gate.program), *gate.words)
    gate.record("sh", "-c", "echo answered")
    assert gate.says()[1] == b"answered\n"
    for name in ("POOLFERRY_CONFIG", "XDG_CONFIG_HOME"):
        assert gate.says(more={name: "/nowhere"})[1] == b"started\n", name


def test_what_cannot_be_shut_in_after_it_was_noted_ends(gate: RecordedGate) -> None:
    ended = gate.ask(QUESTION, argv=(sys.executable, "-c", _SHUT_IN_OFTEN, *gate.by_record))
    assert (ended[0], ended[1], b"Landlock" in ended[2]) == (127, b"", True), ended


def test_what_a_stream_counted_in_its_place_is_forgotten(gate: RecordedGate) -> None:
    counters = gate.state / "gate-laptop.bytes"
    counters.write_bytes(struct.pack("=q3q3q", 900, 2, 900, 5, 2, 7, 8))
    assert gate.says()[1] == b"answered\n"
    assert struct.unpack("=q3q3q", counters.read_bytes()) == (900, 0, 0, 0, 2, 7, 8)


def test_a_place_is_taken_until_the_answer_ends(gate: RecordedGate) -> None:
    gate.record("sh", "-c", "echo began; read more", most=1)
    with subprocess.Popen(
        gate.by_record, env=gate.variables(QUESTION), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as answer:
        assert answer.stdin
        assert answer.stdout
        assert answer.stdout.readline() == b"began\n"
        assert gate.says()[1] == b"started\n"
        answer.stdin.close()
    assert gate.says()[1] == b"began\n"


def test_only_the_last_questions_are_kept(gate: RecordedGate) -> None:
    for number in range(2 * _MOST):
        gate.record("sh", "-c", f"echo {number}", line=f"{QUESTION} {number % (_MOST + 1)}")
    assert len(list(_unpacked(gate.recorded.read_bytes()))) == _MOST
    assert gate.says(f"{QUESTION} {_MOST - 2}")[1] == b"%d\n" % (2 * _MOST - 1)
    assert gate.says(f"{QUESTION} {_MOST - 1}")[1] == b"started\n"
    before = gate.recorded.read_bytes()
    gate.record("sh", line="x" * 70_000)
    assert gate.recorded.read_bytes() == before
    for number in range(20):
        gate.record("sh", "-c", "echo long", line=f"{number}".rjust(60_000, "x"))
    assert gate.says("19".rjust(60_000, "x"))[1] == b"long\n"
    assert gate.says(f"{QUESTION} {_MOST - 2}")[1] == b"started\n"


def fuzz(gate: RecordedGate, count: int) -> None:
    """Require of questions that are nearly the recorded one, that none is answered by its record."""
    chance = random.Random(count)
    asked = [parse_request(QUESTION)]
    for request in mutated(asked, WORDS, seed=count, number=count // 2):
        line = shlex.join(("sh", "-c", "id", request.name, *request.values)).replace("\0", "")
        assert not gate.is_answered(line), line
    for _ in range(count - count // 2):
        at, cut = chance.randrange(len(QUESTION)), chance.randrange(3)
        line = QUESTION[:at] + chance.choice(("", " ", "\n", "'", "x", "\udcff", "\\")) + QUESTION[at + cut :]
        assert line == QUESTION or not gate.is_answered(line), line
    assert gate.says()[1] == b"answered\n"


def test_three_hundred_questions_that_are_nearly_the_recorded_one_are_not_answered_by_it(gate: RecordedGate) -> None:
    fuzz(gate, 300)


@pytest.mark.long
@pytest.mark.timeout(580)
def test_many_more_questions_that_are_nearly_the_recorded_one_are_not_answered_by_it(gate: RecordedGate) -> None:
    fuzz(gate, 10_000)
