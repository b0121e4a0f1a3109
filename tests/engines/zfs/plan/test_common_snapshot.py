"""Test which snapshot both sides hold, by guid; and every small world, one dataset, told against a rule of its own."""

from dataclasses import replace
from itertools import product

import pytest

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import Bookmark, Dataset, DatasetType, Snapshot
from orchestrator.engines.zfs.plan.increments import CommonSnapshot, find_common_snapshot
from tests.engines.zfs.model_run import Ferry, ferry, requested


def snapshot(name: str, guid: int, txg: int) -> Snapshot:
    return Snapshot(name=name, guid=guid, createtxg=txg)


def dataset(*snapshots: Snapshot, bookmarks: tuple[Bookmark, ...] = ()) -> Dataset:
    return Dataset(name="", kind=DatasetType.FILESYSTEM, guid=1, createtxg=1, snapshots=snapshots, bookmarks=bookmarks)


A, B, C = snapshot("a", 11, 100), snapshot("b", 12, 101), snapshot("c", 13, 102)
THERE_A, THERE_B = snapshot("a", 11, 7), snapshot("b", 12, 9)
BOOKMARK = Bookmark(name="poolferry_x", guid=12, createtxg=101)


def test_the_newest_of_both_is_the_base() -> None:
    assert find_common_snapshot(dataset(A, B, C), dataset(THERE_A, THERE_B)) == CommonSnapshot(base=B, there=THERE_B)


def test_what_both_have_as_their_newest_is_found_at_once() -> None:
    assert find_common_snapshot(dataset(A, B), dataset(THERE_B)) == CommonSnapshot(base=B, there=THERE_B)


def test_one_name_is_not_one_snapshot() -> None:
    assert find_common_snapshot(dataset(snapshot("a", 99, 100)), dataset(THERE_A)) is None


def test_a_renamed_snapshot_is_the_same() -> None:
    found = find_common_snapshot(dataset(replace(A, name="old"), C), dataset(THERE_A))
    assert found is not None
    assert found.base.name == "old"
    assert str(found) == "newest snapshot both sides hold is @old (guid 11, @a on the target)"


def test_a_bookmark_holds_a_base_too_and_a_snapshot_is_better() -> None:
    found = find_common_snapshot(dataset(C, bookmarks=(BOOKMARK,)), dataset(THERE_A, THERE_B))
    assert found == CommonSnapshot(base=BOOKMARK, there=THERE_B)
    assert "there only as bookmark #poolferry_x" in str(found)
    assert find_common_snapshot(dataset(B, C, bookmarks=(BOOKMARK,)), dataset(THERE_B)) == CommonSnapshot(
        base=B, there=THERE_B
    )


def test_the_order_is_each_sides_own_and_later_ones_are_the_targets_own() -> None:
    own = (snapshot("x", 91, 20), snapshot("y", 92, 21))
    assert find_common_snapshot(dataset(A, B), dataset(THERE_A, *own)) == CommonSnapshot(base=A, there=THERE_A, own=own)


@pytest.mark.parametrize("empty", [dataset(), dataset(bookmarks=(BOOKMARK,))])
def test_nothing_is_no_base(empty: Dataset) -> None:
    assert find_common_snapshot(empty, dataset()) is None
    assert find_common_snapshot(dataset(A), dataset()) is None
    assert find_common_snapshot(empty, dataset(THERE_A)) is None


HERE = ("held", "renamed", "bookmarked", "gone")
CONSENTS: tuple[tuple[str, ...], ...] = ((), ("rollback",), ("aside",))


def small_world(here: tuple[str, ...], there: tuple[bool, ...], *, own: bool, written: bool, rollback: bool) -> Ferry:
    """Snapshots a, b, c were taken and sent; then each side lost some, and the target may have gone its own way."""
    world = ferry("a", "b", "c", may_destroy=("rollback",) if rollback else ())
    if any(there):
        world.run()
    source, target = world.source, world.target
    for old in source.nodes[world.root].bookmarks:
        source.destroy_bookmark(world.root, old.name)
    for one, what in zip(source.nodes[world.root].snapshots, here, strict=True):
        if what == "renamed":
            source.rename_snapshot(world.root, one.guid, f"{one.name}_old")
        if what == "bookmarked":
            source.bookmark(world.root, one.guid, f"mark_{one.name}")
        if what in ("bookmarked", "gone"):
            source.destroy_snapshot(world.root, one.guid)
    if any(there):
        for one, stays in zip(target.nodes[world.copy].snapshots, there, strict=True):
            if not stays:
                target.destroy_snapshot(world.copy, one.guid)
        if own:
            target.snapshot(world.copy, "own")
        if written:
            target.write(world.copy)
    return world


def expected(
    here: tuple[str, ...], there: tuple[bool, ...], *, own: bool, written: bool, consent: tuple[str, ...]
) -> bool:
    """Return whether the newest snapshot of the source is to be on the target in the end: the rule in other words."""
    numbers = [place for place, what in enumerate(here) if what in ("held", "renamed")]
    if not numbers:
        return True  # there is nothing to send
    if not any(there) or "aside" in consent:
        return True
    common = [place for place in range(3) if there[place] and here[place] != "gone"]
    if common and max(common) >= numbers[-1]:
        return True
    straight = bool(common) and not own and not written and max(p for p in range(3) if there[p]) == max(common)
    return straight or (bool(common) and "rollback" in consent)


@pytest.mark.slow
@pytest.mark.parametrize("consent", CONSENTS)
def test_every_small_world_ends_as_the_rule_says(consent: tuple[str, ...]) -> None:
    for here, there, own, written in product(
        product(HERE, repeat=3), product((True, False), repeat=3), (True, False), (True, False)
    ):
        world = small_world(here, there, own=own, written=written, rollback="rollback" in consent)
        before = world.target.guids()
        decided = world.run(requested(*consent))
        told = (here, there, own, written, decided)
        assert world.newest_is_there() is expected(here, there, own=own, written=written, consent=consent), told
        assert "rollback" in consent or before <= world.target.guids(), told
        if isinstance(decided, Refusal):
            assert decided.why, told
            assert decided.hint, told
        else:
            again = world.decide()
            assert not isinstance(again, Refusal), told
            assert not again.stages, told
