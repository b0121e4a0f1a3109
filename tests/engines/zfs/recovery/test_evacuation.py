"""Test what a look at a pool prints; and a source as it is, against the kit that was made before."""

import json
from typing import Any

import pytest

from orchestrator.domain.evacuation import PoolDataset
from orchestrator.engines.zfs.model import SideSurvey
from orchestrator.engines.zfs.recovery.evacuation import is_same_pool, parse_pool, pool_command
from orchestrator.engines.zfs.recovery.kit_diff import compare_kits, read_kit
from orchestrator.engines.zfs.survey.parse import UnreadableListing
from tests.engines.zfs.sides import COPY, SOURCE, world

TOLD = """=datasets
tank\tfilesystem\t11\t98304\ton\tno
tank/a b\tfilesystem\t12\t0\ton\tyes
tank/boot\tfilesystem\t14\t0\tnoauto\tno
tank/v\tvolume\t13\t5\t-\t-
=owned
tank/a b\tpoolferry:flags\tLceb
tank/v\tpoolferry:flags\tLce
tank/v\tpoolferry:waits\ton
tank\tmountpoint\t/srv/ta\tnk
=snapshots
tank/a b@one\t21\t1700000000
tank/a b@two\t22\t1700000001
=mounts
tank/a\\040b /srv/a\\040b
=end
"""


def test_a_pool_with_its_snapshots() -> None:
    seen = parse_pool("tank", TOLD)
    assert (seen.guid, [one.name for one in seen.datasets]) == (11, ["tank", "tank/a b", "tank/boot", "tank/v"])
    assert seen.datasets[1] == PoolDataset(
        name="tank/a b", volume=False, guid=12, snapshots=(("one", 21), ("two", 22)), written=0, unsettled=True
    )
    assert [(one.volume, one.unsettled, one.written) for one in seen.datasets] == [
        (False, False, 98304), (False, True, 0), (False, False, 0), (True, True, 5),
    ]  # fmt: skip
    assert (seen.taken[21].timestamp(), seen.mounts) == (1700000000, (("tank/a b", "/srv/a b"),))
    assert seen.unmounted == (("tank", "/srv/ta\tnk"),)
    assert parse_pool("tank", "=end\n").guid is None
    assert pool_command("tank").argv[-1] == "tank"


def test_a_listing_that_was_cut_is_no_empty_pool() -> None:
    with pytest.raises(UnreadableListing):
        parse_pool("tank", TOLD.removesuffix("=end\n"))


@pytest.mark.parametrize(("here", "there", "one"), [(7, 7, True), (7, 8, False), (0, 0, False), (0, 7, False)])
def test_a_copy_on_the_same_pool_is_none(here: int, there: int, *, one: bool) -> None:
    """By its guid, as a host may be this machine under another name."""
    sides = [SideSurvey(root=root, pool_guid=guid, version=()) for root, guid in ((SOURCE, here), (COPY, there))]
    assert is_same_pool(world(*sides)) is one


def setting(value: str) -> dict[str, str]:
    return {"value": value, "received": "-", "source": "local"}


def kit(**more: Any) -> str:
    datasets = {
        "tank": {"guid": setting("11"), "compression": setting("lz4")},
        "tank/a": {"guid": setting("12"), "quota": setting("100"), "mountpoint": setting("/a"), "used": setting("9")},
    }
    base = {
        "create": "zpool create -o ashift=9 tank mirror a b", "above": ["zfs create tank/x"], "datasets": datasets,
        "snapshots": [["tank/a@two", "22", "8"], ["tank/a@one", "21", "3"]], "users": {"1000": "anna"}, "groups": {},
    }  # fmt: skip
    return json.dumps(base | more)


def test_what_a_kit_says_of_a_pool() -> None:
    told = read_kit(kit(), "tank")
    assert (told.top_guid, told.guids, told.above) == (11, {"tank/a": (21, 22)}, ("zfs create tank/x",))
    assert told.create == "zpool create -o ashift=12 tank mirror a b", "disks of today have larger blocks"
    assert read_kit(kit(datasets={}), "tank").top_guid is None
    assert read_kit(json.dumps({k: v for k, v in json.loads(kit()).items() if k != "above"}), "tank").above == ()


def test_what_is_as_it_was() -> None:
    moved = {
        "tank": {"guid": setting("99"), "compression": setting("lz4")},
        "tank/a": {"guid": setting("98"), "quota": setting("100"), "mountpoint": setting("/a"), "used": setting("1")},
        "tank/new": {"compression": setting("zstd")},
    }
    assert compare_kits(kit(), kit(datasets=moved)) == ()
    assert compare_kits(kit(), kit(snapshots=[*json.loads(kit())["snapshots"], ["tank/a@three", "23", "9"]])) == ()


BERT = "user anna had the number 1000, which is bert now: make anna, then `chown -hR --from=1000 anna` on what returns"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"datasets": {"tank": json.loads(kit())["datasets"]["tank"]}}, "tank/a is not there"),
        ({"snapshots": [["tank/a@two", "99", "8"], ["tank/a@one", "21", "3"]]}, "tank/a: @two is not there, by guid"),
        ({"snapshots": []}, "tank/a: @two, @one are not there, by guid"),
        ({"users": {"1000": "bert"}}, BERT),
        ({"users": {}}, "user anna had the number 1000, which is nobody now: `useradd -u 1000 anna`"),
    ],
)
def test_what_is_not(more: dict[str, Any], line: str) -> None:
    assert compare_kits(kit(), kit(**more)) == (line,)


@pytest.mark.parametrize(
    ("name", "now", "line"),
    [
        ("mountpoint", setting("/b"), "tank/a: mountpoint was /a, and is /b"),
        ("sharenfs", setting("on"), "tank/a: sharenfs was not set, and is on"),
        ("quota", setting("none"), "tank/a: quota was 100, and is not set"),
        ("quota", None, "tank/a: quota was 100, and is not set"),
        ("refquota", setting("0"), None),
        ("poolferry:flags", setting("Lce"), None),
    ],
)
def test_each_property(name: str, now: dict[str, str] | None, line: str | None) -> None:
    datasets = json.loads(kit())["datasets"]
    datasets["tank/a"][name] = now
    datasets["tank/a"] = {key: value for key, value in datasets["tank/a"].items() if value is not None}
    assert compare_kits(kit(), kit(datasets=datasets)) == (() if line is None else (line,))
