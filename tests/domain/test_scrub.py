"""A scrub covers what had come before it began, whatever the clock said by which it began."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.scrub import PoolScrub, ScrubSighting, covered_until, is_look_due, parse_sighting, see_scrub

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def days(count: float) -> datetime:
    return NOW + timedelta(days=count)


@pytest.mark.parametrize(
    ("began", "at", "first", "until"),
    [
        (-2, 0, 0, -2),  # by a good clock
        (-2, 0, -3, -3),  # it was seen before the time that it says
        (3, 0, -1, -1),  # begun where the clock was ahead
        (-2, 1, 0, -3),  # its machine is a day ahead of us
        (-2, -1, 0, -2),  # its machine is behind: what it says is early enough
    ],
)
def test_it_covers_what_was_there(began: float, at: float, first: float, until: float) -> None:
    scrub = PoolScrub(began=days(began), at=days(at), clean=True)
    earlier = ScrubSighting(began=days(began), seen=days(first))  # as an earlier version remembers it
    assert covered_until(see_scrub(scrub, earlier, NOW)) == days(until)


def test_a_later_look_that_took_longer_changes_nothing() -> None:
    """Else one scrub would count as two readings of each copy."""
    first = see_scrub(PoolScrub(began=days(-2), at=days(0.1), clean=True), None, NOW)
    assert parse_sighting(first.text()) == first
    later = see_scrub(PoolScrub(began=days(-2), at=days(1.2), clean=True), first, days(1))
    assert covered_until(later) == covered_until(first) == days(-2.1)


def test_it_keeps_its_first_sighting_until_another_one_begins() -> None:
    scrub = PoolScrub(began=days(-2), at=NOW, clean=False)
    first = see_scrub(scrub, None, days(-1))
    assert parse_sighting(first.text()) == first
    assert see_scrub(scrub, first, NOW) == first
    assert see_scrub(PoolScrub(began=days(-1), at=NOW, clean=True), first, NOW).seen == NOW


@pytest.mark.parametrize(
    ("looked", "due"),
    [(None, True), (days(0).isoformat(), False), (days(-0.9).isoformat(), False), (days(-1).isoformat(), True),
     (days(0.1).isoformat(), True), ("rubbish", True)],
)  # fmt: skip
def test_it_is_looked_for_once_a_day(looked: str | None, due: bool) -> None:
    """A last look that lies in the future was dated by a wrong clock."""
    assert is_look_due(looked, NOW) is due
