"""Quotas of real filesystems fill while a copy is written: told as quotas, not as a full disk, and never as data that is gone."""

import pytest

from tests.lab.common import Ended, Machine

pytestmark = pytest.mark.flavours("trixie", long=["bookworm"])
JOB = 'engine = "rsync"\nsource = "/srv"\ntarget = "{name}"\n[guard]\nmax-deleted = "50%"\n[retry]\nattempts = 1\n[rsync]\nowners = {owners}\n'
_LIMIT = r"""
import ctypes, os, struct, sys
quota = ctypes.create_string_buffer(struct.pack("8QIxxxx", int(sys.argv[3]), int(sys.argv[3]), 0, 0, 0, 0, 0, 0, 5))
libc = ctypes.CDLL("libc.so.6", use_errno=True)
if libc.quotactl(0x800008 << 8, sys.argv[1].encode(), int(sys.argv[2]), quota):
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""  # Source: quotactl(2): Q_SETQUOTA of a user's blocks; its package is on few machines
_SOURCE = """set -e; useradd -m -u 1234 -p '*' eve; mkdir -p /srv/eve /srv/others /home/eve/.ssh
echo x >/srv/others/x; head -c 4M /dev/urandom >/srv/eve/large; for n in $(seq 20); do echo $n >/srv/eve/$n; done; chown -R eve /srv/eve
ssh-keygen -y -f /root/.ssh/id_ed25519 >/home/eve/.ssh/authorized_keys; chown -R eve /home/eve/.ssh; chmod 700 /home/eve /home/eve/.ssh
ssh-keyscan localhost >>/root/.ssh/known_hosts 2>/dev/null"""


def run(machine: Machine, name: str, place: str, *, owners: bool = True) -> Ended:
    """Run a job onto a place."""
    text = JOB.format(name=name, owners=str(owners).lower())
    machine.sh(f"rm -f {machine.config}/jobs/*.toml")
    machine.job(name, text, targets=f'[place.{name}]\npath = "{place}"\n')
    return machine.poolferry("run", name, "--json")


def require_quota(ran: Ended) -> None:
    """The run names a quota, and not what is free beside it."""
    assert (ran.json["outcome"], "a quota at the target is used up" in ran.json["why"]) == ("failed", True), ran
    assert "were free" not in ran.json["why"], ran


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_the_quota_of_who_writes_over_ssh_is_named(master: Machine, kind: str) -> None:
    make = {"ext4": "mkfs.ext4 -q -F -O quota -E quotatype=usrquota", "xfs": "mkfs.xfs -q"}[kind]
    size, option = {"ext4": ("60M", "usrquota"), "xfs": ("320M", "uquota")}[kind]
    master.sh(_SOURCE)
    master.write("/root/limit.py", _LIMIT)
    master.sh(f"""set -e; truncate -s {size} /tmp/disk.img; {make} /tmp/disk.img; mkdir /mnt/quota; mount -o loop,{option} /tmp/disk.img /mnt/quota
        mkdir /mnt/quota/eve; chown eve /mnt/quota/eve; python3 /root/limit.py $(findmnt -no SOURCE /mnt/quota) 1234 2048""")
    place = "ssh://eve@localhost/mnt/quota/eve/copies"
    require_quota(run(master, "far", place, owners=False))
    master.sh("python3 /root/limit.py $(findmnt -no SOURCE /mnt/quota) 1234 40960")
    assert run(master, "far", place, owners=False).json["outcome"] == "done"
    master.sh("umount /mnt/quota")


def test_the_quota_of_a_dataset_is_named_and_that_of_an_owner_costs_nobody_else(master: Machine) -> None:
    master.sh(_SOURCE)
    master.pool("tank")
    master.sh("zfs create -o quota=2M tank/whole; zfs create -o userquota@eve=3M tank/owner")
    require_quota(run(master, "whole", "/tank/whole/copies"))
    require_quota(run(master, "far", "ssh://root@localhost/tank/whole/far"))
    assert run(master, "owner", "/tank/owner/copies").json["outcome"] == "done"
    master.sh("echo more >/srv/eve/more; echo more >/srv/others/more; chown eve /srv/eve/more; zpool sync tank")
    ran = run(master, "owner", "/tank/owner/copies")
    assert (ran.json["outcome"], "gone" in ran.json["why"]) == ("incomplete", False), ran
    assert all(line.startswith("eve") and "quota" in line for line in ran.json["evidence"]), ran
    assert master.read("/tank/owner/copies/latest/others/more") == b"more\n"
    master.sh("zfs set userquota@eve=none tank/owner")
    assert run(master, "owner", "/tank/owner/copies").json["outcome"] == "done"
    assert master.sh("diff -r /srv /tank/owner/copies/latest").text == ""
