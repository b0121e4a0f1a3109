"""A disk that nobody waits for: not late, not asked for, and said so. Pure."""

from datetime import timedelta

from orchestrator.domain.rotation import Snooze
from orchestrator.domain.units import Seconds
from orchestrator.planners.rotation import Member, ask, judge_set
from tests.planners.rotating import NOW, disk, rotation

SNOOZED = Snooze(since=NOW, until=NOW + timedelta(days=14), note="at a friend's")


def test_a_disk_that_nobody_waits_for_is_neither_late_nor_asked_for_until_its_time_is_over() -> None:
    pair = rotation("red", "blue", each_within=Seconds(86400 * 7))
    red = Member(disk=disk("red"), filled=NOW - timedelta(days=30), enrolled=NOW, snooze=SNOOZED)
    blue = Member(disk=disk("blue"), filled=NOW - timedelta(days=1), enrolled=NOW)
    health, asked = judge_set(pair, (red, blue), NOW), ask(pair, (red, blue), NOW)
    assert (dict(health.overdue), asked.disk, asked.others) == ({}, blue.disk, (red.disk,))
    assert health.sleeping == ("nobody waits for disk red until 2026-12-04 12:00: at a friend's",)
    later = NOW + timedelta(days=14)
    health, asked = judge_set(pair, (red, blue), later), ask(pair, (red, blue), later)
    assert (list(health.overdue), asked.disk, health.sleeping) == (["red", "blue"], red.disk, ())


def test_where_nobody_waits_for_any_disk_one_is_asked_for_all_the_same() -> None:
    red = Member(disk=disk("red"), filled=None, enrolled=NOW, snooze=SNOOZED)
    assert ask(rotation("red"), (red,), NOW).disk == red.disk


def test_a_disk_that_nobody_waits_for_does_not_make_its_set_fresh() -> None:
    one = rotation("red", fresh_within=Seconds(86400))
    red = Member(disk=disk("red"), filled=NOW - timedelta(days=3), enrolled=NOW, snooze=SNOOZED)
    assert "3 d old" in judge_set(one, (red,), NOW).late
