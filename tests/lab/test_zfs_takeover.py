"""A tree that real syncoid copied and left mounted: reads and mounts do not hinder us, writes are named; renames are followed."""

from typing import Any

import pytest

from tests.lab.common import Machine

JOB = 'engine = "zfs"\nsource = "tank/data"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
COPY = "vault/copies/data"
TREE = """set -e
zfs create vault/copies; zfs create -o checksum=sha512 -o sync=disabled tank/data; zfs create tank/data/kid; zfs create tank/data/kid/deep
for d in data data/kid data/kid/deep; do head -c 1M /dev/urandom >/tank/$d/file; done
syncoid -r --no-privilege-elevation tank/data vault/copies/data
"""
# As a reboot does it: the folders of the children go and come, and somebody reads.
REBOOT = """set -e
where={where}
zpool export vault; zpool import -d $where vault; zfs mount -a
for d in data data/kid data/kid/deep; do cat /vault/copies/$d/file >/dev/null; done
zpool sync vault
"""


def ran(master: Machine, *more: str) -> dict[str, Any]:
    told: dict[str, Any] = master.poolferry("run", "data", "--json", *more).json
    return told


def newest(master: Machine, dataset: str) -> str:
    return master.sh(f"zfs list -H -d 1 -t snapshot -S createtxg -o guid {dataset} | head -n 1").text


@pytest.mark.timeout(900)
def test_a_mounted_tree_of_syncoid_is_taken_over(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name, "300M")
    master.sh(TREE)
    where = master.lies_on("vault").rpartition("/")[0]
    master.sh(REBOOT.format(where=where))
    written = master.sh(f"zfs get -Hpo value -r -t filesystem written {COPY}").lines
    assert any(value != "0" for value in written), written
    master.job("data", JOB, targets=PLACE)
    master.kitted("data")
    master.sh("zfs snapshot -r tank/data@two")
    first = ran(master)
    assert first["outcome"] == "done", (
        first,
        master.sh(
            f"zfs diff -HF {COPY}@$(zfs list -Hd1 -t snapshot -o name {COPY} | cut -d @ -f 2 | head -n 1) {COPY}",
            check=False,
        ),
    )
    for below in ("", "/kid", "/kid/deep"):
        assert newest(master, f"{COPY}{below}") == newest(master, f"tank/data{below}")
    (warning,) = [line for line in first["warnings"] if "made by another program" in line]
    assert "readonly=off, canmount=on" in warning
    assert "poolferry run data --allow take-over" in warning
    a_file_that_somebody_wrote_is_named(master)
    taken_over_by_the_command_that_is_named(master)
    a_renamed_dataset_is_followed(master)


def a_file_that_somebody_wrote_is_named(master: Machine) -> None:
    master.sh(
        "mkdir /vault/copies/data/kid/mine; echo text >/vault/copies/data/kid/mine/note; zpool sync vault; zfs snapshot -r tank/data@three"
    )
    told = ran(master)
    assert told["outcome"] == "failed", told
    listed = "\n".join(told["evidence"])
    assert "+ mine/" in listed
    assert "+ mine/note" in listed
    master.sh(f"zfs rollback {COPY}/kid@two")
    assert ran(master)["outcome"] == "done"


def taken_over_by_the_command_that_is_named(master: Machine) -> None:
    told = ran(master, "--allow", "take-over")
    assert told["outcome"] == "done", told
    values = master.sh(f"zfs get -Hpo value -r -t filesystem readonly,canmount {COPY}").lines
    assert set(values) == {"on", "noauto"}
    told = ran(master)
    assert (told["outcome"], told["warnings"]) == ("nothing-to-do", [])


def a_renamed_dataset_is_followed(master: Machine) -> None:
    """By the command that the refusal gives; nothing is sent again, and a snapshot may begin with a dash."""
    guid = newest(master, f"{COPY}/kid/deep")
    master.sh("zfs rename tank/data/kid tank/data/child; zfs snapshot -r tank/data@-four")
    told = ran(master)
    assert told["outcome"] == "failed", told
    assert "--allow follow-renames" in told["hint"]
    told = ran(master, "--allow", "follow-renames")
    assert told["outcome"] == "done", told
    assert newest(master, f"{COPY}/child/deep") == newest(master, "tank/data/child/deep")
    assert guid in master.sh(f"zfs list -H -d 1 -t snapshot -o guid {COPY}/child/deep").lines
    assert master.sh(f"zfs list {COPY}/kid", check=False).code != 0


@pytest.mark.long
def test_a_volume_in_the_way_and_what_would_burden_a_copy(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name, "300M")
    master.sh(
        "zfs create vault/copies; zfs create -o checksum=off -o dedup=on -o copies=2 -o sync=disabled tank/data; "
        "zfs snapshot tank/data@one; zfs create -s -V 8M vault/copies/data"
    )
    master.job("data", JOB, targets=PLACE)
    master.kitted("data")
    told = ran(master)
    assert told["outcome"] == "refused", told
    assert "poolferry run data --aside" in told["hint"]
    told = ran(master, "--aside")
    assert told["outcome"] == "done", told
    names = "checksum,dedup,copies,sync"
    assert master.sh(f"zfs get -Hpo value {names} {COPY}").lines == ("on", "off", "1", "standard")
    assert master.sh(f"zfs get -Ho received {names} {COPY}").lines == ("off", "on", "2", "disabled")
    (warning,) = [line for line in told["warnings"] if "would weaken the copy" in line]
    assert "checksum=off, copies=2, dedup=on, sync=disabled" in warning
    restored = master.poolferry("restore", "run", "data", "--to", "tank/back")
    assert restored.code == 0, restored
    assert master.sh(f"zfs get -Hpo value {names} tank/back").lines == ("off", "on", "2", "disabled")
