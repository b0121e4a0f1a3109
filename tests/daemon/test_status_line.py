"""The status line for systemd is one line, whatever name is in it."""

import socket
from pathlib import Path

import pytest

from orchestrator.daemon.sd_notify import ServiceManager


def test_no_name_makes_another_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(address)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        ServiceManager().status("runs a\nMAINPID=1\x1b\u202e\udcff")
        assert heard.recv(1000) == b"STATUS=runs a\\nMAINPID=1\\x1b\\u202e\\xff"
