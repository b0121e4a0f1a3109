"""This machine's own clocks: its zone, how long it slept, and when nobody looked."""

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orchestrator.domain.due import Absence, Away, Beat
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.schedule.triggers import Calendar

_LOCAL = "/etc/localtime"
SLEPT, SET, HELD_UP = timedelta(seconds=5), timedelta(seconds=5), timedelta(minutes=3)


def calendar() -> "Calendar":
    """The calendar of this machine's zone."""
    from orchestrator.schedule.triggers import Calendar

    return Calendar(zone())


def zone() -> tzinfo:
    """The zone as the C library finds it: $TZ, else /etc/localtime, else UTC."""
    told = os.environ.get("TZ", "").removeprefix(":")
    try:
        if told and not told.startswith("/"):
            return ZoneInfo(told)
        with open(told or _LOCAL, "rb") as file:
            return ZoneInfo.from_file(file, key=zone_name(told or _LOCAL))
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC


def zone_name(path: str) -> str | None:
    """The name of a zone by the file that is linked to; None: the file tells none."""
    _, found, name = os.path.realpath(path).partition("/zoneinfo/")
    return name if found else None


def zone_mark() -> object:
    """Another value when the zone was changed."""
    try:
        held = os.stat(_LOCAL)
    except OSError:
        return None
    return (held.st_ino, held.st_mtime_ns, os.environ.get("TZ"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All clocks at one moment. `steady` stands still while the machine sleeps, `since_boot` does not; seconds."""

    wall: datetime
    steady: float
    since_boot: float


def reading(wall: datetime) -> Reading:
    """The clocks now."""
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return Reading(wall=wall, steady=time.clock_gettime(time.CLOCK_MONOTONIC), since_boot=since_boot)


def between(before: Reading, now: Reading) -> Absence | None:
    """Why nobody looked between two looks; None: nothing out of the ordinary."""
    passed = timedelta(seconds=now.since_boot - before.since_boot)
    awake = timedelta(seconds=now.steady - before.steady)
    if passed - awake > SLEPT:
        return Absence(away=Away.SLEPT, begun=before.wall, ended=now.wall)
    if now.wall - before.wall - passed > SET:
        return Absence(away=Away.SET, begun=before.wall, ended=now.wall)
    if awake > HELD_UP:
        return Absence(away=Away.STOPPED, begun=before.wall, ended=now.wall)
    return None


def since(beat: Beat | None, now: Reading, boot: str) -> tuple[Absence, ...]:
    """Why nobody looked since the last daemon's last beat."""
    if beat is None or beat.seen > now.wall:
        return ()
    if beat.boot == boot:
        return (Absence(away=Away.STOPPED, begun=beat.seen, ended=now.wall),)
    booted = max(beat.seen, now.wall - timedelta(seconds=now.since_boot))
    return (
        Absence(away=Away.OFF, begun=beat.seen, ended=booted),
        Absence(away=Away.STOPPED, begun=booted, ended=now.wall),
    )
