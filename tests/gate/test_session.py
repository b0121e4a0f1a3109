"""The process that a gate's first request leaves behind: it answers the later ones as each would be by a process of its own."""

import os
import random
import shlex
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.errors import Stalled, StreamBroken
from orchestrator.domain.gate import REFUSED, Gate, GateRefusal
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.engines.zfs.errors.explain import explain
from orchestrator.gate.admit import admit
from orchestrator.gate.request import parse_request
from orchestrator.history.arrivals import read_arrivals
from orchestrator.process.handover import HAND_OVER, PERL, parse_handover
from orchestrator.process.pipeline import PipelineResult, pipeline_failure
from tests.gate.mutations import mutated, sent
from tests.gate.one_gate import ROOT, WORDS, OneGate
from tests.gate.streams import begin, compound, end
from tests.gate.zfs_requests import pushed, receive_commands
from tests.processes import is_there, links
from tests.whole.house import wait_until

VERSION = sent("zfs.sh", "version")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[OneGate]:
    made = OneGate(tmp_path)
    yield made
    made.end()


@pytest.fixture
def left(gate: OneGate) -> OneGate:
    """A gate whose first request was asked."""
    first = gate.ask(VERSION)
    wait_until(lambda: gate.pid, 20)
    assert first == gate.ask(VERSION)
    return gate


# Notes that it had to start, and waits there the first time.
_WAITS = """import os
from orchestrator.__main__ import program
from orchestrator.process import handover
hand_over = handover.hand_over
def waits(words):
    answered = hand_over(words)
    with open({starts!r}, "a") as file:
        file.write("x")
    if os.path.getsize({starts!r}) == 1:
        open({door!r}).close()
    return answered
handover.hand_over = waits
program()
"""


@pytest.mark.parametrize("ends", [False, True])
def test_a_request_beside_the_first_waits_for_what_that_leaves_behind(
    gate: OneGate, tmp_path: Path, ends: bool
) -> None:
    """Two streams of a run come at once. Where the first ends before it leaves anything, the other starts its own."""
    starts, door = tmp_path / "starts", tmp_path / "door"
    os.mkfifo(door)
    argv = (PERL, HAND_OVER, *gate.made_program("waits", _WAITS.format(starts=str(starts), door=str(door))))
    first = gate.begin(VERSION, b"", argv=argv)
    wait_until(starts.exists, 20)
    second = gate.begin(VERSION, b"", argv=argv)
    wait_until(lambda: any(each.startswith("socket:") for each in links(second.pid)), 20)
    if ends:
        first.kill()
    else:
        with door.open("w"):
            pass
    assert second.wait(30) == 1
    assert first.wait(30) == (-signal.SIGKILL if ends else 1)
    assert len(starts.read_text()) == (2 if ends else 1)


LINES = (
    VERSION, sent("zfs.sh", "destroy", f"{ROOT}/a"), "", "rm -rf /", sent("zfs.sh", "\udcff"), sent("points.sh", f"{ROOT}/a b"), sent("points.sh", "tank"),
    sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/a"), "x" * 120_000,
)  # fmt: skip


def test_each_answer_is_that_of_a_process_of_its_own(left: OneGate) -> None:
    there = left.pid
    hidden = left.door.with_name("hidden")
    for line in LINES:
        by_it = [left.ask(line, argv=argv, stdin=b"no stream") for argv in (left.argv, left.by_perl)]
        left.door.rename(hidden)
        for argv in (left.argv, left.by_perl):
            assert left.ask(line, argv=argv, stdin=b"no stream") in by_it, (line, argv)
        assert by_it[0] == by_it[1], line
        hidden.rename(left.door)
    assert left.pid == there
    left.file.write_text('receives = "vault/other"\n')  # what the owner changes holds for the next request
    assert b"is not below vault/other" in left.ask(sent("points.sh", ROOT))[2]
    left.file.unlink()
    code, _, words = left.ask(VERSION)
    assert (code, b"there is no such gate" in words) == (2, True)


def test_another_version_answers_for_itself(left: OneGate) -> None:
    other = left.state / "other"
    other.write_text(
        "import orchestrator.process.handover as one\none.program_identity = lambda: 'other'\nfrom orchestrator.__main__ import program\nprogram()\n"
    )
    before = left.pid
    for argv in (left.argv, left.by_perl):
        os.kill(before, signal.SIGSTOP)  # whom it asked would wait
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                left.ask(VERSION, argv=argv, patience=2)
        finally:
            os.kill(before, signal.SIGCONT)
    code, _, words = left.ask("rm", argv=(sys.executable, str(other), *left.words))
    assert (code, b"refused" in words, left.pid) == (REFUSED, True, before)


def test_one_that_is_killed_loses_nothing(left: OneGate) -> None:
    os.kill(left.pid, signal.SIGKILL)
    wait_until(lambda: not left.pid, 20)
    first = left.ask(VERSION)
    wait_until(lambda: left.pid, 20)
    assert first == left.ask(VERSION)


def test_it_ends_when_nobody_asks_and_lets_another_one_begin(gate: OneGate) -> None:
    program = gate.state / "short"
    program.write_text(
        "import orchestrator.process.handover as one\none.IDLE = 0.5\nfrom orchestrator.__main__ import program\nprogram()\n"
    )
    argv = (sys.executable, str(program), *gate.words)
    for _ in range(2):
        gate.ask(VERSION, argv=argv)
        wait_until(gate.door.exists, 20)
        wait_until(lambda: not gate.door.exists(), 20)


def test_what_is_no_request_of_this_program_is_told_nothing(left: OneGate) -> None:
    chance = random.Random(7)
    for _ in range(200):
        said = chance.randbytes(chance.randrange(300))
        assert parse_handover(said, b"ours") is None
    assert parse_handover(b"ours\0who\0line", b"ours") == ("line", "who", False)
    assert parse_handover(b"ours\0who\0line\0becomes", b"ours") == ("line", "who", True)
    for said in (b"ours\0who\0line\0more", b"ours\0who", b"ours\0who\0line\0becomes\0"):
        assert parse_handover(said, b"ours") is None
    assert handed(left, said=b"ours\0\0") is None
    assert handed(left, VERSION, descriptors=2) is None
    assert handed(left, VERSION) is not None


def handed(
    gate: OneGate, line: str = "", *, said: bytes = b"", descriptors: int = 3, becomes: bool = False
) -> int | str | None:
    """Hand a request over, with nothing to read and nowhere to write; return its exit status, or what is told of what it may become, or None
    where nothing is told."""
    whose = gate.identity()
    with gate.connected() as server, open(os.devnull, "r+b") as nothing:
        request = said or os.fsencode(f"{whose}\0fuzz\0{line}") + b"\0becomes" * becomes
        fds = struct.pack(f"{descriptors}i", *[nothing.fileno()] * descriptors)
        server.sendmsg([request], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        told = server.recv(1 << 18)
        if becomes and told[:6] in (b"become", b"gather"):
            return told[:6].decode()
        return int(server.recv(8)) if told == b"taken" else None


SLOW_ZFS = """#!/bin/sh
case $1 in receive) echo $$ > {took}.new && mv {took}.new {took} && exec cat > /dev/null ;; *) echo 0 ;; esac
"""
WITH_IT = """import orchestrator.process.confine as confine, orchestrator.process.program_path as programs
programs.SYSTEM_PATH, confine.confine_to_datasets = ({folder!r}, *programs.SYSTEM_PATH), lambda **_: None
confine.DATASET_VARIABLES["PATH"], rules = ":".join(programs.SYSTEM_PATH), confine._system_rules
confine._system_rules = lambda handled, *, datasets: (*rules(handled, datasets=datasets), ({folder!r}, handled))
from orchestrator.__main__ import program
program()
"""


@pytest.mark.parametrize("by", ["itself", "python", "perl"])
def test_a_bounded_receive_ends_in_its_middle_with_whoever_waits_for_it(gate: OneGate, by: str) -> None:
    zfs, took = gate.state / "zfs", gate.state / "took"
    zfs.write_text(SLOW_ZFS.format(took=took))
    zfs.chmod(0o755)
    argv = gate.made_program("program", WITH_IT.format(folder=str(gate.state)))
    if by != "itself":
        gate.ask(VERSION, argv=argv)
        wait_until(lambda: gate.pid, 20)
    line = sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/a")
    asks = (PERL, HAND_OVER, *argv) if by == "perl" else argv
    with subprocess.Popen(asks, env=gate.variables(line), stdin=subprocess.PIPE) as waits:
        assert waits.stdin
        waits.stdin.write(begin() + bytes(1_500_000))
        waits.stdin.flush()
        wait_until(took.exists, 20)
        receiver = int(took.read_text())
        os.kill(receiver, 0)
        waits.terminate()
        assert waits.wait(20) == -signal.SIGTERM
        wait_until(lambda: not is_there(receiver), 20)


HUNG = """import time
from orchestrator.trees.beneath import Folder
opened = Folder.at_place
Folder.at_place = lambda path, **more: time.sleep(600) if path == {folder!r} else opened(path, **more)
from orchestrator.__main__ import program
program()
"""


def test_a_folder_that_hangs_holds_up_no_other_request(gate: OneGate) -> None:
    """Such as one in a mount of a server that is away."""
    folder = gate.state / "hung"
    folder.mkdir()
    gate.file.write_text(f'receives = "{ROOT}"\nreads = "{folder}"\n')
    argv = gate.made_program("program", HUNG.format(folder=str(folder)))
    gate.ask(VERSION, argv=argv)
    wait_until(lambda: gate.pid, 20)
    by_perl = (PERL, HAND_OVER, *argv)
    question = sent("look-at-tools.sh")
    hangs = [gate.begin(question, b"", argv=by_perl) for _ in range(2)]
    try:
        assert gate.ask(VERSION, argv=by_perl) == gate.ask(VERSION, argv=argv)
        assert [each.poll() for each in hangs] == [None, None]
    finally:
        for each in hangs:
            each.terminate()
            each.wait(20)


COUNTED_ZFS = """#!/bin/sh
echo "$1" >> {calls}
case $1 in
  receive) exec cat > /dev/null ;;
  get) shift 5; for name; do printf '%s\\tguid\\t%s\\n%s\\tcreatetxg\\t9\\n' "$name" "${{#name}}" "$name"; done; exit 1 ;;
esac
"""


@pytest.mark.parametrize("by_perl", [False, True])
def test_when_several_snapshots_came_is_recorded_at_once_and_at_its_end_at_the_latest(
    gate: OneGate, by_perl: bool
) -> None:
    """Also where zfs no longer knows one of them."""
    zfs, calls = gate.state / "zfs", gate.state / "calls"
    zfs.write_text(COUNTED_ZFS.format(calls=calls))
    zfs.chmod(0o755)
    soon = "import orchestrator.process.handover as one\none.IDLE, one._SOON = 5, 60\n"
    gate.file.write_text(f'receives = "{ROOT}"\n')
    argv = gate.made_program("program", soon + WITH_IT.format(folder=str(gate.state)))
    gate.ask(VERSION, argv=argv)
    wait_until(gate.door.exists, 20)
    calls.unlink()
    by_it = (PERL, HAND_OVER, *argv) if by_perl else argv
    for name in "abc":
        line = sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/{name}")
        assert gate.ask(line, argv=by_it, stdin=begin(name="tank/p@s" + name))[0] == 0
    wait_until(lambda: len(read_arrivals(str(gate.state))) == 3, 60)
    mark = f"{len(ROOT) + 5}.9"
    assert set(read_arrivals(str(gate.state))) == {(f"{ROOT}/{name}", mark) for name in "abc"}
    assert calls.read_text().split() == ["receive", "receive", "receive", "get"]


@pytest.mark.parametrize("by_perl", [False, True])
def test_a_second_stream_behind_a_little_one_is_seen_before_anything_begins(gate: OneGate, by_perl: bool) -> None:
    zfs, calls = gate.state / "zfs", gate.state / "calls"
    zfs.write_text(COUNTED_ZFS.format(calls=calls))
    zfs.chmod(0o755)
    gate.file.write_text(f'receives = "{ROOT}"\n')
    argv = gate.made_program("program", WITH_IT.format(folder=str(gate.state)))
    gate.ask(VERSION, argv=argv)
    wait_until(gate.door.exists, 20)
    calls.unlink()
    argv = (PERL, HAND_OVER, *argv) if by_perl else argv
    line = sent("receive.sh", "9999k", "60", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/a")
    hidden = compound() + end() + begin(name="tank/other@a") + end()
    refused = gate.ask(line, argv=argv, stdin=hidden)
    assert (refused[0], b"a stream of several datasets" in refused[2], calls.exists()) == (REFUSED, True, False), (
        refused
    )
    assert gate.ask(line, argv=argv, stdin=compound() + end() + end())[0] == 0
    assert calls.read_text().split() == ["receive"]


KEPT_ZFS = """#!/bin/sh
case $1 in receive) echo $$ > {took} && exec cat > {kept} ;; *) echo 0 ;; esac
"""


@pytest.mark.parametrize(("size", "becomes"), [(0, True), (200_000, True), (2_000_000, False)])
def test_a_little_stream_is_received_by_the_very_process_that_asked(gate: OneGate, size: int, becomes: bool) -> None:
    """And each comes whole, whatever of it was gathered before."""
    zfs, took, kept = (gate.state / name for name in ("zfs", "took", "kept"))
    zfs.write_text(KEPT_ZFS.format(took=took, kept=kept))
    zfs.chmod(0o755)
    gate.file.write_text(f'receives = "{ROOT}"\n')
    argv = gate.made_program("program", WITH_IT.format(folder=str(gate.state)))
    gate.ask(VERSION, argv=argv)
    wait_until(lambda: gate.pid, 20)
    line = sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/a")
    stream = begin() + random.Random(1).randbytes(size)
    with gate.begin(line, stream, argv=(PERL, HAND_OVER, *argv)) as asked:
        assert asked.wait(60) == 0
    assert kept.read_bytes() == stream
    assert (int(took.read_text()) == asked.pid) == becomes


IMPATIENT = """import orchestrator.gate.receive as one
one.Reception.patience = 0.5
"""


def meant(said: str, code: int) -> type[Exception]:
    """Return the class that the sender gives to an end of the gate's."""
    stages = (
        Command(argv=("zfs", "send"), effect=Effect.READS),
        Command(argv=("zfs", "receive", "vault/x"), effect=Effect.WRITES),
    )
    ended = PipelineResult(exits=(1, code), last_output=("", said))
    return type(explain(pipeline_failure(Pipeline(stages=stages), ended)))


@pytest.mark.parametrize("came", [b"", begin()[:100], begin() + bytes(1000)])
def test_a_stream_that_breaks_off_before_its_receiver_begins_is_sent_again(gate: OneGate, came: bytes) -> None:
    """Each class is the one by which the sender goes on."""
    gate.file.write_text(f'receives = "{ROOT}"\n')
    argv = gate.made_program("program", IMPATIENT + WITH_IT.format(folder=str(gate.state)))
    line = sent("receive.sh", "9999k", "60", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/a")
    with subprocess.Popen(argv, env=gate.variables(line), stdin=subprocess.PIPE, stderr=subprocess.PIPE) as waits:
        assert waits.stdin
        assert waits.stderr
        waits.stdin.write(came)
        waits.stdin.flush()
        said = waits.stderr.read().decode()
    assert meant(said, waits.returncode) is Stalled, said
    if len(came) < 300:
        code, _, words = gate.ask(line, argv=argv, stdin=came)
        assert meant(words.decode(), code) is StreamBroken, words


USED_ZFS = """#!/bin/sh
case $1 in receive) wc -c >> {calls}; exec cat {holds} ;; get) echo 1000 ;; esac
"""


def test_streams_at_once_bring_together_no_more_than_at_most(gate: OneGate) -> None:
    """Little ones and long ones; once they have ended, what is used counts."""
    zfs, calls, program, holds = (gate.state / name for name in ("zfs", "calls", "program", "holds"))
    os.mkfifo(holds)
    zfs.write_text(USED_ZFS.format(calls=calls, holds=holds))
    zfs.chmod(0o755)
    program.write_text(WITH_IT.format(folder=str(gate.state)))
    gate.file.write_text(f'receives = "{ROOT}"\nat-most = "1M"\n')
    argv = (sys.executable, str(program), *gate.words)
    gate.ask(VERSION, argv=argv)
    wait_until(lambda: gate.pid, 20)
    line = sent("zfs.sh", "receive", "-s", "-u", "-x", "poolferry:receive", f"{ROOT}/a")
    under_way = [
        gate.begin(line, begin() + bytes(size), argv=argv)
        for size in (200_000, 200_000, 200_000, 200_000, 300_000, 900_000)
    ]
    calls.touch()
    # Each has ended, as refused, or has all that it gets, and waits.
    wait_until(lambda: len(calls.read_text().split()) + sum(one.poll() is not None for one in under_way) == 6, 60)
    late = gate.ask(line, argv=argv, stdin=begin() + bytes(950_000))
    assert (late[0], b"more than at-most allows: 1.0 MiB" in late[2]) == (REFUSED, True), late
    with ExitStack() as opened:
        opened.callback(holds.unlink)
        let_end = os.open(holds, os.O_RDWR | os.O_NONBLOCK)
        opened.callback(os.close, let_end)
        came = calls.read_text().split()
        assert sum(map(int, came)) <= 1 << 20, came
    for one in under_way:
        one.wait(60)
    assert {one.returncode for one in under_way} <= {0, REFUSED}
    calls.write_text("")
    holds.touch()
    assert gate.ask(line, argv=argv, stdin=begin() + bytes(950_000))[0] == 0
    assert calls.read_text().split() == ["950312"]


def fuzz(gate: OneGate, count: int) -> None:
    """Require of requests made of those of a run, that each is refused or let through as by the gate's own judgement."""
    copy = f"{ROOT}/photos"
    lines = [parse_request(ssh_argv(each)[-1]) for each in (*pushed(copy), *receive_commands(copy))]
    passed, became = 0, set[int | str | None]()
    gate.file.write_text(f'receives = "{ROOT}"\n')
    for number, request in enumerate(mutated(lines, WORDS, seed=count, number=count)):
        line = shlex.join(("sh", "-c", "id", request.name, *request.values)).replace("\0", "")
        try:
            admit(parse_request(line), Gate(receives=ROOT))
            fits = True
        except GateRefusal:
            fits = False
        status = handed(gate, line, becomes=bool(number % 3))
        assert status is not None
        assert fits or status == REFUSED, line
        became.add(status)
        passed += fits
    assert passed > count / 50
    assert became >= {"become", "gather", REFUSED}
    assert gate.pid


@pytest.mark.long
def test_a_thousand_requests_are_admitted_as_by_a_process_of_its_own(left: OneGate) -> None:
    fuzz(left, 1_000)


@pytest.mark.long
@pytest.mark.timeout(580)
def test_many_more_requests_are_admitted_as_by_a_process_of_its_own(left: OneGate) -> None:
    fuzz(left, 20_000)
