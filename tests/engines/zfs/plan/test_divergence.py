"""A target that went its own way: what is said, what it takes to go on, and that nothing is lost without consent."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import (
    ActionPlan,
    ChangedEntry,
    CreatePlaceholder,
    DatasetType,
    FullSend,
    RenameAside,
    Rollback,
    Snapshot,
)
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.divergence import refuse_unrelated
from orchestrator.engines.zfs.plan.plan import decide_actions
from orchestrator.engines.zfs.plan.steps import build_steps
from tests.engines.zfs.model_run import Ferry, encrypt, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"
ASIDE = f"{COPY}_aside_2026-03-04T050607Z"


def sent_once(*snapshots: str, **options: object) -> Ferry:
    world = ferry(*snapshots, **options)
    world.run()
    return world


def refused(world: Ferry) -> Refusal:
    decided = world.decide()
    assert isinstance(decided, Refusal), decided
    return decided


def guid(world: Ferry, name: str = "a") -> int:
    return next(one.guid for one in world.source.nodes[ROOT].snapshots if one.name == name)


def own_snapshots(*names: str, **options: object) -> Ferry:
    world = sent_once("a", **options)
    for name in names:
        world.target.snapshot(COPY, name)
    world.source.snapshot(ROOT, "b")
    return world


def test_own_snapshots_are_refused_with_their_names_and_the_cures() -> None:
    refusal = refused(own_snapshots("mine", "too"))
    assert refusal.why == f"{COPY} has 2 snapshots of its own since @a, the newest that both sides hold"
    assert refusal.evidence[1:] == (f"{COPY}@mine", f"{COPY}@too")
    assert "poolferry run photos --aside" in refusal.hint
    assert f"zfs rollback -r {COPY}@a" in refusal.hint
    assert refusal.guard == "aside"


def test_many_own_snapshots_are_counted_and_sanoid_is_named() -> None:
    refusal = refused(own_snapshots(*(f"autosnap_{number}" for number in range(12))))
    assert refusal.evidence[-2:] == (
        "and 2 more",
        "names that begin with autosnap_ are sanoid's: it takes snapshots on the target",
    )
    assert refusal.hint.startswith("give the target a sanoid template with autosnap = no; then, ")


def test_a_target_that_was_written_to_is_refused() -> None:
    world = sent_once("a")
    world.source.snapshot(ROOT, "b")
    world.target.write(COPY)
    refusal = refused(world)
    assert refusal.why == f"{COPY} was written to since @a, the newest that both sides hold"
    assert refusal.evidence[1] == f"1 B written to {COPY} since its newest snapshot"
    assert f"or zfs rollback {COPY}@a" in refusal.hint


def test_while_there_is_nothing_to_send_it_is_only_a_warning() -> None:
    world = sent_once("a")
    world.target.snapshot(COPY, "mine")
    world.target.write(COPY)
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert decided.warnings == (
        f"{COPY} has 1 snapshot of its own and was written to (1 B) since @a: the next send there will be refused",
    )
    assert not decided.stages


@pytest.mark.parametrize(("own", "told"), [(True, "has 1 snapshot of its own"), (False, "was written to (1 B)")])
def test_the_warning_says_only_what_is(*, own: bool, told: str) -> None:
    world = sent_once("a")
    world.target.snapshot(COPY, "mine") if own else world.target.write(COPY)
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert decided.warnings[0].startswith(f"{COPY} {told} since @a")


def test_with_consent_it_goes_back_and_says_what_dies() -> None:
    world = own_snapshots("mine", may_destroy=("rollback",))
    world.target.write(COPY)
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    (back,) = (action for stage in decided.stages for action in stage if isinstance(action, Rollback))
    assert back.dies == (f"{COPY}@mine", f"1 B written to {COPY} since its newest snapshot")
    assert back.to.guid == guid(world)
    assert [one.name for one in world.target.nodes[COPY].snapshots] == ["a", "b"]


def test_it_does_not_go_back_over_what_a_clone_needs() -> None:
    world = own_snapshots("mine", may_destroy=("rollback",))
    world.target.clone(COPY, world.target.nodes[COPY].snapshots[-1].guid, f"{COPY}/theirs")
    assert refused(world).why.endswith(f"; and a clone needs {COPY}@mine, so it cannot go back")


def test_aside_keeps_all_and_begins_anew_with_what_lies_below() -> None:
    world = sent_once("a")
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "x1")
    world.run()
    world.target.snapshot(COPY, "mine")
    world.source.snapshot(ROOT, "b")
    before = world.target.guids()
    decided = world.run(requested("aside"))
    assert isinstance(decided, ActionPlan)
    (aside,) = (action for stage in decided.stages for action in stage if isinstance(action, RenameAside))
    assert aside.to == ASIDE
    assert aside.why.startswith(f"{COPY} has 1 snapshot of its own")
    assert before <= world.target.guids()
    assert {ASIDE, f"{ASIDE}/x", COPY, f"{COPY}/x"} <= set(world.target.nodes)
    assert world.newest_is_there("x")
    later = world.run()
    assert isinstance(later, ActionPlan)
    assert not later.stages


def test_aside_goes_before_consent_to_go_back() -> None:
    world = own_snapshots("mine", may_destroy=("rollback",))
    before = world.target.guids()
    world.run(requested("aside"))
    assert before <= world.target.guids()
    assert world.newest_is_there()


def test_a_source_made_anew_is_refused_with_the_evidence() -> None:
    world = sent_once("a")
    world.source.destroy(ROOT)
    world.source.create(ROOT)
    world.source.snapshot(ROOT, "a")
    refusal = refused(world)
    assert refusal.why.startswith(f"{ROOT} and {COPY} hold no snapshot in common")
    assert refusal.evidence[2] == "same name, other snapshot: @a"
    assert refusal.guard == "aside"
    assert isinstance(world.run(requested("aside")), ActionPlan)
    assert world.newest_is_there()


def test_the_hint_of_a_tree_that_was_made_anew_is_that_of_its_root() -> None:
    """Datasets below it come back, or are renamed away, with it: each would be brought back twice."""
    world = ferry("a")
    for name in ("one", "one/two"):
        world.source.create(f"{ROOT}/{name}")
        world.source.snapshot(f"{ROOT}/{name}", "a")
    world.run()
    world.source.destroy(f"{ROOT}/one")
    for name in ("one", "one/two"):
        world.source.create(f"{ROOT}/{name}")
        world.source.snapshot(f"{ROOT}/{name}", "b")
    refusal = refused(world)
    assert refusal.hint.count("poolferry restore run photos --path one --to tank/photos/one --aside") == 1
    assert (refusal.hint.count("restore run"), "for " in refusal.hint) == (1, False)


def test_a_pool_itself_is_not_brought_back_over_what_is_there() -> None:
    world = ferry()
    world.root, world.copy = "tank", "vault/copies/tank"
    world.job = replace(world.job, source=Location(path="tank"))
    for name in ("tank", ROOT):
        world.source.snapshot(name, "a")
    world.run()
    for name in ("tank", ROOT):
        world.source.nodes[name] = replace(world.source.nodes[name], snapshots=(), bookmarks=())
        world.source.snapshot(name, "b")
    refusal = refused(world)
    assert refusal.hint == "to rename it away with all below it, and start from scratch: poolferry run photos --aside"


def test_a_promoted_clone_is_named() -> None:
    world = sent_once("a")
    world.source.clone(ROOT, guid(world), f"{ROOT}/c")
    world.source.promote(f"{ROOT}/c")
    world.source.snapshot(ROOT, "b")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    (refusal,) = decided.refusals
    assert refusal.why == f"the snapshots of {ROOT} belong to {ROOT}/c now, which was a clone of it and was promoted"
    assert f"zfs promote {ROOT};" in refusal.hint
    assert world.newest_is_there("c")


def test_other_names_are_no_evidence() -> None:
    world = sent_once("a")
    world.source.destroy(ROOT)
    world.source.create(ROOT)
    world.source.snapshot(ROOT, "z")
    assert len(refused(world).evidence) == 2


def test_another_snapshot_under_a_name_that_is_to_be_sent() -> None:
    world = sent_once("a")
    world.source.rename_snapshot(ROOT, guid(world), "old")
    new = world.source.snapshot(ROOT, "a")
    refusal = refused(world)
    assert refusal.why == f"{COPY} has another snapshot named @a"
    assert refusal.evidence == (f"@a: guid {new.guid} here, {guid(world, 'old')} there",)
    world.target.rename_snapshot(COPY, guid(world, "old"), f"a_{guid(world, 'old'):x}")
    assert f"zfs rename {COPY}@a {COPY}@a_{guid(world, 'old'):x}" in refusal.hint
    world.run()
    assert world.newest_is_there()


def test_a_taken_name_that_dies_with_the_rollback_hinders_nothing() -> None:
    world = own_snapshots("b", may_destroy=("rollback",))
    world.run()
    assert world.newest_is_there()


def test_a_dataset_of_somebody_else_is_in_the_way() -> None:
    world = ferry("a")
    world.target.create(COPY)
    refusal = refused(world)
    assert refusal.why == f"{COPY} is there, and no copy: it has no snapshot"
    assert refusal.guard == "aside"
    world.run(requested("aside"))
    assert world.newest_is_there()
    assert ASIDE in world.target.nodes


def test_a_copy_whose_snapshots_a_promoted_clone_took_gets_them_back() -> None:
    world = ferry("a")
    world.run()
    (kept,) = world.target.nodes[COPY].snapshots
    world.target.clone(COPY, kept.guid, "vault/look")
    world.target.promote("vault/look")
    world.source.snapshot(ROOT, "b")
    refusal = refused(world)
    assert refusal.why == f"{COPY} has no snapshot of its own: it is a clone of vault/look@a"
    assert f"zfs promote {COPY};" in refusal.hint
    world.target.promote(COPY)
    world.run()
    assert world.newest_is_there()


def test_a_clone_of_something_else_takes_no_snapshots_from_that() -> None:
    """It lies where the first copy is to come; before, a promotion was offered, which would have moved the snapshots of another dataset."""
    world = ferry("a")
    world.target.create("vault/other")
    made = world.target.snapshot("vault/other", "theirs")
    world.target.clone("vault/other", made.guid, COPY)
    refusal = refused(world)
    assert refusal.why.startswith(f"{COPY} is there, and no copy: it has no snapshot")
    assert "promote" not in refusal.hint


def test_the_copy_of_a_clone_takes_no_snapshots_from_the_copy_that_it_comes_from() -> None:
    world = ferry("a")
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[-1].guid, f"{ROOT}/c")
    world.source.snapshot(f"{ROOT}/c", "c1")
    world.run()
    (own,) = world.target.nodes[f"{COPY}/c"].snapshots
    world.target.destroy_snapshot(f"{COPY}/c", own.guid)
    world.source.snapshot(f"{ROOT}/c", "c2")
    refusal = refused(world)
    assert refusal.why.startswith(f"{COPY}/c is there, and no copy: it has no snapshot")
    assert "promote" not in refusal.hint


def test_another_kind_is_in_the_way() -> None:
    world = ferry("a")
    world.source.nodes[ROOT] = replace(world.source.nodes[ROOT], kind=DatasetType.VOLUME)
    world.target.create(COPY, placeholder=True)
    assert refused(world).why == f"{COPY} is a filesystem, and {ROOT} is a volume"


@pytest.mark.parametrize("raw", [True, False])
def test_nothing_encrypted_comes_onto_a_placeholder(*, raw: bool) -> None:
    world = ferry("a")
    encrypt(world.source if raw else world.target, ROOT if raw else "vault/copies")
    world.target.create(COPY, placeholder=True)
    assert refused(world).why == f"{COPY} holds the place of {ROOT}, and zfs puts nothing encrypted there"
    world.run(requested("aside"))
    assert world.newest_is_there()


def test_a_cut_receive_onto_a_placeholder_without_a_token_is_cleared() -> None:
    world = ferry("a")
    world.target.create(COPY, placeholder=True)
    seen = world.survey()
    half = {"": replace(seen.target.datasets[""], partial=True)}
    decided = decide_actions(world.job, replace(seen, target=replace(seen.target, datasets=half)), requested())
    assert isinstance(decided, ActionPlan)
    assert [type(action).__name__ for stage in decided.stages for action in stage] == [
        "HoldBases", "AbortReceive", "FullSend", "ReleaseBases",
    ]  # fmt: skip


def test_what_lies_below_a_refused_dataset_that_is_not_there_waits_for_it() -> None:
    world = ferry("a", raw="no")
    encrypt(world.source, ROOT)
    for name in ("x", "x/y"):
        world.source.create(f"{ROOT}/{name}", encrypted=False)
    world.source.snapshot(f"{ROOT}/x/y", "y1")
    decided = world.decide()
    assert isinstance(decided, Refusal)
    assert f"{COPY}/x/y waits for what lies above it" in decided.evidence
    assert not [node for name, node in world.target.nodes.items() if name.startswith(COPY)]


def test_what_lies_below_a_refused_dataset_that_is_there_goes_on() -> None:
    world = own_snapshots("mine")
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "x1")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert len(decided.refusals) == 1
    assert world.newest_is_there("x")


def test_a_clone_waits_for_a_refused_origin() -> None:
    world = own_snapshots("mine")
    world.source.clone(ROOT, guid(world, "b"), f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    decided = world.decide()
    assert isinstance(decided, Refusal)
    assert any(line.startswith(f"{ROOT}/k waits for its origin {ROOT}: sent without it") for line in decided.evidence)
    world.run(requested("aside"))
    assert world.newest_is_there("k")


def test_a_cut_first_receive_that_goes_leaves_room_for_a_place() -> None:
    """The dataset itself is gone with what the cut left; what lies below it then needs another one above."""
    world = ferry("a")
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    (first,) = (action for stage in decided.stages for action in stage if isinstance(action, FullSend))
    world.target.receive(COPY, world.source.packet(ROOT, first.snapshot, None, first.flags), take=2)
    world.source.destroy_snapshot(ROOT, guid(world))
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "x1")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert CreatePlaceholder(dataset="") in [action for stage in decided.stages for action in stage]
    assert world.newest_is_there("x")


def test_aside_is_no_cure_for_what_still_cannot_be_sent() -> None:
    world = ferry("a", raw="no")
    world.run()
    world.source.destroy(ROOT)
    world.source.create(ROOT, encrypted=True)
    world.source.snapshot(ROOT, "b")
    decided = world.decide(requested("aside"))
    assert isinstance(decided, Refusal)
    assert "would be stored readable" in decided.why


def test_a_volume_where_a_filesystem_should_be_is_renamed_as_volumes_are() -> None:
    """`zfs rename -u` is for filesystems alone."""
    world = ferry("a")
    world.target.create(COPY, kind=DatasetType.VOLUME)
    seen = world.survey()
    decided = decide_actions(world.job, seen, requested("aside"))
    assert isinstance(decided, ActionPlan)
    made = build_steps(world.job, seen, decided, requested("aside"))
    (line,) = (str(step.work) for stage in made for step in stage if step.action.startswith("rename"))
    assert line == f"zfs rename {COPY} {ASIDE}"


def test_a_name_that_is_too_long_on_the_target_is_refused_alone() -> None:
    world = ferry("a")
    long = "n" * (255 - len(f"{ROOT}/@bb"))
    world.source.create(f"{ROOT}/{long}")
    world.source.snapshot(f"{ROOT}/{long}", "bb")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert world.newest_is_there()
    (refusal,) = decided.refusals
    assert refusal.why.endswith("characters, and zfs allows 255")
    assert refusal.evidence == (f"{COPY}/{long}@bb",)


def test_a_dataset_that_would_lie_too_deep_on_the_target_is_refused_alone() -> None:
    """An owner of a dataset of the source may make others below it, as deep as zfs allows there."""
    world = ferry("a")
    deep = f"{ROOT}/{'/'.join('d' * (50 - ROOT.count('/') - 1))}"
    parts = deep.split("/")
    for depth in range(ROOT.count("/") + 2, len(parts) + 1):
        world.source.create("/".join(parts[:depth]))
    world.source.snapshot(deep, "bb")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert world.newest_is_there()
    (refusal,) = decided.refusals
    assert refusal.why.endswith("datasets deep, and zfs allows 50")


def changed_tree(*changes: tuple[str, str], **options: Any) -> tuple[Ferry, ActionPlan | Refusal]:
    """A copy with a child that was written to, as `zfs diff` shows it; a path that ends with / is a folder."""
    world = ferry("a", **options)
    for below in ("deep", "deep/kid"):
        world.source.create(f"{ROOT}/{below}")
        world.source.snapshot(f"{ROOT}/{below}", "k")
    world.run()
    world.source.snapshot(ROOT, "b")
    world.target.write(COPY)
    seen = replace(
        world.survey(),
        changes={"": tuple(ChangedEntry(how=how, folder=path[-1:] in ("/", ""), path=path.rstrip("/")) for how, path in changes)},
    )  # fmt: skip
    return world, decide_actions(world.job, seen, requested())


@pytest.mark.parametrize(
    "changes",
    [
        (),
        (("M", ""), ("-", "deep/"), ("+", "deep/")),
        (("M", ""), ("+", "deep/"), ("M", "deep/"), ("+", "deep/kid/")),
    ],
    ids=["access times", "mountpoint", "mountpoint of a grandchild"],
)
def test_access_times_and_mountpoint_folders_alone_are_rolled_back_without_consent(
    changes: tuple[tuple[str, str], ...],
) -> None:
    world, decided = changed_tree(*changes)
    assert isinstance(decided, ActionPlan)
    assert decided.refusals == ()
    back = next(action for stage in decided.stages for action in stage if isinstance(action, Rollback))
    assert back.dies == ("access times, and folders in which others are mounted, 1 B",)
    world.carry_out(decided)
    assert world.newest_is_there()


@pytest.mark.parametrize(
    ("changes", "listed"),
    [
        ((("M", ""),), ("M ./",)),  # its mode or owner: no folder in it was made
        ((("M", ""), ("+", "deep/"), ("+", "deep/note")), ("+ deep/note",)),
        ((("M", ""), ("+", "deep")), ("M ./", "+ deep")),  # a file where a child is to be mounted
        ((("M", ""), ("+", "other/")), ("M ./", "+ other/")),
        ((("R", "x"),), ("R x",)),
    ],
)
def test_anything_else_is_refused_with_the_list(changes: tuple[tuple[str, str], ...], listed: tuple[str, ...]) -> None:
    _, decided = changed_tree(*changes)
    assert isinstance(decided, Refusal)
    assert decided.why.startswith(f"{COPY} was written to since @a")
    assert decided.evidence[-len(listed) :] == listed


def test_many_changes_are_counted() -> None:
    _, decided = changed_tree(*(("+", f"f{number}") for number in range(30)))
    assert isinstance(decided, Refusal)
    assert decided.evidence[-1] == "and 20 more changed entries"


def test_a_restore_onto_strange_snapshots_offers_to_rename_them_and_no_other_restore() -> None:
    world = sent_once("a")
    survey = replace(world.survey(), returning=COPY)
    case = PlanContext(world.job, survey, requested())
    there = replace(survey.target.datasets[""], snapshots=(Snapshot(name="b", guid=99, createtxg=9),))
    refusal = refuse_unrelated(case, "", survey.source.datasets[""], there)
    assert refusal.guard == "aside"
    assert refusal.hint == f"to rename it away with all below it, and start from scratch: {case.command} --aside"
    assert "poolferry restore run photos" in case.command
