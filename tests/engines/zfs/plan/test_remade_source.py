"""A source that was made anew is not taken for the one that was copied: restore comes first."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.renamed_dataset import RenamedDataset, give_name_back
from orchestrator.domain.source_identity import LAST_RESTORE, SOURCE_IDENTITY, parse_identity, seen_restore_key
from orchestrator.domain.source_state import SourceState, SourceStateRecord, next_source_state, parse_source_state
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import ActionPlan, SendFlags
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.divergence import identity_of_kit
from orchestrator.engines.zfs.plan.plan import decide_actions, plan
from orchestrator.engines.zfs.verify.compare import compare_guids
from tests.engines.zfs.model_run import NOW, Ferry, ferry, requested

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


def moved(now: str, remembered: dict[str, str], *, gone: bool = True) -> Refusal:
    """The decision on a source whose dataset of the last run lies under another name now."""
    world, _ = copied("a")
    if gone:
        world.source.destroy(ROOT)
    else:
        made_anew(world, pool=False)
    there = RenamedDataset(name=now, above="tank" if now.startswith("tank/") else "")
    refusal = decide_actions(
        world.job, replace(world.survey(), moved=there), replace(requested(), remembered=remembered)
    )
    assert isinstance(refusal, Refusal)
    return refusal


def test_a_pool_with_another_name_is_told_with_the_lines_and_the_command() -> None:
    refusal = moved("lake/photos", {SOURCE_IDENTITY: f"5 7 {ROOT}"})
    assert refusal.why == f"the pool tank is imported as lake now, guid 7, so the source {ROOT} is not there"
    assert refusal.hint == (
        'to go on under that name: write source = "lake/photos" into photos.toml; or give the former one back: '
        "zpool export lake && zpool import lake tank"
    )
    assert refusal.source is SourceState.RENAMED
    assert moved("lake/photos", {SOURCE_IDENTITY: f"5 0 {ROOT}"}).why.startswith(
        "the pool tank is imported as lake now, so"
    )
    assert moved("lake/photos", {}).evidence == ()


def test_a_dataset_with_another_name_is_told_and_its_copy_keeps_its_own() -> None:
    refusal = moved("tank/new name", {SOURCE_IDENTITY: f"5 7 {ROOT}"})
    assert refusal.why == f"the source {ROOT} is called tank/new name now"
    assert refusal.hint == (
        'to go on under that name: write source = "tank/new name" into photos.toml, and name = "photos" into its [zfs]; or give the '
        f"former one back: zfs rename 'tank/new name' {ROOT}"
    )
    assert moved("lake/other", {SOURCE_IDENTITY: f"5 0 {ROOT}"}).hint.endswith(
        f"back: zpool export lake && zpool import lake tank && zfs rename -p tank/other {ROOT}"
    )


def test_one_that_has_another_in_its_place_is_named_before_the_restore() -> None:
    refusal = moved("tank/old", {SOURCE_IDENTITY: f"5 7 {ROOT}"}, gone=False)
    assert "was made anew since the last run" in refusal.why
    assert refusal.evidence[-1] == "what was copied is called tank/old now, by its guid"
    assert refusal.hint.startswith('to copy tank/old on: write source = "tank/old" into photos.toml')
    assert "restore it first: poolferry restore run photos" in refusal.hint


def test_a_copy_whose_pool_has_another_name_is_told_so() -> None:
    world, remembered = copied("a")
    gone = replace(world.survey().target, datasets={}, above=frozenset(), pool_guid=0)
    seen = replace(world.survey(), target=gone, moved_copy=RenamedDataset(name="attic/copies/photos"))
    refusal = decide_actions(world.job, seen, replace(requested(), remembered=remembered))
    assert isinstance(refusal, Refusal)
    assert (
        refusal.why
        == f"the pool vault of the target {COPY} is not imported, and the copy is attic/copies/photos now, by its guid"
    )
    assert refusal.hint.startswith(
        'to go on there: write dataset = "attic/copies" into [place.vault] of targets.toml; or give the pool its name back: '
        "zpool export attic && zpool import attic vault; then "
    )


def test_where_a_look_could_not_see_all_that_is_said() -> None:
    doubtful = RenamedDataset(within="tank/photos")
    world, remembered = copied("a")
    gone = replace(world.survey().target, datasets={}, above=frozenset(), pool_guid=0)
    away = decide_actions(world.job, replace(world.survey(), target=gone, moved_copy=doubtful), requested())
    made_anew(world, pool=False)
    anew = decide_actions(
        world.job, replace(world.survey(), moved=doubtful), replace(requested(), remembered=remembered)
    )
    world.source.destroy(ROOT)
    absent = decide_actions(world.job, replace(world.survey(), moved=doubtful), requested())
    for refusal in (away, anew, absent):
        assert isinstance(refusal, Refusal)
        assert doubtful.doubt in refusal.evidence


def test_a_source_that_is_gone_is_called_so_though_its_copy_was_renamed_too() -> None:
    """Seen: nothing was said of a restore, as no copy was where it had been."""
    world, remembered = copied("a")
    world.source.destroy(ROOT)
    world.target.destroy(COPY)
    seen = replace(world.survey(), moved_copy=RenamedDataset(name="vault/copies/old", above="vault/copies"))
    refusal = decide_actions(world.job, seen, replace(requested(), remembered=remembered))
    assert isinstance(refusal, Refusal)
    assert (refusal.why, refusal.source) == (f"the source {ROOT} is not there", SourceState.GONE)
    assert refusal.evidence == (f"its copy {COPY} is called vault/copies/old now, by its guid",)
    assert f"if it is lost, restore it first: poolferry restore run photos --to {ROOT}" in refusal.hint


def test_a_copy_behind_a_gate_whose_own_dataset_is_not_there_is_told_so() -> None:
    """Seen: the run asked the gate to make it, and was told that it may not."""
    world, remembered = copied("a")
    world.target.destroy(COPY)
    seen = replace(world.survey(), moved_copy=RenamedDataset(within="vault/in"))
    refusal = decide_actions(world.job, seen, replace(requested(), remembered=remembered))
    assert isinstance(refusal, Refusal)
    assert refusal.why == "vault/in, below which the gate of our key receives, is not there"
    beside = replace(seen, moved_copy=RenamedDataset(within="vault/in", above="vault/in"))
    begun = decide_actions(world.job, beside, replace(requested(), remembered=remembered))
    assert isinstance(begun, ActionPlan), "all of it is sent again"
    assert "it may lie elsewhere there, under another name), and all of it is sent again" in begun.warnings[0]


@pytest.mark.parametrize(
    ("name", "above", "hint"),
    [
        ("vault/copies/old", "vault/copies", ("to go on there: write name = \"old\" into [zfs] of photos.toml; or to give the former name back: "
         f"zfs rename vault/copies/old {COPY}")),
        ("vault/backup/photos", "vault", ('to go on there: write dataset = "vault/backup" into [place.vault] of targets.toml; or to give the '
         "former name back: zfs rename vault/backup vault/copies")),
        ("vault/x/y", "vault/copies", ('to go on there: write dataset = "vault/x" into [place.vault] of targets.toml, and write name = "y" into '
         f"[zfs] of photos.toml; or to give the former name back: zfs rename vault/x/y {COPY}")),
        ("attic/copies/photos", "vault", 'to go on there: write dataset = "attic/copies" into [place.vault] of targets.toml'),
    ],
)  # fmt: skip
def test_a_copy_with_another_name_is_not_sent_anew_without_a_word(name: str, above: str, hint: str) -> None:
    """Seen: all of it was sent again beside it, with a warning, and filled the pool."""
    world, remembered = copied("a")
    world.target.destroy(COPY)
    seen = replace(world.survey(), moved_copy=RenamedDataset(name=name, above=above))
    refusal = decide_actions(world.job, seen, replace(requested(), remembered=remembered))
    assert isinstance(refusal, Refusal)
    assert refusal.why == f"the copy {COPY} is called {name} now, by its guid"
    assert refusal.hint == (
        f"{hint}; then say the same command again; to send all of it again, beside that one: poolferry run photos --aside"
    )
    judged = compare_guids(PlanContext(world.job, seen, replace(requested(), remembered=remembered)), point=None)
    assert isinstance(judged, Refusal)
    assert (judged.why, "--aside" in judged.hint) == (refusal.why, False), "a reading sends nothing"
    assert isinstance(decide_actions(world.job, seen, replace(requested("aside"), remembered=remembered)), ActionPlan)
    on_a_disk = replace(world.job, target=replace(world.job.target, disk="red"))
    told = decide_actions(on_a_disk, seen, replace(requested(), remembered=remembered))
    assert isinstance(told, Refusal)
    back = give_name_back(COPY, RenamedDataset(name=name), None)
    assert told.hint.startswith(
        f"to give the former name back: poolferry disks attach red && {back} && poolferry disks eject red; then "
    ), "after a visit its pool is not imported"


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
    assert (found.source, found.guard) == (SourceState.ANEW, None), "nobody is led to set the only good copy aside"


@pytest.mark.parametrize("lost", ["gone", "anew", "restoring"])
def test_no_copy_is_called_changed_while_its_source_is_lost(lost: str) -> None:
    """All that a new and empty source lacks would be extra on the copy, which may be the only good one."""
    world, remembered = copied("a", "b")
    made_anew(world, pool=True)
    seen = world.survey()
    if lost == "gone":
        seen = replace(seen, source=replace(seen.source, datasets={}))
    if lost == "restoring":
        root = replace(seen.source.datasets[""], flags=SendFlags(backup=True))
        seen = replace(seen, source=replace(seen.source, datasets={"": root}))
    judged = compare_guids(PlanContext(world.job, seen, replace(requested(), remembered=remembered)), point=None)
    assert isinstance(judged, Refusal), judged
    assert "poolferry restore run photos --to tank/photos" in judged.hint
    assert (
        judged.source is {"gone": SourceState.GONE, "anew": SourceState.ANEW, "restoring": SourceState.RESTORING}[lost]
    )


def test_a_dataset_that_was_made_anew_may_begin_anew_on_request() -> None:
    world, remembered = copied("a")
    made_anew(world, pool=False)
    world.source.snapshot(ROOT, "new")
    found = decided(world, remembered)
    assert isinstance(found, Refusal), found
    assert found.why == "tank/photos was made anew since the last run, and is not what was copied"
    assert ("poolferry run" in found.hint, found.guard) == (False, None), (
        "nobody is led to set the only good copy aside"
    )
    assert isinstance(plan(world.job, world.survey(), replace(requested("aside"), remembered=remembered)), Plan)


def test_a_source_of_another_name_is_not_sent_anew_without_a_word() -> None:
    """A pool came back under another name, and the job names it: its copy is called after the former one."""
    world, remembered = copied("a", "b")
    known = parse_identity(remembered[SOURCE_IDENTITY])
    assert known is not None
    world.target.destroy(COPY)
    other = {SOURCE_IDENTITY: str(replace(known, root="tank"))}
    found = decided(world, other)
    assert isinstance(found, Refusal), found
    assert (
        found.why == "the job copied tank and names tank/photos now: its copy would begin anew as vault/copies/photos"
    )
    assert found.evidence == ("its last good run copied to vault/copies/tank",)
    assert found.hint.startswith('where it is the same data under another name: write name = "tank" into [zfs] of ')
    assert isinstance(decided(world, other, "aside"), ActionPlan)
    named = replace(world.job, options=replace(options_of(world.job), name="tank"))
    assert isinstance(decide_actions(named, world.survey(), replace(requested(), remembered=other)), ActionPlan)
    same = {SOURCE_IDENTITY: str(replace(known, root="lake/photos"))}
    assert isinstance(decided(world, same), ActionPlan), "the copy keeps its place, and began only now"


def test_a_source_that_is_gone_may_be_lost() -> None:
    world, remembered = copied("a")
    world.source.destroy(ROOT)
    found = decided(world, remembered)
    assert isinstance(found, Refusal), found
    assert "if it is lost, restore it first: poolferry restore run photos --to tank/photos;" in found.hint
    assert found.source is SourceState.GONE


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


def test_a_kit_identifies_a_source_that_no_run_remembered() -> None:
    world, remembered = copied("a")
    known = parse_identity(remembered[SOURCE_IDENTITY])
    assert known is not None
    kit = {"source": ROOT, "datasets": {ROOT: {"guid": {"value": str(known.dataset)}}}}
    told = {SOURCE_IDENTITY: ENGINE.identity_of_kit(json.dumps(kit))}
    assert told == {SOURCE_IDENTITY: f"{known.dataset} 0 {ROOT}"}
    made_anew(world, pool=True)
    found = decided(world, told)
    assert isinstance(found, Refusal)
    assert (found.why, found.guard) == (f"{ROOT} was made anew since the last run, and is not what was copied", None)
    assert not any("pool" in line for line in found.evidence), "a kit does not know the pool's guid"
    assert ENGINE.identity_of_kit(json.dumps(kit | {"source": "tank/other"})) == ""


def test_an_empty_source_whose_copy_holds_something_is_not_to_be_snapshotted() -> None:
    world, _ = copied("a", "b")
    made_anew(world, pool=True)
    found = decided(world, {})
    assert isinstance(found, Refusal)
    assert found.why == f"there is no snapshot of {ROOT}, and its copy {COPY} holds 2 snapshots"
    assert found.hint.startswith(
        "if it is new and empty: restore it first: poolferry restore run photos --to tank/photos --aside"
    )


def test_a_target_that_holds_what_a_restored_older_copy_did_not_says_so() -> None:
    """Another disk is newer than the one that the restore came from: what it has more may be the only copy."""
    world, _ = copied("a", "b", "c")
    for guid in [one.guid for one in world.source.node(ROOT).snapshots][1:]:
        world.source.destroy_snapshot(ROOT, guid)
        world.source.nodes[ROOT] = replace(world.source.node(ROOT), bookmarks=())
    world.source.snapshot(ROOT, "new")
    world.job = replace(world.job, options=replace(options_of(world.job), may_destroy=("rollback",)))
    restored = "on 2026-03-01 12:00 UTC from poolferry-red/photos/photos"
    facts = {LAST_RESTORE: restored}
    found = decided(world, facts)
    assert isinstance(found, Refusal), "consent to lose what the target has more was not given for this"
    assert found.why == f"{COPY} holds 2 snapshots that the source lost: it was restored {restored}"
    assert "zfs rollback" not in found.hint
    assert "autosnap" not in str(found)
    assert isinstance(decided(world, facts | {seen_restore_key("vault"): restored}), ActionPlan), "a run there since"
    assert isinstance(decided(world, {}), ActionPlan)


def test_a_state_that_lasts_keeps_its_first_instant() -> None:
    first = SourceStateRecord(state=SourceState.ANEW, since=NOW, why="one", hint="x")
    later = replace(first, since=NOW + timedelta(days=1), why="two")
    kept = next_source_state(str(first), later)
    assert (kept.since, kept.why) == (NOW, "two")
    assert parse_source_state(str(kept)) == kept
    restored = replace(later, state=SourceState.RESTORED)
    assert next_source_state(str(first), restored) == restored
    assert [parse_source_state(text) for text in ("", "x", "[1]", '["x", "y", "z", "a"]', "7")] == [None] * 5
    assert [
        parse_source_state(f'["anew", "{since}", "", ""]') for since in ("2026-11-25", "9999-01-01T00:00+00:00")
    ] == [None] * 2


@pytest.mark.parametrize(
    "kit", ["", "{", "[]", '{"source": 5}', '{"source": "tank/photos", "datasets": []}', '{"source": "tank/photos"}']
)
def test_a_kit_that_says_nothing_of_its_source_identifies_none(kit: str) -> None:
    assert identity_of_kit(kit) is None


def test_a_kit_identifies_its_source() -> None:
    kit = json.dumps({"source": ROOT, "datasets": {ROOT: {"guid": {"value": "77"}}}})
    found = identity_of_kit(kit)
    assert found is not None
    assert (found.dataset, found.root) == (77, ROOT)


@pytest.mark.parametrize("name", ["c", "autosnap_c"])
def test_what_a_rollback_of_the_source_lost_is_not_called_the_copys_own(name: str) -> None:
    """Runs brought it, as history knows; seen: it was called the target's own, or the work of a sanoid there, and rolled back by the hint."""
    world, _ = copied("a", "b", name)
    for guid in [one.guid for one in world.source.node(ROOT).snapshots][2:]:
        world.source.destroy_snapshot(ROOT, guid)
    world.source.nodes[ROOT] = replace(world.source.node(ROOT), bookmarks=())

    def decide(*brought: str) -> ActionPlan | Refusal:
        return decide_actions(world.job, world.survey(), replace(requested(), brought=lambda: frozenset(brought)))

    waits = decide("b", name)
    assert isinstance(waits, ActionPlan), "nothing is to be sent"
    assert waits.warnings == (
        f"{COPY} has 1 snapshot that the source lost since @b: the next send there will be refused",
    )
    world.source.snapshot(ROOT, "d")
    found = decide("b", name)
    assert isinstance(found, Refusal)
    assert found.why == f"{COPY} holds 1 snapshot that the source lost since @b: it, or its pool, was rolled back"
    assert not any("sanoid" in line for line in (*found.evidence, found.hint))
    assert found.hint == (
        "it may be the only copy of what was done after @b: look at it (poolferry try photos), and bring back what is missing "
        "(poolferry restore run photos --path PATH --to FOLDER); then, to keep it and to begin again beside it: poolferry run photos --aside; "
        f'or, to lose it: may-destroy = ["rollback"] in [zfs], or zfs rollback -r {COPY}@b'
    )
    other = decide("b")
    assert isinstance(other, Refusal)
    assert other.why == f"{COPY} has 1 snapshot of its own since @b, the newest that both sides hold"
    assert ("sanoid" in other.hint) is name.startswith("autosnap")
