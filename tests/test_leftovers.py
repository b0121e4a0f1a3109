"""Later test runs and what a killed one left mounted: it costs them nothing, and no file behind the mount is removed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leftovers import folder_of_runs, let_go_of_mounts, mounts

pytestmark = [pytest.mark.slow, pytest.mark.root]
_HERE = Path(__file__).parent.parent


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folders of eight test runs; in the one with a blank in a name somebody's folder is mounted."""
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    root = folder_of_runs()
    for number in range(1, 9):
        (root / f"pytest-{number}" / "a test").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("somebody's")
    place = root / "pytest-1" / "a test"
    subprocess.run(["mount", "--bind", str(tmp_path / "kept"), str(place)], check=True)
    yield place
    for mount in (place, *root.glob("garbage-*/a test")):
        subprocess.run(["umount", "-l", str(mount)], check=False, capture_output=True)


def test_a_run_after_a_killed_one_ends_well_and_removes_nothing_behind_its_mounts(left: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "tests/domain/test_names.py"],
        cwd=_HERE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert (tmp_path / "kept" / "file").read_text() == "somebody's"
    assert left not in mounts()
    assert not left.exists()


def test_a_run_that_goes_on_keeps_its_mounts(left: Path) -> None:
    lock = left.parent / ".lock"
    lock.write_text(str(os.getpid()))
    let_go_of_mounts(folder_of_runs())
    assert left in mounts()
    over = subprocess.Popen(["true"])
    over.wait()
    lock.write_text(str(over.pid))
    let_go_of_mounts(folder_of_runs())
    assert left not in mounts()


@pytest.mark.namespace
def test_programs_with_own_mounts_let_go_with_us_and_other_test_runs_see_none(tmp_path: Path) -> None:
    script = """
import subprocess, sys
from pathlib import Path
from tests.leftovers import mounts, take_own_mounts
place = Path(sys.argv[1])
assert take_own_mounts()
subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
with subprocess.Popen(["unshare", "--mount", "--propagation", "slave", "sh", "-c", "echo ready; read -r line"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
    assert holder.stdout.readline() == "ready\\n"
    held = Path(f"/proc/{holder.pid}/mounts")
    assert f" {place} " in held.read_text()
    subprocess.run(["umount", str(place)], check=True)
    assert f" {place} " not in held.read_text(), "kept"
    subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
    holder.communicate("\\n")
assert place in mounts()
print("mounted", flush=True)
sys.stdin.read()
"""
    argv = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(argv, cwd=_HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "mounted\n"
        assert tmp_path not in mounts()
        other.communicate("")
        assert other.returncode == 0
