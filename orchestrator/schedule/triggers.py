"""The instants of schedules in one zone: cron fields as in Debian's cron, computed by cronsim."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

from orchestrator.domain.job import TimeWindow
from orchestrator.domain.schedule import AttachSchedule, CronSchedule, DailySchedule, IntervalSchedule, Schedule

MOST = 1000  # limit for counting scheduled times
# How far to look back for the last scheduled time, in days: the longest span holds each 29 February.
_SPANS = (1 / 24, 1, 8, 63, 800, 3000)
_CACHED = 4096


class ZonedCalendar:
    """The instants of schedules in one zone. Instants go in and come out in UTC.

    Why cronsim: 02:30 runs once in both nights in which the clocks change, where other libraries run it twice or never.
    """

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._known: dict[tuple[str, datetime], datetime | None] = {}

    def next_after(self, schedule: Schedule, instant: datetime) -> datetime | None:
        """Return the first scheduled time after an instant; None when the schedule has no times of its own."""
        match schedule:
            case IntervalSchedule(period=period):
                return instant + timedelta(seconds=period)
            case AttachSchedule():
                return None
            case CronSchedule(fields=fields, later=later):
                pass
            case DailySchedule(at=at, later=later):
                fields = f"{at.minute} {at.hour} * * *"
        if later:
            told = self._next_cron(fields, instant - timedelta(seconds=later))
            return None if told is None else told + timedelta(seconds=later)
        return self._next_cron(fields, instant)

    def _next_cron(self, fields: str, instant: datetime) -> datetime | None:
        key = (fields, instant)
        if key not in self._known:
            if len(self._known) > _CACHED:
                self._known.clear()
            self._known[key] = self._cron_after(fields, instant)
        return self._known[key]

    def _cron_after(self, fields: str, after: datetime) -> datetime | None:
        """Return the next cron time. Why with fixed offsets: cronsim loses times where clocks move by half an hour."""
        if not CronSchedule(fields=fields).follows_the_clock:
            return _first(fields, after, self.zone)
        scheduled_at = _first(fields, after, timezone(self._offset(after)))
        if scheduled_at is None or self._offset(scheduled_at) == self._offset(after):
            return scheduled_at
        change = self._change(after, scheduled_at)
        return _first(fields, change - timedelta(seconds=1), timezone(self._offset(change)))

    def _offset(self, instant: datetime) -> timedelta:
        return instant.astimezone(self.zone).utcoffset() or timedelta()

    def _change(self, begin: datetime, end: datetime) -> datetime:
        """Return when the offset of `begin` ends, to the second; `end` has another offset."""
        offset = self._offset(begin)
        begin, end = begin.replace(microsecond=0), end.replace(microsecond=0)
        while end - begin > timedelta(seconds=1):
            middle = (begin + (end - begin) / 2).replace(microsecond=0)
            begin, end = (middle, end) if self._offset(middle) == offset else (begin, middle)
        return end

    def last_until(self, schedule: Schedule, after: datetime, until: datetime) -> datetime | None:
        """Return the last scheduled time in (after, until]; None when there is none."""
        for days in _SPANS:
            begin = max(after, until - timedelta(days=days))
            scheduled_at = self.next_after(schedule, begin)
            if scheduled_at is not None and scheduled_at <= until:
                while (following := self.next_after(schedule, scheduled_at)) is not None and following <= until:
                    scheduled_at = following
                return scheduled_at
            if begin == after:
                return None
        return None

    def count(self, schedule: Schedule, after: datetime, until: datetime) -> int:
        """Count the scheduled times in (after, until], at most MOST."""
        number, scheduled_at = 0, self.next_after(schedule, after)
        while scheduled_at is not None and scheduled_at <= until and number < MOST:
            number, scheduled_at = number + 1, self.next_after(schedule, scheduled_at)
        return number

    def show(self, instant: datetime) -> str:
        """Return the instant in local time, with its zone where the hour occurs twice."""
        local = instant.astimezone(self.zone)
        twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
        return f"{local:%Y-%m-%d %H:%M %Z}" if twice else f"{local:%Y-%m-%d %H:%M}"

    def is_open(self, window: TimeWindow, instant: datetime) -> bool:
        """Return True when the window is open at an instant."""
        return window.holds(instant.astimezone(self.zone).time())

    def opens(self, window: TimeWindow, instant: datetime) -> datetime:
        """Return when the window opens next after an instant."""
        return self.next_after(DailySchedule(at=window.begin), instant) or instant


def _first(fields: str, after: datetime, zone: tzinfo) -> datetime | None:
    """Return the first scheduled time after an instant.

    Why the comparison: where an hour occurs twice, the next local time may lie before the instant.
    """
    from cronsim import CronSim  # a run started by cron needs no calendar

    slots = (scheduled_at.astimezone(UTC) for scheduled_at in CronSim(fields, after.astimezone(zone)))
    return next((scheduled_at for scheduled_at in slots if scheduled_at > after), None)
