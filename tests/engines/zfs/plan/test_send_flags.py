"""Raw or not, readable or sealed, and what never changes within a chain."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import (
    ActionPlan,
    CreatePlaceholder,
    FullSend,
    IncrementalSend,
    ReceiveEncryption,
    ResumedSend,
    Send,
    SendFlags,
)
from orchestrator.engines.zfs.plan.plan import decide_actions
from tests.engines.zfs.model_run import Cut, Ferry, encrypt, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"
NOT_RAW = SendFlags(embedded=False)


def secret(*, loaded: bool = True, sealed: bool = False, **options: Any) -> Ferry:
    world = ferry("a", **options)
    encrypt(world.source, ROOT, loaded=loaded)
    if sealed:
        encrypt(world.target, "vault/copies")
    return world


def flags(decided: ActionPlan | Refusal) -> SendFlags:
    assert isinstance(decided, ActionPlan), decided
    (found,) = {action.flags for action in _sends(decided) if isinstance(action, FullSend | IncrementalSend)}
    return found


def _sends(decided: ActionPlan) -> list[Send]:
    return [action for stage in decided.stages for action in stage if isinstance(action, Send)]


def refused(world: Ferry) -> Refusal:
    decided = world.decide()
    assert isinstance(decided, Refusal), decided
    return decided


def changed(world: Ferry, **options: Any) -> Ferry:
    world.job = replace(world.job, options=replace(world.job.options, **options))  # type: ignore[type-var]
    world.source.snapshot(ROOT, "b")
    return world


def begun(world: Ferry) -> Ferry:
    world.run()
    world.source.snapshot(ROOT, "b")
    return world


def test_plain_data_is_never_raw() -> None:
    for raw in ("auto", "yes", "no"):
        assert flags(ferry("a", raw=raw).decide()) == SendFlags()


@pytest.mark.parametrize("raw", ["auto", "yes"])
def test_encrypted_data_goes_as_it_lies_without_its_key(raw: str) -> None:
    assert flags(secret(loaded=False, raw=raw).decide()) == SendFlags(raw=True)


def test_readable_copies_need_consent() -> None:
    refusal = refused(secret(raw="no"))
    assert refusal.why == f"{ROOT} is encrypted, and its copy {COPY} would be stored readable"
    assert 'raw = "no" and may-decrypt = true' in refusal.hint
    assert flags(secret(raw="no", may_decrypt=True).decide()) == NOT_RAW


def test_a_target_that_encrypts_needs_no_consent_and_no_embedded_blocks() -> None:
    decided = secret(raw="no", sealed=True).decide()
    assert flags(decided) == NOT_RAW
    assert isinstance(decided, ActionPlan)
    assert [send.encryption for send in _sends(decided) if isinstance(send, FullSend)] == [ReceiveEncryption.AS_ABOVE]


def test_what_is_not_raw_needs_the_key() -> None:
    refusal = refused(secret(raw="no", may_decrypt=True, loaded=False))
    assert refusal.why == f"the key of {ROOT} is not loaded, so it cannot be read to be sent"
    assert refusal.hint.startswith(f"zfs load-key {ROOT};")


def test_a_locked_target_takes_only_raw_streams() -> None:
    world = ferry("a")
    encrypt(world.target, "vault/copies")
    begun(world)
    assert flags(world.decide()) == NOT_RAW
    encrypt(world.target, COPY, loaded=False)
    refusal = refused(world)
    assert (
        refusal.why
        == f"the key of {COPY} is not loaded on the target, so nothing can be received there but raw streams"
    )
    assert refusal.hint == "zfs load-key vault/copies; then run the job again"


@pytest.mark.parametrize(("before", "after"), [("auto", "no"), ("no", "yes")])
def test_a_chain_never_changes_from_raw_or_to_raw(before: str, after: str) -> None:
    world = secret(raw=before, may_decrypt=before == "no")
    world.run()
    refusal = refused(changed(world, raw=after, may_decrypt=False))
    was, then = ("raw", "not raw") if before == "auto" else ("not raw", "raw")
    assert refusal.why == f"{COPY} was received {was}, and what follows cannot be {then}"
    assert refusal.guard == "aside"
    assert 'write raw = "auto"' in refusal.hint


def test_auto_goes_on_as_the_chain_began_with_consent_alone() -> None:
    world = secret(raw="no", may_decrypt=True)
    world.run()
    refusal = refused(changed(world, raw="auto", may_decrypt=False))
    assert "would be stored readable" in refusal.why
    assert refusal.evidence == ("the copy's flags: Lc",)
    assert "--aside" in refusal.hint
    anew = world.decide(requested("aside"))
    assert isinstance(anew, ActionPlan)
    assert flags(anew) == SendFlags(raw=True)
    world.job = replace(world.job, options=replace(world.job.options, raw="auto", may_decrypt=True))  # type: ignore[type-var]
    assert flags(world.decide()) == NOT_RAW


@pytest.mark.parametrize("raw", [True, False])
def test_a_chain_that_others_began_goes_on_as_it_is(*, raw: bool) -> None:
    world = secret(raw="auto" if raw else "no", sealed=True)
    begun(world)
    seen = world.survey()
    there = replace(seen.target.datasets[""], flags=None)
    decided = decide_actions(world.job, replace(seen, target=replace(seen.target, datasets={"": there})), requested())
    assert flags(decided) == (SendFlags(raw=True) if raw else NOT_RAW)


def test_a_plain_chain_that_others_began_keeps_its_letters() -> None:
    world = begun(ferry("a"))
    seen = world.survey()
    for told, used in (
        (None, SendFlags()),
        (SendFlags(large=False, embedded=False), SendFlags(large=False, embedded=False)),
    ):
        there = replace(seen.target.datasets[""], flags=told)
        decided = decide_actions(
            world.job, replace(seen, target=replace(seen.target, datasets={"": there})), requested()
        )
        assert flags(decided) == used


def test_plain_data_below_a_raw_copy_and_places_there_are_not_encrypted() -> None:
    world = secret()
    world.source.create(f"{ROOT}/plain", encrypted=False)
    world.source.snapshot(f"{ROOT}/plain", "p1")
    world.source.create(f"{ROOT}/empty")
    world.source.create(f"{ROOT}/empty/secret")
    world.source.snapshot(f"{ROOT}/empty/secret", "s1")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    said = {
        action.dataset: action.encryption
        for stage in decided.stages
        for action in stage
        if isinstance(action, FullSend | CreatePlaceholder)
    }
    assert said == {"": None, "plain": ReceiveEncryption.OFF, "empty": ReceiveEncryption.OFF, "empty/secret": None}
    assert world.newest_is_there("empty/secret")
    world.source.create(f"{ROOT}/later", encrypted=False)
    world.source.snapshot(f"{ROOT}/later", "l1")
    world.run()
    assert not world.target.nodes[f"{COPY}/later"].encrypted


def test_a_clone_is_sent_as_its_origin_was() -> None:
    world = secret(raw="no", may_decrypt=True)
    world.run()
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    world.job = replace(world.job, options=replace(world.job.options, raw="auto"))  # type: ignore[type-var]
    assert flags(world.decide()) == NOT_RAW
    world.job = replace(world.job, options=replace(world.job.options, raw="yes"))  # type: ignore[type-var]
    assert "what follows cannot be raw" in refused(world).why
    world.job = replace(world.job, options=replace(world.job.options, raw="auto", may_decrypt=False))  # type: ignore[type-var]
    assert "would be stored readable" in refused(world).why


def test_a_cut_clone_goes_on_as_its_origin_was() -> None:
    world = secret(raw="no", may_decrypt=True)
    world.run()
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    world.job = replace(world.job, options=replace(world.job.options, raw="auto"))  # type: ignore[type-var]
    with pytest.raises(Cut):
        world.run(mishap=lambda action: 2 if isinstance(action, IncrementalSend) else None)
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert [type(send) for send in _sends(decided)] == [ResumedSend]
    assert world.newest_is_there("k")


def test_an_encrypted_source_needs_the_targets_key_too_where_it_is_not_raw() -> None:
    world = begun(secret(raw="no", sealed=True))
    encrypt(world.target, COPY, loaded=False)
    assert refused(world).why.startswith(f"the key of {COPY} is not loaded on the target")


def test_a_first_copy_that_would_be_readable_is_refused_without_consent() -> None:
    world = secret(raw="no")
    refusal = world.run()
    assert isinstance(refusal, Refusal)
    assert "readable" in f"{refusal.why} {refusal.hint}"
    assert COPY not in world.target.nodes
