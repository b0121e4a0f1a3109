"""Test which disk is asked for, who is overdue, and the sentences about it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.rotation import EXPECTS, WEEKDAYS, DiskState, IncrementBase, RotationSet, describe_place
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.rotation import (
    DiskRequest,
    SetMember,
    choose_disk,
    describe_arrival,
    describe_forecast,
    describe_request,
    explain_left_alone,
    judge_set,
    month_end,
)
from tests.planners.rotation_world import NOW, disk, rotation

DAY = Seconds(86400)


def member(name: str, days: float | None = None, **more: Any) -> SetMember:
    """Filled so many days ago."""
    filled = None if days is None else NOW - timedelta(days=days)
    told = {"disk": disk(name), "filled": filled, "enrolled": NOW - timedelta(days=100), **more}
    return SetMember(**told)


def requested(found: DiskRequest) -> tuple[str | None, list[str]]:
    return found.disk.name if found.disk else None, [each.name for each in found.others]


def test_the_oldest_is_asked_for_and_one_without_a_copy_first() -> None:
    found = choose_disk(rotation("a", "b", "c"), [member("a", 2), member("b", 16), member("c", 9)], NOW)
    assert requested(found) == ("b", ["c", "a"])
    assert found.why == "its copy is the oldest"
    found = choose_disk(rotation("a", "b"), [member("a", 2), member("b")], NOW)
    assert (requested(found), found.why) == (("b", ["a"]), "it has no whole copy yet")


def test_lost_and_retired_disks_are_not_asked_for() -> None:
    gone = [member("a", 90, standing=DiskState.LOST), member("b", 80, standing=DiskState.RETIRED)]
    assert requested(choose_disk(rotation("a", "b", "c"), [*gone, member("c", 1)], NOW)) == ("c", [])
    none = choose_disk(rotation("a", "b"), gone, NOW)
    assert (requested(none), none.why) == ((None, []), "no disk of it can take a copy")


@pytest.mark.parametrize(
    ("filled", "wanted"),
    [({"a": 3, "b": 2, "c": 1}, "a"), ({"b": 2}, "c"), ({}, "b"), ({"a": 1, "c": 2}, "b"), ({"x": 0.5}, "b")],
)
def test_a_fixed_order_goes_round(filled: dict[str, float], wanted: str) -> None:
    declared = rotation("a", "b", "c", expect="fixed", order=("b", "c", "a"))
    members = [member(name, filled.get(name)) for name in "abc"]
    gone = [member(name, days, standing=DiskState.LOST) for name, days in filled.items() if name == "x"]
    assert requested(choose_disk(declared, [*members, *gone], NOW))[0] == wanted


def test_by_weekday() -> None:
    declared = rotation("a", "b", expect="weekday")
    friday = member("b", 1, disk=disk("b", days=("friday",)))
    assert choose_disk(declared, [member("a"), friday], NOW).why == "today, friday, is its day"
    monday = member("a", 9, disk=disk("a", days=("monday", "thursday")))
    found = choose_disk(declared, [monday, member("b")], NOW)
    assert (requested(found), found.why) == (("a", ["b"]), "its day is monday")
    none = choose_disk(declared, [member("a"), member("b")], NOW)
    assert (requested(none)[0], none.why) == (None, "no disk that can take a copy has a day")


def test_one_disk_for_each_months_end() -> None:
    declared = rotation("a", "b", expect="month-end", keep_for=Seconds(60 * DAY))
    found = choose_disk(declared, [member("a", 45), member("b", 100)], NOW)
    assert (requested(found), found.why) == (("b", []), "the end of October 2026 is not on a disk yet")
    assert explain_left_alone(declared, member("a", 45), NOW) == "disk a is kept as it is until 2026-12-05"
    done = choose_disk(declared, [member("a", 45), member("b", 20)], NOW)
    assert (requested(done)[0], done.why) == (None, "disk b holds the end of October 2026")
    assert explain_left_alone(declared, member("b", 20), NOW) == "", "a copy of this month's end may be finished"
    assert explain_left_alone(rotation("a", expect="month-end"), member("a", 45), NOW) == ""
    assert explain_left_alone(declared, member("a"), NOW) == ""


@pytest.mark.parametrize(
    ("now", "end"),
    [((2026, 11, 20, 12), (2026, 10, 31)), ((2026, 11, 30, 1), (2026, 11, 30)), ((2026, 12, 1, 0), (2026, 11, 30)),
     ((2028, 2, 29, 5), (2028, 2, 29)), ((2027, 1, 15, 5), (2026, 12, 31))],
)  # fmt: skip
def test_when_a_month_ends(now: tuple[int, ...], end: tuple[int, ...]) -> None:
    assert month_end(datetime(*now, tzinfo=UTC)) == datetime(*end, tzinfo=UTC)  # type: ignore[misc,arg-type]


def test_each_disk_is_overdue_by_its_name() -> None:
    declared = rotation("a", "b", "c", "d", fresh_within=7 * DAY, each_within=30 * DAY)
    members = [
        member("a", 2), member("b", 41, place="office"), member("c", 99, standing=DiskState.LOST),
        member("d", None, enrolled=NOW - timedelta(days=31), here=True, place="attached"),
        member("e", None, enrolled=None),
    ]  # fmt: skip
    health = judge_set(declared, members, NOW)
    assert dict(health.overdue) == {
        "b": "no whole copy on disk b for 41 d (limit 30 d); it is at: office",
        "d": "no whole copy on disk d for 31 d (limit 30 d)",
    }
    assert (health.late, health.newest) == ("", NOW - timedelta(days=2))
    assert judge_set(rotation("a"), [member("a", 400)], NOW).overdue == {}, "nothing was promised"


def test_a_set_is_late_as_a_whole() -> None:
    declared = rotation("a", "b", fresh_within=7 * DAY)
    late = judge_set(declared, [member("a", 9), member("b", 12)], NOW).late
    assert late == "the newest whole copy on the set offsite is 9 d old (limit 7 d)"
    never = judge_set(declared, [member("a"), member("b", enrolled=NOW)], NOW).late
    assert never == "the newest whole copy on the set offsite is missing for 100 d (limit 7 d)"
    assert judge_set(declared, [], NOW).late == ""
    assert judge_set(declared, [member("a", 7)], NOW).late == "", "exactly at the limit it is fine"


def test_a_disk_that_a_wrong_clock_filled_is_missed_by_its_name() -> None:
    """It was filled in a year to come, so nobody would have missed it until then."""
    declared = rotation("a", "b", each_within=30 * DAY, fresh_within=7 * DAY)
    found = judge_set(declared, [member("a", -366), member("b", 3)], NOW)
    assert (found.late, list(found.overdue)) == ("", ["a"]), "the other one is fresh"
    assert found.overdue["a"] == (
        "the newest whole copy on disk a is dated 366 d after now: a clock was wrong, and its age is unknown (limit 30 d)"
    )
    found = judge_set(declared, [member("a", -366)], NOW)
    assert found.late.startswith("the newest whole copy on the set offsite is dated 366 d after now: a clock was wrong")
    assert judge_set(declared, [member("a", -0.02)], NOW).overdue == {}, "two clocks differ"


def test_too_many_members_at_home() -> None:
    declared = rotation("a", "b", "c", away_at_least=1)
    here = [member("a", here=True), member("b", here=True)]
    assert judge_set(declared, [*here, member("c")], NOW).all_here == ""
    told = judge_set(declared, [*here, member("c", here=True)], NOW).all_here
    assert told == "all members of the set offsite are here (a, b, c): 1 disk at least should be away"
    told = judge_set(rotation("a", "b", "c", away_at_least=2), [*here, member("c")], NOW).all_here
    assert told == "2 members of the set offsite are here (a, b): 2 disks at least should be away"
    assert judge_set(declared, [member("a", standing=DiskState.LOST, here=True)], NOW).all_here == ""
    told = judge_set(rotation("a", away_at_least=1), [member("a", here=True)], NOW).all_here
    assert told == "the set offsite has 1 disk, and 1 at least should be away: enroll another one"


def test_a_disk_that_was_just_visited_is_not_asked_for() -> None:
    declared = rotation("a")
    for seconds, begins in (
        (30, "No disk is needed now: the last visit ended 30 s ago. The next one is disk a: its copy is the oldest."),
        (7200, "Please plug in disk a: its copy is the oldest."),
        (-30, "Please plug in disk a: its copy is the oldest."),
    ):
        members = [member("a", 0, visited=NOW - timedelta(seconds=seconds))]
        told = describe_request(declared, choose_disk(declared, members, NOW), judge_set(declared, members, NOW), NOW)
        assert told.startswith(begins), told
    members = [member("a", 0, visited=NOW - timedelta(seconds=30))]
    chosen, health = choose_disk(declared, members, NOW), judge_set(declared, members, NOW)
    told = describe_request(declared, chosen, health, NOW, waits=True)
    assert told.startswith("Please plug in disk a: its copy is the oldest."), "a run waits for it"


def test_places_that_visits_note_are_told_in_words() -> None:
    assert describe_place("office") == "it is at: office"
    assert describe_place("in transit") == "it was taken away after its last visit, and nobody said where to"
    assert (describe_place("here"), describe_place("")) == ("it was last at this machine", "")


def test_the_request_names_the_disk_the_others_and_the_age() -> None:
    declared = rotation("a", "b", "c", fresh_within=7 * DAY)
    members = [member("a", 9), member("b", 16, disk=disk("b", note="blue")), member("c", 12)]
    told = describe_request(declared, choose_disk(declared, members, NOW), judge_set(declared, members, NOW), NOW)
    assert told == (
        "Please plug in disk b (blue): its copy is the oldest. c or a are also accepted."
        " Newest whole copy on this set: 9 d old (limit 7 d)."
    )
    short = describe_request(
        declared, choose_disk(declared, members, NOW), judge_set(declared, members, NOW), NOW, age=False
    )
    assert short == "Please plug in disk b (blue): its copy is the oldest. c or a are also accepted."
    here = describe_request(
        declared, choose_disk(declared, members, NOW), judge_set(declared, members, NOW), NOW, {"b"}
    )
    assert here.startswith("Requested, and plugged in, is disk b (blue): its copy is the oldest.")
    few = [member("a"), member("b")]
    told = describe_request(
        rotation("a", "b"), choose_disk(declared, few, NOW), judge_set(rotation("a", "b"), few, NOW), NOW
    )
    assert told.endswith("b is also accepted. Newest whole copy on this set: never made.")
    nobody = choose_disk(declared, [], NOW)
    assert describe_request(declared, nobody, judge_set(declared, [], NOW), NOW) == (
        "The set offsite requests no disk: it has no disk yet."
    )


def test_an_unexpected_member_is_accepted_and_told() -> None:
    found = choose_disk(rotation("a", "b"), [member("a", 1), member("b", 5)], NOW)
    assert describe_arrival(disk("b"), found) == "disk b is plugged in"
    assert describe_arrival(disk("a"), found) == "disk a is plugged in, expected was b; going on with a"
    assert describe_arrival(disk("a"), DiskRequest(disk=None, others=(), why="")) == "disk a is plugged in"


def base(**more: Any) -> IncrementBase:
    return IncrementBase(
        **{"dataset": "tank/x", "snapshot": True, "bookmark": True, "kept": None, "whole": Bytes(3 << 30), **more}
    )


@pytest.mark.parametrize(
    ("bases", "told"),
    [
        ([], "a full copy: there is none yet"),
        ([base()], "incremental"),
        ([base(snapshot=False)], "incremental"),
        ([base(bookmark=False)], "incremental"),
        ([base(bookmark=False, kept=NOW), base(bookmark=False, kept=NOW + timedelta(days=1))], "incremental until 2026-11-20"),
        ([base(bookmark=False, snapshot=False), base()], "needs a re-seed of 3.0 GiB (tank/x): it must be approved"),
        ([base(bookmark=False, snapshot=False, whole=None)], "needs a re-seed of unknown size (tank/x): it must be approved"),
    ],
)  # fmt: skip
def test_the_forecast(bases: list[IncrementBase], told: str) -> None:
    assert describe_forecast(disk(content="zfs"), bases) == told
    assert describe_forecast(disk(), bases) == "files that changed"
    assert describe_forecast(disk(), bases, new=True) == "a full copy: there is none yet"


MEMBERS = st.lists(
    st.builds(
        member, st.sampled_from("abcd"), st.none() | st.floats(0, 400), here=st.booleans(),
        standing=st.sampled_from(DiskState), enrolled=st.just(NOW - timedelta(days=400)),
    ),
    unique_by=lambda each: each.disk.name,
)  # fmt: skip
SETS = st.builds(
    lambda expect, limit: rotation(
        *"abcd", expect=expect, order=tuple("badc") if expect == "fixed" else (), each_within=limit, fresh_within=limit,
        keep_for=limit,
    ),
    st.sampled_from(EXPECTS), st.none() | st.integers(1, 9_000_000).map(Seconds),
)  # fmt: skip


@given(SETS, MEMBERS)
def test_every_active_member_is_asked_for_accepted_or_left_alone(
    declared: RotationSet, members: list[SetMember]
) -> None:
    found = choose_disk(declared, members, NOW)
    named = [each.name for each in (*found.others, *([found.disk] if found.disk else []))]
    alone = {each.disk.name for each in members if explain_left_alone(declared, each, NOW)}
    active = {each.disk.name for each in members if each.standing is DiskState.ACTIVE}
    assert sorted(named) == sorted(active - alone)
    assert describe_request(declared, found, judge_set(declared, members, NOW), NOW)


@given(SETS, MEMBERS, st.floats(0, 1000))
def test_with_time_alone_nothing_gets_better(declared: RotationSet, members: list[SetMember], days: float) -> None:
    now = judge_set(declared, members, NOW)
    later = judge_set(declared, members, NOW + timedelta(days=days))
    assert not now.late or later.late
    assert now.overdue.keys() <= later.overdue.keys()


def test_a_three_disk_rotation_over_a_quarter_takes_them_in_turn() -> None:
    declared = rotation("a", "b", "c", fresh_within=8 * DAY, each_within=22 * DAY)
    filled: dict[str, datetime | None] = dict.fromkeys("abc")
    turns, now = [], NOW
    for _ in range(13):
        members = [SetMember(disk=disk(name), filled=filled[name], enrolled=NOW) for name in "abc"]
        chosen = choose_disk(declared, members, now).disk
        assert chosen is not None
        assert judge_set(declared, members, now).overdue == {}
        assert judge_set(declared, members, now).late == ""
        filled[chosen.name] = now
        turns.append(chosen.name)
        now += timedelta(days=7)
    assert turns == list("abc" * 4 + "a")
    now += timedelta(days=2)
    members = [SetMember(disk=disk(name), filled=filled[name], enrolled=NOW) for name in "abc"]
    assert list(judge_set(declared, members, now).overdue) == ["b"]
    assert WEEKDAYS[NOW.weekday()] == "friday"
