"""Ages by a clock that may have been wrong: what is dated after now holds nothing up."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.age import is_misdated, is_over, show_age
from orchestrator.domain.units import Seconds

NOW = datetime(2026, 11, 28, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minutes", "limit", "over"),
    [
        (None, 60, True),
        (59, 60, False),
        (60, 60, True),
        (-59, 90, False),  # two clocks differ
        (-61, 90, True),
        (-600_000, 90, True),
        (-2, 1, True),  # no more tolerance than what it is done each
        (0, 0, True),
    ],
)
def test_what_is_over(minutes: float | None, limit: float, over: bool) -> None:
    at = None if minutes is None else NOW - timedelta(minutes=minutes)
    assert is_over(at, Seconds(limit * 60), NOW) is is_over(at, timedelta(minutes=limit), NOW) is over


@pytest.mark.parametrize(
    ("hours", "misdated", "told"),
    [
        (3, False, "3 h ago"),
        (-0.5, False, "0.0 s ago"),
        (-1.5, True, "dated 1 h 30 min after now"),
        (-24 * 366, True, "dated 366 d after now"),
    ],
)
def test_what_a_wrong_clock_dated(hours: float, misdated: bool, told: str) -> None:
    at = NOW - timedelta(hours=hours)
    assert (is_misdated(at, NOW), show_age(at, NOW)) == (misdated, told)
