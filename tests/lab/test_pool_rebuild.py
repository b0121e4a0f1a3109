"""A pool is made anew with another layout: everything on it returns, is as it was, and each target goes on incrementally."""

import re

import pytest

from tests.lab.common import Machine
from tests.lab.laboratory import Pair
from tests.lab.pools import guids, restore_pool, step_states

TARGETS = '[place.vault]\ndataset = "vault/copies"\n'
KEPT = "mountpoint,canmount,readonly,quota,compression,user:note,sharenfs"


def values(master: Machine) -> str:
    return master.sh(["zfs", "get", "-Hpr", "-t", "filesystem", "-o", "name,property,value", KEPT, "tank"]).text


def refuses_another_pool(master: Machine) -> None:
    """The pool was made anew: it is not the one that was copied, unless somebody says so."""
    anew = master.poolferry("evacuate", "tank", "--json", seconds=300)
    assert (anew.code, anew.json["outcome"]) == (3, "refused"), anew
    guid = master.sh("zpool get -Hpo value guid tank").text.strip()
    assert ("it was made anew" in anew.json["why"], f"evacuate --guid {guid} tank" in anew.json["hint"]) == (
        True,
        True,
    ), anew


@pytest.mark.long
def test_a_pool_is_made_anew(master: Machine) -> None:
    master.pool("tank", "300M")
    master.pool("vault", "300M")
    master.sh("""set -e; zfs create vault/copies; zfs create -o compression=lz4 tank/data
        zfs create -o quota=200M -o user:note='a b' tank/data/photos; zfs create -o mountpoint=/srv/music tank/music
        zfs create tank/scratch; head -c 2M /dev/urandom >/tank/data/photos/one; echo two >/srv/music/two
        echo x >/tank/scratch/x; zfs snapshot -r tank@a""")
    for name, source in (("photos", "tank/data/photos"), ("music", "tank/music")):
        master.job(name, f'engine = "zfs"\nsource = "{source}"\ntarget = "vault"\n', targets=TARGETS)
    assert master.poolferry("run", "photos", "music", "--json", seconds=300).code == 0
    master.sh("""set -e; echo more >/srv/music/more; zpool sync tank; zfs create -s -V 100M 'tank/scratch/a vol'; truncate -s 64M /tank/scratch/img
        until [ -e /dev/zvol/tank/scratch/a+vol ]; do sleep 0.1; done; zpool create -f inner /dev/zvol/tank/scratch/a+vol
        zpool create -f filed /tank/scratch/img""")
    code, told = restore_pool(master)
    (step,) = told["steps"]
    assert (code, step["state"]) == (3, "no"), told
    lost = {each["dataset"]: each["lost"] for each in told["datasets"] if each["lost"]}
    assert set(lost) == {"tank", "tank/data", "tank/music", "tank/scratch", "tank/scratch/a vol"}, lost
    assert "written since @a" in lost["tank/music"]
    assert "filed: /tank/scratch/img is a file in tank/scratch" in step["lines"], step
    assert any("is on the volume tank/scratch/a vol" in line for line in step["lines"]), step
    master.sh(
        "zpool export inner; zpool export filed; zfs destroy 'tank/scratch/a vol'; zfs destroy tank@a; zfs destroy tank/data@a"
    )
    master.sh("zfs snapshot tank/music@b")
    ended = master.poolferry("evacuate", "tank", "--json", seconds=300)
    assert ended.code == 0, ended
    assert [(each["job"], each["place"], each["whole"]) for each in ended.json["jobs"]] == [
        ("music", "vault", True), ("photos", "vault", True),
    ], ended  # fmt: skip
    assert all("that is what its snapshots hold" in each["why"] for each in ended.json["jobs"]), ended
    before, held = values(master), [guids(master, "tank/data"), guids(master, "tank/music")]
    code, told = restore_pool(master, "--lose", "tank/scratch")
    assert (code, step_states(told)) == (75, [(1, "yes"), (2, "your turn")]), told
    assert [each["dataset"] for each in told["datasets"] if each["lost"]] == ["tank/scratch"], told
    destroy, create, *above = told["next"]
    assert (destroy, above) == ("zpool destroy tank", ["zfs create -o compression=lz4 tank/data"]), told["next"]
    assert create.startswith("zpool create -o ashift=12 ")
    master.sh(destroy)
    code, told = restore_pool(master)
    assert (code, told["next"]) == (75, [create, *above]), told
    master.sh(create.replace("zpool create", "zpool create -f"))
    refuses_another_pool(master)
    code, told = restore_pool(master)
    assert (code, told["next"]) == (75, above), "what lies above a source has to be there"
    master.sh("\n".join(above))
    code, told = restore_pool(master, "--plan")
    states = [(1, told["steps"][0]["state"]), (2, "done"), (3, "to be done"), (3, "to be done")]
    assert step_states(told) == states, told
    code, told = restore_pool(master)
    assert (code, told["differences"]) == (0, []), told
    assert [state for _, state in step_states(told)[2:]] == ["it is back", "it is back", "yes", "told"]
    assert [(link["job"], link["base"]) for link in told["chains"]] == [("music", "b"), ("photos", "a")]
    assert [guids(master, "tank/data"), guids(master, "tank/music")] == held
    assert values(master) == "\n".join(line for line in before.splitlines() if "scratch" not in line)
    master.sh("echo new >/srv/music/new; zfs snapshot -r tank/music@c")
    ran = master.poolferry("run", "music", "--json").json
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    code, told = restore_pool(master)
    assert step_states(told) == [(1, "yes"), (2, "your turn")], "it has ended, so this would be the next one"


@pytest.mark.long
def test_a_pool_is_lost_without_a_word_and_one_copy_cannot_be_reached(master: Machine) -> None:
    for name in ("tank", "vault", "other"):
        master.pool(name, "200M")
    master.sh("""set -e; zfs create vault/copies; zfs create other/copies; zfs create tank/photos; zfs create -u -o canmount=noauto -o sharenfs=on tank/music
        mkdir -p /srv/nas
        useradd -u 1234 anna; useradd -u 1300 bert; groupadd -g 1700 music; chown 1300 /tank/photos
        echo own >/tank/own; echo one >/tank/photos/one; zfs snapshot -r tank/photos@a; zfs snapshot -r tank/music@a""")
    targets = TARGETS + '[place.other]\ndataset = "other/copies"\n[place.nas]\npath = "/srv/nas/tank"\n'
    master.job("root", 'engine = "rsync"\nsource = "/tank"\ntarget = "nas"\n', targets=targets)
    for name, target in (("photos", "vault"), ("music", "other")):
        master.job(name, f'engine = "zfs"\nsource = "tank/{name}"\ntarget = "{target}"\n', targets=targets)
    assert master.poolferry("run", "photos", "music", "root", "--json", seconds=300).code == 0
    master.sh("usermod -u 1235 anna; usermod -u 1301 bert; useradd -u 1300 carl; groupmod -g 1800 music")
    disk = master.lies_on("tank").removesuffix("-part1")
    master.sh(f"zpool destroy -f tank; zpool export other; zpool create -f -O compression=zstd tank {disk}")
    code, told = restore_pool(master)
    assert (code, step_states(told)[2:]) == (75, [(3, "no copy of it can be reached")]), told
    assert "is not imported" in told["steps"][-1]["lines"][0]
    where = master.lies_on("vault").rpartition("/")[0]
    master.sh(f"zpool import -N -d {where} other || zpool import -N other")
    code, told = restore_pool(master)
    assert code == 0, told
    bert = "user bert had the number 1300, which is carl now, and has 1301: `usermod -u 1300 bert` once carl has another one"
    assert told["differences"] == [
        "tank: compression was not set, and is zstd",
        "user anna had the number 1234, which is nobody now, and has 1235: `usermod -u 1234 anna`",
        f"{bert}; or `chown -hR --from=1300 bert` on what returns",
        "group music had the number 1700, which is nobody now, and has 1800: `groupmod -g 1700 music`",
    ], told
    assert [part["source"] for part in told["parts"]] == ["tank/music", "tank/photos", "/tank"]
    master.sh(told["differences"][1].split("`")[1])
    master.sh(told["differences"][3].split("`")[1])
    assert master.sh("id -u anna; getent group music").lines == ("1234", "music:x:1700:")
    master.sh(f"{told['differences'][2].split('`')[3]} /tank/photos")
    assert master.sh("stat -c %U /tank/photos /tank/photos/one").lines == ("bert", "root")
    assert master.sh("cat /tank/photos/one /tank/own; zfs get -Ho value sharenfs tank/music").lines == (
        "one",
        "own",
        "on",
    )


PLACES = """[place.far]
dataset = "ssh://root@backup/vault/copies"
[place.nas]
path = "/srv/nas/docs"
[place.inside]
dataset = "tank/copies"
[set.offsite]
"""
JOBS = {
    "photos": 'engine = "zfs"\nsource = "tank/photos"\ntarget = "far"\n',
    "music": 'engine = "zfs"\nsource = "tank/music"\ntarget = "offsite"\n',
    "docs": 'engine = "rsync"\nsource = "/srv/docs"\ntarget = "nas"\n',
    "guests": 'engine = "zfs"\nsource = "other/guests"\ntarget = "inside"\n',
}


def spread(master: Machine, backup: Machine) -> None:
    """Datasets that are copied to another machine and as files, one that holds copies of others, and one for disks.

    What goes to disks is mounted in the folder that is copied as files.
    """
    master.pool("tank", "200M")
    master.pool("other", "100M")
    backup.pool("vault", "200M")
    backup.sh("zfs create vault/copies")
    master.sh("""set -e; for one in tank/photos tank/copies other/guests; do zfs create $one; echo $one >/$one/one; done
        rm /tank/copies/one; zfs create -o mountpoint=/srv/docs -o compression=lz4 tank/docs; echo two >/srv/docs/two; mkdir -p /srv/nas
        zfs create -o mountpoint=/srv/docs/in/music tank/music; echo tank/music >/srv/docs/in/music/one
        for one in tank/photos tank/music other/guests; do zfs snapshot $one@a; done""")
    for name, text in JOBS.items():
        master.job(name, text, targets=PLACES)


@pytest.mark.long
@pytest.mark.virtual
def test_a_pool_whose_copies_are_far_away_on_a_disk_and_files_alone(pair: Pair) -> None:
    master, backup = pair
    spread(master, backup)
    master.kitted("guests", at=("inside",))  # its kit is of another pool
    red = master.plug_usb("red", "256M")
    done = master.poolferry(
        "disks", "enroll", red.device, "--set", "offsite", "--name", "red", "--content", "zfs", "--json"
    )
    assert done.code == 0, done
    ran = master.poolferry("run", *JOBS, "--json", seconds=400)
    assert ran.code == 0, ran
    master.yank(red)
    assert master.poolferry("disks", "locate", "red", "the office").code == 0
    other = ("--config", "/new/etc", "--state", "/new/var")
    done = master.poolferry(*other, "restore", "bootstrap", "ssh://root@backup/vault/copies", "--json")
    assert (done.code, done.json["jobs"]) == (0, sorted(JOBS)), "a new machine, from a dataset of a host"

    master.sh("echo more >/srv/docs/more")
    code, told = restore_pool(master)
    assert code == 3, told
    lost = {each["dataset"]: each["lost"] for each in told["datasets"] if each["lost"]}
    changed = "something has changed since its newest point"
    assert lost == {
        "tank/music": "1 snapshot, and no copy", "tank/docs": f"no snapshot, and not all its files on a copy: {changed}",
    }  # fmt: skip
    assert "plug in disk red (at the office), or count by what history knows: --trust red" in str(told["steps"])
    assert master.poolferry("run", "docs").code == 0
    code, told = restore_pool(master, "--trust", "red", "--plan")
    assert (code, step_states(told)) == (0, [(1, "yes"), (2, "your turn")]), told
    standing = {each["dataset"]: each for each in told["datasets"]}
    assert [(each["where"], each["seen"]) for each in standing["tank/photos"]["copies"]] == [("backup", True)]
    assert [(each["where"], each["seen"]) for each in standing["tank/music"]["copies"]] == [("the office", False)]
    assert standing["tank/copies/guests"]["keeps"] == ["guests (of other/guests)"]

    master.plug_usb(red)
    code, told = restore_pool(master)
    assert (code, step_states(told)) == (75, [(1, "yes"), (2, "your turn")]), told
    (music,) = [each for each in told["datasets"] if each["dataset"] == "tank/music"]
    assert [copy["seen"] for copy in music["copies"]] == [True]
    held = [guids(master, "tank/photos"), guids(master, "tank/music")]
    assert [line.split()[-1] for line in told["next"][2:]] == ["tank/copies", "tank/docs"], told["next"]
    master.sh("\n".join(told["next"]).replace("zpool create", "zpool create -f"))
    master.sh("zfs unmount tank/docs")
    code, told = restore_pool(master)
    assert (code, step_states(told)[-1]) == (75, (3, "your turn")), told
    (mount,) = re.findall(r"/srv/docs does not lie on tank: mount it \((zfs mount -a)\)", str(told["steps"]))
    master.sh(mount)
    code, told = restore_pool(master)
    assert (code, told["differences"]) == (0, []), told
    assert {part["source"]: (part["place"], part["where"]) for part in told["parts"]} == {
        "tank/photos": ("far", "backup"), "tank/music": ("red", None), "/srv/docs": ("nas", None),
    }  # fmt: skip
    assert [guids(master, "tank/photos"), guids(master, "tank/music")] == held
    words = master.sh(
        "cat /srv/docs/two /srv/docs/more /srv/docs/in/music/one; zfs get -Ho value compression tank/docs"
    ).lines
    assert words == ("two", "more", "tank/music", "lz4")
    assert (told["anew"], master.sh("zfs list -Ho name tank/copies").text) == (["guests"], "tank/copies")
    assert "poolferry-red" not in master.sh("zpool list -H -o name").text, "the disk is let go"
