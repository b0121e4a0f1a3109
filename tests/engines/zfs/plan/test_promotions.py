"""Promoted clones: what is said of a copy that is still a clone, and of a source whose snapshots went elsewhere."""

from dataclasses import replace

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import ActionPlan, ZfsSurvey
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.plan import decide_actions
from orchestrator.engines.zfs.plan.promotions import inherited_snapshots
from orchestrator.engines.zfs.verify.compare import GuidComparison, compare_guids
from tests.engines.zfs.model_run import Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def copied_clone() -> Ferry:
    """A dataset with two snapshots and a clone of it; both are copied, and the clone was promoted then."""
    world = ferry("a")
    world.source.create(f"{ROOT}/db")
    for name in ("a", "b"):
        newest = world.source.snapshot(f"{ROOT}/db", name)
    world.source.snapshot(ROOT, "b")
    world.source.clone(f"{ROOT}/db", newest.guid, f"{ROOT}/new")
    for name in ("db", "new"):
        world.source.snapshot(f"{ROOT}/{name}", "c")
    assert isinstance(world.run(), ActionPlan)
    world.source.promote(f"{ROOT}/new")
    return world


def case_of(world: Ferry) -> PlanContext:
    return PlanContext(world.job, world.survey(), requested())


def compared(world: Ferry, point: str | None = None) -> GuidComparison:
    judged = compare_guids(case_of(world), point=point)
    assert isinstance(judged, GuidComparison), judged
    return judged


WARNING = (
    f"{ROOT}/new was promoted, and its copy {COPY}/new is still a clone of {COPY}/db@b: older snapshots lie there; "
    f"to have them as on the source: zfs promote {COPY}/new"
)


def test_a_copy_that_is_still_a_clone_holds_all_and_is_told_with_the_command() -> None:
    world = copied_clone()
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert decided.warnings == (WARNING,)
    judged = compared(world)
    assert (judged.findings, judged.warnings) == ((), (WARNING,))
    assert compared(world, "b").findings == ()
    world.target.promote(f"{COPY}/new")
    assert (compared(world).findings, compared(world).warnings) == ((), ())
    assert isinstance(decided := world.decide(), ActionPlan)
    assert (decided.stages, decided.warnings) == ((), ())


def test_what_a_copy_lacks_is_missing_though_it_is_a_clone() -> None:
    world = copied_clone()
    there = world.target.nodes[f"{COPY}/db"]
    world.target.nodes[f"{COPY}/db"] = replace(there, snapshots=there.snapshots[1:])
    assert [one.path for one in compared(world).findings] == [b"new@a"]


def test_snapshots_come_from_the_copy_alone_and_from_all_that_it_is_a_clone_of() -> None:
    world = copied_clone()
    (newest,) = world.target.nodes[f"{COPY}/new"].snapshots
    world.target.clone(f"{COPY}/new", newest.guid, f"{COPY}/more")
    assert [f"{name}{one.mark}" for name, one in inherited_snapshots(case_of(world), "more")] == [
        "db@a",
        "db@b",
        "new@c",
    ]
    assert inherited_snapshots(case_of(world), "db") == ()
    assert inherited_snapshots(case_of(world), "nothing") == ()
    for elsewhere in ("vault/other@a", f"{COPY}/gone@a", f"{COPY}/db@gone"):
        world.target.nodes[f"{COPY}/more"] = replace(world.target.nodes[f"{COPY}/more"], origin=elsewhere)
        assert inherited_snapshots(case_of(world), "more") == ()


def test_a_restore_is_not_told_of_promotions() -> None:
    world = copied_clone()
    seen = replace(world.survey(), returning=COPY)
    decided = decide_actions(world.job, seen, requested())
    assert isinstance(decided, ActionPlan)
    assert not [one for one in decided.warnings if "promote" in one]


def promoted_elsewhere(name: str = "") -> tuple[Ferry, ZfsSurvey]:
    """A dataset of which a clone outside of the source was promoted, and a look that knows the guid of the snapshot."""
    world = ferry("a")
    whole = f"{ROOT}/{name}".rstrip("/")
    if name:
        world.source.create(whole)
        world.source.snapshot(whole, "a")
    world.run()
    (one,) = world.source.nodes[whole].snapshots
    world.source.clone(whole, one.guid, "tank/new")
    world.source.promote("tank/new")
    return world, replace(world.survey(), origins={"tank/new@a": one.guid})


def test_a_source_whose_snapshots_went_elsewhere_says_where_and_both_ways_to_go_on() -> None:
    world, seen = promoted_elsewhere()
    refusal = decide_actions(world.job, seen, requested())
    assert isinstance(refusal, Refusal)
    assert refusal.why == f"the snapshots of {ROOT} belong to tank/new now, which was a clone of it and was promoted"
    assert refusal.hint == (
        f"to move them back, so that its copy goes on: zfs promote {ROOT}; then poolferry run photos; or, to copy tank/new from now on, and "
        'go on with this copy: write source = "tank/new" into photos.toml, and name = "photos" into its [zfs]; or, to rename it away '
        "with all below it, and start from scratch: poolferry run photos --aside"
    )
    world.source.promote(ROOT)
    assert isinstance(world.run(), ActionPlan)


def test_one_below_the_source_has_no_other_source() -> None:
    world, seen = promoted_elsewhere("sub")
    world.source.snapshot(f"{ROOT}/sub", "b")
    refusal = decide_actions(world.job, replace(world.survey(), origins=seen.origins), requested())
    assert isinstance(refusal, Refusal)
    assert f"zfs promote {ROOT}/sub" in refusal.hint
    assert "source =" not in refusal.hint


def test_one_without_a_snapshot_to_send_holds_nothing_up() -> None:
    world, seen = promoted_elsewhere("sub")
    world.source.snapshot(ROOT, "b")
    assert isinstance(decide_actions(world.job, world.survey(), requested()), ActionPlan)
    assert isinstance(decide_actions(world.job, seen, requested()), ActionPlan)


def test_without_a_sight_of_that_snapshot_nothing_is_guessed() -> None:
    world, seen = promoted_elsewhere()
    refusal = decide_actions(world.job, replace(seen, origins={}), requested())
    assert isinstance(refusal, Refusal)
    assert "promote" not in refusal.hint
