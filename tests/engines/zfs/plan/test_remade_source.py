"""A source that was made anew is not taken for the one that was copied: restore comes first."""

from dataclasses import replace

import pytest

from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.source_identity import SOURCE_IDENTITY, parse_identity
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import ActionPlan
from orchestrator.engines.zfs.plan.plan import decide_actions, plan
from tests.engines.zfs.model_run import Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def copied(*snapshots: str) -> tuple[Ferry, dict[str, str]]:
    """A source that was copied, and what history remembers of it."""
    world = ferry(*snapshots)
    world.run()
    return world, {SOURCE_IDENTITY: ENGINE.identity(world.survey())}


def made_anew(world: Ferry, *, pool: bool) -> None:
    world.source.destroy(ROOT)
    world.source.create(ROOT)
    if pool:
        world.source.guid += 1


def decided(world: Ferry, remembered: dict[str, str], *allowed: str) -> ActionPlan | Refusal:
    return decide_actions(world.job, world.survey(), replace(requested(*allowed), remembered=remembered))


@pytest.mark.parametrize("snapshots", [(), ("autosnap_of_nothing",)])
@pytest.mark.parametrize("target", [True, False], ids=["copied", "another disk, still without a copy"])
def test_a_pool_that_was_made_anew_is_restored_first(snapshots: tuple[str, ...], target: bool) -> None:
    world, remembered = copied("a", "b")
    made_anew(world, pool=True)
    for name in snapshots:
        world.source.snapshot(ROOT, name)
    if not target:
        world.target.destroy(COPY)
    found = decided(world, remembered)
    assert isinstance(found, Refusal), found
    assert found.why == "the pool tank was made anew since the last run, and tank/photos is not what was copied"
    assert found.hint == (
        "restore it first: poolferry restore run photos --to tank/photos --aside (what is there now stays, under another name)"
    )
    assert (f"{COPY} holds 2 snapshots of what was there" in found.evidence) is target


def test_a_dataset_that_was_made_anew_may_begin_anew_on_request() -> None:
    world, remembered = copied("a")
    made_anew(world, pool=False)
    world.source.snapshot(ROOT, "new")
    found = decided(world, remembered)
    assert isinstance(found, Refusal), found
    assert found.why == "tank/photos was made anew since the last run, and is not what was copied"
    assert found.hint.endswith("; or, to begin anew with it: poolferry run photos --aside")
    assert isinstance(plan(world.job, world.survey(), replace(requested("aside"), remembered=remembered)), Plan)


def test_a_source_that_is_gone_may_be_lost() -> None:
    world, remembered = copied("a")
    world.source.destroy(ROOT)
    found = decided(world, remembered)
    assert isinstance(found, Refusal), found
    assert "if it is lost, restore it first: poolferry restore run photos --to tank/photos;" in found.hint


def test_what_was_restored_or_imported_goes_on() -> None:
    world, remembered = copied("a")
    known = parse_identity(remembered[SOURCE_IDENTITY])
    assert known is not None
    anew = {SOURCE_IDENTITY: str(replace(known, dataset=known.dataset + 1, pool=known.pool + 1))}
    assert isinstance(decided(world, anew), ActionPlan), "it holds a snapshot that its copy holds too"
    moved = {SOURCE_IDENTITY: str(replace(known, pool=known.pool + 1))}
    assert isinstance(decided(world, moved), ActionPlan), "zpool reguid"


@pytest.mark.parametrize("remembered", ["", "x", "1 2", "999 5 tank/other", "999 5 ssh://nas:tank/photos"])
def test_another_source_or_none_is_no_sign(remembered: str) -> None:
    world, _ = copied("a")
    made_anew(world, pool=True)
    world.source.snapshot(ROOT, "new")
    found = decided(world, {SOURCE_IDENTITY: remembered})
    assert isinstance(found, Refusal)
    assert "hold no snapshot in common" in found.why
