"""Texts, instants and outputs come back as they were given."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.history.database import decode_text, encode_text, from_microseconds, tail_of_output, to_microseconds


@given(some.binary())
def test_any_bytes_come_back(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    held = encode_text(text)
    assert decode_text(held) == text
    assert isinstance(held, str) == (raw.decode("utf-8", "replace").encode() == raw)


def test_a_surrogate_that_stands_for_no_byte_does_not_stop_the_record() -> None:
    held = encode_text("\ud800 and \udcff")
    assert isinstance(held, bytes)
    assert isinstance(decode_text(held), str)


@given(some.datetimes(timezones=some.just(UTC)))
def test_an_instant_comes_back_to_the_microsecond(when: datetime) -> None:
    assert from_microseconds(to_microseconds(when)) == when


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
