"""Directories, windows of time, processes that live or are gone."""

import os
import subprocess
import sys
import time as clocks
from collections.abc import Iterator
from datetime import UTC, datetime, time
from pathlib import Path

import pytest

from orchestrator import compose

HOME = {"HOME": "/home/me"}


@pytest.mark.parametrize(
    ("environment", "root", "config", "state"),
    [
        ({}, True, "/etc/poolferry", "/var/lib/poolferry"),
        ({"XDG_CONFIG_HOME": "/x"}, True, "/etc/poolferry", "/var/lib/poolferry"),
        ({}, False, "/home/me/.config/poolferry", "/home/me/.local/state/poolferry"),
        ({"XDG_CONFIG_HOME": "/x", "XDG_STATE_HOME": "/y"}, False, "/x/poolferry", "/y/poolferry"),
        ({"XDG_CONFIG_HOME": "not/absolute"}, False, "/home/me/.config/poolferry", "/home/me/.local/state/poolferry"),
        ({"POOLFERRY_CONFIG": "/a", "POOLFERRY_STATE": "/b"}, True, "/a", "/b"),
        ({"POOLFERRY_CONFIG": "", "POOLFERRY_STATE": ""}, True, "/etc/poolferry", "/var/lib/poolferry"),
    ],
)
def test_where_things_are(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], root: bool, config: str, state: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    found = compose.find_directories(None, None, environment, root=root)
    assert (found.config, found.state) == (config, state)
    assert found.history == f"{state}/history.sqlite"
    told = compose.find_directories("/told", "/too", environment, root=root)
    assert (told.config, told.state) == ("/told", "/too")


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone with summer time."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    clocks.tzset()
    yield
    monkeypatch.undo()
    clocks.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    ("clock", "instant", "hours"),
    [
        (time(6, 30), datetime(2026, 7, 15, 0, 30, tzinfo=UTC), 4),  # 02:30 there
        (time(6, 30), datetime(2026, 7, 15, 20, 30, tzinfo=UTC), 8),  # 22:30 there: tomorrow's
        (time(6, 30), datetime(2026, 7, 15, 4, 30, tzinfo=UTC), 24),  # now: the next one
        (time(6, 30), datetime(2026, 3, 28, 23, 30, tzinfo=UTC), 5),  # the night that lacks an hour: 00:30 to 06:30
        (time(6, 30), datetime(2026, 10, 24, 22, 30, tzinfo=UTC), 7),  # the night with one more
    ],
)
def test_the_next_time_a_clock_shows(clock: time, instant: datetime, hours: float) -> None:
    assert compose.seconds_until(clock, instant) == hours * 3600


def test_we_are_alive_and_others_are_gone() -> None:
    me = compose.process_identity()
    assert me.pid == os.getpid()
    assert compose.is_process_alive(me.pid, me.started, me.boot)
    assert not compose.is_process_alive(me.pid, me.started + 1, me.boot)  # the number was given to another process
    assert not compose.is_process_alive(me.pid, me.started, "another boot")


def test_a_process_that_ended_is_gone_even_before_it_is_collected() -> None:
    boot = compose.process_identity().boot
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = compose._started(child.pid)
    assert started is not None
    assert compose.is_process_alive(child.pid, started, boot)
    child.stdin.close()  # type: ignore[union-attr]
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it ended, and lies there still
    assert not compose.is_process_alive(child.pid, started, boot)
    child.wait()
    assert not compose.is_process_alive(child.pid, started, boot)


def test_hooks_of_the_owner_come_first() -> None:
    where = compose.Directories(config="/etc/poolferry", state="/var/lib/poolferry")
    first, shipped = compose.hook_folders(where)
    assert first == "/etc/poolferry/hooks"
    assert os.access(os.path.join(shipped, "quiet-hours"), os.X_OK)


def test_no_hooks_are_taken_from_beside_an_installed_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    monkeypatch.setattr(compose, "_HERE", str(tmp_path / "orchestrator"))
    where = compose.Directories(config="/etc/poolferry", state="/var/lib/poolferry")
    assert compose.hook_folders(where) == ("/etc/poolferry/hooks",)
    (tmp_path / "orchestrator" / "hooks_shipped").mkdir(parents=True)
    assert compose.hook_folders(where)[1] == str(tmp_path / "orchestrator" / "hooks_shipped")


def test_engines_are_found_by_looking() -> None:
    sections = compose.EngineSections()
    assert "rsync" in set(sections)
    assert sections["rsync"].name == "rsync"
    assert sections.get("nothing") is None
