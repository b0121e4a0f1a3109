"""Test the share that was read again, and the forecast, from the totals of a place."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.point import ReadTotals
from orchestrator.domain.units import Bytes
from orchestrator.planners.read_status import PACE_SPAN, judge_reading

OLD = datetime(2026, 10, 11, tzinfo=UTC)


def totals(
    points: int,
    *,
    read: int = 0,
    undated: int = 0,
    sized: int | None = None,
    size: int = 0,
    fresh: tuple[int, int] = (0, 0),
) -> ReadTotals:
    """Return totals. `size`: of all points in bytes; `fresh`: points that were read lately enough, and their bytes."""
    return ReadTotals(
        points=points, read=read, undated=undated, oldest=OLD, sized=points if sized is None else sized, bytes=size,
        fresh=fresh[0], fresh_bytes=fresh[1],
    )  # fmt: skip


def test_the_share_is_of_bytes_and_what_nobody_read_is_counted() -> None:
    found = judge_reading(totals(3, read=2, size=300, fresh=(1, 100)), read=Bytes(0))
    assert (found.points, found.never, round(found.share, 3), found.by_bytes) == (3, 1, 0.333, True)
    assert found.oldest == OLD
    assert found.forecast is None, "nothing was read: at this pace never"
    assert judge_reading(totals(3, undated=1), read=Bytes(0)).oldest is None, "unknown is not now"


def test_the_forecast_is_what_is_left_by_the_pace() -> None:
    found = judge_reading(totals(2, read=1, size=400, fresh=(1, 100)), read=Bytes(100))
    assert found.forecast == 3 * PACE_SPAN
    done = judge_reading(totals(1, read=1, size=100, fresh=(1, 100)), read=Bytes(0))
    assert (done.share, done.forecast) == (1.0, 0.0)


def test_without_sizes_points_are_counted_and_nothing_is_forecast() -> None:
    found = judge_reading(totals(2, read=1, sized=1, size=300, fresh=(1, 0)), read=Bytes(100))
    assert (found.share, found.by_bytes, found.forecast) == (0.5, False, None)
    assert judge_reading(totals(0), read=Bytes(0)).share == 1.0


@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 10**15), st.integers(0, 10**15))
def test_a_share_is_a_share(points: int, fresh: int, size: int, fresh_bytes: int) -> None:
    fresh, fresh_bytes = min(fresh, points), min(fresh_bytes, size)
    found = judge_reading(totals(points, read=fresh, size=size, fresh=(fresh, fresh_bytes)), read=Bytes(7))
    assert 0 <= found.share <= 1
    assert found.forecast is None or found.forecast >= 0
