"""One decision for one look: guards before the engine's plan, and what shall stay."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.domain.job import GuardLimits, Job, KeepRules, parse_limit
from orchestrator.domain.plan import Decision, NothingToDo, Plan, Refusal
from orchestrator.domain.point import Changes, FolderChanges
from orchestrator.engines.contract.copies import ChangeReporter
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.engines.registry import load_engine
from orchestrator.engines.rsync.model import RsyncSurvey, SourceSurvey
from orchestrator.runner.decide import (
    GROUND,
    decide_points,
    decide_run,
    given_up_folders,
    parse_ground,
    points_to_remove,
    protected_points,
    source_ground,
)
from tests.engines.rsync.builders import ASKED, CHANGED, EMPTY, FIRST, NOW, SOURCE, UNCHANGED, job, point, world

ENGINE = load_engine("rsync")


def decided(
    seen: RsyncSurvey,
    told: Job | None = None,
    requested: RunRequest = ASKED,
    folders: Mapping[bytes, int] | None = None,
) -> Decision:
    return decide_run(told or job(), ENGINE, seen, requested, folders or {})


MANY_GONE = replace(UNCHANGED, entries_before=10, entries_now=1, deleted=9, deleted_examples=(b"a",))


@pytest.mark.parametrize(
    ("changes", "kind"),
    [(CHANGED, Plan), (FIRST, Plan), (None, Plan), (UNCHANGED, NothingToDo), (MANY_GONE, Refusal)],
)
def test_the_guard_comes_before_the_plan(changes: Changes | None, kind: type) -> None:
    assert type(decided(world(changes=changes))) is kind


def test_a_guard_may_be_passed_once() -> None:
    refusal = decided(world(changes=MANY_GONE))
    assert isinstance(refusal, Refusal)
    assert refusal.guard == "max-deleted"
    assert isinstance(
        decided(world(changes=MANY_GONE), requested=replace(ASKED, allowed=frozenset({"max-deleted"}))), Plan
    )


def test_the_engines_own_refusal_comes_through() -> None:
    gone = decided(world(EMPTY, None, source=replace(SOURCE, exists=False, directory=False)))
    assert isinstance(gone, Refusal)
    assert gone.why == "the source /srv/photos is not there"


MOUNTED = replace(SOURCE, device=7, mounted=True)
UNMOUNTED = replace(SOURCE, device=1, mounted=False)


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (None, UNMOUNTED, Plan),
        ("device 7 mounted", MOUNTED, Plan),
        ("device 9 mounted", MOUNTED, Plan),  # a reboot gives other numbers
        ("device 1", MOUNTED, Plan),
        ("device 9", UNMOUNTED, Plan),
        ("device 7 mounted", UNMOUNTED, Refusal),  # the mount point without its disk
    ],
)
def test_a_source_whose_disk_is_away_is_refused(before: str | None, now: SourceSurvey, kind: type) -> None:
    requested = replace(ASKED, remembered={GROUND: before} if before else {})
    assert type(decided(world(source=now), requested=requested)) is kind


def test_what_is_remembered_of_a_filesystem() -> None:
    assert source_ground({"": ("7", True)}) == "device 7 mounted"
    assert implements(ENGINE, ChangeReporter)
    assert source_ground(ENGINE.ground(world())) == "device 1"


def test_limits_per_folder_judge_by_what_the_folder_held() -> None:
    told = replace(job(), guard=GuardLimits(max_deleted_per_folder=parse_limit("50%")))
    lost = replace(CHANGED, folders={b"d": FolderChanges(before=None, deleted=3, changed=0)})
    assert isinstance(decided(world(changes=lost), told, folders={b"d": 100}), Plan)
    assert isinstance(decided(world(changes=lost), told, folders={b"d": 4}), Refusal)


def test_points_that_keep_lets_go() -> None:
    points = [point(f"2026-03-0{day}T000000Z") for day in range(1, 5)]
    told = replace(job(), keep=KeepRules(daily=1))
    found = decide_points(points, told, now=NOW + timedelta(days=1), protected={points[1].name: "being read"})
    assert [each.point.name for each in points_to_remove(found)] == [points[0].name, points[2].name]
    assert all(each.reason for each in found)


def test_what_stays_whatever_keep_says() -> None:
    assert protected_points([], []) == {}
    assert protected_points(["2026-01-01", "2026-01-03", "2026-01-02"], ["2026-01-01"]) == {
        "2026-01-03": "the newest point that a reading found sound",
        "2026-01-01": "a restore or a reading is using it",
    }
    assert protected_points(["a"], ["a"]) == {"a": "a restore or a reading is using it"}


def test_each_folder_of_a_source_is_remembered_with_its_filesystem() -> None:
    ground = {"/home": ("7", True), "/srv/a\nb": ("7", False)}
    text = source_ground(ground)
    assert text == "/home: device 7 mounted\n/srv/a\\nb: device 7"
    assert parse_ground(text) == {"/home": True, "/srv/a\\nb": False}
    assert given_up_folders(text, ground) == ()
    assert given_up_folders(text, {"/home": ("8", True)}) == ("/srv/a\\nb",)
    assert (given_up_folders("device 7 mounted", ground), given_up_folders(None, ground)) == ((), ())
