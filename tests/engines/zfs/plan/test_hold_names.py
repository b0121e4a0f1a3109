"""How bookmarks and holds of ours are called: each name tells for which copy it is, and none that is not ours does."""

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.zfs.plan.hold_names import (
    Keeper,
    cursor_keeper,
    cursor_name,
    held_keeper,
    held_name,
    hold_tag,
    keeper_of,
    tag_keeper,
)

POOL, GUID = 0xBEEF, 0xF00D
OURS, OLDER = keeper_of(POOL, Location(path="vault/copies/photos")), Keeper(pool=POOL)


@pytest.mark.parametrize("keeper", [OURS, OLDER])
def test_each_name_tells_for_whom_it_is(keeper: Keeper) -> None:
    assert cursor_keeper(cursor_name(keeper, GUID)) == held_keeper(held_name(keeper, GUID)) == keeper
    assert tag_keeper(hold_tag(keeper)) == keeper
    assert cursor_keeper(held_name(keeper, GUID)) is None
    assert held_keeper(cursor_name(keeper, GUID)) is None


def test_a_place_is_the_copys_own_under_whatever_name_its_pool_is_imported() -> None:
    assert keeper_of(POOL, Location(path="elsewhere/copies/photos")) == OURS
    assert keeper_of(POOL, Location(path="vault/copies/photos2")) != OURS
    assert keeper_of(POOL + 1, Location(path="vault/copies/photos")) != OURS
    assert keeper_of(POOL, Location(path="vault")).place == "00000000"
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
    assert cursor_keeper(name) is held_keeper(name) is tag_keeper(name) is None
