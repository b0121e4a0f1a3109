"""The instants of schedules: against a minute-by-minute reading of cron's rule, in the nights that matter."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import TimeWindow
from orchestrator.domain.schedule import (
    AttachSchedule,
    CronSchedule,
    DailySchedule,
    IntervalSchedule,
    parse_normal_schedule,
)
from orchestrator.domain.units import Seconds
from orchestrator.schedule.triggers import MOST, ZonedCalendar
from tests.planners.expected import expected

BERLIN = ZoneInfo("Europe/Berlin")
# (zone, a span around the spring night, a span around the autumn night)
NIGHTS = [
    ("Europe/Berlin", "2026-03-27", "2026-10-23"),
    ("America/New_York", "2026-03-06", "2026-10-30"),
    ("Australia/Lord_Howe", "2026-10-02", "2026-04-03"),
    ("Asia/Kathmandu", "2026-03-27", "2026-10-23"),
    ("America/Santiago", "2026-09-04", "2026-04-03"),
]
FIELDS = [
    "30 2 * * *", "0 2 * * *", "59 1 * * *", "0 0 * * *", "15 0,1,2,3 * * *", "*/15 * * * *", "0 * * * *", "*/20 1-3 * * *",
    "0 3 * * sun", "30 1 1-7 * sun", "45 23 * * mon-fri", "5 */2 * * *",
]  # fmt: skip


def slots(calendar: ZonedCalendar, fields: str, begin: datetime, end: datetime) -> list[datetime]:
    """All slots in (begin, end], one after the other."""
    found, last = [], begin
    while (scheduled_at := calendar.next_after(CronSchedule(fields=fields), last)) is not None and scheduled_at <= end:
        found.append(scheduled_at)
        last = scheduled_at
    return found


@pytest.mark.parametrize("fields", FIELDS)
@pytest.mark.parametrize(("zone", "night"), [(zone, night) for zone, *nights in NIGHTS for night in nights])
def test_slots_are_those_of_cron(zone: str, night: str, fields: str) -> None:
    begin = datetime.fromisoformat(night).replace(tzinfo=UTC)
    end = begin + timedelta(days=5)
    calendar = ZonedCalendar(ZoneInfo(zone))
    times = expected(fields, ZoneInfo(zone), begin, end)
    assert slots(calendar, fields, begin, end) == times
    # Asked at any instant, and not only at a slot, the next one is the same.
    for hours in range(5 * 24):
        requested = begin + timedelta(hours=hours, minutes=17, seconds=3)
        later = [scheduled_at for scheduled_at in times if scheduled_at > requested]
        if later:
            assert calendar.next_after(CronSchedule(fields=fields), requested) == later[0]
        assert calendar.last_until(CronSchedule(fields=fields), begin, requested) == max(
            (s for s in times if s <= requested), default=None
        )


def test_an_hour_that_comes_twice_has_a_fixed_time_once() -> None:
    calendar, daily = ZonedCalendar(BERLIN), DailySchedule(at=time(2, 30))
    night = datetime(2026, 10, 25, tzinfo=UTC)
    assert calendar.next_after(daily, night) == night.replace(minute=30)
    assert calendar.next_after(daily, night.replace(minute=30)) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)
    # Asked within the second of the two hours, the slot of the first is not found again.
    assert calendar.next_after(daily, night.replace(hour=1, minute=5)) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_an_hour_that_is_missing_runs_at_its_end() -> None:
    calendar = ZonedCalendar(BERLIN)
    assert calendar.next_after(DailySchedule(at=time(2, 30)), datetime(2026, 3, 29, tzinfo=UTC)) == datetime(
        2026, 3, 29, 1, 0, tzinfo=UTC
    )


@pytest.mark.parametrize("schedule", [CronSchedule(fields="0 2 * * *"), DailySchedule(at=time(2))])
def test_a_spread_delays_each_time_by_the_same(schedule: CronSchedule | DailySchedule) -> None:
    """Also over midnight, and in the night that has an hour twice."""
    calendar, begin = ZonedCalendar(BERLIN), datetime(2026, 10, 22, tzinfo=UTC)
    later = Seconds(23 * 3600 + 34)
    spread = replace(schedule, later=later)
    plain, delayed = begin, begin + timedelta(seconds=later)
    for _ in range(5):
        plain, delayed = calendar.next_after(schedule, plain) or begin, calendar.next_after(spread, delayed) or begin
        assert delayed == plain + timedelta(seconds=later)
    assert calendar.last_until(spread, begin, delayed) == delayed
    assert calendar.count(spread, begin, delayed) == 6  # and the one of the day before


def test_the_last_slot_is_found_over_years() -> None:
    calendar = ZonedCalendar(BERLIN)
    begin, end = datetime(2019, 1, 1, tzinfo=UTC), datetime(2026, 11, 20, tzinfo=UTC)
    leap = CronSchedule(fields="0 12 29 2 *")
    assert calendar.last_until(leap, begin, end) == datetime(2024, 2, 29, 11, tzinfo=UTC)
    assert calendar.last_until(CronSchedule(fields="* * * * *"), begin, end) == end
    assert calendar.count(CronSchedule(fields="* * * * *"), begin, end) == MOST
    assert calendar.last_until(leap, datetime(2024, 3, 1, tzinfo=UTC), end) is None


def test_every_counts_from_the_instant_and_an_attached_disk_has_no_slot() -> None:
    calendar, now = ZonedCalendar(BERLIN), datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)
    assert calendar.next_after(IntervalSchedule(period=Seconds(900)), now) == now + timedelta(minutes=15)
    assert calendar.next_after(AttachSchedule(), now) is None


def test_an_instant_is_shown_with_its_zone_where_the_hour_comes_twice() -> None:
    calendar = ZonedCalendar(BERLIN)
    assert calendar.show(datetime(2026, 10, 25, 0, 30, tzinfo=UTC)) == "2026-10-25 02:30 CEST"
    assert calendar.show(datetime(2026, 10, 25, 1, 30, tzinfo=UTC)) == "2026-10-25 02:30 CET"
    assert calendar.show(datetime(2026, 11, 20, 1, 30, tzinfo=UTC)) == "2026-11-20 02:30"


def test_a_window_over_midnight() -> None:
    calendar, window = ZonedCalendar(BERLIN), TimeWindow(begin=time(22), end=time(6))
    assert calendar.is_open(window, datetime(2026, 11, 20, 21, tzinfo=UTC))
    assert calendar.is_open(window, datetime(2026, 11, 20, 4, 59, tzinfo=UTC))
    assert not calendar.is_open(window, datetime(2026, 11, 20, 5, tzinfo=UTC))
    assert calendar.opens(window, datetime(2026, 11, 20, 5, tzinfo=UTC)) == datetime(2026, 11, 20, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["cron 30 2 * * *", "every 900", "daily 02:30", "on attach", "cron 30 2 * * * later 9", "daily 02:30 later 9"],
)
def test_normal_forms_are_read(text: str) -> None:
    assert str(parse_normal_schedule(text))


@pytest.mark.parametrize("text", ["", "hourly", "on boot", "daily 25:00", "every day"])
def test_anything_else_is_no_schedule(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which words is no matter
        parse_normal_schedule(text)
