"""A pool is made anew with another layout: everything on it returns, is as it was, and each target goes on incrementally.

Changes things: in virtual machines.
"""

from typing import Any

from tests.lab.common import Machine
from tests.lab.test_zfs_restore import guids

TARGETS = '[place.vault]\ndataset = "vault/copies"\n'
KEPT = "mountpoint,canmount,readonly,quota,compression,user:note,sharenfs"


def rebuild(master: Machine, *more: str) -> tuple[int, dict[str, Any]]:
    ended = master.poolferry("restore", "pool", "tank", "--json", *more, seconds=300)
    assert ended.out, ended
    return ended.code, ended.json


def states(told: dict[str, Any]) -> list[tuple[int, str]]:
    return [(step["step"], step["state"]) for step in told["steps"]]


def values(master: Machine) -> str:
    return master.sh(["zfs", "get", "-Hpr", "-t", "filesystem", "-o", "name,property,value", KEPT, "tank"]).text


def test_a_pool_is_made_anew(master: Machine) -> None:
    master.pool("tank", "300M")
    master.pool("vault", "300M")
    master.sh("""set -e; zfs create vault/copies; zfs create -o compression=lz4 tank/data
        zfs create -o quota=200M -o user:note='a b' tank/data/photos; zfs create -o mountpoint=/srv/music tank/music
        zfs create tank/scratch; head -c 2M /dev/urandom >/tank/data/photos/one; echo two >/srv/music/two
        echo x >/tank/scratch/x; zfs snapshot -r tank@a""")
    for name, source in (("photos", "tank/data/photos"), ("music", "tank/music")):
        master.job(name, f'engine = "zfs"\nsource = "{source}"\ntarget = "vault"\n', targets=TARGETS)
        assert master.poolferry("run", name, "--json").code == 0
    master.sh("echo more >/srv/music/more; zpool sync tank")
    code, told = rebuild(master)
    (step,) = told["steps"]
    assert (code, step["state"]) == (3, "no"), told
    lost = {each["dataset"]: each["lost"] for each in told["datasets"] if each["lost"]}
    assert set(lost) == {"tank", "tank/data", "tank/music", "tank/scratch"}, lost
    assert "written since @a" in lost["tank/music"]
    master.sh("zfs destroy tank@a; zfs destroy tank/data@a; zfs snapshot tank/music@b")
    assert master.poolferry("run", "music", "--json").code == 0
    code, told = rebuild(master)
    assert [each["dataset"] for each in told["datasets"] if each["lost"]] == ["tank/scratch"], told
    before, held = values(master), guids(master, "tank/data") + guids(master, "tank/music")
    code, told = rebuild(master, "--lose", "tank/scratch", "--plan")
    assert (code, states(told)) == (0, [(1, "yes"), (2, "your turn")]), told
    code, told = rebuild(master, "--lose", "tank/scratch")
    assert (code, states(told)) == (75, [(1, "yes"), (2, "your turn")]), told
    destroy, create, *above = told["next"]
    assert (destroy, above) == ("zpool destroy tank", ["zfs create -o compression=lz4 tank/data"]), told["next"]
    assert create.startswith("zpool create -o ashift=12 ")
    master.sh(destroy)
    code, told = rebuild(master)
    assert (code, told["next"]) == (75, [create, *above]), told
    master.sh(create.replace("zpool create", "zpool create -f"))
    code, told = rebuild(master)
    assert (code, told["next"]) == (75, above), "what lies above a source has to be there"
    master.sh("\n".join(above))
    code, told = rebuild(master, "--plan")
    assert states(told) == [(1, told["steps"][0]["state"]), (2, "done"), (3, "to be done"), (3, "to be done")], told
    code, told = rebuild(master)
    assert (code, told["differences"]) == (0, []), told
    assert [state for _, state in states(told)[2:]] == ["it is back", "it is back", "yes", "told"]
    assert [(link["job"], link["base"]) for link in told["chains"]] == [("music", "b"), ("photos", "a")]
    assert guids(master, "tank/data") + guids(master, "tank/music") == held
    assert values(master) == "\n".join(line for line in before.splitlines() if "scratch" not in line)
    master.sh("echo new >/srv/music/new; zfs snapshot -r tank/music@c")
    ran = master.poolferry("run", "music", "--json").json
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    code, told = rebuild(master)
    assert states(told) == [(1, "yes"), (2, "your turn")], "it has ended, so this would be the next one"


def test_a_pool_is_lost_without_a_word_and_one_copy_cannot_be_reached(master: Machine) -> None:
    for name in ("tank", "vault", "other"):
        master.pool(name, "200M")
    master.sh("""set -e; zfs create vault/copies; zfs create other/copies; zfs create tank/photos; zfs create -u -o canmount=noauto -o sharenfs=on tank/music
        echo one >/tank/photos/one; zfs snapshot -r tank/photos@a; zfs snapshot -r tank/music@a""")
    targets = TARGETS + '[place.other]\ndataset = "other/copies"\n'
    for name, target in (("photos", "vault"), ("music", "other")):
        master.job(name, f'engine = "zfs"\nsource = "tank/{name}"\ntarget = "{target}"\n', targets=targets)
        assert master.poolferry("run", name, "--json").code == 0
    disk = master.lies_on("tank").removesuffix("-part1")
    master.sh(f"zpool destroy -f tank; zpool export other; zpool create -f -O compression=zstd tank {disk}")
    code, told = rebuild(master)
    assert (code, states(told)[2:]) == (75, [(3, "no copy of it can be reached")]), told
    assert "is not imported" in told["steps"][-1]["lines"][0]
    where = master.lies_on("vault").rpartition("/")[0]
    master.sh(f"zpool import -N -d {where} other || zpool import -N other")
    code, told = rebuild(master)
    assert code == 0, told
    assert told["differences"] == ["tank: compression was not set, and is zstd"], told
    assert master.sh("cat /tank/photos/one; zfs get -Ho value sharenfs tank/music").lines == ("one", "on")
