"""A machine that sleeps under the running daemon (S3): its own clocks, what was missed meanwhile, and what runs just then."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from orchestrator.domain.run import Outcome
from tests.lab.common import Machine
from tests.lab.service import MINUTELY, PLACES, QUICK, SLOW, copying, install, outcomes, shown, until
from tests.lab.virtual import VirtualMachine

pytestmark = pytest.mark.virtual

NIGHT = timedelta(hours=3)
ASKED = "systemctl suspend --check-inhibitors=yes"
FORCED = "echo mem > /sys/power/state"  # nobody is asked
LATE = "late: the machine slept from "
CLOCKS = """
import json, time
print(json.dumps([time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), time.clock_gettime(time.CLOCK_MONOTONIC)]))
"""


def clocks(machine: Machine) -> tuple[float, float, float]:
    """Seconds by the wall, since the boot, and awake since the boot."""
    wall, booted, awake = json.loads(machine.sh(["python3", "-c", CLOCKS]).text)
    return wall, booted, awake


def runs(machine: Machine, job: str) -> list[dict[str, Any]]:
    """The newest first."""
    found: list[dict[str, Any]] = machine.poolferry("history", job, "--limit", "100", "--json", check=True).json["runs"]
    return found


def with_a_bed(master: VirtualMachine) -> None:
    """Install what a machine needs to be put to sleep, and to wake."""
    master.sh("systemctl unmask systemd-logind && systemctl start dbus systemd-logind", seconds=180)
    master.keep_tree()


@pytest.mark.long
def test_after_a_night_asleep_what_was_missed_runs_once(master: VirtualMachine) -> None:
    """180 slots of one job and two of another become one run each; the daemon is still the same, and goes on at its minute."""
    with_a_bed(master)
    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    master.job("hourly", QUICK.format(when='every = "1h"\n').replace("copies", "slow"))
    master.kitted("quick", "hourly")
    install(master)
    until(master, lambda: all(Outcome.DONE in outcomes(master, job) for job in ("quick", "hourly")))
    daemon = shown(master, "MainPID", "NRestarts")
    wall, booted, awake = clocks(master)
    until(master, lambda: master.falls_asleep(ASKED))
    master.wake(later=NIGHT)
    now = clocks(master)
    slept = NIGHT.total_seconds() - 1  # the clock that runs on has whole seconds
    assert now[0] - wall > slept < now[1] - booted, (wall, booted, awake, now)
    assert now[2] - awake < 60 + (now[1] - booted) - NIGHT.total_seconds(), (wall, booted, awake, now)

    def since(job: str) -> list[dict[str, Any]]:
        return [run for run in runs(master, job) if run["requested"].startswith(LATE) or _begun(run) > now[0]]

    def on_time() -> bool:
        newest = since("quick")[:1]
        return bool(newest) and newest[0]["outcome"] is not None and not newest[0]["asked"].startswith("late")

    until(master, on_time)
    quick, hourly = since("quick"), since("hourly")
    late = quick[-1]
    assert [run["requested"].startswith("late") for run in quick] == [False] * (len(quick) - 1) + [True], quick
    more = re.search(r'"\* \* \* \* \*"; due .* and (\d+) more until ', late["asked"])
    assert more
    assert 178 <= int(more[1]) <= 184, late
    assert _begun(late) - now[0] < 60, (late, now)
    assert all(later - earlier < 130 for earlier, later in pairwise(sorted(map(_begun, quick)))), quick
    assert [(run["requested"][: len(LATE)], run["outcome"]) for run in hourly] == [(LATE, Outcome.NOTHING)]
    assert shown(master, "MainPID", "NRestarts") == daemon
    assert "the machine slept from" in master.sh("journalctl -u poolferry --no-pager").text
    assert "late: the machine slept from" in master.poolferry("history", "hourly", check=True).text


@pytest.mark.long
def test_nothing_sleeps_under_a_run_unless_it_must(master: VirtualMachine) -> None:
    """A request is refused while bytes move; a run that had to sleep goes on where it was; and then nothing keeps the machine awake."""
    with_a_bed(master)
    master.job("slow", SLOW.format(when='every = "1d"\n'), targets=PLACES)
    master.kitted("slow")
    install(master, large="12M")
    until(master, lambda: copying(master))
    refused = master.sh(ASKED, check=False)
    assert refused.code
    assert "a backup is running" in refused.text + refused.complaint, refused
    assert not master.asleep
    assert copying(master)
    assert master.falls_asleep(FORCED)
    master.wake(later=NIGHT)
    assert copying(master)
    until(master, lambda: outcomes(master, "slow")[0] is not None)
    (run,) = runs(master, "slow")
    assert (run["outcome"], run["attempts"], run["resumed"]) == (Outcome.DONE, 1, False), run
    until(master, lambda: "poolferry" not in master.sh("systemd-inhibit --list --no-pager").text)
    assert master.sh("systemctl is-active poolferry").text == "active"


def _begun(run: dict[str, Any]) -> float:
    return datetime.strptime(run["begun"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp()
