"""The name of a socket file appears when somebody listens behind it; what lies in the way is named, and stays."""

import os
import socket
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator.app.socket_file import listen_in_file


def test_whoever_sees_the_name_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "door.sock"
    seen: list[tuple[bool, int]] = []

    def rename(new: str, name: str) -> None:
        with socket.socket(socket.AF_UNIX) as caller:
            seen.append((path.exists(), caller.connect_ex(new)))
        os.replace(new, name)

    monkeypatch.setattr("os.rename", rename)  # what others see at the moment before the name appears
    with listen_in_file(str(path), mode=0o600, group=None, backlog=1):
        assert seen == [(False, 0)], "no name before; and who asks by it is not refused"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["door.sock"]
        with pytest.raises(OSError, match="somebody listens there already"):
            listen_in_file(str(path), mode=0o600, group=None, backlog=1)
    with listen_in_file(str(path), mode=0o600, group=None, backlog=0), ExitStack() as callers:
        for _ in range(2):  # its queue is full, and nobody is answered
            caller = callers.enter_context(socket.socket(socket.AF_UNIX))
            caller.setblocking(False)
            caller.connect_ex(str(path))
        with pytest.raises(OSError, match="somebody listens there already"):
            listen_in_file(str(path), mode=0o600, group=None, backlog=1)
    with listen_in_file(str(path), mode=0o660, group=os.getegid(), backlog=1):  # of one that was killed
        assert stat.S_IMODE(path.stat().st_mode) == 0o660


@pytest.mark.parametrize("name", ["door.sock", "door.soc~"])
def test_what_is_no_socket_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("words")
    with pytest.raises(OSError, match="something lies there that is no socket"):
        listen_in_file(str(tmp_path / "door.sock"), mode=0o600, group=None, backlog=1)
    assert (tmp_path / name).read_text() == "words"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_path_as_long_as_the_system_allows_will_do(tmp_path: Path) -> None:
    path = str(tmp_path / "d") + "~" * (107 - len(str(tmp_path / "d")))
    if len(path) > 107:
        pytest.fail("the test's own folder lies too deep")
    listen_in_file(path, mode=0o600, group=None, backlog=1).close()
