"""Test what the service manager hears: readiness, what goes on, that the daemon lives; by real datagrams."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.daemon.sd_notify import ServiceManager
from tests.daemon.daemon_world import daemon, until
from tests.ferry import Ferry


class Listener:
    """A manager's end of the line."""

    def __init__(self, address: str) -> None:
        self.heard: list[str] = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)

    def lines(self) -> list[str]:
        """All lines that came so far."""
        while True:
            try:
                self.heard += self.socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.heard


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    made = Listener(str(tmp_path / "notify"))
    yield made
    made.socket.close()


@pytest.mark.slow
def test_a_manager_hears_all_of_a_life(ferry: Ferry, listener: Listener, tmp_path: Path) -> None:
    ferry.job(more='daily = "02:30"\n')
    with daemon(ferry, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="1000000") as clock:
        until(lambda: "READY=1" in listener.lines(), "it is ready", lambda: clock.log)
        until(lambda: listener.lines().count("WATCHDOG=1") > 3, "it says that it lives", lambda: clock.log)
        assert any(line.startswith("STATUS=running: nothing; next photos at 20") for line in listener.lines())
        clock.send(signal.SIGHUP)
        until(lambda: "RELOADING=1" in listener.lines(), "it reloads", lambda: clock.log)
        until(lambda: listener.lines().count("READY=1") == 2, "it is ready again", lambda: clock.log)
        stamps = [line for line in listener.lines() if line.startswith("MONOTONIC_USEC=")]
        assert len(stamps) == 1
        assert clock.end() == 0
        assert "STOPPING=1" in listener.lines()


def test_an_abstract_address_is_understood_and_children_hear_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"poolferry-test-{os.getpid()}"
    listener = Listener(f"\0{name}")
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    manager = ServiceManager()
    manager.ready()
    manager.status("one")
    manager.status("one")
    assert listener.lines() == ["READY=1", "STATUS=one"]
    assert manager.ping_s is None  # the watchdog is another process's
    assert not {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} & set(os.environ)
    listener.socket.close()


def test_without_a_manager_nothing_is_told() -> None:
    ServiceManager().ready()
