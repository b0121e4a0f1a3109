"""Test what keeps a chain alive on the source: through cuts, through pruning, and beside another job into the same pool."""

from dataclasses import replace

import pytest

from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Pipeline
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    FullSend,
    HoldBases,
    IncrementalSend,
    ReleaseBases,
    ResumedSend,
    Send,
)
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan import steps
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    parse_cursor_bookmark,
    parse_hold_bookmark,
)
from tests.engines.zfs.model_run import Cut, Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def deeds(world: Ferry) -> list[Action]:
    found = world.decide()
    assert isinstance(found, ActionPlan), found
    return [action for stage in found.stages for action in stage if isinstance(action, Send | AbortReceive)]


def prune(world: Ferry, name: str = ROOT) -> None:
    """All but the newest, as far as nothing holds them."""
    for one in world.source.nodes[name].snapshots[:-1]:
        if all(guid != one.guid for guid, _ in world.source.holds):
            world.source.destroy_snapshot(name, one.guid)


@pytest.mark.parametrize("after", range(1, 16))
def test_what_arrived_of_several_snapshots_stays_a_base_when_all_are_pruned(after: int) -> None:
    """Four snapshots of four bytes each in one stream, cut after each byte; before the next look the source is pruned."""
    world = ferry("a")
    world.run()
    for name in "bcde":
        world.source.snapshot(ROOT, name)
    with pytest.raises(Cut):
        world.run(mishap=lambda action: after if isinstance(action, IncrementalSend) else None)
    arrived = world.target.nodes[COPY].snapshots
    assert [one.name for one in arrived] == list("abcd"[: 1 + after // 4])
    prune(world)
    assert isinstance(deeds(world)[0], ResumedSend)
    world.run()
    assert world.newest_is_there()
    assert [one.name for one in world.target.nodes[COPY].snapshots] == list("abcde")
    assert not world.source.holds
    prune(world)
    (newest,) = world.source.nodes[ROOT].snapshots
    assert [one.guid for one in world.source.nodes[ROOT].bookmarks] == [newest.guid]


def beside(world: Ferry) -> Ferry:
    """A second job from the same dataset into another dataset of the same pool."""
    world.target.create("vault/others")
    place = Place(name="others", location=Location(path="vault/others/photos"))
    return Ferry(
        source=world.source, target=world.target, job=replace(world.job, name="again", target=place),
        copy="vault/others/photos",
    )  # fmt: skip


def test_two_jobs_into_one_pool_go_on_in_turn_whatever_is_pruned() -> None:
    one = ferry("a")
    two = beside(one)
    for turn, world in enumerate((one, two, one, one, two, one, two, two)):
        one.source.snapshot(ROOT, f"s{turn}")
        found = world.run()
        assert isinstance(found, ActionPlan), found
        assert world.newest_is_there()
        prune(one)
    marks = [parse_cursor_bookmark(mark.name) for mark in one.source.nodes[ROOT].bookmarks]
    assert sorted(map(str, marks)) == sorted(map(str, (one.target_id, two.target_id)))


@pytest.mark.parametrize("first", [0, 1])
def test_two_jobs_into_one_pool_are_cut_and_pruned_between(first: int) -> None:
    one = ferry("a")
    both = (one, beside(one))
    for world in both:
        one.source.snapshot(ROOT, f"begin {world.copy}")
        with pytest.raises(Cut):
            world.run(mishap=lambda action: 2 if isinstance(action, FullSend) else None)
        prune(one)
    assert {tag for _, tag in one.source.holds} == {hold_tag(world.target_id) for world in both}
    both[first].run()
    assert {tag for _, tag in one.source.holds} == {hold_tag(both[1 - first].target_id)}
    prune(one)
    (rest,) = deeds(both[1 - first])[:1]
    assert isinstance(rest, ResumedSend)
    both[1 - first].run()
    assert all(world.newest_is_there() for world in both)
    assert not one.source.holds


def rename_marks(world: Ferry) -> None:
    """As if all that is kept for this copy had the older names, which tell the pool alone."""
    older = ReplicationTargetId(pool=world.target.guid)
    for mark in world.source.nodes[ROOT].bookmarks:
        for of, name in ((parse_cursor_bookmark, cursor_bookmark_name), (parse_hold_bookmark, hold_bookmark_name)):
            if of(mark.name) == world.target_id:
                world.source.destroy_bookmark(ROOT, mark.name)
                made = replace(mark, name=name(older, mark.guid))
                node = world.source.nodes[ROOT]
                world.source.nodes[ROOT] = replace(node, bookmarks=(*node.bookmarks, made))
    holds = world.source.holds
    world.source.holds = {(guid, hold_tag(older) if tag == hold_tag(world.target_id) else tag) for guid, tag in holds}


def test_what_has_an_older_name_is_gone_on_from_by_both_jobs() -> None:
    one = ferry("a")
    two = beside(one)
    two.run()
    one.source.snapshot(ROOT, "b")
    one.run()
    for world in (one, two):
        rename_marks(world)
    one.source.snapshot(ROOT, "c")
    prune(one)  # each copy's base is only a bookmark of the older kind by now
    for world in (one, two):
        assert isinstance(world.run(), ActionPlan)
        assert world.newest_is_there()
        assert world.target_id in {parse_cursor_bookmark(mark.name) for mark in one.source.nodes[ROOT].bookmarks}


def test_a_hold_with_an_older_name_is_not_made_twice_and_is_let_go() -> None:
    world = ferry("a", "b")
    with pytest.raises(Cut):
        world.run(mishap=lambda action: 2 if isinstance(action, FullSend) else None)
    rename_marks(world)
    ((_, tag),) = world.source.holds
    assert tag == hold_tag(ReplicationTargetId(pool=world.target.guid))
    found = world.decide()
    assert isinstance(found, ActionPlan)
    assert not any(isinstance(action, HoldBases) and action.holds for stage in found.stages for action in stage)
    world.run()
    assert world.newest_is_there()
    assert not world.source.holds
    assert not [mark for mark in world.source.nodes[ROOT].bookmarks if parse_hold_bookmark(mark.name)]


def test_what_is_between_is_held_in_one_command_and_released_in_one() -> None:
    world = ferry("a")
    world.run()
    for number in range(500):
        world.source.snapshot(ROOT, f"s{number}")
    found = world.decide()
    assert isinstance(found, ActionPlan)
    keep, _, let_go = (
        [step for step in stage if isinstance(step.work, Pipeline)]
        for stage in steps.build_steps(world.job, world.survey(), found, requested())
    )
    assert [step.action for step in keep] == ["remember 1 snapshot by bookmarks", "hold 499 snapshots"]
    assert [step.action for step in let_go] == ["release 499 snapshots", "drop 1 bookmark of ours"]


@pytest.mark.parametrize("last", [HoldBases, IncrementalSend, ReleaseBases])
def test_what_a_killed_run_held_is_released_by_the_next(last: type) -> None:
    """Even one that was killed when all had arrived, and has nothing to send any more."""
    world = ferry("a")
    world.run()
    for name in "bcde":
        world.source.snapshot(ROOT, name)
    found = world.decide()
    assert isinstance(found, ActionPlan)
    for action in (action for stage in found.stages for action in stage):
        if isinstance(action, ReleaseBases) or type(action) is last is IncrementalSend:
            break
        world.do(action)
        if isinstance(action, last):
            break
    assert len(world.source.holds) == 3
    world.run()
    assert not world.source.holds
    assert world.newest_is_there()
    again = world.decide()
    assert isinstance(again, ActionPlan)
    assert not again.stages


def test_a_single_snapshot_is_not_held() -> None:
    world = ferry("a")
    world.run()
    world.source.snapshot(ROOT, "b")
    found = world.decide()
    assert isinstance(found, ActionPlan)
    assert not any(action.between or action.holds for action in found.stages[0] if isinstance(action, HoldBases))


def test_what_a_refused_copy_stands_at_stays_known() -> None:
    """Another program made the copy: nothing of ours remembers it, and the rest of the run prunes the source."""
    world = ferry("a")
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "x1")
    world.run()
    for name in (ROOT, f"{ROOT}/x"):
        for mark in world.source.nodes[name].bookmarks:
            world.source.destroy_bookmark(name, mark.name)
    world.target.write(COPY)
    for name in (ROOT, f"{ROOT}/x"):
        world.source.snapshot(name, "b")
    found = world.run()
    assert isinstance(found, ActionPlan)
    assert [refusal.why.split()[0] for refusal in found.refusals] == [COPY]
    prune(world)
    consent = replace(world.job, options=replace(options_of(world.job), may_destroy=("rollback",)))
    world.job = consent
    world.run()
    assert world.newest_is_there()


def cut_between(world: Ferry, name: str) -> None:
    """Four snapshots on the way in one stream; it was cut in the second."""
    for mark in "bcde":
        world.source.snapshot(name, mark)
    with pytest.raises(Cut):
        world.run(mishap=lambda action: 6 if isinstance(action, IncrementalSend) else None)


def test_a_run_that_was_killed_before_it_held_holds_now() -> None:
    world = ferry("a")
    world.run()
    cut_between(world, ROOT)
    world.source.holds.clear()
    found = world.decide()
    assert isinstance(found, ActionPlan)
    (keep,) = found.stages[0]
    assert isinstance(keep, HoldBases)
    assert [one.name for _, one in (*keep.holds, *keep.between)] == ["c", "d"]
    (keep,) = (action for action in found.stages[0] if isinstance(action, HoldBases))
    world.source.bookmark(ROOT, keep.holds[0][1].guid, hold_bookmark_name(world.target_id, keep.holds[0][1].guid))
    for name, one in keep.cursors:
        world.source.bookmark(ROOT, one.guid, cursor_bookmark_name(world.target_id, one.guid))
        assert not name
    again = world.decide()
    assert isinstance(again, ActionPlan)
    assert again.stages[0] == (HoldBases(between=keep.between),)


def test_what_a_refused_copy_may_still_need_stays() -> None:
    world = ferry("a")
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "a")
    world.run()
    cut_between(world, f"{ROOT}/x")
    world.target.write(f"{COPY}/x")
    kept = world.source.holds.copy(), world.source.nodes[f"{ROOT}/x"].bookmarks
    assert kept[0]
    world.source.snapshot(ROOT, "b")
    found = world.run()
    assert isinstance(found, ActionPlan)
    assert found.refusals
    assert world.source.holds == kept[0]
    assert set(kept[1]) <= set(world.source.nodes[f"{ROOT}/x"].bookmarks)


def test_a_name_without_room_for_a_bookmark_is_sent_without_and_says_so() -> None:
    world = ferry("a")
    long = "n" * (200 - len("tank/photos/"))
    world.source.create(f"tank/photos/{long}")
    world.source.snapshot(f"tank/photos/{long}", "b")
    longer = f"{long}{'n' * 10}"
    world.source.create(f"tank/photos/{longer}")
    world.source.snapshot(f"tank/photos/{longer}", "b")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert world.newest_is_there(long)
    assert world.newest_is_there(longer)
    assert world.source.nodes[f"tank/photos/{long}"].bookmarks == ()
    assert decided.warnings[0].startswith(f"2 datasets: tank/photos/{long}, ")
    assert "keep the newest snapshot that both sides hold" in decided.warnings[0]


def test_on_a_source_that_takes_no_bookmark_nothing_is_made_and_nothing_goes() -> None:
    world = ferry("a")
    world.run()
    world.source.snapshot(ROOT, "b")
    found = world.decide(requested("no-bookmarks"))
    assert isinstance(found, ActionPlan), found
    assert [type(action) for stage in found.stages for action in stage] == [IncrementalSend]
    assert any("keep the newest snapshot that both sides hold" in warning for warning in found.warnings)
    kept = world.source.nodes[ROOT].bookmarks
    world.run(requested("no-bookmarks"))
    assert world.newest_is_there()
    assert world.source.nodes[ROOT].bookmarks == kept
    world.source.snapshot(ROOT, "c")
    world.run()
    assert world.newest_is_there()
