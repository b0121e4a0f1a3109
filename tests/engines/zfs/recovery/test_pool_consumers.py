"""Test what other pools lie on a pool, as OpenZFS 2.3, lsblk, losetup and udev told it: on volumes, in files, and layers above."""

from dataclasses import replace

from orchestrator.domain.evacuation import GuestPool
from orchestrator.engines.zfs.recovery.evacuation import parse_pool
from orchestrator.engines.zfs.recovery.pool_consumers import (
    StorageLayers,
    find_guest_pools,
    parse_pools,
    parse_storage_layers,
)

# A volume with a blank in its name, given whole; a file; a loop device on a file; device mapper on a volume; a file in another pool.
TOLD = """=pools
deep\t64M\t94K\t63.9M\t-\t-\t17%\t0%\t1.00x\tONLINE\t-
\t/inner/deep\t80M\t94K\t63.9M\t-\t-\t17%\t0.14%\t-\tONLINE
filed\t80M\t128K\t79.9M\t-\t-\t13%\t0%\t1.00x\tONLINE\t-
\t/tank/a b/img\t100M\t128K\t79.9M\t-\t-\t13%\t0.15%\t-\tONLINE
inner\t80M\t3.02M\t77.0M\t-\t-\t16%\t3%\t1.00x\tONLINE\t-
\t/dev/zd0p1\t90M\t3.02M\t77.0M\t-\t-\t16%\t3.76%\t-\tONLINE
looped\t80M\t128K\t79.9M\t-\t-\t13%\t0%\t1.00x\tONLINE\t-
\t/dev/loop0\t100M\t128K\t79.9M\t-\t-\t13%\t0.15%\t-\tONLINE
mapped\t80M\t1.55M\t78.5M\t-\t-\t14%\t1%\t1.00x\tONLINE\t-
\t/dev/dm-0\t87.8M\t1.55M\t78.5M\t-\t-\t14%\t1.93%\t-\tONLINE
tank\t288M\t8.34M\t280M\t-\t-\t6%\t2%\t1.00x\tONLINE\t-
\t/root/d1\t300M\t8.34M\t280M\t-\t-\t6%\t2.89%\t-\tONLINE
vault\t288M\t118K\t288M\t-\t-\t5%\t0%\t1.00x\tONLINE\t-
\t/root/d2\t300M\t118K\t288M\t-\t-\t5%\t0.04%\t-\tONLINE
logs                 -      -      -        -         -      -      -      -         -
\t/root/d3\t300M\t0\t288M\t-\t-\t0%\t0.00%\t-\tONLINE
=blocks
/dev/loop0 \n/dev/zd0 \n/dev/zd0p1 /dev/zd0
/dev/zd0p9 /dev/zd0
/dev/zd16 \n/dev/zd32 \n/dev/dm-0 /dev/zd32
/dev/vda \n=loops
/dev/loop0 /tank/loopfile
=volumes
/dev/zvol/tank/my+vol-part1\t../../zd0p1
/dev/zvol/tank/my+vol-part9\t../../zd0p9
/dev/zvol/tank/held\t../../zd32
/dev/zvol/tank/plain\t../../zd16
/dev/zvol/tank/my+vol\t../../zd0
"""
DATASETS = """=datasets
tank\tfilesystem\t1\t0\ton\tyes
tank/a b\tfilesystem\t2\t0\ton\tyes
tank/held\tvolume\t3\t0\ton\tyes
tank/my vol\tvolume\t4\t0\ton\tyes
tank/plain\tvolume\t5\t0\ton\tyes
=snapshots
=mounts
/dev/vda /
tank /tank
tank/a\\040b /tank/a\\040b
inner /inner
"""
VOLUMES = ("tank/held", "tank/my vol", "tank/plain")
NAMES = ("tank", "tank/a b", *VOLUMES)


def ground() -> StorageLayers:
    parts: dict[str, list[str]] = {}
    for line in TOLD.splitlines():
        if line.startswith("="):
            parts[line] = here = []
        else:
            here.append(line)
    return parse_storage_layers(
        parts, (("/dev/vda", "/"), ("tank", "/tank"), ("tank/a b", "/tank/a b"), ("inner", "/inner"))
    )


def test_all_that_lies_on_it_however_many_layers_are_between() -> None:
    found = (
        GuestPool(pool="deep", device="/inner/deep", dataset="tank/my vol"),
        GuestPool(pool="filed", device="/tank/a b/img", dataset="tank/a b"),
        GuestPool(pool="inner", device="/dev/zd0p1", dataset="tank/my vol"),
        GuestPool(pool="looped", device="/dev/loop0", dataset="tank"),
        GuestPool(pool="mapped", device="/dev/dm-0", dataset="tank/held"),
    )
    assert find_guest_pools("tank", NAMES, VOLUMES, ground()) == found
    assert parse_pool("tank", f"{DATASETS}{TOLD}=end\n").guests == found
    assert find_guest_pools("inner", ("inner",), (), ground()) == (
        GuestPool(pool="deep", device="/inner/deep", dataset="inner"),
    )
    assert find_guest_pools("vault", ("vault",), (), ground()) == ()


def test_a_heading_is_no_pool_and_belongs_to_the_one_above() -> None:
    assert parse_pools(TOLD.splitlines()[1:17]) == {
        "deep": ("/inner/deep",), "filed": ("/tank/a b/img",), "inner": ("/dev/zd0p1",), "looped": ("/dev/loop0",),
        "mapped": ("/dev/dm-0",), "tank": ("/root/d1",), "vault": ("/root/d2", "/root/d3"),
    }  # fmt: skip


def test_a_volume_that_udev_names_nowhere_may_be_any() -> None:
    """Empty is not unknown: but a pool without volumes cannot be meant."""
    unnamed = replace(ground(), volumes={})
    assert [(one.pool, one.dataset) for one in find_guest_pools("tank", NAMES, VOLUMES, unnamed) if not one.dataset] == [
        ("deep", ""), ("inner", ""), ("mapped", ""),
    ]  # fmt: skip
    assert find_guest_pools("vault", ("vault",), (), unnamed) == ()


def test_what_lies_on_itself_comes_to_an_end() -> None:
    circle = replace(
        ground(), pools={"one": ("/two/file",), "two": ("/one/file",)}, mounts=(("one", "/one"), ("two", "/two"))
    )
    assert find_guest_pools("tank", NAMES, VOLUMES, circle) == ()
