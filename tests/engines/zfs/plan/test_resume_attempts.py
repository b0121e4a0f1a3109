"""A receive that comes no byte further: gone on with for some runs, begun anew once, then left to a person; never for ever."""

from dataclasses import replace

import pytest

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    FullSend,
    IncrementalSend,
    ResumedSend,
    Send,
)
from orchestrator.engines.zfs.plan import steps
from orchestrator.engines.zfs.plan.resume import (
    MOST_RUNS,
    ResumeAttempts,
    attempts_key,
    next_attempt,
    parse_attempts,
)
from tests.engines.zfs.model_run import Cut, Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


def first() -> Ferry:
    return ferry("a", "b")


def later() -> Ferry:
    world = ferry("a")
    world.run()
    world.source.snapshot(ROOT, "b")
    return world


def stuck_run(world: Ferry, *allowed: str, more: int = 0) -> list[type]:
    """A run whose sends break off: a new one after two bytes, one that goes on after `more`. What it did."""
    done: list[type] = []

    def mishap(action: Action) -> int | None:
        done.append(type(action))
        return (more if isinstance(action, ResumedSend) else 2) if isinstance(action, Send) else None

    with pytest.raises(Cut):
        world.run(requested(*allowed), mishap=mishap)
    return [kind for kind in done if kind in (AbortReceive, FullSend, IncrementalSend, ResumedSend)]


@pytest.mark.parametrize(("begin", "kind"), [(first, FullSend), (later, IncrementalSend)])
def test_it_is_gone_on_with_then_begun_anew_once_then_refused(begin: type, kind: type) -> None:
    world: Ferry = begin()
    assert stuck_run(world) == [kind]
    assert [stuck_run(world) for _ in range(MOST_RUNS)] == [[ResumedSend]] * MOST_RUNS
    abort = next(action for stage in decided(world).stages for action in stage if isinstance(action, AbortReceive))
    assert abort.why == f"{MOST_RUNS} runs in a row continued from it and received no byte more"
    assert stuck_run(world) == [AbortReceive, kind]
    assert [stuck_run(world) for _ in range(MOST_RUNS)] == [[ResumedSend]] * MOST_RUNS
    refusal = world.run()
    assert isinstance(refusal, Refusal)
    assert refusal.why.endswith(f"to {COPY} does not get any further")
    assert "--allow abort" in refusal.hint
    assert world.run() == refusal
    assert stuck_run(world, "abort") == [AbortReceive, kind]
    world.run()
    assert world.newest_is_there()


def decided(world: Ferry) -> ActionPlan:
    found = world.decide()
    assert isinstance(found, ActionPlan), found
    return found


def test_one_byte_more_begins_the_count_anew() -> None:
    world = first()
    stuck_run(world)
    for _ in range(MOST_RUNS - 1):
        stuck_run(world)
    assert stuck_run(world, more=1) == [ResumedSend]
    assert [stuck_run(world) for _ in range(MOST_RUNS)] == [[ResumedSend]] * MOST_RUNS
    assert stuck_run(world) == [AbortReceive, FullSend]


def test_another_snapshot_may_be_begun_anew_too() -> None:
    world = first()
    for _ in range(MOST_RUNS + 2):
        stuck_run(world)
    world.run()
    assert world.newest_is_there()
    world.source.snapshot(ROOT, "c")
    assert [stuck_run(world) for _ in range(MOST_RUNS + 1)] == [[IncrementalSend], *[[ResumedSend]] * MOST_RUNS]
    assert stuck_run(world) == [AbortReceive, IncrementalSend]


def test_one_that_is_stuck_does_not_stop_the_others() -> None:
    world = first()
    world.source.create(f"{ROOT}/x")
    world.source.snapshot(f"{ROOT}/x", "a")
    world.run()
    world.source.snapshot(f"{ROOT}/x", "b")
    for _ in range(2 * MOST_RUNS + 2):
        stuck_run(world)
    world.source.snapshot(ROOT, "c")
    found = world.run()
    assert isinstance(found, ActionPlan)
    (refusal,) = found.refusals
    assert refusal.why.endswith(f"to {COPY}/x does not get any further")
    assert world.newest_is_there()


def test_what_is_remembered_is_no_token_and_is_read_again() -> None:
    world = first()
    stuck_run(world)
    (action,) = (action for stage in decided(world).stages for action in stage if isinstance(action, ResumedSend))
    assert action.token.text not in action.vain
    once = parse_attempts(action.vain)
    assert once is not None
    assert once == ResumeAttempts(mark=once.mark, runs=1)
    assert next_attempt(once, action.token) == replace(once, runs=2)
    assert next_attempt(once, replace(action.token, text="other")).runs == 1
    for nonsense in ("", "1", "x 1 2", "0badcafe 1", "0badcafe -1 2"):
        assert parse_attempts(nonsense) is None
    assert parse_attempts(str(ResumeAttempts(anew=7))) == ResumeAttempts(anew=7)


def test_the_steps_carry_what_is_to_be_remembered() -> None:
    world = first()
    stuck_run(world)
    found = decided(world)
    built = [step for stage in steps.build_steps(world.job, world.survey(), found, requested()) for step in stage]
    (vain,) = (step.vain for step in built if step.vain)
    assert vain[0] == attempts_key("")
    assert not any(step.remembers for step in built)
    for _ in range(MOST_RUNS):
        stuck_run(world)
    built = [
        step for stage in steps.build_steps(world.job, world.survey(), decided(world), requested()) for step in stage
    ]
    (told,) = (step.remembers for step in built if step.remembers)
    assert told == (attempts_key(""), str(ResumeAttempts(anew=world.source.nodes[ROOT].snapshots[0].guid)))
