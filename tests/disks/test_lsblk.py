"""Test what lsblk itself printed for the columns that are asked for, as recorded from both versions that we live with.

Each record is of a USB disk with two partitions, on one of which lies a device of dmsetup with a mounted ext4; `flat` is what
the same lsblk printed of the same disk for the same columns without NAME.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.disks.detect import parse_tree, tree_pipeline
from orchestrator.domain.device import BlockDevice

PHOTOS = "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e"
VERSIONS = ("2.38.1", "2.41.5")


def recorded(version: str) -> dict[str, Any]:
    """By the version of util-linux; that of Debian 12, and of Debian 13."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / f"lsblk-{version}.json").read_text())
    assert found["version"] == f"lsblk from util-linux {version}"
    return found


def devices(tree: Any) -> dict[str, BlockDevice]:
    return {each.name: each for each in parse_tree(json.dumps(tree).encode())}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_disk_tells_its_parts_and_what_lies_above_them(version: str) -> None:
    (requested,) = tree_pipeline().stages
    record = recorded(version)
    assert tuple(record["argv"]) == requested.argv, "other columns: what they make of the list must be recorded again"
    found = devices(record["output"])
    disk, plain, photos, above = (found[name] for name in ("sda", "sda1", "sda2", "dm-0"))
    assert (disk.parts, disk.table, disk.external, disk.above) == (("sda1", "sda2"), "gpt", True, ())
    assert [each.disk for each in (plain, photos)] == ["sda", "sda"]
    assert {each.serial for each in (disk, plain, photos)} == {"red"}
    assert all(each.external for each in (plain, photos))
    assert (photos.kind, photos.uuid, photos.label) == ("ext4", PHOTOS, "PHOTOS")
    assert (photos.above, photos.at, above.at) == (("dm-0",), ("/mnt/x",), ("/mnt/x",))
    assert (plain.kind, plain.at, plain.above) == ("", (), ())


@pytest.mark.parametrize("version", VERSIONS)
def test_why_the_name_is_among_the_columns(version: str) -> None:
    """Without it the list is flat: the disk seems to be in one piece, and nothing to lie on it."""
    found = devices(recorded(version)["flat"])
    assert (found["sda"].parts, found["sda2"].above) == ((), ())
