"""A kit is read for a pool of another name: every name on the pool follows, and nothing else does."""

import json
from typing import Any

import pytest

from orchestrator.engines.zfs.recovery.kit_diff import compare_kits, read_kit
from orchestrator.engines.zfs.recovery.kit_rename import rename_kit

GUID = {"value": "7", "received": "-", "source": "-"}
KIT = {
    "format": 1, "job": "photos", "source": "tank/my data/a", "copy": "vault/copies/a", "made": "2026-01-02T03:04:05+00:00",
    "create": "zpool create -o ashift=12 -O user:note=tank tank mirror /dev/tank /dev/b",
    "above": ["zfs create -o mountpoint=/tank/data 'tank/my data'"], "own": "zfs create 'tank/my data/a'",
    "datasets": {
        "tank": {"guid": GUID},
        "tank/my data/a": {"encryptionroot": {"value": "tank/my data", "received": "-", "source": "-"},
                           "mountpoint": {"value": "/tank/x", "received": "-", "source": "local"}},
        "tanker/x": {"guid": GUID},
    },
    "snapshots": [["tank/my data/a@one", "5", "1"]], "bookmarks": [["tank/my data/a#poolferry-x", "5", "1"]],
    "holds": [["tank/my data/a@one", "mine"]], "allowed": {"tank/my data/a": ["zfs allow -u anna send 'tank/my data/a'"]},
    "users": {"1": "tank"},
}  # fmt: skip


def renamed(*, keep_paths: bool, **more: Any) -> dict[str, Any]:
    found = json.loads(rename_kit(json.dumps(KIT | more), "tank", "lake", keep_paths=keep_paths))
    return dict(found)


def test_every_name_on_the_pool_follows() -> None:
    found = renamed(keep_paths=False)
    assert found["create"] == "zpool create -o ashift=12 -O user:note=tank lake mirror /dev/tank /dev/b"
    assert found["above"] == ["zfs create -o mountpoint=/tank/data 'lake/my data'"]
    assert (found["own"], found["source"], found["copy"]) == (
        "zfs create 'lake/my data/a'",
        "lake/my data/a",
        "vault/copies/a",
    )
    assert set(found["datasets"]) == {"lake", "lake/my data/a", "tanker/x"}
    assert found["datasets"]["lake/my data/a"]["encryptionroot"]["value"] == "lake/my data"
    assert found["datasets"]["lake/my data/a"]["mountpoint"]["value"] == "/tank/x"
    assert (found["snapshots"][0][0], found["bookmarks"][0][0]) == ("lake/my data/a@one", "lake/my data/a#poolferry-x")
    assert (found["holds"][0][0], found["allowed"]) == (
        "lake/my data/a@one", {"lake/my data/a": ["zfs allow -u anna send 'lake/my data/a'"]},
    )  # fmt: skip
    facts = read_kit(json.dumps(found), "lake")
    assert (facts.top_guid, facts.guids) == (7, {"lake/my data/a": (5,)})


def test_files_keep_their_paths_where_the_former_pool_is_gone() -> None:
    found = renamed(keep_paths=True)
    assert found["create"].startswith("zpool create -O mountpoint=/tank -o ashift=12 ")
    assert found["datasets"]["lake"]["mountpoint"]["value"] == "/tank"
    own = {"value": "/srv", "received": "-", "source": "local"}
    told = renamed(keep_paths=True, datasets={"tank": {"guid": GUID, "mountpoint": own}})
    assert "mountpoint=/tank" not in told["create"]
    assert told["datasets"]["lake"]["mountpoint"]["value"] == "/srv"


@pytest.mark.parametrize("name", ["lake", "tank2"])
def test_a_renamed_kit_compares_with_what_came_back(name: str) -> None:
    text = rename_kit(json.dumps(KIT), "tank", name, keep_paths=True)
    assert compare_kits(text, text) == ()
    assert rename_kit(
        rename_kit(json.dumps(KIT), "tank", name, keep_paths=False), name, "tank", keep_paths=False
    ) == rename_kit(json.dumps(KIT), "none", "other", keep_paths=False)
