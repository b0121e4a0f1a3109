"""Test when disks were plugged in, from udev's links."""

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.app import disk_report
from orchestrator.app import hotplug as arrivals
from orchestrator.app.hotplug import find_arrivals, find_plugged_in, left_plugged_in_lines
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.rotation import DiskVisit, RotationSet
from tests.planners.rotation_world import BLUE_UUID, NOW, RED_UUID, disk


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
    assert find_arrivals(jobs, str(tmp_path)) == {}
    assert find_arrivals(jobs, str(tmp_path / "no-udev")) == {}
    link(tmp_path, RED_UUID, 1_000_000)
    assert find_arrivals(jobs, str(tmp_path)) == {"photos": datetime.fromtimestamp(1_000_000, UTC)}
    link(tmp_path, BLUE_UUID, 2_000_000)
    assert find_arrivals(jobs, str(tmp_path)) == {"photos": datetime.fromtimestamp(2_000_000, UTC)}
    rotation = jobs[0].target.rotation
    assert rotation is not None
    assert find_plugged_in(rotation, str(tmp_path)) == ("red", "blue")
    (tmp_path / BLUE_UUID).unlink()
    assert find_plugged_in(rotation, str(tmp_path)) == ("red",)
    assert find_arrivals(jobs, str(tmp_path)) == {"photos": datetime.fromtimestamp(1_000_000, UTC)}


def test_without_udev_devices_are_read_and_who_may_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rotation = RotationSet(name="offsite", disks=(disk("red"), disk("blue", identity=BLUE_UUID)))
    read = []

    def read_identities() -> frozenset[str]:
        read.append(1)
        return frozenset({RED_UUID})

    monkeypatch.setattr(arrivals, "_read_identities", read_identities)
    monkeypatch.setattr(arrivals, "has_links", lambda: False)
    assert find_plugged_in(rotation) == ("red",)
    assert find_plugged_in(replace(rotation, disks=())) == ()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert arrivals.sees_disks()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not arrivals.sees_disks()
    monkeypatch.setattr(arrivals, "has_links", lambda: True)
    assert arrivals.sees_disks()
    assert find_plugged_in(rotation) == ()
    assert len(read) == 1


def test_the_table_of_disks_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rotation = RotationSet(name="offsite", disks=(disk("red"),))
    monkeypatch.setattr(disk_report, "sees_disks", lambda: False)
    (line,) = disk_report._left(rotation, {}, str(tmp_path), NOW)
    assert "cannot be seen" in line
    assert "with sudo" in line


def test_a_link_to_a_pool_that_lost_its_disk_is_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_BLOCK", str(tmp_path / "block"))
    slaves = tmp_path / "block/dm-0/slaves"
    slaves.mkdir(parents=True)
    (slaves / "sdb").symlink_to(tmp_path / "sdb")
    (tmp_path / RED_UUID).symlink_to("../../dm-0")
    rotation = RotationSet(name="offsite", disks=(disk("red"),))
    assert find_plugged_in(rotation, str(tmp_path)) == ()
    (tmp_path / "sdb").mkdir()
    assert find_plugged_in(rotation, str(tmp_path)) == ("red",)


def test_who_was_let_go_and_is_still_here_is_told_of(tmp_path: Path) -> None:
    rotation = RotationSet(name="offsite", disks=(disk("red", note="red sticker"), disk("blue", identity=BLUE_UUID)))
    visit = DiskVisit(
        id=1, disk="d1", arrived=NOW, jobs=(), outcome="done", why="", released=NOW + timedelta(minutes=5), safe=True
    )
    assert left_plugged_in_lines(rotation, {RED_UUID: visit}, str(tmp_path)) == ()
    for identity in (RED_UUID, BLUE_UUID):
        link(tmp_path, identity, 1_000_000)
    (told,) = left_plugged_in_lines(rotation, {RED_UUID: visit}, str(tmp_path))
    assert told.startswith("disk red (red sticker) is still plugged in, and safe to remove since ")
    (told,) = left_plugged_in_lines(
        rotation, {RED_UUID: replace(visit, beside="/dev/sdz1 is mounted at /srv")}, str(tmp_path)
    )
    assert told.endswith(
        "; take out this disk alone: in the same case /dev/sdz1 is mounted at /srv, so leave the case plugged in and switched on"
    )
    assert left_plugged_in_lines(rotation, {RED_UUID: replace(visit, released=None, safe=False)}, str(tmp_path)) == ()
