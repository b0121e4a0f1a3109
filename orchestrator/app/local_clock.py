"""This machine's clocks: its zone, how long it slept, and when the daemon did not check them."""

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from orchestrator.domain.due import Downtime, DowntimeCause, Heartbeat
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.schedule.triggers import ZonedCalendar

_LOCAL = "/etc/localtime"
SLEPT, SET, HELD_UP = timedelta(seconds=5), timedelta(seconds=5), timedelta(minutes=3)


def local_calendar() -> "ZonedCalendar":
    """Return the calendar of this machine's zone."""
    from orchestrator.schedule.triggers import ZonedCalendar

    return ZonedCalendar(local_zone())


def local_zone() -> tzinfo:
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


def zone_fingerprint() -> object:
    """Return a value that changes when the zone is changed."""
    try:
        held = os.stat(_LOCAL)
    except OSError:
        return None
    return (held.st_ino, held.st_mtime_ns, os.environ.get("TZ"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """All clocks at one moment. `steady` stands still while the machine sleeps, `since_boot` does not; seconds."""

    wall: datetime
    steady: float
    since_boot: float


def read_clocks(wall: datetime) -> ClockReading:
    """Read the clocks now."""
    since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
    return ClockReading(wall=wall, steady=time.clock_gettime(time.CLOCK_MONOTONIC), since_boot=since_boot)


def downtime_between(before: ClockReading, now: ClockReading) -> Downtime | None:
    """Return the absence between two clock checks, with its cause; None: nothing unusual."""
    passed = timedelta(seconds=now.since_boot - before.since_boot)
    awake = timedelta(seconds=now.steady - before.steady)
    if passed - awake > SLEPT:
        return Downtime(away=DowntimeCause.SLEPT, begun=before.wall, ended=now.wall)
    if now.wall - before.wall - passed > SET:
        return Downtime(away=DowntimeCause.SET, begun=before.wall, ended=now.wall)
    if awake > HELD_UP:
        return Downtime(away=DowntimeCause.STOPPED, begun=before.wall, ended=now.wall)
    return None


def downtime_since(beat: Heartbeat | None, now: ClockReading, boot: str) -> tuple[Downtime, ...]:
    """Return the absences since the last daemon's last heartbeat, with their causes."""
    if beat is None or beat.seen > now.wall:
        return ()
    if beat.boot == boot:
        return (Downtime(away=DowntimeCause.STOPPED, begun=beat.seen, ended=now.wall, latest=not beat.orderly),)
    booted = max(beat.seen, now.wall - timedelta(seconds=now.since_boot))
    return (
        Downtime(away=DowntimeCause.OFF, begun=beat.seen, ended=booted, latest=not beat.orderly),
        Downtime(away=DowntimeCause.STOPPED, begun=booted, ended=now.wall),
    )
