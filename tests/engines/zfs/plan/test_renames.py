"""Datasets that were renamed on the source: their copies are found by guid, and renamed with consent."""

from dataclasses import replace

import pytest

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import ActionPlan, CreatePlaceholder, FullSend, RenameCopy
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.renames import refuse_parent_first
from tests.engines.zfs.model_run import Ferry, ferry, requested
from tests.world import SIZE

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
    assert decided.why.startswith(
        f"the copy of {ROOT}/new is called {COPY}/old: {ROOT}/new was {ROOT}/old before, or the copy was renamed"
    )
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


def promoted(world: Ferry, old: str = "b", new: str = "a") -> None:
    """A clone of the newest snapshot, which then has all snapshots."""
    world.source.clone(f"{ROOT}/{old}", world.source.nodes[f"{ROOT}/{old}"].snapshots[-1].guid, f"{ROOT}/{new}")
    world.source.promote(f"{ROOT}/{new}")


@pytest.mark.parametrize("snapshot", [True, False], ids=["with a new snapshot", "without any"])
def test_the_copy_of_what_a_promoted_clone_took_over_is_renamed_and_nothing_is_sent_again(*, snapshot: bool) -> None:
    world = copied("b")
    promoted(world)
    if snapshot:
        world.source.snapshot(f"{ROOT}/b", "two")
    refusal = world.run()
    assert isinstance(refusal, Refusal)
    assert refusal.why.startswith(f"{ROOT}/a has the snapshots of {ROOT}/b, which gave them to it by zfs promote")
    assert (refusal.hint.count("follow-renames"), "restore run" in refusal.hint) == (2, False)
    before = world.moved
    assert isinstance(world.run(requested("follow-renames")), ActionPlan)
    assert world.newest_is_there("a")
    assert not snapshot or world.target.nodes[f"{COPY}/b"].origin == f"{COPY}/a@one"
    assert world.moved - before == SIZE * snapshot
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert decided.stages == ()


def test_a_promoted_clone_beside_one_that_goes_on_is_no_renamed_dataset() -> None:
    world = copied("b")
    promoted(world)
    world.source.snapshot(f"{ROOT}/b", "two")
    assert isinstance(world.run(requested("follow-renames")), ActionPlan)
    promoted(world, "b", "c")
    world.source.snapshot(f"{ROOT}/b", "three")
    decided = world.run()
    assert isinstance(decided, Refusal), "b has nothing in common with its copy any more"
    assert f"{ROOT}/c has the snapshots of {ROOT}/b" in decided.why


def test_a_restored_dataset_goes_on_with_its_copy_and_what_was_renamed_before_it_is_sent_with_a_word() -> None:
    """Both hold the same snapshots: that is no renamed dataset, whatever its name."""
    for other in ("a", "z"):
        world = copied("old", follow_renames=True)
        rename(world, "old", other)
        node = world.source.nodes[f"{ROOT}/{other}"]
        world.source.create(f"{ROOT}/old", snapshots=node.snapshots)
        world.source.snapshot(f"{ROOT}/old", "two")
        decided = world.run()
        assert isinstance(decided, ActionPlan), decided
        (told,) = decided.warnings
        assert told == (
            f"{ROOT}/{other} holds snapshots that {ROOT}/old holds, too, and all of it is sent; to leave it out: "
            f'exclude = ["{other}"] in [zfs] of photos.toml'
        )
        assert world.newest_is_there("old")
        assert world.newest_is_there(other)


ASIDE = "old_aside_2026-03-04T050607Z"


def test_what_was_set_aside_is_left_out_with_all_below_it_and_told() -> None:
    world = copied("old", "old/kid", follow_renames=True)
    rename(world, "old", ASIDE)
    world.source.snapshot(f"{ROOT}/{ASIDE}", "late")
    world.source.create(f"{ROOT}/old", snapshots=world.source.nodes[f"{ROOT}/{ASIDE}"].snapshots[:1])
    world.source.snapshot(f"{ROOT}/old", "two")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert world.newest_is_there("old")
    assert not [name for name in world.target.nodes if "_aside_" in name]
    (told,) = [one for one in decided.warnings if "set aside" in one]
    assert told == (
        f"{ROOT}/{ASIDE}: set aside by --aside, and so not copied; to copy it, too: set-aside = true in [zfs] of photos.toml"
    )
    world.job = replace(world.job, options=replace(options_of(world.job), set_aside=True))
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert world.newest_is_there(ASIDE)
    assert world.newest_is_there(f"{ASIDE}/kid")
    assert not [one for one in decided.warnings if "set aside" in one]


def test_what_was_set_aside_and_is_excluded_is_not_told() -> None:
    world = copied("old", exclude=("*_aside_*",))
    rename(world, "old", ASIDE)
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert not [one for one in decided.warnings if "set aside" in one]


def test_a_copy_whose_new_parent_is_not_there_yet_waits_for_a_run() -> None:
    world = copied("old")
    refusal = refuse_parent_first(PlanContext(world.job, world.survey(), requested()), "above/new", "old")
    assert refusal.why == f"{COPY}/old cannot be renamed to {COPY}/above/new before {COPY}/above is there"
    assert refusal.hint == "run again once that one is copied: poolferry run photos"
