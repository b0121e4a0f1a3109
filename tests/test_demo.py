"""`make demo` as a newcomer sees it: it ends well, and tells its story to the end."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_demonstration_runs_to_its_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.demo"],
        cwd=Path(__file__).parent.parent,
        env={
            "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
            "TMPDIR": str(tmp_path),
            "HOME": str(tmp_path),
            "LC_ALL": "C.UTF-8",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "resumes: an interrupted copy lies in the target" in done.stdout
    assert "no difference between what was lost and what came back" in done.stdout
    assert "Where to look next" in done.stdout
