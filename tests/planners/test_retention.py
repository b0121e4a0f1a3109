"""Retention: which rule keeps a point, and what no rule may ever do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.job import KeepRules
from orchestrator.domain.names import point_name
from orchestrator.domain.place import Location
from orchestrator.domain.point import RestorePoint
from orchestrator.planners.retention import RetentionDecision, decide_retention

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def point(taken: datetime) -> RestorePoint:
    return RestorePoint(name=point_name(taken), taken=taken, tree=Location(path="/backup"), manifest=None)


def points(*instants: str) -> list[RestorePoint]:
    return [point(datetime.fromisoformat(instant).replace(tzinfo=UTC)) for instant in instants]


def decided(
    given_points: Sequence[RestorePoint],
    keep: KeepRules,
    *,
    now: datetime = NOW,
    protected: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The reason for each point that stays; the others under "-" in front of their name."""
    decisions = decide_retention(given_points, keep, now=now, protected=protected or {})
    return {("" if each.keep else "-") + each.point.name: each.reason for each in decisions}


def test_the_newest_point_of_each_day_stays_and_says_so() -> None:
    found = decided(
        points("2026-11-18T02:30", "2026-11-19T02:30", "2026-11-19T14:00", "2026-11-20T02:30"), KeepRules(daily=2)
    )
    assert found == {
        "-2026-11-18T023000Z": "beyond daily 2",
        "-2026-11-19T023000Z": "beyond daily 2",
        "2026-11-19T140000Z": "newest of day 2026-11-19 (daily 2 of 2)",
        "2026-11-20T023000Z": "the newest point",
    }


def test_spans_without_points_are_not_counted() -> None:
    found = decided(points("2026-01-01T00:00", "2026-05-05T00:00", "2026-11-20T00:00"), KeepRules(daily=3))
    assert not [name for name in found if name.startswith("-")]


def test_the_first_rule_that_keeps_a_point_is_its_reason() -> None:
    given_points = points(
        "2024-12-30T10:00", "2026-09-30T10:00", "2026-11-13T10:00", "2026-11-19T10:00",
        "2026-11-20T01:00", "2026-11-20T02:00", "2026-11-20T03:00",
    )  # fmt: skip
    found = decided(given_points, KeepRules(hourly=2, daily=2, weekly=2, monthly=2, yearly=9))
    assert found == {
        "2024-12-30T100000Z": "newest of year 2024 (yearly 2 of 9)",
        "2026-09-30T100000Z": "newest of month 2026-09 (monthly 2 of 2)",
        "2026-11-13T100000Z": "newest of week 2026-W46 (weekly 2 of 2)",
        "2026-11-19T100000Z": "newest of day 2026-11-19 (daily 2 of 2)",
        "-2026-11-20T010000Z": "beyond hourly 2, daily 2, weekly 2, monthly 2, yearly 9",
        "2026-11-20T020000Z": "newest of hour 2026-11-20T02 (hourly 2 of 2)",
        "2026-11-20T030000Z": "the newest point",
    }


def test_iso_weeks_do_not_break_at_new_year() -> None:
    found = decided(points("2024-12-30T10:00", "2025-01-01T10:00", "2025-02-02T10:00"), KeepRules(weekly=9))
    assert found["2025-01-01T100000Z"] == "newest of week 2025-W01 (weekly 2 of 9)"
    assert "-2024-12-30T100000Z" in found


def test_days_are_those_of_utc() -> None:
    late = datetime(2026, 11, 20, 1, tzinfo=timezone(timedelta(hours=9)))  # still the 19th in UTC
    found = decided([point(late), *points("2026-11-20T03:00")], KeepRules(daily=5))
    assert found["2026-11-19T160000Z"] == "newest of day 2026-11-19 (daily 2 of 5)"


def test_protected_points_stay_with_their_reason() -> None:
    given_points = points("2026-11-18T02:30", "2026-11-19T02:30", "2026-11-20T02:30")
    protected = {"2026-11-18T023000Z": "newest verified", "2026-11-20T023000Z": "being read by a restore"}
    found = decided(given_points, KeepRules(daily=1), protected=protected)
    assert found == protected | {"-2026-11-19T023000Z": "beyond daily 1"}


def test_no_rule_keeps_everything() -> None:
    found = decided(points("2020-01-01T00:00", "2026-11-20T00:00"), KeepRules())
    assert found == {
        "2020-01-01T000000Z": "no number is set under [keep]: every point stays",
        "2026-11-20T000000Z": "the newest point",
    }


def test_points_dated_in_the_future_push_nothing_out() -> None:
    future = points("2099-01-01T00:00", "2099-01-02T00:00", "2099-01-03T00:00")
    found = decided([*points("2026-11-18T00:00", "2026-11-19T00:00", "2026-11-20T00:00"), *future], KeepRules(daily=2))
    assert {name: found[name] for name in found if name.startswith("2099")} == dict.fromkeys(
        [each.name for each in future], "dated after now: a clock was wrong"
    )
    assert found["2026-11-20T000000Z"] == "the newest point"
    assert found["2026-11-19T000000Z"] == "newest of day 2026-11-19 (daily 2 of 2)"
    assert "-2026-11-18T000000Z" in found


def test_the_later_of_two_points_in_one_second_is_no_sign_of_a_wrong_clock() -> None:
    later = [point(NOW - timedelta(seconds=3)), point(NOW + timedelta(seconds=2))]
    found = decided(later, KeepRules(daily=1))
    assert found == {later[1].name: "the newest point", f"-{later[0].name}": "beyond daily 1"}
    ahead = point(NOW + timedelta(minutes=2))
    assert decided([later[0], ahead], KeepRules(daily=1)) == {
        later[0].name: "the newest point",
        ahead.name: "dated after now: a clock was wrong",
    }


def test_a_clock_that_fell_back_removes_nothing() -> None:
    found = decided(
        points("2026-11-18T00:00", "2026-11-19T00:00"), KeepRules(daily=1), now=datetime(1970, 1, 1, tzinfo=UTC)
    )
    assert not [name for name in found if name.startswith("-")]


def test_no_points_is_no_decision() -> None:
    assert decide_retention([], KeepRules(daily=1), now=NOW, protected={}) == ()


HOURS = st.lists(st.integers(-24 * 900, 60), unique=True, max_size=40).map(
    lambda hours: [point(NOW + timedelta(hours=hour)) for hour in hours]
)
NUMBERS = st.integers(0, 5)
KEEPS = st.builds(KeepRules, hourly=NUMBERS, daily=NUMBERS, weekly=NUMBERS, monthly=NUMBERS, yearly=NUMBERS)


def staying(decisions: Sequence[RetentionDecision]) -> list[RestorePoint]:
    return [each.point for each in decisions if each.keep]


@given(HOURS, KEEPS, st.randoms(use_true_random=False))
def test_every_point_is_decided_once_in_time_order_whatever_order_it_came_in(given_points, keep, random) -> None:  # type: ignore[no-untyped-def]
    decisions = decide_retention(given_points, keep, now=NOW, protected={})
    shuffled = list(given_points)
    random.shuffle(shuffled)
    assert [each.point for each in decisions] == sorted(given_points, key=lambda each: each.taken)
    assert decide_retention(shuffled, keep, now=NOW, protected={}) == decisions
    assert all(each.reason for each in decisions)


@given(HOURS, KEEPS, st.sets(st.integers(0, 39)))
def test_deciding_again_after_removing_removes_nothing_more(
    given_points: list[RestorePoint], keep: KeepRules, chosen: set[int]
) -> None:
    protected = {each.name: "chosen" for place, each in enumerate(given_points) if place in chosen}
    left = staying(decide_retention(given_points, keep, now=NOW, protected=protected))
    again = decide_retention(left, keep, now=NOW, protected=protected)
    assert staying(again) == left
    assert protected.keys() <= {each.name for each in left}


@given(HOURS, KEEPS)
def test_the_newest_point_stays_and_so_does_the_newest_dated_right(
    given_points: list[RestorePoint], keep: KeepRules
) -> None:
    left = staying(decide_retention(given_points, keep, now=NOW, protected={}))
    for kind in (given_points, [each for each in given_points if each.taken <= NOW]):
        assert not kind or max(kind, key=lambda each: each.taken) in left


@given(HOURS, KEEPS, st.sampled_from(["hourly", "daily", "weekly", "monthly", "yearly"]))
def test_a_higher_number_never_keeps_less(given_points: list[RestorePoint], keep: KeepRules, rule: str) -> None:
    if keep.everything:
        return
    more = replace(keep, **{rule: getattr(keep, rule) + 1})
    fewer_left = staying(decide_retention(given_points, keep, now=NOW, protected={}))
    assert {each.name for each in fewer_left} <= {
        each.name for each in staying(decide_retention(given_points, more, now=NOW, protected={}))
    }


@given(HOURS, KEEPS, st.integers(0, 24 * 9999))
def test_time_alone_removes_nothing_that_was_dated_right(
    given_points: list[RestorePoint], keep: KeepRules, hours: int
) -> None:
    right = [each for each in given_points if each.taken <= NOW]
    early = decide_retention(right, keep, now=NOW, protected={})
    assert decide_retention(right, keep, now=NOW + timedelta(hours=hours), protected={}) == early
