"""A pool is lost, and the copy of one of its datasets has another name on its target: the rebuild names it, and what gives its name back."""

import json

import pytest

from tests.lab.common import Machine
from tests.lab.pools import guids, restore_pool

TARGETS = '[place.vault]\ndataset = "vault/copies"\n'


@pytest.mark.parametrize("whole", [False, True], ids=["the dataset", "the pool of the copies"])
def test_a_copy_that_was_renamed_comes_back_by_the_command_that_is_named(master: Machine, whole: bool) -> None:
    master.pool("tank", "200M")
    master.pool("vault", "200M")
    master.sh(
        """set -e; zfs create vault/copies; zfs create tank/photos; echo one >/tank/photos/one; zfs snapshot -r tank@a"""
    )
    master.job("photos", 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n', targets=TARGETS)
    assert master.poolferry("run", "photos", "--json", seconds=300).code == 0
    held = guids(master, "tank/photos")
    (copy,) = (name for name in master.sh("zfs list -Ho name -r vault/copies").lines if name.endswith("/photos"))
    master.sh("zpool destroy tank")
    if whole:
        master.sh("zpool export vault; zpool import -d /var/lib/pools vault attic")
        back = "zpool export attic && zpool import attic vault"
    else:
        master.sh(f"zfs rename {copy} vault/copies/elsewhere")
        back = f"zfs rename vault/copies/elsewhere {copy}"
    code, told = restore_pool(master)
    assert code == 75, told
    master.sh("\n".join(line.replace("zpool create", "zpool create -f") for line in told["next"]))
    code, told = restore_pool(master)
    assert (code, told["steps"][-1]["state"]) == (75, "no copy of it can be reached"), told
    assert "by its guid" in json.dumps(told), told
    assert back in json.dumps(told), told
    master.sh(back if not whole else "zpool export attic; zpool import -d /var/lib/pools attic vault")
    code, told = restore_pool(master)
    assert (code, guids(master, "tank/photos")) == (0, held), told
    assert master.read("/tank/photos/one") == b"one\n"
