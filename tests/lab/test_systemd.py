"""The daemon and single runs on a real systemd: started, told to read again, stopped, killed, hung, cut from power.

Changes things: in virtual machines.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.domain.run import Outcome
from tests.lab.common import Machine
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual

BOTH = pytest.mark.flavours("trixie", "bookworm")  # systemd 257 and 252
PLACES = '[place.copies]\npath = "/backup/copies"\n[place.slow]\npath = "/backup/slow"\n'
QUICK = 'engine = "rsync"\nsource = "/srv/quick"\ntarget = "copies"\n{when}'
SLOW = 'engine = "rsync"\nsource = "/srv/slow"\ntarget = "slow"\n{when}[pipe]\nrate-limit = "256K"\n'
MINUTELY = 'schedule = "* * * * *"\n'
# The working tree has to be there before the service is, also after a boot.
TREE = "poolferry /mnt/poolferry 9p trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro 0 0"
FOR_TESTS = "[Unit]\nRequiresMountsFor=/mnt/poolferry\n[Service]\nRestartSec=1\n"
# Most of a minute would only be waited for: the machine's clock goes forward to its last third.
SOON = "now=$(date +%s); [ $((now % 60)) -ge 40 ] || date -s @$((now - now % 60 + 40)) > /dev/null"
PATIENCE = 180.0  # an emulated machine on a busy host


def install(machine: Machine, more: str = "", *, large: str = "8M") -> None:
    """The units, as a newcomer installs them; the daemon is up when this returns."""
    machine.sh(
        "mkdir -p /srv/quick /srv/slow /backup; echo text > /srv/quick/a;"
        f"head -c {large} /dev/urandom > /srv/slow/large"
    )
    said = machine.poolferry("setup", "systemd", check=True).text
    assert "systemctl enable --now poolferry.service" in said
    machine.write("/etc/systemd/system/poolferry.service.d/test.conf", FOR_TESTS + more)
    machine.sh(f"grep -q 9p /etc/fstab || echo '{TREE}' >> /etc/fstab; systemctl daemon-reload; {SOON}")
    machine.sh("systemctl enable --now poolferry.service", seconds=PATIENCE)


def outcomes(machine: Machine, job: str) -> list[str | None]:
    """Of all runs of a job, the newest first; None: it goes on."""
    return [run["outcome"] for run in machine.poolferry("history", job, "--json", check=True).json["runs"]]


def asked(machine: Machine, job: str) -> list[str]:
    """Why the runs of a job began, the newest first."""
    return [run["asked"] for run in machine.poolferry("history", job, "--json", check=True).json["runs"]]


def shown(machine: Machine, *names: str, unit: str = "poolferry.service") -> dict[str, str]:
    """Properties of the service."""
    lines = machine.sh(["systemctl", "show", unit, *(f"--property={name}" for name in names)]).lines
    return dict(line.split("=", 1) for line in lines)


def of_units(machine: Machine) -> list[str]:
    """What `check --system` says of the units."""
    told = machine.poolferry("check", "--system").lines
    return [line.strip() for line in told if "  systemd: " in line]


def copying(machine: Machine) -> bool:
    """Whether bytes of the slow job arrive now."""
    found = machine.sh("find /backup/slow -size +100k -type f 2>/dev/null | head -1", check=False).text
    return bool(found.strip()) and "rsync" in machine.sh("ps -eo comm").text


def until(machine: Machine, condition: Callable[[], Any]) -> None:
    """Waits for it; what the service said is the reason where it does not come."""
    try:
        wait_until(condition, PATIENCE, pause=1)
    except AssertionError:
        told = machine.sh("journalctl -u 'poolferry*' --no-pager | tail -40; poolferry history", check=False).text
        raise AssertionError(f"waited {PATIENCE:g} s in vain\n{told}") from None


@BOTH
def test_the_units_are_what_systemd_takes(master: Machine) -> None:
    master.poolferry("setup", "systemd", check=True)
    master.poolferry("setup", "systemd", "--timer", check=True)
    units = "poolferry.service poolferry-run@photos.service poolferry-owed.service poolferry-owed.timer"
    done = master.sh(f"cd /etc/systemd/system && systemd-analyze verify --man=no {units}", check=False)
    assert (done.code, done.complaint) == (0, "")
    for unit in units.split()[:3]:
        last = master.sh(f"systemd-analyze security {unit} | tail -1").text
        assert float(last.split(": ")[1].split()[0]) <= 6.9, last
    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    (told,) = of_units(master)
    assert told.startswith("hm  systemd: poolferry.service is installed and not enabled, so nothing runs after")
    master.sh("sed -i s/Nice=5/Nice=6/ /etc/systemd/system/poolferry.service; systemctl enable poolferry-owed.timer")
    told = " ".join(of_units(master))
    assert "hm  systemd: poolferry.service is not as this version writes it" in told
    assert "!!  systemd: poolferry-owed.timer is enabled, but inactive" in told


def test_a_day_of_the_service(master: VirtualMachine) -> None:
    """At its minute, reload with a mistake, stop in mid-transfer, one run by its own unit, killed, hung."""
    master.sh("systemctl unmask systemd-logind && systemctl start dbus systemd-logind", seconds=PATIENCE)
    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    master.job("slow", SLOW.format(when=""))
    install(master)
    until(master, lambda: "done" in outcomes(master, "quick"))
    assert asked(master, "quick")[0].startswith('at "* * * * *"; due ')
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
    late = [text for text in asked(master, "quick") if text.startswith("late: the machine was off from ")]
    assert len(late) == 1, asked(master, "quick")
    assert "late: the machine was off" in master.poolferry("history", "quick", check=True).text
