"""Datasets that were renamed on the source: their copies are found by guid, and renamed with consent."""

import pytest

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import ActionPlan, CreatePlaceholder, FullSend, RenameCopy
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.renames import refuse_parent_first
from tests.engines.zfs.model_run import Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def copied(*below: str, **options: object) -> Ferry:
    """A source with these datasets, all of them copied."""
    world = ferry("a", **options)
    for name in below:
        world.source.create(f"{ROOT}/{name}")
        world.source.snapshot(f"{ROOT}/{name}", "one")
    world.run()
    return world


def rename(world: Ferry, old: str, new: str) -> None:
    world.source.rename(f"{ROOT}/{old}", f"{ROOT}/{new}")


def moved_by(world: Ferry) -> int:
    before = world.moved
    assert isinstance(world.run(), ActionPlan)
    return world.moved - before


def test_without_consent_the_plan_says_so_with_the_command_and_sends_nothing() -> None:
    world = copied("old")
    rename(world, "old", "new")
    decided = world.run()
    assert isinstance(decided, Refusal)
    assert decided.why.startswith(f"{ROOT}/new is the former {ROOT}/old, and its copy is still called {COPY}/old")
    assert decided.evidence[0].startswith("@one (guid ")
    assert "poolferry run photos --allow follow-renames" in decided.hint
    assert "poolferry run photos --aside" in decided.hint
    assert f"{COPY}/new" not in world.target.nodes


def test_each_of_both_hints_ends_it() -> None:
    world = copied("old")
    rename(world, "old", "new")
    assert isinstance(world.run(requested("follow-renames")), ActionPlan)
    assert world.newest_is_there("new")
    assert f"{COPY}/old" not in world.target.nodes
    world = copied("old")
    rename(world, "old", "new")
    assert isinstance(world.run(requested("aside")), ActionPlan)
    assert world.newest_is_there("new")
    assert f"{COPY}/old" in world.target.nodes


def test_with_consent_the_copy_is_renamed_with_all_below_and_continues() -> None:
    world = copied("old", "old/kid", follow_renames=True)
    rename(world, "old", "new")
    assert moved_by(world) == 0
    assert sorted(world.target.below(COPY)) == [COPY, f"{COPY}/new", f"{COPY}/new/kid"]
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert (decided.stages, decided.warnings) == ((), ())


@pytest.mark.parametrize("below", ["old", "old/kid"])
def test_a_rename_that_zfs_would_refuse_holds_up_no_other_dataset(below: str) -> None:
    """An owner gives a dataset so long a name that its copy, or one below it, cannot have it."""
    world = copied("ann", *dict.fromkeys(("old", below)), follow_renames=True)
    rename(world, "old", "n" * (254 - len(f"{ROOT}/{below.removeprefix('old')}@one")))
    world.source.snapshot(f"{ROOT}/ann", "two")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert world.newest_is_there("ann")
    assert f"{COPY}/old" in world.target.nodes
    assert any(one.why.endswith("characters, and zfs allows 255") for one in decided.refusals), decided.refusals


def test_a_copy_whose_snapshot_is_only_a_bookmark_on_the_source_is_known_too() -> None:
    world = copied("old", follow_renames=True)
    rename(world, "old", "new")
    world.source.snapshot(f"{ROOT}/new", "two")
    world.source.destroy_snapshot(f"{ROOT}/new", world.source.nodes[f"{ROOT}/new"].snapshots[0].guid)
    assert moved_by(world) > 0
    assert world.newest_is_there("new")
    assert f"{COPY}/old" not in world.target.nodes


def test_names_that_move_on_in_a_row_are_renamed_one_after_the_other() -> None:
    world = copied("a", "b", follow_renames=True)
    rename(world, "b", "c")
    rename(world, "a", "b")
    assert moved_by(world) == 0
    assert all(world.newest_is_there(name) for name in ("b", "c"))
    assert f"{COPY}/a" not in world.target.nodes


def test_two_that_swapped_their_names_are_refused_as_before() -> None:
    world = copied("a", "b", follow_renames=True)
    rename(world, "a", "x")
    rename(world, "b", "a")
    rename(world, "x", "b")
    decided = world.run()
    assert isinstance(decided, Refusal)
    assert "hold no snapshot in common" in decided.why


@pytest.mark.parametrize("snapshot", [True, False], ids=["that is sent", "without snapshots"])
def test_a_new_parent_comes_first(*, snapshot: bool) -> None:
    world = copied("old", follow_renames=True)
    world.source.create(f"{ROOT}/archive")
    if snapshot:
        world.source.snapshot(f"{ROOT}/archive", "first")
    rename(world, "old", "archive/old")
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert decided.again
    first = [action for stage in decided.stages for action in stage]
    assert any(isinstance(action, FullSend if snapshot else CreatePlaceholder) for action in first)
    assert any(isinstance(action, RenameCopy) for action in first) is not snapshot
    assert isinstance(world.run(), ActionPlan)
    assert all(world.newest_is_there(name) for name in ("archive", "archive/old"))
    assert f"{COPY}/old" not in world.target.nodes


def test_what_lies_below_a_renamed_parent_waits_for_it() -> None:
    world = copied("old", "old/kid", follow_renames=True)
    rename(world, "old", "new")
    world.source.create(f"{ROOT}/new/kid/grandchild")
    world.source.snapshot(f"{ROOT}/new/kid/grandchild", "g")
    assert moved_by(world) > 0
    assert world.newest_is_there("new/kid/grandchild")
    assert f"{COPY}/old" not in world.target.nodes


def test_a_new_dataset_below_a_renamed_one_waits_with_it() -> None:
    world = copied("old", follow_renames=True)
    world.source.create(f"{ROOT}/archive")
    world.source.snapshot(f"{ROOT}/archive", "one")
    rename(world, "old", "archive/old")
    world.source.create(f"{ROOT}/archive/old/fresh")
    world.source.snapshot(f"{ROOT}/archive/old/fresh", "f")
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert decided.again
    first = [action for stage in decided.stages for action in stage]
    assert len([action for action in first if isinstance(action, FullSend)]) == 1
    assert isinstance(world.run(), ActionPlan)
    assert all(world.newest_is_there(name) for name in ("archive", "archive/old", "archive/old/fresh"))


def test_a_clone_that_was_promoted_is_no_renamed_dataset() -> None:
    world = copied("b")
    (one,) = world.source.nodes[f"{ROOT}/b"].snapshots
    world.source.clone(f"{ROOT}/b", one.guid, f"{ROOT}/a")
    world.source.promote(f"{ROOT}/a")
    decided = world.run()
    assert isinstance(decided, ActionPlan | Refusal)
    assert world.newest_is_there("a")
    assert f"{COPY}/b" in world.target.nodes


def test_a_copy_whose_new_parent_is_not_there_yet_waits_for_a_run() -> None:
    world = copied("old")
    refusal = refuse_parent_first(PlanContext(world.job, world.survey(), requested()), "above/new", "old")
    assert refusal.why == f"{COPY}/old cannot be renamed to {COPY}/above/new before {COPY}/above is there"
    assert refusal.hint == "run again once that one is copied: poolferry run photos"
