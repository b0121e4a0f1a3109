"""Schedules as people write them."""

import pytest

from orchestrator.config.times import parse_cron, parse_daily, parse_every, parse_schedule, parse_span


@pytest.mark.parametrize(
    "text",
    [
        "30 2 * * *", "0 0 1 1 *", "*/10 8-18/2 1,15 jan-mar MON-FRI", "59 23 31 12 7", "0 0 29 2 *", "0 0 31 2,3 *",
        "0 0 31 4 mon", "0 0 * * sun",
    ],
)  # fmt: skip
def test_cron_is_kept_as_it_is(text: str) -> None:
    assert parse_cron(text) == f"cron {text}"


def test_cron_is_kept_with_single_spaces() -> None:
    assert parse_schedule(" 30  2\t* * * ") == "cron 30 2 * * *"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "five fields"), ("30 2 * *", "five fields"), ("0 30 2 * * *", "five fields"), ("@daily", "five fields"),
        ("60 2 * * *", "minute"), ("-1 2 * * *", "minute"), ("5/10 * * * *", "minute"), ("*/0 * * * *", "minute"),
        ("1,,2 * * * *", "minute"), ("1-5-9 * * * *", "minute"), ("*/99 * * * *", "minute"), ("x * * * *", "minute"),
        ("0 24 * * *", "hour"), ("0 18-8 * * *", "hour"), ("0 0 0 * *", "day"), ("0 0 32 * *", "day"),
        ("0 0 1 13 *", "month"), ("0 0 1 juni *", "month"), ("0 0 * * 8", "weekday"), ("0 0 * * fri-sun", "weekday"),
        ("0 0 30 2 *", "a day that"), ("0 0 31 4,6,9,11 */2", "a day that"), ("0 0 1 " + "9" * 5000 + " *", "month"),
        ("*/" + "9" * 5000 + " * * * *", "minute"), ("² * * * *", "minute"),
    ],
)  # fmt: skip
def test_wrong_cron_names_the_field(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_cron(text)


def test_manual_is_no_schedule() -> None:
    assert parse_schedule("manual") is None


@pytest.mark.parametrize(("text", "normal"), [("15m", "every 900"), ("1m", "every 60"), ("1h 30m", "every 5400")])
def test_every_is_seconds(text: str, normal: str) -> None:
    assert parse_every(text) == normal


@pytest.mark.parametrize("text", ["59s", "0m", "15", "15 minutes", "", "9999d", "9" * 400 + "w"])
def test_every_needs_a_duration_of_some_length(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_every(text)


def test_daily_has_two_digits() -> None:
    assert parse_daily("2:30") == "daily 02:30"


@pytest.mark.parametrize("text", ["24:00", "2", "02:60", ""])
def test_daily_is_a_time_of_day(text: str) -> None:
    with pytest.raises(ValueError, match="a time of day"):
        parse_daily(text)


@pytest.mark.parametrize("text", ["0s", "0.5s", "9" * 400 + "s", "1"])
def test_a_span_is_neither_nothing_nor_endless(text: str) -> None:
    with pytest.raises(ValueError, match="a duration"):
        parse_span(text)
