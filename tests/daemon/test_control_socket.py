"""The control socket of a real daemon: acts of the closed list are done and recorded, and nothing else is."""

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from orchestrator.app.acts import MOST_A_MINUTE, list_acts
from orchestrator.app.control import DaemonControl, control_address
from orchestrator.app.settings import Settings
from orchestrator.domain.act import (
    LONGEST_LINE,
    ActAnswer,
    ActRecord,
    ActRequest,
    ActVerb,
    encode_request,
)
from tests.daemon.daemon_world import Daemon, daemon, runs, until
from tests.ferry import ROOT, Ferry

ODD = '<script>alert(1)</script>\u202e"; rm -rf / #'


def settings_of(ferry: Ferry) -> Settings:
    return Settings(config=str(ferry.config), state=str(ferry.state))


@pytest.fixture
def clock(ferry: Ferry) -> Iterator[Daemon]:
    ferry.job()
    (ferry.config / "poolferry.toml").write_text(f'[web]\nrestore-below = "{ferry.root}"\n')
    with daemon(ferry) as clock:
        clock.says("read ")
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        yield clock


def ask(ferry: Ferry, request: ActRequest) -> ActAnswer:
    """Ask as the page does."""
    return DaemonControl(settings_of(ferry)).ask(request)


def say(ferry: Ferry, line: bytes) -> dict[str, Any]:
    """Say a line to the socket, whatever it is; return the answer."""
    with control_address(settings_of(ferry).where) as address, socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(20)
        asked.connect(address)
        with suppress(BrokenPipeError):
            asked.sendall(line)
        told = b""
        with suppress(ConnectionResetError):
            while piece := asked.recv(4096):
                told += piece
    found: dict[str, Any] = json.loads(told)
    return found


def ended(ferry: Ferry, act: int | None) -> ActRecord:
    """Wait for the end of an act; return it."""

    def found() -> ActRecord:
        return next(each for each in list_acts(settings_of(ferry), 100) if each.id == act)

    until(lambda: found().ended is not None, f"act {act} ends", lambda: str(found()))
    return found()


def test_each_act_is_done_and_recorded_with_who_asked(ferry: Ferry, clock: Daemon) -> None:
    settings = settings_of(ferry)
    begun = ask(ferry, ActRequest(verb=ActVerb.RUN, job="photos", user="ann"))
    assert (begun.accepted, begun.said) == (True, "it has begun")
    done = ended(ferry, begun.act)
    (run,) = runs(ferry)
    assert (run["outcome"], run["requested"]) == ("done", "asked for on the status page")
    assert (done.well, done.runs) == (True, (run["run"],)), "the act leads to its run"
    assert done.who.startswith("ann (by proxy), through ")
    assert f"(uid {os.geteuid()})" in done.who
    assert ended(ferry, ask(ferry, ActRequest(verb=ActVerb.VERIFY, job="photos")).act).well
    told = ask(ferry, ActRequest(verb=ActVerb.PAUSE, job="photos", span="3d"))
    assert told.said.startswith("rests until ")
    assert "paused until" in ferry.run("status").out
    assert ask(ferry, ActRequest(verb=ActVerb.RESUME, job="photos")).said == "runs again at its times"
    assert ask(ferry, ActRequest(verb=ActVerb.ACKNOWLEDGE, job="photos")).said.startswith("seen as up")
    with settings.views() as views:
        (point,) = [each.name for each in views.points("photos")]
    request = ActRequest(verb=ActVerb.RESTORE, job="photos", point=point, paths=(b"deep", b"b.bin"))
    back = ended(ferry, ask(ferry, request).act)
    assert back.well, back.said
    assert len(back.runs) == 2
    (folder,) = ferry.root.glob("poolferry-restored-photos-*")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "deep" / "a.txt").read_text() == "some words\n"
    assert (folder / "b.bin").stat().st_size == 256 * 64
    assert [each.verb.value for each in reversed(list_acts(settings, 9))] == [
        "run", "verify", "pause", "resume", "acknowledge", "restore",
    ]  # fmt: skip
    assert clock.end() == 0
    assert not (ferry.state / "control.sock").exists()


UNKNOWN = (
    b"\n", b"", b"hello\n", b"[]\n", b"null\n", b"{}\n", b'{"act":1}\n', b'{"act":["run"],"job":"photos"}\n', b"[" * 60_000 + b"\n", b"\xff\xfe\n",
    *(json.dumps({"act": verb, "job": "photos"}).encode() + b"\n" for verb in (
        "prune", "destroy", "enroll", "retire", "rollback", "roll back", "consent", "RUN", "run ", "restore", "snooze", "eject", "accept", ODD,
    )),
    b'{"act":"run"}\n', b'{"act":"run","job":""}\n', b'{"act":"run","job":null}\n', b'{"act":"run","job":"--all"}\n', b'{"act":"run","job":"../x"}\n',
    b'{"act":"run","job":"photos","allow":"shrink"}\n', b'{"act":"run","job":"photos","point":"x"}\n', b'{"act":"run","job":"nobody"}\n',
    b'{"act":"verify","job":"photos","point":"2026-01-01T000000Z"}\n', b'{"act":"verify","job":"photos","point":"latest"}\n',
    b'{"act":"pause","job":"photos","span":"99999d"}\n', b'{"act":"snooze","disk":"red","span":"3d"}\n', b'{"act":"eject","disk":"/dev/sda"}\n',
    b'{"act":"restore","job":"photos","point":"2026-01-01T000000Z","paths":["../../etc/shadow"]}\n',
    b'{"act":"restore","job":"photos","point":"2026-01-01T000000Z","paths":["/etc/shadow"]}\n',
    b'{"act":"restore","job":"photos","point":"2026-01-01T000000Z","paths":["a"],"to":"/etc"}\n',
    b'{"act":"run","job":"photos","user":"a\\nb"}\n', b'{"act":"run","job":"photos"}' + b" " * LONGEST_LINE + b"\n",
    json.dumps({"act": "run", "job": ODD}).encode() + b"\n",
)  # fmt: skip


def test_what_is_not_in_the_list_is_refused_and_nothing_begins(ferry: Ferry, clock: Daemon) -> None:
    for line in UNKNOWN:
        told = say(ferry, line) if line.endswith(b"\n") else {"accepted": False, "act": None}
        assert (told["accepted"], told["act"]) == (False, None), line
    assert list_acts(settings_of(ferry), 9) == ()
    assert runs(ferry) == []
    assert ask(ferry, ActRequest(verb=ActVerb.ACKNOWLEDGE, job="photos")).accepted
    assert "mistake in poolferry" not in clock.log


def test_two_hundred_at_once_cost_a_bounded_number_of_acts(ferry: Ferry, clock: Daemon) -> None:
    answers: list[dict[str, Any]] = []
    line = encode_request(ActRequest(verb=ActVerb.ACKNOWLEDGE, job="photos"))
    callers = [threading.Thread(target=lambda: answers.append(say(ferry, line))) for _ in range(200)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(answers) == 200, "each got an answer"
    assert 1 <= sum(each["accepted"] for each in answers) <= MOST_A_MINUTE
    later = [say(ferry, line) for _ in range(MOST_A_MINUTE + 1)]
    assert "requests in a minute" in later[-1]["said"]
    assert len(list_acts(settings_of(ferry), 1000)) == MOST_A_MINUTE
    silent = [
        socket.socket(socket.AF_UNIX) for _ in range(40)
    ]  # who connects and says nothing holds nobody up for long
    with control_address(settings_of(ferry).where) as address:
        for each in silent:
            each.connect(address)
        for each in silent:
            each.close()
    until(lambda: say(ferry, b"x\n")["said"].startswith("not understood"), "it answers again", lambda: clock.log)


@pytest.mark.root
def test_another_user_is_refused_by_the_file_and_by_the_kernels_word(ferry: Ferry, clock: Daemon) -> None:
    path = ferry.state / "control.sock"
    assert stat.S_IMODE(path.stat().st_mode) in (0o600, 0o660)
    script = (
        "import socket, sys\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        's.sendall(b\'{"act":"run","job":"photos"}\\n\')\nprint(s.recv(999).decode())'
    )
    opened = os.open(path, os.O_PATH)
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", script]
    target = f"/proc/self/fd/{opened}"
    told = subprocess.run([*as_nobody, target], pass_fds=[opened], capture_output=True, text=True)
    assert "PermissionError" in told.stderr
    path.chmod(0o666)  # as if somebody had opened it by mistake
    told = subprocess.run([*as_nobody, target], pass_fds=[opened], capture_output=True, text=True)
    os.close(opened)
    assert json.loads(told.stdout) == {"accepted": False, "act": None, "said": "you may not ask for acts"}
    assert "control socket: refused" in clock.log
    assert runs(ferry) == []


def test_acts_that_a_killed_daemon_left_open_are_ended_by_the_next(ferry: Ferry) -> None:
    ferry.job()
    (ferry.root / "photos-source" / "big").write_bytes(os.urandom(4_000_000))
    file = ferry.config / "jobs" / "photos.toml"
    file.write_text(file.read_text() + '[pipe]\nrate-limit = "256K"\n')
    with daemon(ferry) as clock:
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        act = ask(ferry, ActRequest(verb=ActVerb.RUN, job="photos")).act
        again = ask(ferry, ActRequest(verb=ActVerb.RUN, job="photos"))
        assert (again.accepted, again.said) == (False, "run of photos was asked for, and goes on")
        until(lambda: runs(ferry), "it begins")
        clock.process.kill()
        clock.process.wait()
    with daemon(ferry):
        told = ended(ferry, act)
    assert (told.well, told.said) == (False, "the daemon ended before it")


@pytest.mark.root
def test_the_kernel_tells_all_groups_of_a_caller() -> None:
    script = (
        "import socket\nfrom orchestrator.daemon.control_socket import read_caller\n"
        "one, other = socket.socketpair()\nprint(sorted(read_caller(other).groups))"
    )
    groups = ["setpriv", "--regid=7", "--groups=7,61001,61002"]
    told = subprocess.run([*groups, sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert told.stdout.strip() == "[7, 61001, 61002]", told.stderr
