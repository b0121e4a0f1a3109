"""Test what becomes of a receive that was cut: each way a token can be stale, foreign or good, with the reason that is told."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    EndReceive,
    FullSend,
    IncrementalSend,
    ResumedSend,
    ResumeToken,
    Send,
    ZfsSurvey,
)
from orchestrator.engines.zfs.plan.hold_names import parse_cursor_bookmark
from orchestrator.engines.zfs.plan.plan import decide_actions
from tests.engines.zfs.model_run import Cut, Ferry, encrypt, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def cut_first(*snapshots: str, **options: Any) -> Ferry:
    """The first send was cut after two bytes of four."""
    return cut(ferry(*(snapshots or ("a", "b", "c")), **options), FullSend)


def cut_increment(**options: Any) -> Ferry:
    """@a arrived, @b was cut after two bytes of four, @c was to follow."""
    world = ferry("a", **options)
    world.run()
    world.source.snapshot(ROOT, "b")
    world.source.snapshot(ROOT, "c")
    return cut(world, IncrementalSend)


def cut(world: Ferry, kind: type) -> Ferry:
    with pytest.raises(Cut):
        world.run(mishap=lambda action: 2 if isinstance(action, kind) else None)
    return world


def deeds(decided: ActionPlan | Refusal) -> list[Action]:
    assert isinstance(decided, ActionPlan), decided
    kinds = Send | AbortReceive | EndReceive
    return [action for stage in decided.stages for action in stage if isinstance(action, kinds)]


def aborted(world: Ferry, seen: ZfsSurvey | None = None) -> str:
    """Return why the plan throws the cut receive away, before it sends anew."""
    first, *rest = deeds(decide_actions(world.job, seen or world.survey(), requested()))
    assert isinstance(first, AbortReceive), first
    assert all(isinstance(action, FullSend | IncrementalSend) for action in rest)
    return first.why


def refused(world: Ferry, seen: ZfsSurvey | None = None) -> Refusal:
    decided = decide_actions(world.job, seen or world.survey(), requested())
    assert isinstance(decided, Refusal), decided
    return decided


def with_token(world: Ferry, **changes: Any) -> ZfsSurvey:
    """The same look, with a token that says something else."""
    seen = world.survey()
    ((text, token),) = seen.tokens.items()
    assert isinstance(token, ResumeToken)
    return replace(seen, tokens={text: replace(token, **changes)})


def guid(world: Ferry, name: str) -> int:
    return next(one.guid for one in world.source.nodes[ROOT].snapshots if one.name == name)


@pytest.mark.parametrize("make", [cut_first, cut_increment])
def test_a_good_token_goes_on_and_the_rest_follows_in_the_same_run(make: Callable[[], Ferry]) -> None:
    world = make()
    decided = world.decide()
    resumed, *rest = deeds(decided)
    assert isinstance(resumed, ResumedSend)
    assert resumed.first is (make is cut_first)
    assert (
        resumed.why == f"a send of {resumed.snapshot.mark} (guid {resumed.snapshot.guid}) was cut; 2 B of it are there"
    )
    assert [(action.base.name, action.snapshot.name) for action in rest if isinstance(action, IncrementalSend)] == [
        (resumed.snapshot.name, "c")
    ]
    assert "the token covers" in rest[0].why  # type: ignore[union-attr]
    assert isinstance(decided, ActionPlan)
    assert decided.resumes == f"a cut send of {resumed.snapshot.mark} to {COPY}, 2 B there"
    moved = world.moved
    world.run()
    assert world.newest_is_there()
    assert world.moved - moved == 2 + 4 * (2 if make is cut_first else 1)


def test_the_snapshot_of_a_token_is_held_and_its_cursor_is_made() -> None:
    world = cut_increment()
    keep = world.decide()
    assert isinstance(keep, ActionPlan)
    (kept,) = keep.stages[0]
    assert [one.name for _, one in kept.holds] == ["b"]  # type: ignore[union-attr]
    assert [one.name for _, one in kept.cursors] == ["b"]  # type: ignore[union-attr]
    world.run()
    assert not world.source.holds
    assert [one.guid for one in world.source.nodes[ROOT].bookmarks if parse_cursor_bookmark(one.name)] == [
        guid(world, "c")
    ]


def test_a_hold_that_is_there_is_not_made_again() -> None:
    world = cut_first()
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    assert all(not getattr(action, "holds", ()) for action in decided.stages[0])
    world.run()
    assert not world.source.holds


def test_several_resumed_sends_are_counted() -> None:
    world = ferry("a")
    for name in ("x", "y"):
        world.source.create(f"{ROOT}/{name}")
        world.source.snapshot(f"{ROOT}/{name}", "a")
    decided = world.decide()
    assert isinstance(decided, ActionPlan)
    world.do(next(action for stage in decided.stages for action in stage if isinstance(action, FullSend)))
    for action in (
        action for stage in decided.stages for action in stage if isinstance(action, FullSend) and action.dataset
    ):
        with pytest.raises(Cut):
            world.do(action, 1)
    again = world.decide()
    assert isinstance(again, ActionPlan)
    assert again.resumes == f"a cut send of @a to {COPY}/x, 1 B there, and 1 more"


def test_renamed_snapshots_resume() -> None:
    world = cut_increment()
    world.source.rename_snapshot(ROOT, guid(world, "a"), "old")
    world.source.rename_snapshot(ROOT, guid(world, "b"), "new")
    assert isinstance(deeds(world.decide())[0], ResumedSend)
    world.run()
    assert world.newest_is_there()


def test_a_base_that_is_only_a_bookmark_by_now_resumes() -> None:
    world = cut_increment()
    world.source.destroy_snapshot(ROOT, guid(world, "a"))
    assert isinstance(deeds(world.decide())[0], ResumedSend)
    world.run()
    assert world.newest_is_there()


def test_the_dataset_may_have_another_name_by_now() -> None:
    world = cut_increment()
    world.source.rename(ROOT, "tank/pictures")
    world.root = "tank/pictures"
    world.job = replace(world.job, source=replace(world.job.source, path="tank/pictures"))
    assert isinstance(deeds(world.decide())[0], ResumedSend)
    world.run()
    assert world.newest_is_there()


def test_a_snapshot_that_is_gone_or_was_made_anew_is_told() -> None:
    world = cut_increment()
    old = guid(world, "b")
    world.source.holds.clear()
    world.source.destroy_snapshot(ROOT, old)
    world.source.snapshot(ROOT, "b")
    assert aborted(world) == f"{ROOT}@b (guid {old}), which a cut send was about, is gone from the source"
    world.run()
    assert world.newest_is_there()


def test_a_snapshot_that_went_to_a_clone_is_told() -> None:
    world = cut_increment()
    world.source.clone(ROOT, guid(world, "b"), f"{ROOT}/c")
    world.source.promote(f"{ROOT}/c")
    seen = world.survey()
    source = dict(seen.source.datasets)
    source[""] = replace(source[""], bookmarks=source["c"].bookmarks)  # a base is still known
    decided = decide_actions(world.job, replace(seen, source=replace(seen.source, datasets=source)), requested())
    (why,) = (action.why for action in deeds(decided) if isinstance(action, AbortReceive))
    assert why.endswith(f"which a cut send was about, now belongs to {ROOT}/c")


def test_a_first_send_whose_base_is_gone_everywhere_is_told() -> None:
    world = cut_first()
    why = aborted(world, with_token(world, from_guid=4711))
    assert why.endswith("starts from snapshot 4711, of which the source holds neither snapshot nor bookmark")


@pytest.mark.parametrize(("start", "told"), [(4711, "snapshot 4711"), (None, "nothing")])
def test_a_stream_that_starts_elsewhere_is_told(start: int | None, told: str) -> None:
    world = cut_increment()
    why = aborted(world, with_token(world, from_guid=start))
    assert why.endswith(f"starts from {told}, and the target's newest is @a (guid {guid(world, 'a')})")


@pytest.mark.parametrize("renamed", [False, True])
def test_what_arrived_otherwise_is_told(*, renamed: bool) -> None:
    world = cut_increment()
    seen = with_token(world, to_guid=guid(world, "a"))
    if renamed:  # the source has lost it, and holds only a bookmark
        source = dict(seen.source.datasets)
        source[""] = replace(source[""], snapshots=source[""].snapshots[1:])
        seen = replace(seen, source=replace(seen.source, datasets=source))
    assert aborted(world, seen).endswith("is on the target whole by now")


def test_a_snapshot_that_the_filter_leaves_out_today_is_told() -> None:
    world = cut_increment()
    world.job = replace(world.job, options=replace(world.job.options, skip_snapshots=("b",)))  # type: ignore[type-var]
    assert aborted(world).endswith("is about a snapshot that [zfs] snapshots and skip-snapshots leave out today")
    world.run()
    assert [one.name for one in world.target.nodes[COPY].snapshots] == ["a", "c"]


def test_a_token_that_cannot_be_read_is_told() -> None:
    world = cut_increment()
    seen = world.survey()
    why = aborted(world, replace(seen, tokens=dict.fromkeys(seen.tokens)))
    assert why == "the resume token cannot be read: it is damaged, or of a ZFS we do not know"


def test_a_cut_without_a_token_is_told() -> None:
    world = cut_increment()
    seen = world.survey()
    bare = {"": replace(seen.target.datasets[""], token=None)}
    why = aborted(world, replace(seen, target=replace(seen.target, datasets=bare)))
    assert why == "a receive was cut there, and it left nothing that can go on"


def test_it_is_thrown_away_when_asked() -> None:
    world = cut_increment()
    first, *_ = deeds(world.decide(requested("abort")))
    assert isinstance(first, AbortReceive)
    assert first.why == "thrown away, as --allow abort asks"


def test_stale_state_goes_even_when_nothing_is_to_be_sent() -> None:
    world = cut_increment()
    world.source.holds.clear()
    for name in ("b", "c"):
        world.source.destroy_snapshot(ROOT, guid(world, name))
    assert "is gone from the source" in aborted(world)
    world.run()
    assert world.target.nodes[COPY].partial is None


def test_a_foreign_token_is_left_alone() -> None:
    world = cut_first()
    refusal = refused(world, with_token(world, to_guid=4711, to_name="other/data@x"))
    assert refusal.why == f"a cut receive of something else lies in {COPY}"
    assert refusal.evidence[0] == "its token is for other/data@x (guid 4711)"
    assert refusal.guard == "abort"
    assert "--allow abort" in refusal.hint
    world = cut_increment()
    assert refused(world, with_token(world, to_guid=4711, from_guid=4712, to_name="o/d@x")).guard == "abort"


def test_a_renamed_source_whose_snapshot_is_gone_is_no_foreigner() -> None:
    world = cut_increment()
    assert "is gone" in aborted(world, with_token(world, to_guid=4711, to_name="tank/old@b"))


@pytest.mark.parametrize(("raw", "told"), [("no", "the cut send was raw, and this chain is not raw"), ("auto", "")])
def test_another_way_of_sending_encrypted_data_cannot_go_on(raw: str, told: str) -> None:
    world = ferry("a")
    encrypt(world.source, ROOT)
    cut(world, FullSend)
    world.job = replace(world.job, options=replace(world.job.options, raw=raw, may_decrypt=raw == "no"))  # type: ignore[type-var]
    if told:
        assert aborted(world) == told
    else:
        assert aborted(world, with_token(world, flags=replace(_flags(world), raw=False))) == (
            "the cut send was not raw, and this chain is raw"
        )
        assert isinstance(deeds(world.decide())[0], ResumedSend)
    world.run()
    assert world.newest_is_there()


def test_of_plain_data_raw_or_not_is_the_same() -> None:
    world = cut_first()
    seen = with_token(world, flags=replace(_flags(world), raw=True))
    assert isinstance(deeds(decide_actions(world.job, seen, requested()))[0], ResumedSend)


def test_embedded_blocks_never_arrive_in_an_encrypted_dataset() -> None:
    world = cut_first()
    seen = world.survey()
    sealed = {"": replace(seen.target.datasets[""], encrypted=True)}
    why = aborted(world, replace(seen, target=replace(seen.target, datasets=sealed)))
    assert why == "the cut send holds embedded blocks, which an encrypted dataset cannot receive"


def _flags(world: Ferry) -> Any:
    partial = world.target.nodes[COPY].partial
    assert partial is not None
    return partial.packet.flags


def test_a_receive_that_waits_for_a_dead_link_is_ended_and_looked_at_again() -> None:
    world = cut_increment()
    world.target.receiving[COPY] = 4711
    decided = world.decide()
    (end,) = deeds(decided)
    assert isinstance(end, EndReceive)
    assert (end.pid, end.dataset) == (4711, "")
    assert isinstance(decided, ActionPlan)
    assert decided.again
    world.run()
    assert world.newest_is_there()


def test_a_receive_of_another_program_is_not_ended() -> None:
    world = cut_first()
    world.target.receiving[COPY] = 4711
    refusal = refused(world, with_token(world, to_guid=4711, to_name="other/data@x"))
    assert refusal.why == f"another program receives into {COPY}"
    assert refusal.evidence[0].startswith("process 4711;")


def test_a_receive_that_no_run_of_ours_began_is_not_ended_whatever_it_receives() -> None:
    """Another program may send the same snapshots: its data flow, and ending it would cut them."""
    world = cut_increment()
    world.target.receiving[COPY] = 4711
    world.target.strangers.add(4711)
    refusal = world.decide()
    assert isinstance(refusal, Refusal)
    assert refusal.why == f"another program receives into {COPY}"
    assert refusal.evidence == ("process 4711; no run of ours began it",)
    assert "if it waits for a sender that is gone, end it: kill 4711" in refusal.hint
    assert world.target.receiving == {COPY: 4711}


def test_a_receive_outside_the_job_is_left_alone() -> None:
    world = ferry("a")
    world.run()
    world.target.create(f"{COPY}/other")
    world.target.receiving[f"{COPY}/other"] = 4711
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert not deeds(decided)


def test_nothing_is_renamed_away_while_another_program_receives_below() -> None:
    world = ferry("a")
    world.run()
    world.source.destroy(ROOT)
    world.source.create(ROOT)
    world.source.snapshot(ROOT, "a")
    world.target.create(f"{COPY}/other")
    world.target.receiving[f"{COPY}/other"] = 4711
    decided = world.decide(requested("aside"))
    assert isinstance(decided, Refusal)
    assert decided.why == f"another program receives into {COPY}/other"


def test_what_is_received_elsewhere_hinders_no_renaming() -> None:
    world = ferry("a")
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "x1")
    world.run()
    world.target.snapshot(f"{COPY}/x", "mine")
    world.source.snapshot(f"{ROOT}/x", "x2")
    world.target.create(f"{COPY}/other")
    world.target.receiving[f"{COPY}/other"] = 4711
    assert isinstance(world.run(requested("aside")), ActionPlan)
    assert world.newest_is_there("x")
