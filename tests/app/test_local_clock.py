"""The machine's own clocks: its zone, and why nobody looked."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.app.local_clock import (
    ClockReading,
    downtime_between,
    downtime_since,
    local_zone,
    read_clocks,
    zone_fingerprint,
)
from orchestrator.domain.due import Downtime, DowntimeCause, Heartbeat

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
SUMMER = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "hours"),
    [
        ("Europe/Berlin", 2), (":Europe/Berlin", 2), ("/usr/share/zoneinfo/Asia/Tokyo", 9), ("UTC", 0),
        ("No/Where", 0), ("/no/such/file", 0), ("/etc/hostname", 0),
    ],
)  # fmt: skip
def test_the_zone_is_the_one_of_the_environment(monkeypatch: pytest.MonkeyPatch, told: str, hours: int) -> None:
    before = zone_fingerprint()
    monkeypatch.setenv("TZ", told)
    assert SUMMER.astimezone(local_zone()).utcoffset() == timedelta(hours=hours)
    assert zone_fingerprint() != before


def test_without_one_it_is_the_machines_own() -> None:
    look = "import time; print(time.localtime(1783000000).tm_gmtoff)"
    usual = {name: value for name, value in os.environ.items() if name != "TZ"}
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, env=usual, check=True).stdout
    offset = datetime.fromtimestamp(1783000000, local_zone()).utcoffset()
    assert offset == timedelta(seconds=int(told))


def clocks(wall: float = 0, steady: float = 0, since_boot: float = 0) -> ClockReading:
    """Seconds since a first look."""
    return ClockReading(wall=NOW + timedelta(seconds=wall), steady=1000 + steady, since_boot=5000 + since_boot)


@pytest.mark.parametrize(
    ("now", "away"),
    [
        (clocks(25, 25, 25), None),
        (clocks(26, 25, 25), None),  # slewed
        (clocks(3625, 25, 3625), DowntimeCause.SLEPT),
        (clocks(3625, 25, 25), DowntimeCause.SET),
        (clocks(-3600, 25, 25), None),  # set back: nothing was missed
        (clocks(600, 600, 600), DowntimeCause.STOPPED),  # the daemon itself was held up
    ],
)
def test_why_nobody_looked_between_two_looks(now: ClockReading, away: DowntimeCause | None) -> None:
    found = downtime_between(clocks(), now)
    assert found == (Downtime(away=away, begun=NOW, ended=now.wall) if away else None)


def beat(boot: str, ago: float) -> Heartbeat:
    seen = NOW - timedelta(hours=ago)
    return Heartbeat(boot=boot, pid=1, begun=seen, seen=seen, orderly=False)


def test_why_nobody_looked_since_the_last_daemon() -> None:
    now = ClockReading(wall=NOW, steady=3600, since_boot=3600)
    assert downtime_since(None, now, "a") == ()
    assert downtime_since(beat("a", -1), now, "a") == ()
    assert downtime_since(beat("a", 5), now, "a") == (
        Downtime(away=DowntimeCause.STOPPED, begun=NOW - timedelta(hours=5), ended=NOW, latest=True),
    )
    (ended,) = downtime_since(replace(beat("a", 3 / 3600), orderly=True), now, "a")
    assert (ended.latest, ended.restart, replace(ended, latest=True).restart) == (False, True, False)
    (ended,) = downtime_since(replace(beat("a", 1 / 60), orderly=True), now, "a")
    assert not ended.restart
    booted = NOW - timedelta(hours=1)
    assert downtime_since(beat("b", 5), now, "a") == (
        Downtime(away=DowntimeCause.OFF, begun=NOW - timedelta(hours=5), ended=booted, latest=True),
        Downtime(away=DowntimeCause.STOPPED, begun=booted, ended=NOW),
    )


def test_the_real_clocks_are_read() -> None:
    first, second = read_clocks(NOW), read_clocks(NOW)
    assert second.steady >= first.steady > 0
    assert second.since_boot >= second.steady - 1
