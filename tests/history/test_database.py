"""Texts, instants and outputs come back as they were given."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.history.columns import check_column, from_microseconds, to_microseconds
from orchestrator.history.database import encode_text, tail_of_output


@given(some.binary())
def test_any_bytes_come_back(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    held = encode_text(text)
    assert check_column("name", held) == text
    assert isinstance(held, str) == (raw.decode("utf-8", "replace").encode() == raw)


def test_a_surrogate_that_stands_for_no_byte_does_not_stop_the_record() -> None:
    held = encode_text("\ud800 and \udcff")
    assert isinstance(held, bytes)
    assert isinstance(check_column("name", held), str)


@given(some.datetimes(datetime(1000, 1, 1), datetime(9000, 1, 1), timezones=some.just(UTC)))  # noqa: DTZ001 - the bounds of Hypothesis are naive
def test_an_instant_comes_back_to_the_microsecond(when: datetime) -> None:
    assert from_microseconds(to_microseconds(when)) == when


@pytest.mark.parametrize("year", [1, 9999])
def test_an_instant_that_no_clock_shows_stays_one_to_calculate_with(year: int) -> None:
    held = from_microseconds(to_microseconds(datetime(year, 12, 31, tzinfo=UTC)))
    assert 1000 <= held.year <= 9000
    assert held.astimezone(timezone(timedelta(hours=14))) + timedelta(days=365) > held


def test_an_instant_of_another_zone_is_the_same_instant() -> None:
    assert to_microseconds(datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))) == to_microseconds(
        datetime(2026, 1, 1, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    ("output", "limit", "kept"),
    [
        ("short", 10, "short"),
        ("abcdef", 3, "def"),
        ("aäb", 2, "b"),
        ("a\U0001f600b", 4, "b"),
        (b"\x80\x80\x80\x80\x80", 4, "\udc80" * 4),
        ("a\udcffb", 2, "\udcffb"),
    ],
)
def test_the_tail_begins_at_a_whole_character(output: str | bytes, limit: int, kept: str) -> None:
    assert tail_of_output(output, limit) == kept
