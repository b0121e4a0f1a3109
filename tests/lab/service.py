"""Our service on a machine's own systemd: installed as a newcomer does it, two jobs for it, and what it says and did."""

from collections.abc import Callable
from typing import Any

from tests.lab.common import Machine
from tests.whole.house import wait_until

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


def requested(machine: Machine, job: str) -> list[str]:
    """Return why the runs of a job began, the newest first."""
    return [run["requested"] for run in machine.poolferry("history", job, "--json", check=True).json["runs"]]


def shown(machine: Machine, *names: str, unit: str = "poolferry.service") -> dict[str, str]:
    """Properties of the service."""
    lines = machine.sh(["systemctl", "show", unit, *(f"--property={name}" for name in names)]).lines
    return dict(line.split("=", 1) for line in lines)


def of_units(machine: Machine) -> list[str]:
    """Return what `check --system` says of the units."""
    told = machine.poolferry("check", "--system").lines
    return [line.strip() for line in told if "  systemd: " in line]


def copying(machine: Machine) -> bool:
    """Return whether bytes of the slow job arrive now."""
    found = machine.sh("find /backup/slow -size +100k -type f 2>/dev/null | head -1", check=False).text
    return bool(found.strip()) and "rsync" in machine.sh("ps -eo comm").text


def until(machine: Machine, condition: Callable[[], Any]) -> None:
    """Waits for it; what the service said is the reason where it does not come."""
    try:
        wait_until(condition, PATIENCE, pause=1)
    except AssertionError:
        told = machine.sh("journalctl -u 'poolferry*' --no-pager | tail -40; poolferry history", check=False).text
        raise AssertionError(f"waited {PATIENCE:g} s in vain\n{told}") from None
