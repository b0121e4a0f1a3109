"""The slots of a schedule, found the slow way: every minute is looked at, as cron(8) of Debian says it does."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS = "sun mon tue wed thu fri sat".split()


def expected(fields: str, zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    """All slots in (begin, end]. A job at a fixed time runs once in each night; one with a star follows the clock."""
    minute, hour, *_ = fields.split()
    fixed = not (minute.startswith("*") or hour.startswith("*"))
    found = _fixed(fields, zone, begin, end) if fixed else _starred(fields, zone, begin, end)
    return sorted({scheduled_at for scheduled_at in found if begin < scheduled_at <= end})


def _fixed(fields: str, zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    minutes, hours, *_ = parsed(fields)
    day, last = begin.astimezone(zone).date() - timedelta(days=1), end.astimezone(zone).date() + timedelta(days=1)
    found = []
    while day <= last:
        if day_matches(fields, day):
            found += [real(datetime.combine(day, time(hour, minute)), zone) for hour in hours for minute in minutes]
        day += timedelta(days=1)
    return found


def real(wall: datetime, zone: ZoneInfo) -> datetime:
    """The first instant at which clocks show this time, or the first one after it, where they jump over it."""
    while True:
        instant = wall.replace(tzinfo=zone).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) == wall:
            return instant
        wall += MINUTE


def _starred(fields: str, zone: ZoneInfo, begin: datetime, end: datetime) -> list[datetime]:
    minutes, hours, *_ = parsed(fields)
    step = 5 * MINUTE if all(minute % 5 == 0 for minute in minutes) else MINUTE  # offsets are multiples of it too
    instant, found = begin.replace(minute=0, second=0, microsecond=0), []
    while instant <= end:
        local = instant.astimezone(zone)
        if local.minute in minutes and local.hour in hours and day_matches(fields, local.date()):
            found.append(instant)
        instant += step
    return found


def day_matches(fields: str, day: date) -> bool:
    """Return whether the last three fields fit a day: either of day and weekday, or both where one of them begins with a star."""
    _, _, days, months, weekdays = parsed(fields)
    by_day, by_weekday = day.day in days, day.isoweekday() % 7 in {each % 7 for each in weekdays}
    both = fields.split()[2].startswith("*") or fields.split()[4].startswith("*")
    return day.month in months and (by_day and by_weekday if both else by_day or by_weekday)


def parsed(fields: str) -> list[set[int]]:
    """The numbers of each field."""
    ranges = [(0, 59, []), (0, 23, []), (1, 31, []), (1, 12, ["", *_MONTHS]), (0, 7, _DAYS)]
    return [_field(text, *rule) for text, rule in zip(fields.lower().split(), ranges, strict=True)]


def _field(text: str, least: int, most: int, names: list[str]) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        low = least if span == "*" else _number(first, names)
        high = most if span == "*" else _number(last, names) if dash else low
        found |= set(range(low, high + 1, int(step or 1)))
    return found


def _number(text: str, names: list[str]) -> int:
    return names.index(text) if text in names else int(text)
