"""Every way in which source and copy can stand to one another: what a run does, and the reason in history."""

import os
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.zfs.plan.hold_names import cursor_bookmark_name, replication_target_id
from tests.lab.common import GIVE_KEY, Machine
from tests.lab.rows import FAILED, REFUSED, Row, Table, Turn

_ASIDE = frozenset({"aside"})
_BACK = 'may-destroy = ["rollback"]'
# As an administrator would do it, by mistake.
_WRITE = """zfs set readonly=off $c; mkdir -p /mnt/w; mount -t zfs -o zfsutil $c /mnt/w; head -c 64K /dev/urandom >/mnt/w/x
umount /mnt/w; zfs set readonly=on $c; zpool sync vault
"""
_COMMON = "newest snapshot both sides hold is @one"

BASES = (
    Row(name="swapped", turns=(
        Turn(action="begin; zfs destroy $s@one; zfs snapshot $s@one", outcome=REFUSED, sends=(),
             says=("$s and $c hold no snapshot in common: one of them was created again or rolled back", "same name, other snapshot: @one",
                   "poolferry run rows --aside")),
        Turn(allow=_ASIDE, sends=("$s @one, the whole",),
             says=(r"rename $c to $c_aside_\S+: .*it keeps all it holds, under another name",)),
    )),
    Row(name="recreated", turns=(
        Turn(action="begin; zfs destroy -r $s; zfs create $s; grow $s first", outcome=REFUSED, sends=(),
             says=(r"newest of 1 there: @one \(guid \d+\)", r"newest of 1 here: @first \(guid \d+\)")),
    )),
    Row(name="own", turns=(
        Turn(action="begin; zfs snapshot $c@mine; zfs snapshot $c@autosnap_x; zfs snapshot $c@two; grow $s two",
             outcome=REFUSED, sends=(),
             says=("$c has 3 snapshots of its own since @one, the newest that both sides hold", "$c@mine", "$c@two",
                   "names that begin with autosnap_ are sanoid's", _COMMON)),
        Turn(options=_BACK, loses=True, sends=("$s @one → @two, incremental",),
             says=("roll $c back to @one, which destroys $c@mine, $c@autosnap_x, $c@two",)),
    )),
    Row(name="aside", turns=(
        Turn(action="begin; zfs snapshot $c@mine; grow $s two; zfs clone $c@mine vault/clone", outcome=FAILED, options=_BACK,
             says=("a clone on the target hangs on a snapshot that would have to go",)),
        Turn(allow=_ASIDE, options="", sends=("$s @one, the whole", "$s @one → @two, incremental")),
    )),
    Row(name="renamed", turns=(
        Turn(action="begin; zfs rename $s@one $s@uno; grow $s two", sends=("$s @uno → @two, incremental",),
             says=(r"newest snapshot both sides hold is @uno \(guid \d+, @one on the target\)",)),
    )),
    Row(name="bookmark", turns=(
        Turn(action="begin; zfs bookmark $s@one $s#kept; zfs destroy $s@one; grow $s two; grow $s three",
             says=("the source knows is @one .*there only as bookmark #kept",),
             sends=("$s #kept → @two, incremental", "$s @two → @three, incremental")),
    )),
    Row(name="written", turns=(
        Turn(action="begin; grow $s two; " + _WRITE, outcome=REFUSED, sends=(),
             says=("$c was written to since @one", r"\d+\S* KiB written to $c since its newest snapshot")),
        Turn(options=_BACK, sends=("$s @one → @two, incremental",),
             says=(r"roll $c back to @one, which destroys \S+ KiB written to $c",)),
    )),
    Row(name="theirs", turns=(
        Turn(action="zfs create $s; grow $s syncoid_a; zfs send $s@syncoid_a | zfs receive $c; grow $s two",
             sends=("$s @syncoid_a → @two, incremental",)),
    )),
)  # fmt: skip
TREES = (
    Row(name="excluded", alone=True, options='exclude = ["kid"]', turns=(
        Turn(action="zfs create $s; zfs create $s/kid; grow $s one; grow $s/kid one", sends=("$s @one, the whole",)),
        Turn(options="", sends=("$s/kid @one, the whole",)),
        Turn(action="zfs destroy -r $s/kid; grow $s two", sends=("$s @one → @two, incremental",),
             says=("$c/kid: on the target only; the source has no such dataset, and the copy is left alone",)),
    )),
    Row(name="holder", alone=True, turns=(
        Turn(action="zfs create -p $s; grow $s one", source="tank/holder/deep", place="below", sends=("$s @one, the whole",),
             says=("make vault/copies/holder, never mounted: others lie below it",)),
        Turn(action="grow $s one", sends=("$s @one, the whole",),
             says=("the target holds only its place, made by us and empty",)),
    )),
    Row(name="clones", turns=(
        Turn(action="zfs create $s; zfs create $s/b; grow $s one; grow $s/b one; zfs clone $s/b@one $s/a; grow $s/a two",
             sends=("$s @one, the whole", "$s/b @one, the whole", "$s/a @one → @two, a clone"),
             says=("a clone of $s/b@one, which the target holds by then",)),
        Turn(action="zfs promote $s/a; grow $s/a three; grow $s/b three", outcome=REFUSED,
             sends=("$s/a @two → @three, incremental",),
             says=("the snapshots of $s/b belong to $s/a now, which was a clone of it and was promoted",
                   "zfs promote $s/b; then poolferry run rows")),
        Turn(allow=_ASIDE, says=("$s/b is a clone, and sent whole",)),
    )),
    Row(name="flat", alone=True, options='recursive = false\nsnapshots = ["day*"]\nskip-snapshots = ["*not"]', turns=(
        Turn(action="zfs create $s; zfs create $s/kid; grow $s/kid day1; grow $s day1; grow $s hour; grow $s day-not; "
             "grow $s day2; grow $s last", newest=False, sends=("$s @day1, the whole", "$s @day1 → @day2, incremental")),
    )),
    Row(name="disk", turns=(
        Turn(action="zfs create -V 8M $s; udevadm settle; dd if=/dev/urandom of=/dev/zvol/$s bs=1M count=2 conv=fsync "
             "status=none; zfs snapshot $s@one", sends=("$s @one, the whole",)),
        Turn(action="dd if=/dev/urandom of=/dev/zvol/$s bs=1M count=1 conv=fsync status=none; zfs snapshot $s@two",
             sends=("$s @one → @two, incremental",)),
    )),
    Row(name="near", alone=True, source="tank/two", turns=(
        Turn(action="zfs create $s; grow $s one"),
        Turn(action="grow $s two; zfs destroy $s@one", says=("there only as bookmark #poolferry_[0-9a-f]{16}_",)),
    )),
    Row(name="far", alone=True, source="tank/two", place="second", turns=(
        Turn(),
        Turn(says=("there only as bookmark #poolferry_[0-9a-f]{16}_",)),
    )),
)  # fmt: skip
SEALED = (
    Row(name="sealed", turns=(
        Turn(action="key $s; grow $s one; zfs unmount $s; zfs unload-key $s", sends=("$s @one, the whole",)),
        Turn(action="zfs snapshot $s@two", options='raw = "no"', outcome=REFUSED, sends=(),
             says=("$c was received raw, and what follows cannot be not raw",)),
        Turn(options="", sends=("$s @one → @two, incremental",)),
    )),
    Row(name="opened", options='raw = "no"', turns=(
        Turn(action="key $s; grow $s one", outcome=REFUSED, sends=(),
             says=("$s is encrypted, and its copy $c would be stored readable", "consent with .*may-decrypt = true")),
        Turn(action="zfs unmount $s; zfs unload-key $s", options='raw = "no"\nmay-decrypt = true', outcome=REFUSED, sends=(),
             says=("the key of $s is not loaded, so it cannot be read to be sent", "zfs load-key $s")),
        Turn(action=GIVE_KEY + " | zfs load-key $s", sends=("$s @one, the whole",)),
    )),
)  # fmt: skip


def pools(machine: Machine, *names: str) -> None:
    for name in ("tank", *names):
        machine.pool(name)
        if name != "tank":
            machine.sh(f"zfs create {name}/copies")


def values(machine: Machine, what: str, dataset: str) -> str:
    return " ".join(machine.sh(f"zfs get -H -o value {what} {dataset}").lines)


@pytest.mark.timeout(900)
@pytest.mark.long
def test_each_row_of_the_base_table(master: Machine, tmp_path: Path) -> None:
    pools(master, "vault")
    table = Table(master, tmp_path)
    table.play(BASES)
    names = [name for name in table.snapshots() if "_aside_" in name]
    assert sorted(name.partition("_aside_")[0] for name in names) == [
        "vault/copies/rows/aside",
        "vault/copies/rows/swapped",
    ]


@pytest.mark.timeout(900)
@pytest.mark.long
def test_each_row_of_trees_clones_volumes_and_several_targets(master: Machine, tmp_path: Path) -> None:
    pools(master, "vault", "second")
    places = {"vault": "vault/copies", "second": "second/copies", "below": "vault/copies/holder"}
    table = Table(master, tmp_path, places=places)
    table.play(TREES)
    there = table.snapshots()
    assert "vault/copies/flat/kid" not in there
    assert [mark.split()[0] for mark in there["vault/copies/flat"]] == ["day1", "day2"]
    assert there["vault/copies/holder/deep"] == there["tank/holder/deep"]
    assert values(master, "poolferry:placeholder,canmount", "vault/copies/holder") == "- noauto"
    assert there["vault/copies/rows/clones/b"][-1] == there["tank/rows/clones/b"][-1]
    master.sh("udevadm settle; cmp /dev/zvol/tank/rows/disk /dev/zvol/vault/copies/rows/disk")
    # One bookmark of each target, and no hold.
    marks = master.sh("zfs list -H -o name -t bookmark tank/two").lines
    pool = {name: int(master.sh(f"zpool get -Hpo value guid {name}").text) for name in ("vault", "second")}
    target_ids = [replication_target_id(guid, Location(path=f"{places[name]}/two")) for name, guid in pool.items()]
    newest = int(values(master, "guid", "tank/two@two"))
    assert sorted(marks) == sorted(f"tank/two#{cursor_bookmark_name(target_id, newest)}" for target_id in target_ids)
    assert master.sh("zfs list -H -o name -t snapshot -r tank | xargs zfs holds -H").text == ""


@pytest.mark.timeout(900)
def test_each_row_of_encrypted_sources(master: Machine, tmp_path: Path) -> None:
    pools(master, "vault")
    Table(master, tmp_path).play(SEALED)
    sealed, opened = "vault/copies/rows/sealed", "vault/copies/rows/opened"
    assert values(master, "encryption,keystatus", sealed) == "aes-256-gcm unavailable"
    assert values(master, "encryption", opened) == "off"
    look = "mkdir -p /mnt/x; mount -t zfs -o zfsutil {} /mnt/x && ls /mnt/x; umount /mnt/x"
    assert "one" not in master.sh(look.format(sealed), check=False).text
    assert master.sh(look.format(opened)).text == "one"
    # The one who has the key reads there what was sent.
    master.sh(f"{GIVE_KEY} | zfs load-key {sealed}")
    assert master.sh(look.format(sealed)).text == "one"


@pytest.mark.timeout(900)
@pytest.mark.long
def test_properties_of_the_source_harm_neither_host_nor_copy(master: Machine, tmp_path: Path) -> None:
    pools(master, "vault")
    made = (
        "zfs create -o compression=gzip -o user:who=me -o quota=300M -o refquota=200M -o recordsize=16K $s; "
        "zfs create -u -o mountpoint=/usr -o sharenfs=off $s/usr; zfs create -u -o mountpoint=/ -o overlay=on $s/root; "
        "grow $s one; zfs snapshot $s/usr@one; zfs snapshot $s/root@one"
    )
    Table(master, tmp_path).play(
        (
            Row(
                name="photos",
                alone=True,
                turns=(Turn(action=made), Turn(action="zfs set compression=zstd $s; grow $s two")),
            ),
        )
    )
    copy = "vault/copies/photos"
    names = "compression,user:who,recordsize,mountpoint,canmount,readonly"
    told = master.sh(f"zfs get -Hp -o value,source {names} {copy}").lines
    assert [line.replace("\t", " ") for line in told] == [
        "zstd received", "me received", "16384 received", f"/{copy} default", "noauto local",
        "on local",
    ]  # fmt: skip
    assert values(master, "quota,refquota", copy) == "none none"
    assert master.sh(f"zfs get -Hp -o received quota,refquota {copy}").lines == ("314572800", "209715200")
    assert master.sh(f"zfs get -H -o received mountpoint {copy}/root {copy}/usr").lines == ("/", "/usr")
    # Not even when all is mounted that mounts by itself; the source would.
    where = os.path.dirname(master.lies_on("vault"))
    before = master.sh("ls /usr | md5sum; findmnt -no SOURCE /").text
    master.sh(f"zpool export tank; zfs mount -a; zpool export vault; zpool import -d {where} vault; zfs mount -a")
    assert master.sh("ls /usr | md5sum; findmnt -no SOURCE /").text == before
    assert "vault/copies/photos" not in master.read("/proc/mounts").decode()
