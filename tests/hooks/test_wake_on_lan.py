"""wake-on-lan: a real magic packet starts a real sshd, and a real ssh login ends it again."""

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

MAC = "00:11:22:aa:bb:cc"
PACKET = b"\xff" * 6 + bytes.fromhex("001122aabbcc") * 16


class Sleeper:
    """A machine that sleeps until the magic packet comes: then its sshd runs, until somebody shuts it down over ssh."""

    def __init__(self, here: Path) -> None:
        self.here, self.packets, self.deaf = here, list[bytes](), False
        self.sshd: subprocess.Popen[bytes] | None = None
        with socket.create_server(("127.0.0.1", 0)) as line:
            self.port = int(line.getsockname()[1])
        for name in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", here / name], check=True)
        shutil.copy(here / "key.pub", here / "authorized_keys")
        (here / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {(here / 'host_key.pub').read_text()}")
        (here / "sshd_config").write_text(
            f"ListenAddress 127.0.0.1:{self.port}\nHostKey {here}/host_key\nPidFile {here}/sshd.pid\n"
            f"AuthorizedKeysFile {here}/authorized_keys\nStrictModes no\nPasswordAuthentication no\n"
        )
        (here / "ssh_config").write_text(
            f"Host *\nIdentityFile {here}/key\nUserKnownHostsFile {here}/known_hosts\nGlobalKnownHostsFile /dev/null\n"
        )
        self.ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.ear.bind(("127.0.0.1", 0))
        self.call = f"127.0.0.1:{self.ear.getsockname()[1]}"
        self.thread = threading.Thread(target=self.listen)
        self.thread.start()

    def listen(self) -> None:
        """Wake up at the first good packet; an empty one ends the listening."""
        while packet := self.ear.recv(2000):
            self.packets.append(packet)
            if packet == PACKET and not self.deaf and (self.sshd is None or self.sshd.poll() is not None):
                self.boot()

    def boot(self) -> None:
        """Start sshd."""
        program = shutil.which("sshd", path="/usr/sbin:/usr/bin") or "sshd"
        with (self.here / "log").open("ab") as log:
            self.sshd = subprocess.Popen([program, "-D", "-e", "-f", self.here / "sshd_config"], stdout=log, stderr=log)

    def boot_by_hand(self) -> None:
        """Somebody presses the button: wait until it greets."""
        self.boot()
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with socket.socket() as line:
                line.settimeout(2)
                if line.connect_ex(("127.0.0.1", self.port)) == 0 and line.recv(4) == b"SSH-":
                    return
            time.sleep(0.05)
        raise AssertionError((self.here / "log").read_text())

    @property
    def up(self) -> bool:
        return self.sshd is not None and self.sshd.poll() is None

    def close(self) -> None:
        """End everything."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
            line.sendto(b"", self.ear.getsockname())
        self.thread.join()
        self.ear.close()
        if self.sshd is not None:
            self.sshd.terminate()
            self.sshd.wait(10)


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Sleeper]:
    """The sleeping machine, ended afterwards."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd as root wants it; Debian makes it at boot
    machine = Sleeper(tmp_path)
    yield machine
    machine.close()


@pytest.fixture
def call(hook: Any, sleeper: Sleeper, tmp_path: Path) -> Any:
    """call(event, run=…): the hook as a job file names it, the same for every event."""

    def do(event: str, run: str = "1", within: str = "20", shutdown: str = f"kill $(cat {tmp_path}/sshd.pid)") -> Any:
        return hook(
            "wake-on-lan", MAC, "127.0.0.1", "--port", str(sleeper.port), "--broadcast", sleeper.call,
            "--within", within, "--ssh-config", str(tmp_path / "ssh_config"), "--shutdown", shutdown,
            "--state", str(tmp_path / "state" / "nas.json"), event=event, run=run,
        )  # fmt: skip

    return do


@pytest.mark.parametrize("end", ["done", "nothing-to-do", "waiting", "refused", "failed", "interrupted"])
@pytest.mark.sample(3)
def test_woken_before_and_sent_to_sleep_however_the_run_ends(call: Any, sleeper: Sleeper, end: str) -> None:
    before = call("before")
    assert (before.returncode, before.stderr) == (0, "")
    assert sleeper.up
    assert set(sleeper.packets) == {PACKET}
    after = call(end)
    assert (after.returncode, after.stderr, sleeper.up) == (0, "", False)


def test_a_machine_that_was_up_stays_up(call: Any, sleeper: Sleeper) -> None:
    sleeper.boot_by_hand()
    assert [call(event).returncode for event in ("before", "done")] == [0, 0]
    assert sleeper.up
    assert sleeper.packets == []


def test_the_last_of_two_runs_turns_off_the_light(call: Any, sleeper: Sleeper) -> None:
    for run in ("1", "2"):
        assert call("before", run).returncode == 0
    assert call("done", "1").returncode == 0
    assert sleeper.up
    assert call("failed", "2").returncode == 0
    assert not sleeper.up


def test_a_run_that_never_asked_shuts_nothing_down(call: Any, sleeper: Sleeper) -> None:
    call("before", "1")
    assert call("refused", "2").returncode == 0
    assert call("late", "1").returncode == 0
    assert sleeper.up


def test_one_that_does_not_wake_is_waited_for_and_later_taken_as_ours(call: Any, sleeper: Sleeper) -> None:
    sleeper.deaf = True
    end = call("before", within="1")
    assert (end.returncode, end.stderr) == (75, "127.0.0.1 did not wake within 1 s\n")
    assert call("waiting").returncode == 0
    sleeper.boot_by_hand()  # it was only slow
    assert [call(event, "2").returncode for event in ("before", "done")] == [0, 0]
    assert not sleeper.up


def test_one_turned_on_by_somebody_long_after_our_call_stays_up(call: Any, sleeper: Sleeper, tmp_path: Path) -> None:
    state = tmp_path / "state" / "nas.json"
    state.parent.mkdir()
    state.write_text(json.dumps({"woken": time.time() - 7200, "users": {"photos/0": time.time() - 8 * 86400}}))
    sleeper.boot_by_hand()
    assert [call(event).returncode for event in ("before", "done")] == [0, 0]
    assert sleeper.up


def test_a_run_that_never_told_its_end_counts_for_a_week_only(call: Any, sleeper: Sleeper, tmp_path: Path) -> None:
    state = tmp_path / "state" / "nas.json"
    state.parent.mkdir()
    for age, up in ((6, True), (8, False)):
        state.write_text(json.dumps({"woken": time.time() - 60, "users": {"photos/0": time.time() - age * 86400}}))
        if not sleeper.up:
            sleeper.boot_by_hand()
        assert [call(event).returncode for event in ("before", "done")] == [0, 0]
        assert sleeper.up is up


@pytest.mark.parametrize("broken", ["", "{", "null", "[]"])
def test_a_broken_memory_means_nothing_is_ours(call: Any, sleeper: Sleeper, tmp_path: Path, broken: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "nas.json").write_text(broken)
    sleeper.boot_by_hand()
    assert [call(event).returncode for event in ("before", "done")] == [0, 0]
    assert sleeper.up


def test_a_shutdown_that_does_nothing_is_an_error(call: Any, sleeper: Sleeper) -> None:
    call("before")
    end = call("done", within="1", shutdown="echo not permitted >&2")
    assert (end.returncode, sleeper.up) == (1, True)
    assert end.stderr == "127.0.0.1 is still up: not permitted\n"


def test_an_open_port_that_does_not_greet_is_not_awake(hook: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = str(mute.getsockname()[1])
        end = hook("wake-on-lan", MAC, "127.0.0.1", "--port", port, "--broadcast", "127.0.0.1:9", "--within", "1",
                   "--state", str(tmp_path / "nas.json"), event="before")  # fmt: skip
    assert end.returncode == 75


def test_a_network_that_is_down_waits(hook: Any, tmp_path: Path) -> None:
    end = hook("wake-on-lan", MAC, "127.0.0.1", "--port", "1", "--broadcast", "no.such.invalid", "--within", "1",
               "--state", str(tmp_path / "nas.json"), event="before")  # fmt: skip
    assert end.returncode == 75
    assert "cannot be called" in end.stderr


@pytest.mark.parametrize("argv", [(), ("00:11", "nas"), (MAC,), (MAC, "nas", "--broadcast", "1.2.3.4:x")])
def test_wrong_usage_is_2(hook: Any, argv: tuple[str, ...]) -> None:
    end = hook("wake-on-lan", *argv, event="before")
    assert end.returncode == 2
    assert "Traceback" not in end.stderr
