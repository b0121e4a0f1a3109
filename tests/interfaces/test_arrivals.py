"""When disks were plugged in, from udev's links.

Changes things.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.rotation import RotationSet
from orchestrator.interfaces.arrivals import arrived, plugged_in
from tests.planners.rotating import BLUE_UUID, RED_UUID, disk


def job(name: str, schedule: str | None = "on attach") -> Job:
    rotation = RotationSet(name="offsite", disks=(disk("red"), disk("blue", identity=BLUE_UUID)))
    place = Place(name="offsite", location=Location(path="/run/x"), rotation=rotation)
    return Job(
        name=name, file="x", engine="rsync", source=Location(path="/s"), target=place, options=None, schedule=schedule
    )


def link(folder: Path, identity: str, at: int) -> None:
    (folder / identity).symlink_to("../../sdb")
    os.utime(folder / identity, (at, at), follow_symlinks=False)


def test_the_disk_that_came_last_counts(tmp_path: Path) -> None:
    jobs = [job("photos"), job("mail", "daily 02:30"), job("by-hand", None)]
    assert arrived(jobs, str(tmp_path)) == {}
    assert arrived(jobs, str(tmp_path / "no-udev")) == {}
    link(tmp_path, RED_UUID, 1_000_000)
    assert arrived(jobs, str(tmp_path)) == {"photos": datetime.fromtimestamp(1_000_000, UTC)}
    link(tmp_path, BLUE_UUID, 2_000_000)
    assert arrived(jobs, str(tmp_path)) == {"photos": datetime.fromtimestamp(2_000_000, UTC)}
    rotation = jobs[0].target.rotation
    assert rotation is not None
    assert plugged_in(rotation, str(tmp_path)) == ("red", "blue")
    (tmp_path / BLUE_UUID).unlink()
    assert plugged_in(rotation, str(tmp_path)) == ("red",)
    assert arrived(jobs, str(tmp_path)) == {"photos": datetime.fromtimestamp(1_000_000, UTC)}
