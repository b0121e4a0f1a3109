"""The daemon and single runs on a real systemd: started, told to read again, stopped, killed, hung, cut from power."""

from datetime import timedelta

import pytest

from orchestrator.domain.run import Outcome
from tests.lab.common import Machine
from tests.lab.service import (
    MINUTELY,
    PATIENCE,
    PLACES,
    QUICK,
    SLOW,
    copying,
    install,
    of_units,
    outcomes,
    requested,
    shown,
    until,
)
from tests.lab.virtual import VirtualMachine

pytestmark = pytest.mark.virtual

BOTH = pytest.mark.flavours("trixie", "bookworm")  # systemd 257 and 252


@BOTH
def test_the_units_are_what_systemd_takes(master: Machine) -> None:
    master.poolferry("setup", "systemd", check=True)
    master.poolferry("setup", "systemd", "--timer", check=True)
    units = "poolferry.service poolferry-run@photos.service poolferry-due.service poolferry-due.timer poolferry-read.service"
    done = master.sh(f"cd /etc/systemd/system && systemd-analyze verify --man=no {units}", check=False)
    assert (done.code, done.complaint) == (0, "")
    for unit in units.split()[:3]:
        last = master.sh(f"systemd-analyze security {unit} | tail -1").text
        assert float(last.split(": ")[1].split()[0]) <= 6.9, last
    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    (told,) = of_units(master)
    assert told.startswith("hm  systemd: poolferry.service is installed and not enabled, so nothing runs after")
    master.sh("sed -i s/Nice=5/Nice=6/ /etc/systemd/system/poolferry.service; systemctl enable poolferry-due.timer")
    told = " ".join(of_units(master))
    assert "hm  systemd: poolferry.service is not as this version writes it" in told
    assert "!!  systemd: poolferry-due.timer is enabled, but inactive" in told


def test_a_day_of_the_service(master: VirtualMachine) -> None:
    """At its minute, reload with a mistake, stop in mid-transfer, one run by its own unit, killed, hung."""
    master.sh("systemctl unmask systemd-logind && systemctl start dbus systemd-logind", seconds=PATIENCE)
    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    master.job("slow", SLOW.format(when=""))
    install(master)
    until(master, lambda: "done" in outcomes(master, "quick"))
    assert requested(master, "quick")[0].startswith('at "* * * * *"; due ')
    assert of_units(master) == ["ok  systemd: poolferry.service is enabled and active"]
    assert "next quick at" in shown(master, "StatusText")["StatusText"]

    # A mistake: the last good configuration holds, and both systemctl and the journal say so.
    master.job("quick", QUICK.format(when='schedule = "* * *"\n'))
    master.sh("systemctl reload poolferry")
    until(master, lambda: "mistakes" in shown(master, "StatusText")["StatusText"])
    told = master.sh("journalctl -u poolferry --no-pager").text
    assert "/etc/poolferry/jobs/quick.toml:4: schedule" in told, told
    before = len(outcomes(master, "quick"))
    until(master, lambda: len(outcomes(master, "quick")) > before)
    master.job("quick", QUICK.format(when=""))
    master.job("slow", SLOW.format(when='every = "1m"\n'))
    master.sh("systemctl reload poolferry")

    # While it copies, the machine is kept awake; a stop ends the run in order, and leaves nothing behind.
    until(master, lambda: copying(master))
    assert "poolferry" in master.sh("systemd-inhibit --list --no-pager").text
    master.sh("systemctl stop poolferry", seconds=PATIENCE)
    assert outcomes(master, "slow")[0] == Outcome.INTERRUPTED
    assert "rsync" not in master.sh("ps -eo comm").text
    assert shown(master, "Result", "ActiveState") == {"Result": "success", "ActiveState": "inactive"}

    # One run in a cgroup of its own: stopped like any service.
    one = master.popen("systemctl start poolferry-run@slow")
    until(master, lambda: copying(master))
    assert "poolferry-run@slow.service" in master.sh("cat /proc/$(pgrep -o rsync)/cgroup").text
    master.sh("systemctl stop poolferry-run@slow", seconds=PATIENCE)
    one.wait(PATIENCE)
    assert outcomes(master, "slow")[:2] == [Outcome.INTERRUPTED, Outcome.INTERRUPTED]
    assert "rsync" not in master.sh("ps -eo comm").text


@pytest.mark.long
def test_a_daemon_that_dies_or_hangs_is_there_again(master: VirtualMachine) -> None:
    """kill -9 ends its runs with it, and they go on; a daemon that no longer answers is killed by the watchdog."""
    master.job("slow", SLOW.format(when='every = "1m"\n'), targets=PLACES)
    install(master, "WatchdogSec=20s\n")
    until(master, lambda: copying(master))
    first = shown(master, "MainPID")["MainPID"]
    master.sh("kill -9 $(systemctl show -P MainPID poolferry)")
    until(master, lambda: shown(master, "MainPID", "ActiveState")["ActiveState"] == "active")
    assert shown(master, "MainPID")["MainPID"] not in (first, "0")
    until(master, lambda: len(outcomes(master, "slow")) > 1 and copying(master))
    assert outcomes(master, "slow")[1] == Outcome.INTERRUPTED

    hung = shown(master, "MainPID")["MainPID"]
    master.sh(f"kill -STOP {hung}")
    until(master, lambda: shown(master, "MainPID")["MainPID"] not in (hung, "0"))
    assert "Watchdog timeout" in master.sh("journalctl -u poolferry --no-pager").text
    until(master, lambda: outcomes(master, "slow")[0] == Outcome.DONE)
    newest = master.poolferry("show", "slow", "--json", check=True).json
    assert newest["resumed"], newest


@pytest.mark.long
def test_after_a_power_cut_what_was_missed_is_caught_up(master: VirtualMachine) -> None:
    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    master.job("slow", SLOW.format(when='every = "5m"\n'))
    install(master, large="32M")
    until(master, lambda: copying(master) and "done" in outcomes(master, "quick"))
    master.sh("sync")
    master.power_cut()
    master.boot_again(later=timedelta(minutes=10))
    until(master, lambda: len(outcomes(master, "slow")) > 1 and copying(master))
    assert outcomes(master, "slow")[1] == Outcome.INTERRUPTED
    late = [text for text in requested(master, "quick") if text.startswith("late: the machine was off from ")]
    assert len(late) == 1, requested(master, "quick")
    assert "late: the machine was off" in master.poolferry("history", "quick", check=True).text
