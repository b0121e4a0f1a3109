"""freeze-postgresql: a real server, copied while it is written to, and started from the copy; where none is installed, a stand-in for psql."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
ROOT = os.geteuid() == 0
NOBODY = 65534


class Server:
    """A cluster of its own, as an ordinary user, that archives its WAL."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data, self.archive = folder, data, folder / "archive"

    def call(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(PROGRAMS[-1] / program), *words], capture_output=True, text=True, timeout=60, cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "HOME": str(self.folder)}, user=NOBODY if ROOT else None,
            group=NOBODY if ROOT else None, extra_groups=[] if ROOT else None,
        )  # fmt: skip

    def make(self) -> None:
        for path in (self.folder, self.archive):
            path.mkdir(exist_ok=True)
            if ROOT:
                os.chown(path, NOBODY, NOBODY)
        made = self.call("initdb", "-D", str(self.data), "-N", "-A", "trust", "-U", "postgres", "-E", "UTF8")
        assert made.returncode == 0, made.stderr
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(
                f"unix_socket_directories = '{self.folder}'\nlisten_addresses = ''\nfsync = off\nshared_buffers = '1MB'\n"
                f"archive_mode = on\narchive_command = 'cp %p {self.archive}/%f'\nautovacuum = off\n"
                f"restore_command = 'cp {self.archive}/%f %p'\n"
            )

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        done = self.call("pg_ctl", "-D", str(self.data), "-w", "-l", f"{self.data}.log", "start")
        assert done.returncode == 0, Path(f"{self.data}.log").read_text()

    def stop(self) -> None:
        self.call("pg_ctl", "-D", str(self.data), "-m", "immediate", "stop")

    def ask(self, text: str) -> str:
        """The answer of the server."""
        done = self.call("psql", "-h", str(self.folder), "-U", "postgres", "-Atqc", text, "postgres")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def server() -> Iterator[Server]:
    """A running one, in a folder that the ordinary user may enter."""
    with tempfile.TemporaryDirectory(prefix="poolferry-postgresql-", dir="/tmp") as folder:
        made = Server(Path(folder), Path(folder) / "data")
        made.make()
        made.start()
        yield made
        made.stop()


PSQL = """#!/bin/sh
case "$*" in *CHECKPOINT*) echo checkpoint >>"$0.told"; exit "${FAILS:-0}" ;; esac
while read -r line; do
    case $line in
    '\\echo held') echo opened >>"$0.told"; [ ! -e "$0.dies" ] || { echo "no such role" >&2; exit 2; }; echo held ;;
    "SELECT 'label"*) echo "label $(printf 'START WAL\nLABEL: x\n' | base64)"; echo stopped >>"$0.told" ;;
    esac
done
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A psql that answers what the real one was seen to, and writes what it did to psql.told; its folder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "psql").write_text(PSQL)
    (folder / "psql").chmod(0o755)
    (folder / "runuser").write_text('#!/bin/sh\nshift 3\nexec "$@"\n')
    (folder / "runuser").chmod(0o755)
    return folder


def test_a_session_is_open_from_one_event_to_the_other(
    hook: Callable[..., Any], stand_in: Path, tmp_path: Path
) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    (labels / "tablespace_map").write_text("of an earlier night")
    facts = {"state": str(tmp_path / "state"), "path": f"{stand_in}:/usr/bin:/bin"}
    lines = ("freeze-postgresql", "--backup", str(labels))
    assert hook(*lines, event="snapshot-before", **facts).returncode == 0
    assert (stand_in / "psql.told").read_text().split() == ["opened"]
    assert hook(*lines, event="snapshot-after", **facts).returncode == 0
    assert (stand_in / "psql.told").read_text().split() == ["opened", "stopped"]
    assert (labels / "backup_label").read_text() == "START WAL\nLABEL: x\n"
    assert [path.name for path in labels.iterdir()] == ["backup_label"]
    assert not list((tmp_path / "state" / "hooks").iterdir())
    assert hook(*lines, event="snapshot-after", **facts).returncode == 0, "nothing is held"


def test_a_session_that_nobody_ends_closes_by_itself_and_is_no_success(
    hook: Callable[..., Any], stand_in: Path, tmp_path: Path
) -> None:
    facts = {"state": str(tmp_path / "state"), "path": f"{stand_in}:/usr/bin:/bin"}
    lines = ("freeze-postgresql", "--backup", str(tmp_path), "--within", "2")
    assert hook(*lines, event="snapshot-before", **facts).returncode == 0
    _wait_for(lambda: "stopped" in (stand_in / "psql.told").read_text())
    ended = hook(*lines, event="snapshot-after", **facts)
    assert (ended.returncode, "let go by itself" in ended.stderr) == (1, True)


def test_a_server_that_refuses_is_told(hook: Callable[..., Any], stand_in: Path, tmp_path: Path) -> None:
    (stand_in / "psql.dies").touch()
    facts = {"state": str(tmp_path / "state"), "path": f"{stand_in}:/usr/bin:/bin"}
    begun = hook("freeze-postgresql", "--backup", str(tmp_path), event="snapshot-before", **facts)
    assert (begun.returncode, begun.stderr.strip()) == (1, "no such role")
    assert hook("freeze-postgresql", "--backup", str(tmp_path), event="snapshot-after", **facts).returncode == 0
    assert hook("freeze-postgresql", "--backup", "x", event="snapshot-before", **facts).returncode == 2
    assert hook("freeze-postgresql", event="done", **facts).returncode == 2


def words(server: Server) -> tuple[str, ...]:
    """Words that lead psql there."""
    return ("--as", "nobody" if ROOT else "", "--", "-h", str(server.folder), "-U", "postgres")


def _test_a_copy_of_files_that_changed_meanwhile_starts_with_its_label(
    hook: Callable[..., Any], server: Server, tmp_path: Path
) -> None:
    """Also: a checkpoint by itself; what a second begin finds left; and an end without a begin."""
    labels = tmp_path / "labels"
    labels.mkdir()
    facts = {"state": str(tmp_path / "state")}
    lines = ("freeze-postgresql", "--backup", str(labels), *words(server))
    plain = ("freeze-postgresql", *words(server))
    before = server.ask("SELECT checkpoint_lsn FROM pg_control_checkpoint()")
    server.ask("CREATE TABLE told AS SELECT generate_series(1, 1000) AS n")
    assert hook(*plain, event="snapshot-before", **facts).returncode == 0
    assert server.ask("SELECT checkpoint_lsn FROM pg_control_checkpoint()") != before
    assert hook(*plain, event="snapshot-after", **facts).returncode == 0
    assert hook(*lines, event="snapshot-after", **facts).returncode == 0, "nothing is held"

    for _ in range(2):  # the second one finds the session of a run that was killed
        begun = hook(*lines, event="snapshot-before", **facts)
        assert begun.returncode == 0, begun.stderr
    assert server.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'psql'") == "2"
    copy = Server(server.folder, server.folder / "copy")
    shutil.copytree(
        server.data / "base", copy.data / "base"
    )  # not at one instant: the rest is copied after more was written
    server.ask("INSERT INTO told SELECT generate_series(1001, 2000)")
    server.ask("CHECKPOINT")
    subprocess.run(["cp", "-a", "-n", f"{server.data}/.", str(copy.data)], check=True)
    ended = hook(*lines, event="snapshot-after", **facts)
    assert ended.returncode == 0, ended.stderr
    assert "START WAL LOCATION" in (labels / "backup_label").read_text()
    assert not (labels / "tablespace_map").exists() or not (labels / "tablespace_map").read_text()
    server.ask("INSERT INTO told VALUES (2001)")
    server.ask("SELECT pg_switch_wal()")
    stand = server.ask("SELECT count(*), sum(n) FROM told")
    _wait_for(lambda: any(server.archive.glob("*.backup")))
    server.stop()

    (copy.data / "postmaster.pid").unlink()
    shutil.copy(labels / "backup_label", copy.data)
    (copy.data / "recovery.signal").touch()
    subprocess.run(["chown", "-R", "--reference", str(server.data), str(copy.data)], check=True)
    copy.data.chmod(0o700)
    copy.start()
    try:
        assert copy.ask("SELECT count(*), sum(n) FROM told") == stand
    finally:
        copy.stop()


def _wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


if PROGRAMS:
    test_a_copy_of_files_that_changed_meanwhile_starts_with_its_label = (
        _test_a_copy_of_files_that_changed_meanwhile_starts_with_its_label
    )
