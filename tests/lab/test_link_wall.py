"""An rsync between datasets, behind the wall against links: from one with another mounted in it, and from a snapshot's own folder."""

import pytest

from tests.lab.common import Machine

JOB = 'engine = "rsync"\nsource = "{source}"\ntarget = "{name}"\nschedule = "manual"\n[rsync]\none-file-system = false\n[retry]\nattempts = 1\n'


@pytest.mark.flavours("trixie", long=["bookworm"])
def test_datasets_below_one_another_and_a_snapshot_are_copied_and_let_go(master: Machine) -> None:
    master.pool("tank")
    master.sh(
        "zfs create tank/a && zfs create tank/a/b && zfs create tank/copies && echo one >/tank/a/one && echo two >/tank/a/b/two"
        " && ln -s /etc /tank/a/away && ln /tank/a/one /tank/a/same && zfs snapshot tank/a@s && echo later >>/tank/a/one"
    )
    targets = "".join(f'[place.{name}]\npath = "/tank/copies/{name}"\n' for name in ("live", "frozen"))
    master.job("live", JOB.format(source="/tank/a", name="live"), targets=targets)
    master.job("frozen", JOB.format(source="/tank/a/.zfs/snapshot/s", name="frozen"))
    checked = master.poolferry("check", "--system")
    assert b"links in trees" not in checked.out + checked.errors, checked
    for name in ("live", "frozen"):
        for _ in range(2):  # the second one over links of the first
            ran = master.poolferry("run", name, "--json")
            assert ran.json["outcome"] in ("done", "nothing-to-do"), ran
            master.sh("echo more >>/tank/a/b/two")
    live, frozen = "/tank/copies/live/latest", "/tank/copies/frozen/latest"
    assert master.read(f"{live}/b/two") == b"two\nmore\n"
    assert (master.read(f"{live}/one"), master.read(f"{frozen}/one")) == (b"one\nlater\n", b"one\n")
    assert master.sh(f"readlink {live}/away {frozen}/away").lines == ("/etc", "/etc")
    assert master.sh(f"stat -c %h {live}/same").text >= "2"
    # No mounts of a run are left that would hold a dataset or a pool.
    master.sh("zfs destroy tank/a@s && zfs unmount tank/a/b && zfs unmount tank/a")
    master.sh("zpool export tank")
