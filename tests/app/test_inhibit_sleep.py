"""The machine is kept awake while a run goes on, and no longer; where it cannot be, runs go on."""

from pathlib import Path

import pytest

from orchestrator.app import worker as module
from orchestrator.app.worker import SleepInhibitor
from tests.daemon.daemon_world import until
from tests.processes import strays


@pytest.fixture
def requested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what the program that stands for systemd-inhibit was asked."""
    program, file = tmp_path / "inhibit", tmp_path / "asked"
    # It holds what it holds as long as it lives.
    program.write_text(f'#!/bin/sh\necho "$@" > {file}\nwhile :; do sleep 0.1; done\n')
    program.chmod(0o755)
    monkeypatch.setattr(module, "INHIBITOR", str(program))
    monkeypatch.setattr(module, "_BOOTED", str(tmp_path))
    monkeypatch.setattr(module, "_BUS", str(tmp_path))
    return file


def test_it_is_held_as_long_as_it_is_needed(requested: Path, tmp_path: Path) -> None:
    held = SleepInhibitor("sleep")
    held.need(True)
    held.need(True)
    until(lambda: requested.exists() and requested.read_text(), "it is asked for")
    assert requested.read_text().startswith("--what=sleep --mode=block --who=poolferry")
    until(lambda: len(strays(tmp_path)) == 1, "it is one, but for a child of its own that is not yet another program")
    held.need(False)
    until(lambda: strays(tmp_path) == [], "it is let go")
    held.need(False)


def test_who_wants_nothing_asks_for_nothing(requested: Path) -> None:
    held = SleepInhibitor("")
    held.need(True)
    held.need(False)
    assert not requested.exists()


def test_without_logind_nothing_is_asked(requested: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BOOTED", "/no/such/place")
    SleepInhibitor("sleep").need(True)
    assert not requested.exists()
