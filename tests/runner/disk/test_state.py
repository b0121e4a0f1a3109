"""Test what is remembered of disks, put together; a job as it is on one disk; and what its lock is then."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app.job_status import judge_job
from orchestrator.domain.errors import NotNow
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location, Place
from orchestrator.domain.rotation import VISIT_WITHIN, DiskState
from orchestrator.domain.units import Seconds
from orchestrator.history.store import History, open_history
from orchestrator.planners.health import JobState
from orchestrator.runner.disk.state import (
    explain_not_due,
    find_disk_record,
    job_on_disk,
    jobs_of_set,
    order_jobs,
    reach_commands,
    survey_set_members,
    was_tagged,
)
from orchestrator.runner.locks import lock_job
from tests.engines.rsync.builders import job as plain
from tests.history.records import begin
from tests.planners.rotation_world import BLUE_UUID, KEY, NOW, RED_UUID, disk, known, rotation

RED, BLUE = disk("red"), disk("blue", identity=BLUE_UUID)
SET = replace(rotation(), disks=(RED, BLUE))


def job(name: str = "photos", path: str = "/run/poolferry/disks/offsite/photos", **more: Any) -> Job:
    place = Place(name="offsite", location=Location(path=path), rotation=SET)
    return replace(plain(), name=name, target=place, **more)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("/run/poolferry/disks/offsite/photos", "/run/poolferry/disks/red/photos"),
        ("poolferry-offsite/photos/tank", "poolferry-red/photos/tank"),
    ],
)
def test_a_job_on_a_disk_lies_where_the_disk_is(path: str, there: str) -> None:
    placed = job_on_disk(job(path=path), RED, "sdb1")
    reach = reach_commands(RED)
    wanted = Place(
        name="red", location=Location(path=there), disk="red", device="sdb1", reach=reach, within=VISIT_WITHIN
    )
    assert placed.target == wanted
    assert not placed.target.rotates


def test_the_jobs_of_a_set() -> None:
    other = replace(plain(), target=Place(name="offsite", location=Location(path="/x")))
    assert jobs_of_set(SET, [job(), other]) == (job(),)


def test_jobs_run_behind_those_that_they_wait_for() -> None:
    a, b, c = job("a", after=("c", "elsewhere")), job("b"), job("c", after=("b",))
    assert order_jobs([a, b, c]) == (b, c, a)
    assert order_jobs([c, b]) == (b, c)
    assert order_jobs([a]) == (a,)


def test_a_disk_is_remembered_by_its_identity() -> None:
    assert find_disk_record([known(name="crimson")], RED) == known(name="crimson")
    assert find_disk_record([known()], BLUE) is None
    assert RED.identity == RED_UUID


def copied(history: History, name: str, place: str, days: float) -> None:
    run = begin(history, name, now=NOW - timedelta(days=days))
    history.points_seen(name, place, {"2026-01-01T000000Z": NOW - timedelta(days=days)}, NOW)
    history.point_verified(name, place, "2026-01-01T000000Z", run, NOW)


def test_a_disk_is_filled_as_of_the_oldest_of_its_jobs(history: History) -> None:
    history.disks.keep(known())
    history.disks.is_at("d1", "office", note="", now=NOW)
    jobs = (job(), job("mail"))
    copied(history, "photos", "red", 2)
    red, blue = survey_set_members(SET, jobs, history.views, here=["blue"], now=NOW)
    assert (red.filled, red.place, red.here, red.standing, red.enrolled) == (
        None,
        "office",
        False,
        DiskState.ACTIVE,
        NOW,
    )
    assert (blue.filled, blue.place, blue.here, blue.enrolled) == (None, "", True, None)
    copied(history, "mail", "red", 5)
    copied(history, "mail", "blue", 1)
    red, blue = survey_set_members(SET, jobs, history.views, now=NOW)
    assert (red.filled, blue.filled) == (NOW - timedelta(days=5), None)
    assert [each.filled for each in survey_set_members(SET, (), history.views, now=NOW)] == [None, None], (
        "no job: nothing is whole"
    )


def test_what_a_disk_is_owed(history: History) -> None:
    paused, rests = job("mail"), job(min_interval=Seconds(3600))
    assert explain_not_due(job(), RED, history.views, NOW) == explain_not_due(rests, RED, history.views, NOW) == ""
    history.due_runs.pause("mail", now=NOW, until=NOW + timedelta(hours=1), why="")
    assert explain_not_due(paused, RED, history.views, NOW) == "it is paused"
    assert explain_not_due(paused, RED, history.views, NOW + timedelta(hours=1)) == ""
    begin(history, "photos", now=NOW - timedelta(minutes=30), target="/run/poolferry/disks/red/photos")
    assert "30 min ago, and min-interval is 1 h" in explain_not_due(rests, RED, history.views, NOW)
    assert explain_not_due(rests, BLUE, history.views, NOW) == "", "another disk"
    assert explain_not_due(rests, RED, history.views, NOW + timedelta(minutes=30)) == ""
    assert explain_not_due(rests, RED, history.views, NOW - timedelta(days=1)) == "", "a clock that was wrong"


def hold(each: Job, state: Path) -> contextlib.AbstractContextManager[tuple[int, ...]]:
    return lock_job(each, str(state), wait=lambda _: True, patience=0)


def test_what_hangs_on_a_disk_that_is_gone_does_not_keep_other_disks_from_their_turn(tmp_path: Path) -> None:
    with contextlib.ExitStack() as strays:
        with hold(job_on_disk(job(), RED), tmp_path) as inherited:
            for descriptor in inherited:  # as a child holds them that outlives us
                strays.callback(os.close, os.dup(descriptor))
        with hold(job_on_disk(job(), BLUE), tmp_path):
            pass
        with pytest.raises(NotNow), hold(job_on_disk(job("mail"), RED), tmp_path):
            pass


def test_when_a_disk_must_carry_our_tag(history: History) -> None:
    """KEY was made at NOW: whatever was written since then has its tag, and what was written before is never missed."""
    day, views = timedelta(days=1), history.views
    old = known(enrolled=NOW - 9 * day)
    assert not was_tagged(None, KEY, views)
    assert not was_tagged(old, KEY, views)
    assert was_tagged(known(enrolled=NOW + day), KEY, views)
    history.disks.keep(old)
    end: dict[str, Any] = {"jobs": [], "why": "", "released": None, "safe": False}
    history.disks.visit_ended(history.disks.begin_visit("d1", NOW - day), outcome="done", **end)
    assert not was_tagged(old, KEY, views)
    history.disks.visit_ended(history.disks.begin_visit("d1", NOW + day), outcome="refused", **end)
    assert not was_tagged(old, KEY, views), "what only looked like it was not marked"
    history.disks.visit_ended(history.disks.begin_visit("d1", NOW + day), outcome="done", **end)
    assert was_tagged(old, KEY, views)
    assert not was_tagged(replace(old, generation=6), KEY, views), "the last marker was perhaps never written"


def test_how_a_disk_comes_to_its_place_without_us() -> None:
    folder = "/run/poolferry/disks/red"
    plain = replace(RED, identity="u1", content="ext4", inside=None)
    assert reach_commands(plain) == (
        f"mkdir -p {folder}", f"mountpoint -q {folder} || mount -o ro UUID=u1 {folder}",
    )  # fmt: skip
    locked = replace(plain, inside="u2", key_file="/root/my key")
    assert reach_commands(locked) == (
        "[ -e /dev/mapper/poolferry-red ] || cryptsetup open --key-file '/root/my key' /dev/disk/by-uuid/u1 poolferry-red",
        f"mkdir -p {folder}", f"mountpoint -q {folder} || mount -o ro UUID=u2 {folder}",
    )  # fmt: skip
    pool = "zpool list poolferry-red >/dev/null 2>&1 || zpool import -N poolferry-red"
    assert reach_commands(replace(RED, content="zfs", inside=None)) == (pool,)
    assert reach_commands(replace(RED, content="zfs", inside="1", key_file=None, identity="u1"))[1:] == (pool,)


def test_only_a_disk_that_is_expected_is_missed_by_a_promise_of_reading(history: History) -> None:
    history.disks.keep(known())
    copied(history, "photos", "red", 100)
    one = job(verify=VerifyRules(read_all_within=Seconds(90 * 86400.0)))

    def told() -> tuple[JobState, str]:
        found = judge_job(one, history.views, now=NOW, alive=lambda *_: True)
        return found.health.state, found.hint

    assert told() == (JobState.LATE, "plug in disk red, and: poolferry verify photos --due")
    for standing in (DiskState.LOST, DiskState.RETIRED):
        history.disks.keep(replace(known(), standing=standing))
        assert told()[0] is not JobState.LATE, standing
    history.disks.keep(known())
    history.disks.snooze("d1", until=NOW + timedelta(days=1), note="", now=NOW)
    assert told()[0] is not JobState.LATE
