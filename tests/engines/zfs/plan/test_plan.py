"""The whole decision: what a run is told to do, in which stages, and in which words."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.plan import NothingToDo, Plan, Refusal
from orchestrator.domain.source_identity import SOURCE_STATE
from orchestrator.domain.source_state import SourceState, SourceStateRecord
from orchestrator.engines.zfs.model import (
    ActionPlan,
    Bookmark,
    CreatePlaceholder,
    FullSend,
    HoldBases,
    IncrementalSend,
    ReleaseBases,
    RenameAside,
    SendFlags,
    ZfsSurvey,
)
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, cursor_bookmark_name
from orchestrator.engines.zfs.plan.plan import decide_actions, plan
from tests.engines.zfs.model_run import NOW, Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def tree(*names: str, **options: Any) -> Ferry:
    """The root and datasets below it, each with one snapshot."""
    world = ferry("a", **options)
    for name in names:
        world.source.create(f"{ROOT}/{name}")
        world.source.snapshot(f"{ROOT}/{name}", "a")
    return world


def planned(world: Ferry, *allowed: str) -> Plan:
    found = plan(world.job, world.survey(), requested(*allowed))
    assert isinstance(found, Plan), found
    return found


def refused(world: Ferry, seen: ZfsSurvey | None = None) -> Refusal:
    found = plan(world.job, seen or world.survey(), requested())
    assert isinstance(found, Refusal), found
    return found


def decided(world: Ferry) -> ActionPlan:
    found = world.decide()
    assert isinstance(found, ActionPlan), found
    return found


def kinds(found: ActionPlan) -> list[list[type]]:
    return [[type(action) for action in stage] for stage in found.stages]


def test_a_first_run() -> None:
    world = tree("x", "x/y")
    world.source.snapshot(ROOT, "b")
    found = decided(world)
    assert kinds(found) == [[HoldBases], [FullSend], [FullSend], [FullSend], [IncrementalSend], [ReleaseBases]]
    assert found.current == "b"
    told = planned(world)
    assert told.summary == "send 3 datasets: 3 whole"
    assert told.parallel == 2
    assert told.resumes is None
    assert (told.current, told.brings) == ("b", True)
    assert not [step for step in told.steps if step.makes], "the point is one only when all of it is there"


def test_what_is_new_goes_side_by_side_and_the_words_count_it() -> None:
    world = tree("x", "y", parallel=5)
    world.run()
    for name in ("", "/x"):
        world.source.snapshot(f"{ROOT}{name}", "b")
    assert kinds(decided(world)) == [[HoldBases], [IncrementalSend, IncrementalSend], [ReleaseBases]]
    told = planned(world)
    assert (told.summary, told.parallel) == ("send 2 datasets: 2 with what is new", 5)


def test_nothing_is_to_be_done() -> None:
    world = tree("x")
    world.run()
    found = plan(world.job, world.survey(), requested())
    assert found == NothingToDo(why="the target holds the newest: a", current="a")


def test_the_point_has_the_targets_name() -> None:
    world = ferry("a")
    world.run()
    world.source.rename_snapshot(ROOT, world.source.nodes[ROOT].snapshots[0].guid, "new")
    assert decided(world).current == "a"


def test_a_root_without_snapshots_has_no_point() -> None:
    world = ferry()
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "a")
    assert decided(world).current is None
    world.run()
    found = plan(world.job, world.survey(), requested())
    assert isinstance(found, NothingToDo)
    assert found.why == "the target holds the newest: as far as there are snapshots"
    assert found.warnings == (
        f"{ROOT}: no snapshot, so nothing to send; take one (zfs snapshot), or let [snapshots] in the job take them",
    )


def test_a_base_that_is_not_remembered_is_kept_though_nothing_is_sent() -> None:
    world = ferry("a")
    world.run()
    first = world.source.nodes[ROOT].snapshots[0]
    for bookmark in world.source.nodes[ROOT].bookmarks:
        world.source.destroy_bookmark(ROOT, bookmark.name)
    assert decided(world).stages == ((HoldBases(cursors=(("", first),)),),)
    found = plan(world.job, world.survey(), requested())
    assert isinstance(found, NothingToDo)
    assert len(found.stages) == 1
    world.run()
    assert not decided(world).stages


def test_old_cursors_of_this_target_go_and_those_of_others_stay() -> None:
    world = ferry("a", "b")
    world.run()
    first = world.source.nodes[ROOT].snapshots[0]
    ours = Bookmark(name=cursor_bookmark_name(world.target_id, first.guid), guid=first.guid, createtxg=first.createtxg)
    others = {
        cursor_bookmark_name(ReplicationTargetId(pool=pool, place=place), first.guid)
        for pool, place in ((8, "0badcafe"), (9, None))
    }
    for name in (ours.name, *others, "theirs"):
        world.source.bookmark(ROOT, first.guid, name)
    assert decided(world).stages == ((ReleaseBases(cursors=(("", ours),)),),)
    world.run()
    names = {one.name for one in world.source.nodes[ROOT].bookmarks}
    assert {*others, "theirs"} < names
    assert ours.name not in names


def test_a_leftover_hold_is_let_go() -> None:
    world = ferry("a")
    world.run()
    seen = replace(world.survey(), held={"": ("a", "gone")})
    found = decide_actions(world.job, seen, requested())
    assert isinstance(found, ActionPlan)
    ((let_go,),) = found.stages
    assert let_go == ReleaseBases(holds=(("", world.source.nodes[ROOT].snapshots[0]),))


def test_what_is_excluded_stays_out_with_all_below_it() -> None:
    world = tree("scratch", "scratch/x", "vm", "vm/a-tmp", "vm/b", exclude=("scratch", "vm/*-tmp"))
    world.run()
    copies = {name.removeprefix(COPY) for name in world.target.nodes if name.startswith(COPY)}
    assert copies == {"", "/vm", "/vm/b"}
    assert not decided(world).warnings


def test_only_the_root_when_not_recursive() -> None:
    world = tree("x", recursive=False)
    world.run()
    world.target.create(f"{COPY}/theirs")
    assert f"{COPY}/x" not in world.target.nodes
    assert not decided(world).warnings


def test_what_the_source_has_no_more_is_left_alone_and_named() -> None:
    names = [f"d{number}" for number in range(7)]
    world = tree("x", *names)
    world.run()
    world.source.destroy(f"{ROOT}/x")
    before = world.target.guids()
    found = world.run()
    assert isinstance(found, ActionPlan)
    assert found.warnings == (
        f"{COPY}/x: on the target only; the source has no such dataset, and the copy is left alone",
    )
    assert before == world.target.guids()
    world.target.rename(f"{COPY}/x", f"{COPY}/d0_aside_2026-03-04T050607Z")
    told = world.run()
    assert isinstance(told, ActionPlan)
    assert told.warnings == (
        f"{COPY}/d0_aside_2026-03-04T050607Z: set aside by --aside; the job leaves it alone, and it takes room until somebody destroys it",
    ), "the source never had one of that name"
    for name in names:
        world.source.destroy(f"{ROOT}/{name}")
    assert (
        decided(world)
        .warnings[0]
        .startswith(f"7 datasets: {COPY}/d0, {COPY}/d1, {COPY}/d2, {COPY}/d3, {COPY}/d4 …: on")
    )


def test_a_place_that_is_ours_is_no_leftover() -> None:
    world = ferry("a")
    world.run()
    world.target.create(f"{COPY}/place", placeholder=True)
    assert not decided(world).warnings


def test_filters_that_fit_nothing_are_told() -> None:
    world = tree("x", snapshots=("b*",))
    refusal = refused(world)
    assert refusal.why == f"the job sends none of 2 snapshots of {ROOT}"
    world.source.snapshot(ROOT, "b")
    assert decided(world).warnings == (
        f"{ROOT}/x: no snapshot that the job sends; look at snapshots and skip-snapshots in [zfs]",
    )


@pytest.mark.parametrize(
    ("below", "told"), [(False, "zfs snapshot tank/photos@first;"), (True, "zfs snapshot -r tank/photos@first;")]
)
def test_without_any_snapshot_it_says_how_to_get_one(*, below: bool, told: str) -> None:
    world = ferry()
    if below:
        world.source.create(f"{ROOT}/x")
    refusal = refused(world)
    assert refusal.why.startswith(f"there is no snapshot of {ROOT}")
    assert told in refusal.hint
    assert "[snapshots]" in refusal.hint


def test_a_copy_whose_source_lost_all_snapshots_is_left_as_it_is() -> None:
    world = tree("x")
    world.run()
    for name in (ROOT, f"{ROOT}/x"):
        for bookmark in world.source.nodes[name].bookmarks:
            world.source.destroy_bookmark(name, bookmark.name)
        world.source.destroy_snapshot(name, world.source.nodes[name].snapshots[0].guid)
    assert refused(world).why.startswith("there is no snapshot of")
    world.source.snapshot(ROOT, "b")
    assert refused(world).why.startswith(f"{ROOT} and {COPY} hold no snapshot in common")


def test_a_source_that_is_not_there() -> None:
    world = ferry("a")
    world.source.destroy(ROOT)
    assert refused(world).why == f"the source {ROOT} is not there"


def test_a_target_pool_that_is_not_there() -> None:
    world = ferry("a")
    seen = world.survey()
    refusal = refused(world, replace(seen, target=replace(seen.target, above=frozenset())))
    assert refusal.why == f"the pool vault of the target {COPY} is not imported"
    assert refusal.hint.startswith("`zpool import vault`, or")


def test_a_dataset_that_says_of_itself_that_it_is_being_restored_holds_up_no_other() -> None:
    """Its owner can set that property; history knows of a restore that is under way, or the root says it."""
    world = tree("x", "y")
    world.run()
    node = world.source.nodes[f"{ROOT}/x"]
    world.source.nodes[f"{ROOT}/x"] = replace(node, flags=SendFlags(backup=True))
    for name in ("", "/x", "/y"):
        world.source.snapshot(f"{ROOT}{name}", "b")
    found = decided(world)
    assert [refusal.why for refusal in found.refusals] == [
        f"{ROOT}/x is being brought back from a copy, and is not whole yet"
    ]
    assert found.refusals[0].hint == (
        f"finish that: poolferry restore run photos --path x --to {ROOT}/x; where nobody restores it, its owner has set that: "
        f"zfs inherit poolferry:flags {ROOT}/x"
    )
    assert kinds(found)[1] == [IncrementalSend, IncrementalSend]
    under_way = SourceStateRecord(state=SourceState.RESTORING, since=NOW, why="", hint="")
    known = replace(requested(), remembered={SOURCE_STATE: str(under_way)})
    whole = plan(world.job, world.survey(), known)
    assert isinstance(whole, Refusal)
    assert whole.source is SourceState.RESTORING


def diverged(*names: str) -> Ferry:
    world = tree("x", "y", *names)
    world.run()
    for name in ("x", "y"):
        world.target.snapshot(f"{COPY}/{name}", "mine")
        world.source.snapshot(f"{ROOT}/{name}", "b")
    return world


def test_one_refusal_does_not_stop_the_others() -> None:
    world = diverged()
    world.source.snapshot(ROOT, "b")
    found = planned(world)
    assert [refusal.why.split()[0] for refusal in found.refusals] == [f"{COPY}/x", f"{COPY}/y"]
    assert found.summary == "send 1 dataset: 1 with what is new"
    world.run()
    assert world.newest_is_there()


def test_refusals_alone_are_one_refusal() -> None:
    refusal = refused(diverged())
    assert refusal.why == (
        f"{COPY}/x has 1 snapshot of its own since @a, the newest that both sides hold; 1 more refusal; "
        "nothing else is to be done for the other 1"
    )
    assert refusal.evidence[0].startswith(f"{COPY}/x has")
    assert f"  {COPY}/y@mine" in refusal.evidence
    assert refusal.guard == "aside"


def test_refusals_of_two_kinds_name_the_first_ones_guard() -> None:
    world = diverged()
    world.target.rename_snapshot(f"{COPY}/y", world.target.nodes[f"{COPY}/y"].snapshots[0].guid, "b")
    world.target.destroy_snapshot(f"{COPY}/y", world.target.nodes[f"{COPY}/y"].snapshots[1].guid)
    refusal = refused(world)
    assert refusal.guard == "aside"
    assert f"{COPY}/y has another snapshot named @b" in refusal.evidence


def test_very_many_refusals_are_counted() -> None:
    names = [f"d{number:02}" for number in range(60)]
    world = tree(*names)
    world.run()
    for name in names:
        world.target.snapshot(f"{COPY}/{name}", "mine")
        world.source.snapshot(f"{ROOT}/{name}", "b")
    refusal = refused(world)
    assert "59 more refusals" in refusal.why
    assert refusal.evidence[-1] == "and 10 more"
    assert len(refusal.evidence) == 50 + 5 * 2 + 1


def test_the_words_of_a_plan_name_what_else_it_does() -> None:
    world = tree("x", "y", may_destroy=("rollback",))
    world.run()
    world.target.snapshot(f"{COPY}/x", "mine")
    world.source.snapshot(f"{ROOT}/x", "b")
    assert planned(world).summary == "send 1 dataset: 1 with what is new; roll back 1"
    world.source.destroy(f"{ROOT}/y")
    world.source.create(f"{ROOT}/y")
    world.source.snapshot(f"{ROOT}/y", "n")
    assert planned(world, "aside").summary == "send 2 datasets: 2 whole; rename away 2"


def test_a_receive_that_still_runs_is_all_a_plan_ends() -> None:
    world = tree("x")
    world.run()
    world.target.receiving[f"{COPY}/x"] = 4711
    assert planned(world).summary == "end receives whose link is dead: 1"


def test_deeds_that_make_room_come_first() -> None:
    world = ferry("a")
    world.run()
    world.source.destroy(ROOT)
    world.source.create(ROOT)
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "x1")
    world.source.snapshot(ROOT, "b")
    found = world.decide(requested("aside"))
    assert isinstance(found, ActionPlan)
    assert kinds(found) == [[HoldBases], [RenameAside, FullSend], [FullSend], [ReleaseBases]]
    assert not any(isinstance(action, CreatePlaceholder) for stage in found.stages for action in stage)
