"""The machine sleeps under the clock: what was missed runs once, and says why. By the kernel's own clocks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ferry import ROOT


@pytest.mark.root
@pytest.mark.skipif(not Path("/proc/self/timens_offsets").exists(), reason="this kernel has no time namespaces")
def test_after_a_suspend_what_was_missed_is_owed_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.daemon.sleeper", str(tmp_path / "history.sqlite")]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    if "PermissionError" in told.stderr:
        pytest.skip("this root may enter no time namespace, as in a container")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert (found["before"], found["absences"]) == (0, ["the machine slept"])
    first, second = found["owed"]
    assert first == second
    slots, why = first["a"]
    assert slots == 16
    assert why == (
        'late: the machine slept from 2026-11-20 23:00 to 2026-11-21 07:00; at "*/30 * * * *"; '
        "due 2026-11-20 23:30 and 15 more until 2026-11-21 07:00"
    )
    assert found["begin"] == [["a"], ["a"]]
