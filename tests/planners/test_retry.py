"""Retrying: each class of failure, the waits, and that no loop is endless."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import (
    BaseGone,
    DeclarationError,
    EntriesRefused,
    Evidence,
    HostUnreachable,
    LookAgain,
    NamesExhausted,
    NotNow,
    OrchestratorError,
    OutsideError,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    TokenStale,
    Unexplained,
    VerificationFailed,
)
from orchestrator.domain.job import RetryRules
from orchestrator.domain.units import Seconds
from orchestrator.planners.retry import AT_ONCE, CAP, GiveUp, RetryAfter, decide_retry, failure_key

RULES = RetryRules(attempts=4, wait=Seconds(30), wait_at_most=Seconds(100))


def outside(kind: type[OutsideError]) -> OutsideError:
    return kind("it broke", evidence=Evidence(lines=(), exits=(), last_output=()))


def decide(error: OrchestratorError, **changed: Any) -> RetryAfter | GiveUp:
    told: dict[str, Any] = {
        "attempt": 1, "fruitless": 1, "rules": RULES, "jitter": 0.0, "repeats": 0, "least": Seconds(0),
    }  # fmt: skip
    return decide_retry(error, **(told | changed))


def waits(error: OrchestratorError, **changed: Any) -> float:
    decision = decide(error, **changed)
    assert isinstance(decision, RetryAfter)
    return decision.wait


@pytest.mark.parametrize(
    "error",
    [DeclarationError(()), NotNow("busy"), Stopped("stop"), outside(TargetFull), VerificationFailed("gone")],
    ids=lambda error: type(error).__name__,
)
def test_what_trying_cannot_help_ends_the_run(error: OrchestratorError) -> None:
    assert isinstance(decide(error), GiveUp)


@pytest.mark.parametrize("kind", [HostUnreachable, Stalled, StreamBroken])
def test_a_broken_transfer_is_tried_again_later_and_later(kind: type[OutsideError]) -> None:
    assert [waits(outside(kind), attempt=number, fruitless=number) for number in (1, 2, 3)] == [30, 60, 100]
    assert decide(outside(kind), attempt=4, fruitless=4) == GiveUp(
        why="4 attempts, the last 4 without progress (attempts = 4)"
    )


def test_progress_starts_the_waits_anew_and_is_not_counted() -> None:
    assert decide(outside(StreamBroken), attempt=50, fruitless=0) == RetryAfter(
        wait=Seconds(30), why="it got further: again in 30 s"
    )
    assert decide(outside(StreamBroken), attempt=50, fruitless=1) == RetryAfter(
        wait=Seconds(30), why="attempt 2 of 4: again in 30 s"
    )


def test_one_attempt_means_one_attempt() -> None:
    rules = RetryRules(attempts=1)
    assert isinstance(decide(outside(StreamBroken), rules=rules, fruitless=0), GiveUp)
    assert isinstance(decide(outside(BaseGone), rules=rules, fruitless=0), GiveUp)


@pytest.mark.parametrize("cleared", [LookAgain("ended a receive"), outside(TokenStale), outside(NamesExhausted)])
def test_who_only_cleared_the_way_looks_again_at_once_and_not_for_ever(cleared: OrchestratorError) -> None:
    rules = RetryRules(attempts=1)
    assert [waits(cleared, rules=rules, fruitless=number) for number in (1, 2, AT_ONCE)] == [0, 0, 0]
    assert isinstance(decide(cleared, rules=rules, fruitless=AT_ONCE + 1), GiveUp)


def test_what_is_left_on_the_other_side_gets_the_time_to_end() -> None:
    assert waits(outside(Stalled), least=Seconds(300)) == 300
    assert waits(outside(Stalled), least=Seconds(10)) == 30
    assert waits(outside(BaseGone), least=Seconds(300)) == 0


def test_jitter_takes_up_to_half_off() -> None:
    assert [waits(outside(Stalled), jitter=jitter) for jitter in (0.0, 0.5, 1.0)] == [30, 22.5, 15]
    assert waits(outside(Unexplained), jitter=1.0) == 15


@pytest.mark.parametrize("kind", [BaseGone, TokenStale])
def test_a_changed_world_is_looked_at_at_once_three_times(kind: type[OutsideError]) -> None:
    rules = RetryRules(attempts=9)
    assert [waits(outside(kind), rules=rules, attempt=n, fruitless=n) for n in range(1, AT_ONCE + 1)] == [0, 0, 0]
    assert isinstance(decide(outside(kind), rules=rules, attempt=4, fruitless=4), GiveUp)


def test_an_unknown_failure_is_tried_once_more() -> None:
    assert waits(outside(Unexplained)) == 30
    assert isinstance(decide(outside(Unexplained), attempt=2, fruitless=2, repeats=1), GiveUp)


@given(
    st.sampled_from([HostUnreachable, Stalled, StreamBroken, BaseGone, TokenStale, Unexplained]),
    st.lists(st.booleans(), min_size=CAP, max_size=CAP),
    st.integers(1, 10**9),
    st.floats(0, 1),
)
def test_no_failure_is_tried_for_ever(
    kind: type[OutsideError], progress: list[bool], attempts: int, jitter: float
) -> None:
    rules, fruitless = RetryRules(attempts=attempts, wait=Seconds(30), wait_at_most=Seconds(900)), 0
    for attempt, progressed in enumerate(progress, start=1):
        fruitless = 0 if progressed else fruitless + 1
        decision = decide(outside(kind), attempt=attempt, fruitless=fruitless, rules=rules, jitter=jitter)
        if isinstance(decision, GiveUp):
            return
        assert 0 <= decision.wait <= 900
    raise AssertionError(decision)


@pytest.mark.parametrize("kind", [BaseGone, TokenStale])
def test_the_same_command_that_fails_again_and_again_is_not_repeated_for_ever_though_bytes_move(
    kind: type[OutsideError],
) -> None:
    assert [waits(outside(kind), attempt=1 + each, fruitless=0, repeats=each) for each in range(AT_ONCE)] == [0, 2, 4]
    hasty = RetryRules(attempts=5, wait=Seconds(1), wait_at_most=Seconds(1))
    assert waits(outside(kind), attempt=3, fruitless=0, repeats=AT_ONCE - 1, rules=hasty) == 1
    assert isinstance(decide(outside(kind), attempt=4, fruitless=0, repeats=AT_ONCE), GiveUp)
    assert waits(LookAgain("removed"), attempt=4, fruitless=0, repeats=0) == 0


def test_failures_are_the_same_by_their_command_where_something_may_have_changed() -> None:
    one, other = (
        BaseGone("gone", evidence=Evidence(lines=(line,), exits=(1,), last_output=(str(at),)))
        for at, line in enumerate("ab")
    )
    assert failure_key(one) != failure_key(other)
    again = BaseGone("gone", evidence=Evidence(lines=("a",), exits=(1,), last_output=("otherwise",)))
    assert failure_key(one) == failure_key(again)
    assert failure_key(outside(Unexplained)) == "it broke"
    assert failure_key(NotNow("busy")) == "busy"


def test_entries_that_were_refused_are_left_out_at_once_and_said_so() -> None:
    error = EntriesRefused("these", evidence=Evidence(lines=(), exits=(), last_output=()), entries={b"a": "why"})
    assert decide(error) == RetryAfter(wait=Seconds(0), why="without them")
