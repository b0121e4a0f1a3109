"""Schedules of jobs, parsed from their normal form."""

import functools
from datetime import time

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds, show_duration

ON_ATTACH = "on attach"


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSchedule:
    """Five cron fields, as Debian's cron reads them in the machine's local time. `later`: this job's place in its spread."""

    fields: str
    later: Seconds = Seconds(0)

    @property
    def follows_the_clock(self) -> bool:
        """Return True when minute or hour is a star: such a job follows the clock, also after a clock change.

        Source: cron(8) of Debian: only jobs at a fixed time are kept from running twice, or never, when the time changes.
        """
        minute, hour, *_ = self.fields.split()
        return minute.startswith("*") or hour.startswith("*")

    def __str__(self) -> str:
        return f'at "{self.fields}"{_later(self.later)}'


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalSchedule:
    """A fixed period after the start of the last run."""

    period: Seconds

    def __str__(self) -> str:
        return f"every {show_duration(self.period)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DailySchedule:
    """A local time on each day. `later`: this job's place in its spread."""

    at: time
    later: Seconds = Seconds(0)

    def __str__(self) -> str:
        return f"daily at {self.at:%H:%M}{_later(self.later)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachSchedule:
    """A run each time the target is plugged in."""

    def __str__(self) -> str:
        return "when the target is attached"


Schedule = CronSchedule | IntervalSchedule | DailySchedule | AttachSchedule


def _later(later: Seconds) -> str:
    return f", spread: {show_duration(later)} later here" if later else ""


@functools.cache
def parse_normal_schedule(text: str) -> Schedule:
    """Parse a normal form: "cron 30 2 * * *", "every 900", "daily 02:30", "on attach". Raises: ValueError.

    The first and the third may end in " later 1834", the seconds of their spread.
    """
    kind, _, rest = text.partition(" ")
    rest, _, told = rest.partition(" later ")
    later = Seconds(int(told or 0))
    match kind:
        case "cron":
            return CronSchedule(fields=rest, later=later)
        case "every":
            return IntervalSchedule(period=Seconds(float(rest)))
        case "daily":
            return DailySchedule(at=time.fromisoformat(rest), later=later)
    if text == ON_ATTACH:
        return AttachSchedule()
    raise ValueError(f"no schedule: {text}")
