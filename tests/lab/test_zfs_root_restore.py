"""A pool's own dataset comes back into that of a new pool, on real OpenZFS, and nothing that is there is lost."""

import pytest

from tests.lab.common import Machine
from tests.lab.cuts import PROMPT
from tests.lab.pools import guids, rebuild, restore
from tests.whole.house import wait_until

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])
JOB = 'engine = "zfs"\nsource = "tank"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
KEPT = "mountpoint,canmount,readonly,quota,refquota,compression,user:note,sharenfs"


def set_up(master: Machine, size: str = "3M", *, kit: bool = False) -> None:
    """Files in the pool's own dataset, and datasets below it, copied. `kit`: with a recovery kit, as every day."""
    master.pool("tank", "300M")
    master.pool("vault", "300M")
    master.sh(f"""set -e; zfs create vault/copies; zfs set compression=lz4 quota=250M user:note='a b' tank
        zfs create -o mountpoint=/srv/sub -o refquota=90M tank/sub; zfs create -V 8M tank/disk
        head -c {size} /dev/urandom >/tank/one; echo two >/srv/sub/two; zfs snapshot -r tank@a
        echo three >/tank/three; zfs snapshot -r tank@b""")
    master.job("photos", JOB, targets=PLACE)
    if not kit:
        master.kitted("photos")
    ran = master.poolferry("run", "photos", "--json")
    assert ran.code == 0, ran


def values(master: Machine) -> str:
    return master.sh(["zfs", "get", "-Hpr", "-t", "filesystem,volume", "-o", "name,property,value", KEPT, "tank"]).text


@BOTH
@pytest.mark.long
def test_a_pool_comes_back_into_its_own_dataset_and_goes_on(master: Machine, flavour: str) -> None:
    set_up(master, kit=True)
    before, held = values(master), guids(master, "tank")
    rebuild(master)
    master.sh("zfs create tank/own; echo mine >/tank/own/mine")
    refused = restore(master, to="tank")
    assert (refused["outcome"], "tank/own is mounted below it" in refused["why"]) == ("refused", True), refused
    master.sh("zfs unmount tank/own")
    # What reads contents is the same on both.
    ended = restore(master, *(("--content",) if flavour == "trixie" else ()), to="tank")
    assert ended["outcome"] == "done", ended
    story = master.poolferry("show", "photos", "--json").json
    lines = [line for attempt in story["attempt"] for step in attempt["steps"] for line in step["commands"]]
    assert sum(" -F " in line for line in lines) == 1, lines
    assert master.sh("zfs mount tank/own; cat /tank/own/mine /tank/three /srv/sub/two").lines == (
        "mine",
        "three",
        "two",
    )
    master.sh("zfs destroy -f tank/own")
    assert (guids(master, "tank"), values(master)) == (held, before)
    assert "poolferry" not in master.sh("zfs get -Hr -o property -s local all tank").text
    assert [(link["base"], link["seen"]) for link in ended["chains"]] == [("b", True)]
    master.sh("echo new >/tank/new; zfs snapshot -r tank@c")
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    again = restore(master, to="tank")
    assert again["outcome"] == "refused", "the run since was a good one, so nobody knows any more that it was restored"


@pytest.mark.long
def test_files_in_it_are_left_alone(master: Machine) -> None:
    set_up(master)
    rebuild(master)
    master.sh("mkdir /tank/folder; echo mine >/tank/folder/mine")
    refused = restore(master, "--aside", to="tank")
    assert (refused["outcome"], refused["evidence"]) == ("refused", ["folder/mine"]), refused
    master.sh("zfs unmount tank")  # it is found where it is not mounted too
    assert restore(master, to="tank")["evidence"] == ["folder/mine"]
    assert master.sh("zfs get -Ho value mounted tank; zfs mount tank; cat /tank/folder/mine").lines == ("no", "mine")
    assert restore(master, "--aside", to="tank")["evidence"] == ["folder/mine"], "looking has not changed it"
    master.sh("zpool destroy -f tank; zpool import -d /var 2>/dev/null; true")
    refused = restore(master, to="tank")
    assert refused["why"] == "the pool tank is not imported", refused


@pytest.mark.long
def test_it_is_cut_and_goes_on(master: Machine) -> None:
    set_up(master, size="12M")
    master.job("photos", JOB + '[pipe]\nrate-limit = "900k"\nbuffer = "2M"\n')
    before, held = values(master), guids(master, "tank")
    rebuild(master)
    running = master.popen(["poolferry", "restore", "run", "photos", "--to", "tank", "--json"])
    arrived = '[ "$(zfs get -Hpo value used tank)" -gt 4000000 ]'
    master.sh(f"{PROMPT}; until pgrep -x zfs >/dev/null && {arrived}; do sleep 0.5; done", seconds=300)
    running.kill(9)
    running.wait(30)
    master.sh("pkill -9 -x mbuffer; pkill -9 -x zfs", check=False)
    wait_until(lambda: master.sh("pgrep -x zfs", check=False).code != 0, 60, pause=0.2)
    assert master.sh("zfs get -Ho value mounted,canmount,readonly tank").lines == ("no", "noauto", "on")
    master.job("photos", JOB, targets=PLACE)
    ended = restore(master, to="tank")
    assert (ended["outcome"], ended["resumed"]) == ("done", True), ended
    assert (guids(master, "tank"), values(master)) == (held, before)
    assert master.sh("cat /tank/three").text == "three"


@pytest.mark.long
def test_the_page_of_the_kit_brings_a_pool_with_its_own_files_and_keys_back_by_hand(master: Machine) -> None:
    """Literally, with zfs alone: files and snapshots in the pool's own dataset, and keys that a raw stream parts."""
    master.pool("tank", "300M")
    master.pool("vault", "300M")
    master.sh("""set -e; zfs create vault/copies; head -c 32 /dev/urandom >/root/key; echo one >/tank/one
        zfs create -o encryption=on -o keyformat=raw -o keylocation=file:///root/key -o compression=gzip tank/sealed
        zfs create tank/sealed/x; echo x >/tank/sealed/x/x; zfs create -o quota=90M 'tank/a b'; echo two >'/tank/a b/two'
        zfs snapshot -r tank@a; echo three >/tank/three; zfs snapshot -r tank@b""")
    master.job("photos", JOB, targets=PLACE)
    assert master.poolferry("run", "photos", "--json").code == 0
    before, held = values(master), guids(master, "tank")
    master.sh("mount -t zfs -o ro vault/copies/poolferry-kit /mnt")
    page, expected = master.read("/mnt/photos/RECOVERY.md").decode(), master.read("/mnt/photos/guids.tsv")
    where = master.lies_on("vault").rpartition("/")[0]
    master.sh("umount /mnt; zpool destroy -f tank; zpool export vault")
    blocks = [block.partition("```")[0] for block in page.split("```sh\n")[1:]]
    assert len(blocks) == 7
    for block in blocks:
        told = block.replace("zpool create", "zpool create -f").replace("zpool import", f"zpool import -d {where}")
        ended = master.sh(told, check=False, seconds=300)
        assert ended.code == 0, (block, ended)
    assert master.read("/root/poolferry-guids") == expected
    assert (guids(master, "tank"), values(master)) == (held, before)
    assert master.sh("cat /tank/three /tank/sealed/x/x '/tank/a b/two'").lines == ("three", "x", "two")
    assert master.sh("zfs get -Ho value encryptionroot tank/sealed/x").text == "tank/sealed"
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"
