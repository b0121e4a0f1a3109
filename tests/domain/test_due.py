"""A restart is no downtime; a crash, a sleep and a longer stop are."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.due import Downtime, DowntimeCause

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cause", "seconds", "latest", "restart"),
    [
        (DowntimeCause.STOPPED, 3, False, True),
        (DowntimeCause.STOPPED, 59, False, True),
        (DowntimeCause.STOPPED, 60, False, False),
        (DowntimeCause.STOPPED, 3, True, False),
        (DowntimeCause.SLEPT, 3, False, False),
        (DowntimeCause.OFF, 3, False, False),
    ],
)
def test_a_restart(cause: DowntimeCause, seconds: int, latest: bool, restart: bool) -> None:
    ended = NOON + timedelta(seconds=seconds)
    assert Downtime(away=cause, begun=NOON, ended=ended, latest=latest).restart is restart
