"""`make demo-fleet` as a newcomer sees it: it ends well, and tells its story to the end."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
def test_the_demonstration_of_a_fleet_runs_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.demo_fleet"], cwd=Path(__file__).parents[2], text=True,
        env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "silent  laptop: last seen 5 min" in done.stdout
    assert "late  web-2 documents" in done.stdout
    assert "Where to look next" in done.stdout
    assert "Warning" not in done.stdout
