"""A disk that nobody waits for: not late, not asked for, and said so; and one that just stays away."""

from datetime import UTC, datetime, timedelta

from orchestrator.domain.rotation import DiskSnooze
from orchestrator.domain.units import Seconds
from orchestrator.planners.rotation import SetMember, choose_disk, judge_set
from tests.planners.rotation_world import NOW, disk, rotation

SNOOZED = DiskSnooze(since=NOW, until=NOW + timedelta(days=14), note="at a friend's")


def test_a_disk_that_nobody_waits_for_is_neither_late_nor_asked_for_until_its_time_is_over() -> None:
    pair = rotation("red", "blue", each_within=Seconds(86400 * 7))
    red = SetMember(disk=disk("red"), filled=NOW - timedelta(days=30), enrolled=NOW, snooze=SNOOZED)
    blue = SetMember(disk=disk("blue"), filled=NOW - timedelta(days=1), enrolled=NOW)
    health, requested = judge_set(pair, (red, blue), NOW), choose_disk(pair, (red, blue), NOW)
    assert (dict(health.overdue), requested.disk, requested.others) == ({}, blue.disk, (red.disk,))
    assert health.sleeping == ("disk red is not expected until 2026-12-04 12:00: at a friend's",)
    later = NOW + timedelta(days=14)
    health, requested = judge_set(pair, (red, blue), later), choose_disk(pair, (red, blue), later)
    assert (list(health.overdue), requested.disk, health.sleeping) == (["red", "blue"], red.disk, ())


def test_where_nobody_waits_for_any_disk_one_is_asked_for_all_the_same() -> None:
    red = SetMember(disk=disk("red"), filled=None, enrolled=NOW, snooze=SNOOZED)
    assert choose_disk(rotation("red"), (red,), NOW).disk == red.disk


def test_a_disk_that_nobody_waits_for_does_not_make_its_set_fresh() -> None:
    one = rotation("red", fresh_within=Seconds(86400))
    red = SetMember(disk=disk("red"), filled=NOW - timedelta(days=3), enrolled=NOW, snooze=SNOOZED)
    assert "3 d old" in judge_set(one, (red,), NOW).late


def test_a_quarter_with_three_disks_of_which_one_stays_away() -> None:
    """Every Monday the disk that is asked for comes; the green one is left at the office in the fifth week."""
    three = rotation(
        "red", "blue", "green", fresh_within=Seconds(8 * 86400), each_within=Seconds(30 * 86400), away_at_least=1
    )
    begun = datetime(2026, 1, 5, 9, tzinfo=UTC)
    filled = dict.fromkeys(("red", "blue", "green"), begun - timedelta(days=1))
    first: dict[str, int] = {}
    came: list[str] = []
    for day in range(91):
        now = begun + timedelta(days=day)
        members = [SetMember(disk=each, filled=filled[each.name], enrolled=begun) for each in three.disks]
        health, requested = judge_set(three, members, now), choose_disk(three, members, now)
        assert (health.late, health.all_here) == ("", ""), "some disk is fresh all the time"
        for name in health.overdue:
            first.setdefault(name, day)
        if day % 7 == 0:
            turn = [requested.disk, *requested.others]
            here = next(each for each in turn if each and (each.name != "green" or day < 28))
            came.append(here.name)
            filled[here.name] = now
    assert came[:6] == ["red", "blue", "green", "red", "blue", "red"]
    assert came[6:] == ["blue", "red", "blue", "red", "blue", "red", "blue"], "the others go on, each in its turn"
    assert first == {"green": 45}, "filled on day 14, and missed by its name when 30 days are over"
