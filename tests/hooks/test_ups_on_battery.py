"""ups-on-battery: the real NUT and apcaccess, and their recorded words for each state."""

import shutil
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

UNPACKED = Path(sys.prefix) / "debian"  # where the Makefile unpacks apcupsd
APC = "APC      : 001,018,0449\nHOSTNAME : nas\nDRIVER   : USB UPS Driver\nSTATUS   : {}\nEND APC  : -\n"

# Fakes that speak as the real ones, recorded from apcupsd 3.14.14 and NUT 2.8.0. The n-th call answers with line n of
# the file beside them, the last one again and again; an empty line is a failure.
FAKE = """#!/bin/sh
[ "$1" != -l ] || {{ echo first; echo second; exit; }}
printf '%s ' "$@" >>"$0.calls"; echo >>"$0.calls"
count=$(wc -l <"$0.calls")
word=$(sed -n "${{count}}p" "$0.words"); [ -n "$word" ] || word=$(tail -n 1 "$0.words")
[ "$word" != unreachable ] || {{ echo '{error}' >&2; exit 1; }}
echo "$word{blank}"
"""
FAKES = {
    "apcaccess": FAKE.format(error="Error contacting apcupsd @ localhost:3551: Connection refused", blank=" "),
    "upsc": FAKE.format(error="Error: Connection failure: Connection refused", blank=""),
}


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., str]:
    """fake(program, words…): a PATH with the basic tools and only this program; it answers with the words in turn."""

    def make(program: str, *words: str) -> str:
        for tool in ("sh", "sed", "wc", "tail", "head", "sleep", "env"):
            (tmp_path / tool).unlink(missing_ok=True)
            (tmp_path / tool).symlink_to(shutil.which(tool, path="/usr/bin:/bin") or tool)
        if program:
            (tmp_path / program).write_text(FAKES[program])
            (tmp_path / program).chmod(0o755)
            (tmp_path / f"{program}.words").write_text("\n".join(words) + "\n")
        return str(tmp_path)

    return make


CASES = [
    ("apcaccess", "ONLINE", 0),
    ("apcaccess", "ONLINE LOWBATT", 0),
    ("apcaccess", "TRIM ONLINE", 0),
    ("apcaccess", "ONBATT", 75),
    ("apcaccess", "ONBATT LOWBATT", 75),
    ("apcaccess", "SHUTTING DOWN", 75),
    ("apcaccess", "COMMLOST", 1),
    ("apcaccess", "unreachable", 1),
    ("upsc", "OL", 0),
    ("upsc", "OL CHRG", 0),
    ("upsc", "ALARM OL RB", 0),
    ("upsc", "OB DISCHRG LB", 75),
    ("upsc", "FSD OL", 75),
    ("upsc", "OFF", 1),
    ("upsc", "unreachable", 1),
]


@pytest.mark.parametrize(("program", "words", "status"), CASES)
def test_each_state_decides(hook: Any, fake: Any, program: str, words: str, status: int) -> None:
    end = hook("ups-on-battery", "--with", program, "--settle", "0", event="before", path=fake(program, words))
    assert end.returncode == status, end.stderr
    assert ("is on battery" in end.stdout) == (status == 75)
    assert bool(end.stderr) == (status == 1)


@pytest.mark.parametrize(("program", "on", "off"), [("apcaccess", "ONBATT", "ONLINE"), ("upsc", "OB", "OL")])
def test_a_self_test_of_seconds_does_not_count(hook: Any, fake: Any, program: str, on: str, off: str) -> None:
    path = fake(program, on, off)
    assert hook("ups-on-battery", "--with", program, "--settle", "1", event="before", path=path).returncode == 0
    assert len((Path(path) / f"{program}.calls").read_text().splitlines()) == 2


@pytest.mark.parametrize(("program", "requested"), [("apcaccess", "-p STATUS"), ("upsc", "first ups.status")])
def test_the_program_that_exists_is_asked_for_its_first_ups(hook: Any, fake: Any, program: str, requested: str) -> None:
    path = fake(program, {"apcaccess": "ONLINE", "upsc": "OL"}[program])
    assert hook("ups-on-battery", event="before", path=path).returncode == 0
    assert (Path(path) / f"{program}.calls").read_text().strip() == requested


def test_neither_program_is_an_error_that_names_both_packages(hook: Any, fake: Any) -> None:
    end = hook("ups-on-battery", event="before", path=fake(""))
    assert end.returncode == 1
    assert "neither apcaccess (package apcupsd) nor upsc (package nut-client) is on PATH" in end.stderr


@pytest.mark.parametrize("argv", [("--with", "magic"), ("--with",), ("--no",), ("a", "b")])
def test_wrong_usage_is_2(hook: Any, argv: tuple[str, ...]) -> None:
    end = hook("ups-on-battery", *argv, event="before")
    assert (end.returncode, end.stdout) == (2, "")


def free_port() -> int:
    """A port of loopback that was free just now."""
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


class Nut:
    """The real NUT: its dummy driver, fed from a file, behind its real server."""

    def __init__(self, here: Path) -> None:
        self.port, self.device, self.processes = free_port(), here / "myups.dev", list[subprocess.Popen[bytes]]()
        self.name = f"myups@localhost:{self.port}"
        self.become("OL CHRG")
        (here / "ups.conf").write_text(f"[myups]\ndriver = dummy-ups\nport = {self.device}\nmode = dummy-once\n")
        (here / "upsd.conf").write_text(f"LISTEN 127.0.0.1 {self.port}\n")
        (here / "upsd.users").touch()
        (here / "state").mkdir(mode=0o700)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        environment = {"NUT_CONFPATH": str(here), "NUT_STATEPATH": f"{here}/state", "NUT_ALTPIDPATH": f"{here}/state"}
        for argv in (["/lib/nut/dummy-ups", "-a", "myups"], ["/lib/nut/upsd"]):
            with (here / "log").open("ab") as log:
                self.processes.append(
                    subprocess.Popen([*argv, "-u", user, "-D"], env=environment, stdout=log, stderr=log)
                )
        self.wait_for("OL CHRG")

    def become(self, words: str) -> None:
        """Let the UPS change its state."""
        fresh = self.device.with_suffix(".new")
        fresh.write_text(f"ups.status: {words}\nbattery.charge: 80\n")
        fresh.replace(self.device)

    def wait_for(self, words: str) -> None:
        """Until the server tells this state."""
        end, said = time.monotonic() + 30, ""
        while time.monotonic() < end:
            answer = subprocess.run(["upsc", self.name, "ups.status"], capture_output=True, text=True)
            said = answer.stdout.strip()
            if said == words:
                return
            time.sleep(0.1)
        raise AssertionError(f"the UPS never came to {words}, last {said}")

    def close(self) -> None:
        """End both programs."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(10)


@pytest.fixture
def nut(tmp_path: Path) -> Iterator[Nut]:
    """The real NUT, ended afterwards."""
    peer = Nut(tmp_path)
    yield peer
    peer.close()


@pytest.mark.slow
def test_the_real_nut_on_mains_on_battery_and_gone(hook: Any, nut: Nut) -> None:
    ask = ("ups-on-battery", "--with", "upsc", "--settle", "0", nut.name)
    assert hook(*ask, event="before").returncode == 0
    nut.become("OB DISCHRG")
    nut.wait_for("OB DISCHRG")
    battery = hook(*ask, event="before")
    assert (battery.returncode, battery.stdout) == (75, f"the UPS {nut.name} is on battery (OB DISCHRG)\n")
    nut.close()
    gone = hook(*ask, event="before")
    assert gone.returncode == 1
    assert f"upsc cannot read the UPS {nut.name}" in gone.stderr


class Report(socketserver.BaseRequestHandler):
    """apcupsd's network protocol: "status" asks, lines come back, each with its length in two bytes before it."""

    words = "ONLINE "

    def handle(self) -> None:
        size = int.from_bytes(self.request.recv(2))
        assert self.request.recv(size) == b"status"
        for line in APC.format(self.words).encode().splitlines(keepends=True):
            self.request.sendall(len(line).to_bytes(2) + line)
        self.request.sendall(b"\0\0")


def test_the_real_apcaccess_against_a_peer_that_speaks_its_protocol(hook: Any) -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), Report) as peer:
        thread = threading.Thread(target=peer.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            ask = ("ups-on-battery", "--with", "apcaccess", "--settle", "0", f"127.0.0.1:{peer.server_address[1]}")
            path = (
                f"{UNPACKED}/usr/sbin:{UNPACKED}/sbin:/usr/bin:/bin"  # Debian 13 has it in the first, 12 in the second
            )
            assert hook(*ask, event="before", path=path).returncode == 0
            Report.words = "ONBATT LOWBATT "
            assert hook(*ask, event="before", path=path).returncode == 75
        finally:
            Report.words = "ONLINE "
            peer.shutdown()
            thread.join()
