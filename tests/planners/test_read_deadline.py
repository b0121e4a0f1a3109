"""The reading promise: what a turn reads, and when the promise breaks."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.job import VerifyRules, parse_amount, parse_promise
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.read_deadline import AgedData, decide_budget, forecast_deadline, is_turn

NOW = datetime(2026, 11, 28, 2, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = VerifyRules(read_all_within=Seconds(90 * 86400.0))


def item(size: int, days: float | None, *, suspect: bool = False) -> AgedData:
    since = None if days is None else NOW - days * DAY
    return AgedData(size=Bytes(size), since=since, suspect=suspect)


def budget(*items: AgedData, last: float | None = 1, rules: VerifyRules = RULES, at_once: bool = False) -> int:
    instant = None if last is None else NOW - last * DAY
    return decide_budget(items, rules, last=instant, now=NOW, at_once=at_once)


@pytest.mark.parametrize(
    ("items", "last", "wanted"),
    [
        ([item(90_000, 0)], 1, 1_250),  # its even part, and a quarter more, as a night may be missed
        ([item(90_000, 0)], None, 1_250),
        ([item(90_000, 0)], 10, 12_500),
        ([item(90_000, 0)], 1000, 112_500),
        ([item(90_000, 0)], -400, 1_250),  # the last turn was dated by a wrong clock
        ([item(90_000, 0), item(5_000, 91)], 1, 5_000),  # what is overdue is read at once
        ([item(90_000, 0), item(5_000, None), item(6_000, -400)], 1, 11_000),  # what has no age, too
        ([item(90_000, 0), item(70_000, 0, suspect=True)], 1, 70_000),
        ([], 1, 0),
    ],
)
def test_a_turn_reads_its_part(items: list[AgedData], last: float | None, wanted: int) -> None:
    assert budget(*items, last=last) == wanted


def test_a_day_has_its_limit_but_for_a_person() -> None:
    rules = VerifyRules(read_all_within=Seconds(90 * 86400.0), per_day=Bytes(1_000))
    assert budget(item(5_000, 91), rules=rules) == 1_000
    assert budget(item(5_000, 91), rules=rules, last=7) == 1_000, "days that were missed are not saved up"
    assert budget(item(5_000, 91), rules=rules, last=0.5) == 500
    assert budget(item(5_000, 91), rules=rules, at_once=True) == 5_000


def test_without_a_promise_nothing_is_read() -> None:
    assert budget(item(5_000, 91), rules=VerifyRules()) == 0


@pytest.mark.parametrize(("parse", "text"), [(parse_promise, "23h"), (parse_amount, "0")])
def test_what_promises_nothing_is_refused(parse: Callable[[str], object], text: str) -> None:
    assert (parse_promise("90d"), parse_amount("1K")) == (Seconds(90 * 86400.0), Bytes(1024))
    with pytest.raises(ValueError, match="such as"):
        parse(text)


@pytest.mark.parametrize(
    ("days", "turn"), [(None, True), (0.8, False), (0.84, True), (1, True), (-0.01, False), (-1, True)]
)
def test_a_turn_comes_once_a_day(days: float | None, turn: bool) -> None:
    assert is_turn(None if days is None else NOW - days * DAY, NOW) is turn


def test_all_is_read_within_its_promise_night_by_night() -> None:
    """Ninety points of one size, one new each night, the oldest removed; each fourth night is missed."""
    ages = {number: NOW - number * DAY for number in range(90)}
    for night in range(1, 400):
        now = NOW + night * DAY
        ages[-night] = now
        del ages[max(ages)]
        if night % 4 == 0:
            continue
        items = [AgedData(size=Bytes(100), since=since) for since in ages.values()]
        last = now - (2 if night % 4 == 1 else 1) * DAY
        left: int = decide_budget(items, VerifyRules(read_all_within=Seconds(30 * 86400.0)), last=last, now=now)
        for name in sorted(ages, key=lambda name: ages[name]):
            if left <= 0:
                break
            ages[name], left = now, left - 100
        if night > 40:
            assert max(now - since for since in ages.values()) <= 31 * DAY, night


@pytest.mark.parametrize(
    ("items", "pace", "breaks", "needed", "overdue"),
    [
        ([item(900, 0)], 10, None, 10, 0),
        ([item(900, 0)], 9.9, 90, 10, 0),
        ([item(900, 0)], 0, 90, 10, 0),
        ([item(100, 80), item(900, 0)], 10, 90, 12, 0),
        ([item(100, 80), item(900, 0)], 9, 10, 12, 0),
        ([item(100, 91), item(900, 0)], 100, 0, 100, 100),
        ([item(100, None)], 100, 0, 100, 100),
        ([], 0, None, 0, 0),
    ],
)
def test_the_forecast(items: list[AgedData], pace: float, breaks: float | None, needed: int, overdue: int) -> None:
    found = forecast_deadline(items, 90 * DAY, pace=pace, now=NOW)
    at = None if found.breaks is None else (found.breaks - NOW) / DAY
    assert (at, found.needed, found.overdue) == (breaks, needed, overdue)
