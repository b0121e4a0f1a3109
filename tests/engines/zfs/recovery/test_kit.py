"""The recovery kit: a pool's making by names that stay, what was set on what, and a page whose blocks a shell understands."""

import json
import subprocess
from dataclasses import replace

import pytest

from orchestrator.domain.kit import KitContents
from orchestrator.domain.place import Host, Location
from orchestrator.engines.zfs.recovery import kit
from orchestrator.engines.zfs.recovery import pool_layout as layout
from orchestrator.engines.zfs.survey.parse import UnreadableListing
from tests.engines.zfs.sides import NOW, job

STATUS = """  pool: tank
 state: ONLINE
config:

~NAME                STATE     READ WRITE CKSUM
~tank                ONLINE       0     0     0
~  mirror-0          ONLINE       0     0     0
~    /dev/sda1       ONLINE       0     0     0
~    replacing-1     DEGRADED     0     0     0
~      /dev/sdx1     OFFLINE      0     0     0
~      /dev/sdb1     ONLINE       0     0     0
~  raidz2-1          ONLINE       0     0     0
~    /dev/sdc2       ONLINE       0     0     0
~    /srv/a-file     ONLINE       0     0     0
~special
~  /dev/nvme0n1p1    ONLINE       0     0     0
~logs
~  mirror-3          ONLINE       0     0     0
~    /dev/sde1       ONLINE       0     0     0
~    /dev/sdf1       ONLINE       0     0     0
~spares
~  /dev/sdg1         AVAIL

errors: No known data errors
""".replace("~", "\t")  # as zpool begins these lines
LINKS = {
    "/dev/disk/by-id/wwn-0x1-part1": "/dev/sda1",
    "/dev/disk/by-id/ata-RED-part1": "/dev/sda1",
    "/dev/disk/by-id/ata-RED-part9": "/dev/sda9",
    "/dev/disk/by-id/ata-BLUE-part1": "/dev/sdb1",
    "/dev/disk/by-id/ata-BLUE-part9": "/dev/sdb9",
    "/dev/disk/by-id/ata-GREEN-part2": "/dev/sdc2",
}
DATASETS = """tank	type	filesystem	-	-
tank	compression	zstd	-	local
tank	used	1000	-	-
tank/data	mountpoint	/srv/d ata	-	local
tank/data	encryption	aes-256-gcm	-	-
tank/data	keyformat	passphrase	-	-
tank/data	keylocation	prompt	-	local
tank/data	encryptionroot	tank/data	-	-
tank/data/photos	quota	0	1000	local
tank/data/photos	atime	on	-	default
tank/data/photos	poolferry:x	y	-	local
"""


BY_ZDB = "            ashift: 9\n            ashift: 12\n"
BY_ZPOOL = "0\n9\n9\n9\n12\n"  # the root, a mirror and its disks, a disk; of caches and spares it tells nothing


def told(*, status: str = STATUS, datasets: str = DATASETS, ashift: str = BY_ZPOOL) -> bytes:
    links = "".join(f"{name}\t../..{to.removeprefix('/dev')}\n" for name, to in LINKS.items())
    return f"""=status
{status}=pool
autotrim	on	local
cachefile	none	local
size	1	-
=ashift
{ashift}=links
{links}=datasets
{datasets}=marks
tank/data/photos@b	22	2
tank/data/photos@a	11	1
tank/data/photos#kept	11	1
=users
root:x:0:0:root:/root:/bin/bash
anna:x:1000:1000::/home/anna:/bin/sh
=groups
=end
""".encode()


def made(**more: str) -> KitContents:
    return kit.make_kit(job(source=Location(path="tank/data/photos")), NOW, kit.parse_kit_survey(told(**more)))


def test_a_pool_is_made_again_by_names_that_stay() -> None:
    words = layout.create_pool_arguments(layout.parse_config(STATUS.splitlines()), LINKS, {"autotrim": "on"}, {}, 12)
    assert layout.show_arguments(words) == (
        "zpool create -o ashift=12 -o autotrim=on tank "
        "mirror /dev/disk/by-id/ata-RED /dev/disk/by-id/ata-BLUE "
        "raidz2 /dev/disk/by-id/ata-GREEN-part2 /srv/a-file special /dev/nvme0n1p1 "
        "log mirror /dev/sde1 /dev/sdf1 spare /dev/sdg1"
    )


def test_a_single_disk_and_no_disk() -> None:
    single = "\tNAME  STATE\n\ttank  ONLINE\n\t  /dev/sda1  ONLINE\n"
    assert layout.show_arguments(
        layout.create_pool_arguments(layout.parse_config(single.splitlines()), {}, {}, {}, 0)
    ) == ("zpool create tank /dev/sda1")
    assert layout.parse_config([]) == ()


def test_a_part_that_somebody_made_stays_a_part() -> None:
    """ZFS made both parts 1 and 9 of a disk that it was given whole."""
    links = {"/dev/disk/by-id/ata-OWN-part1": "/dev/sda1"}
    assert layout.disk_by_id("/dev/sda1", links) == "/dev/disk/by-id/ata-OWN-part1"
    assert (
        layout.disk_by_id("/dev/sda1", {**links, "/dev/disk/by-id/ata-OWN-part9": "/dev/sda9"})
        == "/dev/disk/by-id/ata-OWN"
    )


@pytest.mark.parametrize("ashift", [BY_ZDB, BY_ZPOOL])
def test_the_largest_blocks_of_all_devices_stay(ashift: str) -> None:
    assert made(ashift=ashift).layout.startswith("zpool create -o ashift=12 ")
    assert made(ashift="").layout.startswith("zpool create -o autotrim=on ")


def test_what_is_in_it() -> None:
    found = made()
    content = json.loads(found.content)
    assert content["create"].startswith("zpool create -o ashift=12 -o autotrim=on -O compression=zstd tank mirror ")
    assert content["datasets"]["tank/data/photos"]["quota"] == {"value": "0", "received": "1000", "source": "local"}
    assert "atime" not in content["datasets"]["tank/data/photos"]
    assert [mark[0] for mark in content["bookmarks"]] == ["tank/data/photos#kept"]
    assert content["users"] == {"0": "root", "1000": "anna"}
    assert found.guids == "tank/data/photos@a\t11\ntank/data/photos@b\t22\n"
    assert found.layout == content["create"]


def test_mountpoints_are_told_without_the_folder_that_the_pool_is_imported_for() -> None:
    rows = "tank\tmountpoint\t/mnt\t-\tlocal\ntank/data\tmountpoint\t/mnt/srv\t/mnt/old\tlocal\ntank/data/photos\tmountpoint\tlegacy\t-\tlocal\n"
    look = told(datasets=rows).replace(b"autotrim\ton\tlocal\n", b"autotrim\ton\tlocal\naltroot\t/mnt\tlocal\n")
    content = json.loads(
        kit.make_kit(job(source=Location(path="tank/data/photos")), NOW, kit.parse_kit_survey(look)).content
    )
    mounted = {name: told["mountpoint"] for name, told in content["datasets"].items()}
    assert [told["value"] for told in mounted.values()] == ["/", "/srv", "legacy"]
    assert mounted["tank/data"]["received"] == "/old"
    assert "altroot" not in content["create"]


def test_the_page_tells_what_lies_above_and_where_keys_are_but_no_key() -> None:
    page = made().recovery
    assert (
        "zfs create -o 'mountpoint=/srv/d ata' -o keylocation=prompt -o encryption=aes-256-gcm -o keyformat=passphrase tank/data"
        in page
    )
    assert "* `tank/data`: a passphrase key, from prompt" in page
    assert "Nothing was encrypted." in made(datasets="tank\ttype\tfilesystem\t-\t-\n").recovery
    assert page.count("-F") == 1, "into a pool's own dataset alone"


def test_the_page_is_made_for_the_place_that_it_lies_at() -> None:
    """A kit of today goes to the next disk of a set, too."""
    red = made()
    here = job(source=Location(path="tank/data/photos"))
    on_blue = replace(here, target=replace(here.target, location=Location(path="poolferry-blue/photos/photos")))
    blue = kit.kit_for_place(on_blue, red)
    assert "zpool import -N poolferry-blue" in blue.recovery
    assert "vault" not in blue.recovery
    assert json.loads(blue.content)["copy"] == "poolferry-blue/photos/photos"
    assert kit.kit_for_place(here, red) == red
    far = replace(
        on_blue,
        target=replace(on_blue.target, location=Location(path="b/c", host=Host(name="nas", user="root", port=99))),
    )
    page = kit.kit_for_place(far, red).recovery
    assert "far='ssh -p 99 root@nas'" in page
    assert "zpool import -N" not in page


def test_each_key_is_loaded_where_a_raw_stream_left_a_prompt() -> None:
    rows = "".join(
        f"{name}\t{kind}\t{value}\t-\t-\n"
        for name, root, place in (
            ("tank/data/photos", "tank/data/photos", "file:///k"), ("tank/data/photos/x", "tank/data/photos", "none"),
            ("tank/data/photos/own", "tank/data/photos/own", "prompt"),
        )
        for kind, value in (("encryptionroot", root), ("keyformat", "raw"), ("keylocation", place))
    )  # fmt: skip
    page = kit.make_kit(
        job(source=Location(path="tank/data/photos")), NOW, kit.parse_kit_survey(told(datasets=rows))
    ).recovery
    blocks = (part.partition("```")[0] for part in page.split("```sh\n")[1:])
    (block,) = (part for part in blocks if "load-key" in part)
    loads = [line.partition(" || ")[2] for line in block.splitlines()]
    assert [line for line in loads if line] == [
        "zfs load-key -L file:///k tank/data/photos", "zfs set keylocation=file:///k tank/data/photos",
        "zfs load-key tank/data/photos/own", "zfs load-key -L file:///k tank/data/photos/x", "zfs change-key -i tank/data/photos/x",
    ]  # fmt: skip


def test_a_shell_understands_the_page() -> None:
    blocks = made().recovery.split("```sh\n")[1:]
    script = "\n".join(block.partition("```")[0] for block in blocks)
    assert script.count("zfs receive -u") == 3
    assert all("(set -e\n" in block for block in blocks if block.startswith("("))
    assert subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False).stderr == ""


def test_the_layout_alone_tells_a_change() -> None:
    assert made().layout == made(datasets=DATASETS + "tank/data/photos\tatime\toff\t-\tlocal\n").layout
    assert made().layout != made(status=STATUS.replace("/dev/sdg1", "/dev/sdh1")).layout


def test_a_look_that_is_cut_is_none() -> None:
    with pytest.raises(UnreadableListing):
        kit.parse_kit_survey(told()[:-6])
