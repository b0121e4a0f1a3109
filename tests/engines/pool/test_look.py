"""The look at a pool, run by real shells: whose processes count as work. The programs of OpenZFS are stand-ins; tests/lab has the real ones."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.pool.commands import survey_command
from tests.hostile.conftest import AS_STRANGER
from tests.processes import argv_of
from tests.whole.house import wait_until


@contextmanager
def named(words: str, folder: Path, *front: str) -> Iterator[None]:
    """A process in a folder that waits, and is called zfs with these words among its arguments."""
    argv = [*front, "bash", "-c", f'exec -a zfs bash -c "read x" {words}']
    process = subprocess.Popen(argv, cwd=folder, stdin=subprocess.PIPE)
    try:
        wait_until(lambda: argv_of(process.pid)[:1] == ["zfs"])
        yield
    finally:
        assert process.stdin
        process.stdin.close()
        process.wait(30)


def work(folder: Path) -> list[str]:
    """The lines of work in the answer for the pool tank."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name, says in (("zpool", "echo zfs-2.3.4"), ("zfs", "true")):
        (programs / name).write_text(f"#!/bin/sh\n{says}\n")
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    argv = [
        word.replace("/proc/spl/kstat/zfs/arcstats", "/proc/meminfo")
        for word in survey_command(Location(path="tank")).argv
    ]
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False).stdout
    lines = told.split("\n")
    return lines[lines.index("=work") + 1 : -1]


@pytest.mark.root
def test_work_is_roots_and_our_users_alone(tmp_path: Path) -> None:
    """Any user may give a process of hers the words of a receive; before, a scrub then waited as long as she liked."""
    tmp_path.chmod(0o755)
    with named("receive tank/hers", Path("/"), *AS_STRANGER), named("receive tank/roots", Path("/")):
        told = "\n".join(work(tmp_path))
    assert "tank/roots" in told
    assert "tank/hers" not in told


def test_a_folders_name_adds_no_line(tmp_path: Path) -> None:
    """Before, the owner of a folder could have the answer end early, or name work of her own."""
    folder = tmp_path / "a\n=end\n/tank\tzfs receive tank"
    folder.mkdir(parents=True)
    with named("receive tank/photos", folder):
        told = work(tmp_path)
    assert told.count("=end") == 1
    assert told[-1] == "=end"
    assert [line for line in told if line.endswith("\tzfs -c read x receive tank/photos ")]
    assert not [line for line in told if line.startswith("/tank\t")]
