"""Without udev there are no links to filesystems: a disk that is plugged in is found by reading devices."""

import os
from pathlib import Path

import pytest

from orchestrator.app.hotplug import LINKS
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(missing() != "", reason=missing()),
    pytest.mark.skipif(os.path.isdir(LINKS), reason="udev keeps links here"),
]


def test_a_disk_that_is_plugged_in_is_not_asked_for(tmp_path: Path) -> None:
    drawer = LoopDisks(tmp_path)
    drawer.enrolled("red")
    name = drawer.full("red")
    for command in ("disks", "status"):
        told = drawer.run(command).out
        assert f"Requested, and plugged in, is disk {name}" in told, told
        assert "Please plug in" not in told
    drawer.pull("red")
    assert f"Please plug in disk {name}" in drawer.run("disks").out
