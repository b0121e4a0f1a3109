"""The Debian package on a machine that boots: its units run, and end when it is removed; what it did stays after a purge."""

from pathlib import Path

import pytest

from tests.lab.service import MINUTELY, PATIENCE, PLACES, QUICK, SOON
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until
from tests.whole.minimal_debian import DEB, build

pytestmark = pytest.mark.virtual

_OURS = "/etc/poolferry /var/lib/poolferry /srv /backup"
# The machine reaches no mirror: of the packages that ours depends on it gets the modules alone.
_MODULES = "for name in click pygments tzlocal; do ln -s /opt/poolferry/lib/python3*/site-packages/$name /usr/lib/python3/dist-packages/; done"


@pytest.mark.long
def test_it_is_enabled_runs_a_job_is_removed_and_purged(master: VirtualMachine, tmp_path: Path) -> None:
    package = build(DEB, tmp_path / "dist")
    master.write("/root/poolferry.deb", package.read_bytes())
    master.sh(f"{_MODULES}; dpkg -i --force-depends /root/poolferry.deb", seconds=PATIENCE)
    units = "poolferry.service poolferry-run@photos.service poolferry-due.service poolferry-due.timer poolferry-read.service poolferry-disk@sdb.service"
    done = master.sh(f"cd /usr/lib/systemd/system && systemd-analyze verify --man=no {units}", check=False, seconds=60)
    assert (done.code, done.complaint) == (0, "")
    assert (
        master.sh("systemctl is-enabled poolferry.service poolferry-due.timer", check=False).lines == ("disabled",) * 2
    )
    master.sh(
        "udevadm verify /usr/lib/udev/rules.d/90-poolferry.rules; bash -n /usr/share/bash-completion/completions/poolferry"
    )

    master.job("quick", QUICK.format(when=MINUTELY), targets=PLACES)
    master.sh(
        f"mkdir -p /srv/quick /backup; echo text > /srv/quick/a; {SOON}; systemctl enable --now poolferry.service",
        seconds=PATIENCE,
    )
    wait_until(lambda: master.sh("cat /backup/copies/latest/a", check=False).text == "text", PATIENCE, pause=1)
    wait_until(lambda: '"done"' in master.sh("/usr/bin/poolferry history quick --json").text, PATIENCE, pause=1)
    assert "/usr/bin/poolferry" in master.sh("systemctl show -P ExecStart poolferry.service").text

    master.sh("dpkg --remove poolferry", seconds=PATIENCE)
    before = master.sh(f"find {_OURS} -type f -exec sha256sum {{}} + | sort").text
    left = master.sh(
        "pgrep -fa '[/]usr/lib/poolferry'; find /etc/systemd/system -name 'poolferry*'; ls -d /usr/bin/poolferry",
        check=False,
    )
    assert left.text == ""
    assert master.sh("systemctl show -P LoadState poolferry.service").text == "not-found"
    master.sh("dpkg --purge poolferry", seconds=PATIENCE)
    assert master.sh(f"find {_OURS} -type f -exec sha256sum {{}} + | sort").text == before
    assert "/srv/quick/a" in before
