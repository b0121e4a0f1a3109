"""Pruning by arrival: what a sender in other hands can never reach, and what makes the receiving machine refuse."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.arrival import (
    CLOCK,
    DATED_AHEAD,
    MAX_CHANGED,
    MOST_PER_DAY,
    SILENT_AFTER,
    ArrivalRules,
    PointRemoval,
    ReceivedPoint,
)
from orchestrator.domain.job import KeepRules, Limit
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import Seconds
from orchestrator.planners.arrivals import ArrivalMemory, date_arrivals, judge_arrivals, newest_order, number_arrivals

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = timedelta(days=1)
KEEP = KeepRules(daily=2)
RULES = ArrivalRules(never_younger_than=Seconds(10 * 86400), last=2, most_per_day=5)
GIB = 1 << 30


def point(days: float, series: str = "vault/a", **more: object) -> tuple[ReceivedPoint, datetime]:
    """A point that came so many days ago, and when; its sender dates and names it as it likes."""
    at = NOW - days * DAY
    order = int(1_000_000 - days * 1000)
    made = ReceivedPoint(
        series=series,
        name=f"s{order}",
        identity=f"{series}{order}",
        order=order,
        dated=at,
        brought=GIB // 100,
        holds=GIB,
    )
    return replace(made, **more), at  # type: ignore[arg-type]


Came = tuple[ReceivedPoint, datetime | None]


def judged(
    points: Iterable[Came], *, now: datetime = NOW, rules: ArrivalRules = RULES, keep: KeepRules = KEEP, allowed: str = "",
    memory: ArrivalMemory | None = None,
) -> tuple[PointRemoval, ...] | Refusal:  # fmt: skip
    given_points = list(points)
    recorded = {(each.series, each.mark): at for each, at in given_points if at}
    series = date_arrivals([each for each, _ in given_points], recorded, now)
    return judge_arrivals(
        series, keep, rules, job="in", now=now, allowed=allowed.split(), memory=memory or ArrivalMemory()
    )


def gone(points: Iterable[Came], **more: object) -> list[str]:
    decided = judged(points, **more)  # type: ignore[arg-type]
    assert not isinstance(decided, Refusal), decided
    return [each.point.name for each in decided]


def refused(points: Iterable[Came], **more: object) -> Refusal:
    decided = judged(points, **more)  # type: ignore[arg-type]
    assert isinstance(decided, Refusal), decided
    assert decided.evidence
    assert f"poolferry run in --allow {decided.guard}" in decided.hint
    return decided


def test_what_no_rule_keeps_goes_by_the_time_when_it_came() -> None:
    daily = [point(days) for days in range(1, 31)]
    went = gone(daily)
    assert went == [point(days)[0].name for days in range(30, 9, -1)]  # those that came within 10 days stay
    backdated = [(replace(each, dated=NOW - 900 * DAY, name=f"old{each.order}"), at) for each, at in daily]
    assert len(gone(backdated)) == len(went)


def test_the_rules_keep_beyond_the_floor_and_say_so() -> None:
    went = judged([point(days) for days in range(1, 31)], keep=KeepRules(daily=12, weekly=5))
    assert not isinstance(went, Refusal)
    assert {each.reason for each in went} == {"beyond daily 12, weekly 5"}
    assert len(went) == 30 - 12 - 2  # of the 5 weeks 3 end within the 12 days


def test_the_last_ones_stay_however_old_and_so_does_what_is_needed() -> None:
    old = [point(100), point(90), point(80), point(70), point(1, "vault/b")]
    keep = KeepRules(yearly=1)
    assert gone(old, keep=keep) == [point(100)[0].name, point(90)[0].name]
    held = (replace(old[0][0], needed="a hold keeps it"), old[0][1])
    assert gone([held, *old[1:]], keep=keep) == [point(90)[0].name]


def test_what_nobody_recorded_came_before_the_next_that_somebody_did() -> None:
    first, second, third = point(40)[0], point(30), point(20)[0]
    series = date_arrivals([third, second[0], first], {("vault/a", second[0].mark): second[1]}, NOW)
    assert [(each.at, each.recorded) for each in series["vault/a"]] == [
        (second[1], False), (second[1], True), (NOW, False),
    ]  # fmt: skip
    assert newest_order(series) == third.order
    assert newest_order({}) == 0
    assert gone((point(days)[0], None) for days in range(1, 31)) == []


def test_a_point_is_kept_whole_where_midnight_parts_its_datasets() -> None:
    """Hourly points: of one dataset the last of the day came before midnight, of the other one after it."""
    hours = [
        point(days + hour / 24 + late, series, name=f"h{days}-{hour}")
        for series, late in (("vault/a", 0.005), ("vault/b", -0.005))
        for days in range(12, 16)
        for hour in range(12, 36)
    ]
    fresh = [point(1, "vault/a"), point(2, "vault/a"), point(1, "vault/b"), point(2, "vault/b")]
    rules, keep = replace(RULES, most_per_day=50), KeepRules(daily=4)
    went = judged([*hours, *fresh], rules=rules, keep=keep)
    assert not isinstance(went, Refusal)
    left = {series: {each.name for each, _ in hours if each.series == series} for series in ("vault/a", "vault/b")}
    for each in went:
        left[each.point.series].discard(each.point.name)
    assert left["vault/a"] == left["vault/b"]
    assert left["vault/a"]


@pytest.mark.parametrize(
    ("guard", "points", "why"),
    [
        (DATED_AHEAD, [point(40), point(1, dated=NOW + 40 * DAY)], "1 point of vault/a is dated after it came"),
        (MOST_PER_DAY, [*map(point, range(9, 2, -1)), *(point(2 - n / 100) for n in range(6))], "vault/a got 6 points in a day"),
        (MAX_CHANGED, [point(40), point(2), point(1, brought=GIB * 7 // 10)], "70% of vault/a changed or went"),
        (MAX_CHANGED, [point(40), point(2), point(1, brought=0, holds=GIB // 4)], "75% of vault/a changed or went"),
        (CLOCK, [point(40), point(2), (point(1, dated=NOW - 9 * DAY)[0], NOW - 9 * DAY)], "the clock of this machine was wrong"),
        (CLOCK, [point(40), (point(1)[0], NOW + 9 * DAY)], "the clock of this machine was wrong"),
        (SILENT_AFTER, [point(days) for days in range(20, 40)], "nothing came for 20 d"),
    ],
)  # fmt: skip
def test_arrivals_that_look_wrong_are_refused_until_a_person_says_yes(guard: str, points: list[Came], why: str) -> None:
    refusal = refused(points)
    assert (refusal.guard, why in refusal.why) == (guard, True), refusal
    gone(points, allowed=guard)
    if guard != SILENT_AFTER:  # what was looked at is no alarm any more, what comes then is
        looked = ArrivalMemory(accepted=max(each.order for each, _ in points), looked=NOW)
        gone(points, memory=looked)
        assert refused(points, memory=replace(looked, accepted=points[0][0].order)).guard == guard
        assert refused(points, memory=replace(looked, accepted=9_999_999)).guard == guard  # of another pool


def test_a_clock_that_stands_before_the_last_run_is_wrong() -> None:
    looked = ArrivalMemory(looked=NOW + 2 * DAY)
    assert refused([point(40), point(1)], memory=looked).guard == CLOCK
    gone([point(40), point(1)], memory=ArrivalMemory(looked=NOW + DAY / 48))


def test_what_is_usual_is_no_alarm() -> None:
    dumps = [point(days, brought=GIB, holds=GIB) for days in range(30, 0, -1)]
    accepted = ArrivalMemory(accepted=dumps[20][0].order)
    gone(dumps, memory=accepted)
    growth = [point(20, holds=GIB), point(10, brought=9 * GIB, holds=10 * GIB), point(1)]
    gone(growth[:2])
    little = [point(20, holds=1000), point(1, brought=1000, holds=1000)]
    gone(little)
    gone([point(20), point(1, brought=GIB)], rules=replace(RULES, max_changed=Limit(number=100, percent=True)))


def test_a_first_day_and_what_makes_up_for_a_pause_are_no_flood() -> None:
    first = [point(40 - n / 100) for n in range(90)]
    gone([*first, point(1)])
    after_a_pause = [point(40), *(point(2 - n / 1000) for n in range(150))]
    gone(after_a_pause)
    assert (
        refused([point(days) for days in range(40, 0, -1)] + [point(0.5 - n / 1000) for n in range(9)]).guard
        == MOST_PER_DAY
    )


def test_several_alarms_are_said_at_once() -> None:
    both = [point(40, s) for s in ("vault/a", "vault/b")] + [
        point(1, s, dated=NOW + 9 * DAY) for s in ("vault/a", "vault/b")
    ]
    refusal = refused([*both, point(39, "vault/c"), point(1, "vault/c", brought=GIB)])
    assert "(and 1 more dataset)" in refusal.why
    assert f"--allow {DATED_AHEAD} --allow {MAX_CHANGED}" in refusal.hint
    assert (
        refused([*both, point(39, "vault/c"), point(1, "vault/c", brought=GIB)], allowed=DATED_AHEAD).guard
        == MAX_CHANGED
    )


ATTACKS = st.lists(
    st.tuples(st.floats(0, 10), st.text("abz0", min_size=1, max_size=3), st.floats(-4000, 4000), st.integers(0, 2 * GIB)), max_size=60
)  # fmt: skip


@given(attack=ATTACKS, allowed=st.booleans())
def test_nothing_that_a_sender_does_now_lets_an_old_point_go(
    attack: list[tuple[float, str, float, int]], allowed: bool
) -> None:
    """All that would have stayed at the moment of the attack stays for as long as the floor lasts, however much is allowed."""
    good = [point(days) for days in range(50, 10, -1)]
    begun = NOW - 10 * DAY
    every = "" if not allowed else f"{CLOCK} {DATED_AHEAD} {MOST_PER_DAY} {MAX_CHANGED} {SILENT_AFTER}"
    rules = replace(RULES, never_younger_than=Seconds(15 * 86400))
    before = judged([each for each in good if each[1] <= begun], now=begun, rules=rules, allowed=every)
    assert not isinstance(before, Refusal)
    hostile = [
        point(days, name=name, identity=f"x{n}", dated=NOW + ahead * DAY, brought=brought)
        for n, (days, name, ahead, brought) in enumerate(attack)
    ]
    after = judged([*good, *hostile], rules=rules, allowed=every)
    going: Mapping[str, PointRemoval] = (
        {} if isinstance(after, Refusal) else {each.point.identity: each for each in after}
    )
    assert all(NOW - each.arrived >= 15 * DAY for each in going.values())
    assert not any(identity.startswith("x") for identity in going)
    young_then = {each.identity for each, at in good if begun - at < 5 * DAY}
    assert not young_then & going.keys()


def test_the_ledger_numbers_points_that_are_folders() -> None:
    made = ReceivedPoint(series="/in", name="x", identity="1", order=0, dated=NOW, tree="/in/points/x", record="x.1")
    other, dataset = replace(made, record="y.2"), replace(made, tree="", record="", order=7)
    assert [each.order for each in number_arrivals((made, other, dataset), {"y.2": 4, "gone": 9})] == [10, 4, 7]
    assert [each.order for each in number_arrivals((made, other), {})] == [1, 2]


def test_a_point_is_compared_with_what_was_before_it_when_it_came() -> None:
    """And not with another one, between which all have gone by now."""
    points = [point(3), point(2, holds=GIB // 4), point(1, holds=GIB // 4)]
    assert isinstance(judged(points), Refusal)
    slow = [point(3), point(2, holds=GIB // 4, before=GIB // 4), point(1, holds=GIB // 4)]
    assert judged(slow) == ()
