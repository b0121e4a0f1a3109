"""Times of crontabs and systemd's timers as job files write them, and how long may pass between two of them."""

import re

from orchestrator.config.times import cron_values, parse_cron
from orchestrator.domain.units import parse_duration

_SPECIAL = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip
_WORDS = {
    "minutely": "* * * * *", "hourly": "0 * * * *", "daily": "0 0 * * *", "weekly": "0 0 * * 1", "monthly": "0 0 1 * *",
    "yearly": "0 0 1 1 *", "annually": "0 0 1 1 *", "quarterly": "0 0 1 1,4,7,10 *", "semiannually": "0 0 1 1,7 *",
}  # fmt: skip
_CALENDAR = re.compile(
    r"(?:(?P<days>[A-Za-z][A-Za-z.,-]*)\s*)?"
    r"(?:(?:(?:\*|[0-9]{4})-)?(?P<month>[0-9*,./]+)-(?P<day>[0-9*,./]+)\s*)?"
    r"(?:(?P<hour>[0-9*,./]+):(?P<minute>[0-9*,./]+)(?::0+)?)?"
)
_HOUR = 3600
_DAY = 24 * _HOUR


def parse_when(when: str) -> str | None:
    """Return the five fields that a job file accepts for the time of a crontab's line; None when there are none."""
    fields = _SPECIAL.get(when, when)
    try:
        return parse_cron(fields).removeprefix("cron ")
    except ValueError:
        return None


def parse_calendar(text: str) -> str | None:
    """Return five fields for a systemd OnCalendar; None for one that a crontab cannot say. Source: systemd.time(7)."""
    bare = text.strip()
    if bare.lower() in _WORDS:
        return _WORDS[bare.lower()]
    match = _CALENDAR.fullmatch(bare)
    if not match or not bare or re.match(r"[0-9]{4}-", bare.split()[0]):
        return None
    named = (match[name] for name in ("minute", "hour", "day", "month"))
    minute, hour, day, month = (_item(part, name) for part, name in zip(named, ("0", "0", "*", "*"), strict=True))
    days = (match["days"] or "*").rstrip(",").replace("..", "-").lower()
    weekdays = ",".join("-".join(part[:3] for part in each.split("-")) for each in days.split(","))
    return parse_when(f"{minute} {hour} {day} {month} {weekdays}")


def _item(part: str | None, usual: str) -> str:
    """Return one field: "0/15" is "*/15" for cron, "1..5" is "1-5", and "02" is "2"."""
    if part is None:
        return usual
    plain = re.sub(r"\b0+(?=[0-9])", "", part.replace("..", "-"))
    return re.sub(r"(?<![0-9-])[01]/", "*/", plain) if re.fullmatch(r"[01]/[0-9]+", plain) else plain


def late_after(schedule: str | None, every: str | None = None) -> str | None:
    """Return after how long a job at these times is late: the longest span between two of them, and some more."""
    if every:
        return _with_time_to_run(int(parse_duration(every)))
    if schedule is None:
        return None
    minutes, hours, days, months, weekdays = cron_values(schedule)
    instants = sorted(hour * _HOUR + minute * 60 for hour in hours for minute in minutes)
    within = max(after - before for before, after in zip(instants, [*instants[1:], instants[0] + _DAY], strict=True))
    idle = _days_between(days, months, {each % 7 for each in weekdays})
    return _with_time_to_run(within + (idle - 1) * _DAY)


def _days_between(days: set[int], months: set[int], weekdays: set[int]) -> int:
    """Return the most days from one day with a run to the next."""
    if len(months) < 12:
        known = sorted(months)
        gap = max(after - before for before, after in zip(known, [*known[1:], known[0] + 12], strict=True))
        return 31 * gap + 31 * (len(days) < 31)
    if len(days) < 31:
        known = sorted(days)
        return max(after - before for before, after in zip(known, [*known[1:], known[0] + 31], strict=True))
    known = sorted(weekdays)
    return max(after - before for before, after in zip(known, [*known[1:], known[0] + 7], strict=True))


def _with_time_to_run(seconds: int) -> str:
    """Return the span with time for a run, as a job file writes it; a single one that is missed is late."""
    late = max(2 * seconds, seconds + _HOUR) if seconds < 6 * _HOUR else seconds + 2 * _HOUR
    return f"{-(-late // _HOUR)}h" if late <= 4 * _DAY else f"{-(-late // _DAY)}d"
