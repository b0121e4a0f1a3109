"""Test the age of what was not read again, the share within a limit, and the forecast."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.read_status import PACE_SPAN, PointAge, judge_reading

NOW = datetime(2026, 11, 20, tzinfo=UTC)
LIMIT = Seconds(30 * 86400.0)


def point(written: float | None, read: float | None, size: int | None = 100) -> PointAge:
    at = [None if days is None else NOW - timedelta(days=days) for days in (written, read)]
    return PointAge(written_at=at[0], read_at=at[1], bytes=size)


def test_the_oldest_byte_is_what_was_written_and_never_read_or_read_long_ago() -> None:
    found = judge_reading([point(9, 3), point(50, 40), point(20, None)], limit=LIMIT, now=NOW, read=Bytes(0))
    assert found.oldest == NOW - timedelta(days=40)
    assert (found.points, found.never, round(found.share, 3), found.by_bytes) == (3, 1, 0.333, True)
    assert found.forecast is None, "nothing was read: at this pace never"
    never = judge_reading([point(9, 3), point(None, None)], limit=LIMIT, now=NOW, read=Bytes(0))
    assert never.oldest is None, "unknown is not now"


def test_the_forecast_is_what_is_left_by_the_pace() -> None:
    found = judge_reading([point(9, 3, 100), point(9, None, 300)], limit=LIMIT, now=NOW, read=Bytes(100))
    assert found.forecast == 3 * PACE_SPAN
    done = judge_reading([point(9, 3)], limit=LIMIT, now=NOW, read=Bytes(0))
    assert (done.share, done.forecast) == (1.0, 0.0)


def test_without_sizes_points_are_counted_and_nothing_is_forecast() -> None:
    found = judge_reading([point(9, 3, None), point(9, None, 300)], limit=LIMIT, now=NOW, read=Bytes(100))
    assert (found.share, found.by_bytes, found.forecast) == (0.5, False, None)
    assert judge_reading([], limit=LIMIT, now=NOW, read=Bytes(0)).share == 1.0


@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.none() | st.integers(0, 900), st.none() | st.integers(0, 10**15)), max_size=6
    )
)
def test_a_share_is_a_share(ages: list[tuple[int, int | None, int | None]]) -> None:
    found = judge_reading([point(*each) for each in ages], limit=LIMIT, now=NOW, read=Bytes(7))
    assert 0 <= found.share <= 1
    assert found.forecast is None or found.forecast >= 0
    assert found.oldest is None or found.oldest <= NOW
