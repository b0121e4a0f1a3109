"""Test how bookmarks and holds of ours are called: each name tells for which copy it is, and none that is not ours does."""

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    parse_cursor_bookmark,
    parse_hold_bookmark,
    parse_hold_tag,
    replication_target_id,
)

POOL, GUID = 0xBEEF, 0xF00D
OURS, OLDER = replication_target_id(POOL, Location(path="vault/copies/photos")), ReplicationTargetId(pool=POOL)


@pytest.mark.parametrize("target_id", [OURS, OLDER])
def test_each_name_tells_for_whom_it_is(target_id: ReplicationTargetId) -> None:
    assert (
        parse_cursor_bookmark(cursor_bookmark_name(target_id, GUID))
        == parse_hold_bookmark(hold_bookmark_name(target_id, GUID))
        == target_id
    )
    assert parse_hold_tag(hold_tag(target_id)) == target_id
    assert parse_cursor_bookmark(hold_bookmark_name(target_id, GUID)) is None
    assert parse_hold_bookmark(cursor_bookmark_name(target_id, GUID)) is None


def test_a_place_is_the_copys_own_under_whatever_name_its_pool_is_imported() -> None:
    assert replication_target_id(POOL, Location(path="elsewhere/copies/photos")) == OURS
    assert replication_target_id(POOL, Location(path="vault/copies/photos2")) != OURS
    assert replication_target_id(POOL + 1, Location(path="vault/copies/photos")) != OURS
    assert replication_target_id(POOL, Location(path="vault")).place == "00000000"
    assert OURS.place == "813124b5", "names that are on pools by now would not be found"


@pytest.mark.parametrize(
    "name",
    [
        "poolferry", "poolferry_", "poolferry_beef", f"poolferry_{POOL:016X}_{GUID:016x}", f"poolferry_{POOL:016x}_{GUID:015x}",
        f"poolferry_{POOL:016x}_{GUID:016x}_", f"other_{POOL:016x}_{GUID:016x}", f"poolferry_{POOL:016x}_abc_{GUID:016x}",
        f"poolferry_held_{POOL:016x}", f"x poolferry_{POOL:016x}_{GUID:016x}",
    ],
)  # fmt: skip
def test_what_is_none_of_ours(name: str) -> None:
    assert parse_cursor_bookmark(name) is parse_hold_bookmark(name) is parse_hold_tag(name) is None
