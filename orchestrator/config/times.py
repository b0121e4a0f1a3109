"""Schedules as people write them, checked and in one normal form."""

import re

from orchestrator.domain.job import parse_clock
from orchestrator.domain.units import Seconds, parse_duration

_MONTHS = dict(zip("jan feb mar apr may jun jul aug sep oct nov dec".split(), range(1, 13), strict=True))
_WEEKDAYS = dict(zip("sun mon tue wed thu fri sat".split(), range(7), strict=True))
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 7, _WEEKDAYS),
)
_ITEM = r"(?:\*|([0-9]+|[a-z]+)(?:-([0-9]+|[a-z]+))?)(?:/([0-9]{1,2}))?"
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY = 86400
_LONGEST = 10 * 366 * _DAY


def parse_schedule(text: str) -> str | None:
    """Parse a schedule like `parse_cron`; "manual" is the same as no schedule. Raises: ValueError."""
    return None if text == "manual" else parse_cron(text)


def parse_cron(text: str) -> str:
    """Parse five cron fields to the normal form "cron 30 2 * * *". Raises: ValueError.

    Source: crontab(5) as Debian's cron reads it: names of months and weekdays, ranges, lists and steps.
    """
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ValueError('five fields "minute hour day month weekday" such as "30 2 * * *"')
    values = [_cron_field(field, *rule) for field, rule in zip(fields, _FIELDS, strict=True)]
    if fields[4].startswith("*") and not any(_DAYS[month - 1] >= min(values[2]) for month in values[3]):
        raise ValueError("a day that one of these months has")
    return "cron " + " ".join(fields)


def cron_values(text: str) -> tuple[set[int], set[int], set[int], set[int], set[int]]:
    """Return the numbers of minutes, hours, days, months and weekdays (Sunday is 0 or 7). Raises: ValueError."""
    parse_cron(text)
    minute, hour, day, month, weekday = (
        _cron_field(field, *rule) for field, rule in zip(text.split(), _FIELDS, strict=True)
    )
    return minute, hour, day, month, weekday


def _cron_field(text: str, name: str, least: int, most: int, names: dict[str, int]) -> set[int]:
    found: set[int] = set()
    for item in text.lower().split(","):
        values = _cron_item(item, least, most, names)
        if not values:
            words = f" (or {'|'.join(names)})" if names else ""
            raise ValueError(
                f'for the {name} numbers from {least} to {most}{words}, as in "5", "1-5", "1,15" or "*/10"'
            )
        found |= set(values)
    return found


def _cron_item(text: str, least: int, most: int, names: dict[str, int]) -> range:
    """Return the numbers of one item, none if it is wrong. Why no step after a single number: cron programs differ there."""
    match = re.fullmatch(_ITEM, text)
    first, last, step = match.groups() if match else ("?", None, None)
    if first and step and not last:
        return range(0)
    low = least if first is None else _cron_number(first, names)
    high = most if first is None else _cron_number(last or first, names)
    if not (least <= low <= high <= most and (step is None or 0 < int(step) <= most)):
        return range(0)
    return range(low, high + 1, int(step or 1))


def _cron_number(text: str, names: dict[str, int]) -> int:
    return int(text) if text.isdigit() and len(text) < 3 else names.get(text, -1)


def parse_every(text: str) -> str:
    """Parse a duration of at least a minute to the normal form "every 900" (seconds). Raises: ValueError."""
    seconds = parse_duration(text)
    if not 60 <= seconds <= _LONGEST:
        raise ValueError('a duration from "1m" on, such as "15m" or "6h"')
    return f"every {int(seconds)}"


def parse_daily(text: str) -> str:
    """Parse a time of day to the normal form "daily 02:30". Raises: ValueError."""
    return f"daily {parse_clock(text):%H:%M}"


def parse_span(text: str) -> Seconds:
    """Parse a duration that is neither zero nor endless. Raises: ValueError."""
    seconds = parse_duration(text)
    if not 1 <= seconds <= _LONGEST:
        raise ValueError('a duration such as "15m", "26h" or "7d"')
    return seconds


def parse_spread(text: str) -> Seconds:
    """Parse a duration of at most a day. Raises: ValueError."""
    seconds = parse_duration(text)
    if not 1 <= seconds <= _DAY:
        raise ValueError('a duration of at most a day, such as "20m" or "2h"')
    return seconds
