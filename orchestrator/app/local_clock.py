"""This machine's own clocks: its zone, how long it slept, and when the daemon did not check them."""

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
    """Return the calendar of this machine's zone."""
    from orchestrator.schedule.triggers import Calendar

    return Calendar(zone())


def zone() -> tzinfo:
    """Return the zone as the C library finds it: $TZ, else /etc/localtime, else UTC."""
    told = os.environ.get("TZ", "").removeprefix(":")
    try:
        if told and not told.startswith("/"):
            return ZoneInfo(told)
        with open(told or _LOCAL, "rb") as file:
            return ZoneInfo.from_file(file, key=zone_name(told or _LOCAL))
    except (OSError, ValueError, ZoneInfoNotFoundError):
        return UTC


def zone_name(path: str) -> str | None:
    """Return the name of a zone from its linked file; None: the path holds no name."""
    _, found, name = os.path.realpath(path).partition("/zoneinfo/")
    return name if found else None


def zone_mark() -> object:
    """Return a value that changes when the zone is changed."""
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
    """Read the clocks now."""
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return Reading(wall=wall, steady=time.clock_gettime(time.CLOCK_MONOTONIC), since_boot=since_boot)


def between(before: Reading, now: Reading) -> Absence | None:
    """Return the absence between two clock checks, with its cause; None: nothing unusual."""
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
    """Return the absences since the last daemon's last heartbeat, with their causes."""
    if beat is None or beat.seen > now.wall:
        return ()
    if beat.boot == boot:
        return (Absence(away=Away.STOPPED, begun=beat.seen, ended=now.wall),)
    booted = max(beat.seen, now.wall - timedelta(seconds=now.since_boot))
    return (
        Absence(away=Away.OFF, begun=beat.seen, ended=booted),
        Absence(away=Away.STOPPED, begun=booted, ended=now.wall),
    )
