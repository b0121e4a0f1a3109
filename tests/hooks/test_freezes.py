"""freeze-mariadb, freeze-guests, freeze-containers: what they order, and in which order, of stand-ins that answer as the real ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MARIADB = """#!/bin/sh
case "$*" in *VERSION*) cat "$0.version"; exit ;; esac
while read -r line; do
    echo "$line" >>"$0.told"
    case $line in *"'held'"*) echo held ;; esac
done
"""
VIRSH = """#!/bin/sh
echo "$*" >>"$0.told"
case "$1 $3" in
"domstate off") echo "shut off" ;;
"domstate "*) echo running ;;
"domfsfreeze deaf" | "domfsthaw deaf") echo "error: Guest agent is not responding" >&2; exit 1 ;;
esac
"""
DOCKER = """#!/bin/sh
for name; do :; done
case $1 in
inspect) cat "$0.$name" ;;
pause) echo paused >"$0.$name"; echo "$*" >>"$0.told" ;;
unpause) echo "$*" >>"$0.told"; [ ! -e "$0.stuck" ] || exit 1; echo running >"$0.$name" ;;
esac
"""
Call = Callable[..., Any]


@pytest.fixture
def call(hook: Call, tmp_path: Path) -> Call:
    """call(argv…, event=…): the hook with the stand-ins in its PATH."""
    for name, text in {"mariadb": MARIADB, "virsh": VIRSH, "docker": DOCKER}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)

    def made(*argv: str, event: str) -> Any:
        return hook(*argv, event=f"snapshot-{event}", path=f"{tmp_path}:/usr/bin:/bin", state=str(tmp_path / "state"))

    return made


def told(tmp_path: Path, name: str) -> list[str]:
    """Return the lines that a stand-in was told, and forget them."""
    file = tmp_path / f"{name}.told"
    found = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return found


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("10.11.19-MariaDB-0+deb12u1", "BACKUP STAGE BLOCK_COMMIT"),
        ("11.8.3-MariaDB", "BACKUP STAGE BLOCK_COMMIT"),
        ("10.3.39-MariaDB", "FLUSH TABLES WITH READ LOCK"),
        ("8.4.5", "FLUSH TABLES WITH READ LOCK"),
    ],
)
def test_the_servers_version_decides_how_it_is_held(call: Call, tmp_path: Path, version: str, words: str) -> None:
    (tmp_path / "mariadb.version").write_text(version)
    assert call("freeze-mariadb", event="before").returncode == 0
    (opened,) = told(tmp_path, "mariadb")
    assert opened.index("lock_wait_timeout = 20") < opened.index(words) < opened.index("held")
    assert call("freeze-mariadb", event="after").returncode == 0
    assert told(tmp_path, "mariadb") == ["BACKUP STAGE END;" if "STAGE" in words else "UNLOCK TABLES;"]
    assert call("freeze-mariadb", event="after").returncode == 0


def test_each_guest_that_runs_is_frozen_and_each_is_thawed(call: Call, tmp_path: Path) -> None:
    assert call("freeze-guests", "web", "off", event="before").returncode == 0
    assert [line for line in told(tmp_path, "virsh") if "fs" in line] == ["domfsfreeze -- web"]
    assert call("freeze-guests", "deaf", "web", event="before").returncode == 1
    assert [line for line in told(tmp_path, "virsh") if "fs" in line] == ["domfsfreeze -- deaf"]
    assert call("freeze-guests", "deaf", "web", event="after").returncode == 1
    assert [line for line in told(tmp_path, "virsh") if "fs" in line] == ["domfsthaw -- deaf", "domfsthaw -- web"]
    assert call("freeze-guests", event="after").returncode == 2


def test_only_what_was_paused_here_is_unpaused(call: Call, tmp_path: Path) -> None:
    for name, state in {"web": "running", "mine": "paused", "old": "exited", "db": "running"}.items():
        (tmp_path / f"docker.{name}").write_text(state)
    names = ("web", "mine", "old", "db")
    assert call("freeze-containers", *names, event="before").returncode == 0
    assert told(tmp_path, "docker") == ["pause -- web", "pause -- db"]
    (tmp_path / "docker.stuck").touch()
    assert call("freeze-containers", *names, event="after").returncode == 1
    (tmp_path / "docker.stuck").unlink()
    assert call("freeze-containers", *names, event="after").returncode == 0
    assert told(tmp_path, "docker") == ["unpause -- web", "unpause -- db"] * 2
    assert (tmp_path / "docker.mine").read_text() == "paused"
    assert call("freeze-containers", *names, event="after").returncode == 0
    assert told(tmp_path, "docker") == []
