"""Copies that another program made and left open, and copies that are gone: said, and taken over with consent."""

from dataclasses import replace

import pytest

from orchestrator.engines.zfs.model import ActionPlan, SendFlags, TakeOverCopy
from orchestrator.engines.zfs.plan.steps import build_steps
from tests.engines.zfs.model_run import Ferry, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"
OPEN = ("readonly=off", "canmount=on")


def theirs(**options: object) -> Ferry:
    """A copy that another program made, with all snapshots of the source."""
    world = ferry("a", **options)
    world.run()
    world.target.nodes[COPY] = replace(world.target.nodes[COPY], flags=None, exposed=OPEN)
    return world


def planned(decided: object) -> ActionPlan:
    assert isinstance(decided, ActionPlan)
    return decided


def test_it_is_told_with_the_command_that_ends_it() -> None:
    world = theirs()
    (warning,) = planned(world.run()).warnings
    assert warning.startswith(f"{COPY}: made by another program, and left with readonly=off, canmount=on;")
    assert "poolferry run photos --allow take-over" in warning
    decided = planned(world.run(requested("take-over")))
    assert decided.warnings == ()
    assert any(isinstance(action, TakeOverCopy) for stage in decided.stages for action in stage)
    assert (planned(world.run()).warnings, planned(world.decide()).stages) == ((), ())


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_an_answer_in_the_job_ends_the_question(answer: str) -> None:
    world = theirs(take_over=answer)
    world.source.snapshot(ROOT, "b")
    decided = planned(world.run())
    assert decided.warnings == ()
    assert world.newest_is_there()
    assert (world.target.nodes[COPY].exposed == ()) is (answer == "yes")


def test_the_command_gives_it_what_our_copies_have() -> None:
    world = theirs(take_over="yes")
    seen = world.survey()
    made = build_steps(world.job, seen, planned(world.decide()), requested())
    lines = [str(step.work) for stage in made for step in stage]
    assert f"zfs set readonly=on canmount=noauto poolferry:flags={SendFlags()} {COPY}" in lines


def test_a_copy_that_is_gone_is_told_when_it_is_sent_again() -> None:
    world = ferry("a")
    assert planned(world.run()).warnings == ()
    world.target.destroy(COPY)
    (warning,) = planned(world.run()).warnings
    assert warning.startswith(f"{COPY} is gone from the target: it held {ROOT} up to guid ")
    assert world.newest_is_there()


def test_a_first_send_that_never_ended_was_no_copy() -> None:
    world = ferry("a")
    with pytest.raises(Exception, match="in "):
        world.run(mishap=lambda action: 1 if hasattr(action, "snapshot") else None)
    world.target.destroy(COPY)
    assert planned(world.run()).warnings == ()
