"""Retry decision: whether a run tries again after a failed attempt, and after how long.

Why: a transfer over a bad line that makes progress each time should continue all night; one without progress should fail soon.
So attempts that moved bytes are not counted; only the last limit ends them.
"""

from typing import assert_never

from orchestrator.domain.errors import (
    EntriesRefused,
    EntryVanished,
    LookAgain,
    NamesExhausted,
    OrchestratorError,
    OutsideError,
    RetryClass,
    TokenStale,
)
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import RetryRules
from orchestrator.domain.units import Seconds, show_count, show_duration

CAP = 100
AT_ONCE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAfter:
    """Decision to survey and try again after `wait`."""

    wait: Seconds
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Decision to end the run."""

    why: str


def decide_retry(
    error: OrchestratorError,
    *,
    attempt: int,
    fruitless: int,
    rules: RetryRules,
    jitter: float,
    repeats: int,
    least: Seconds,
) -> RetryAfter | GiveUp:
    """Decide whether to try again after attempt number `attempt` of this run failed with `error`.

    `fruitless`: attempts in a row that moved nothing, this one included; 0 when this one moved bytes. `jitter`: 0 to 1,
    shortens the wait by up to half, so that many jobs do not connect at once. `repeats`: how often the same failure has already
    occurred in this run, by `failure_key`. `least`: the shortest wait after a broken transfer, so that a receiver left on the other side has
    ended by itself; it has priority over `wait-at-most`.
    Why: `attempts = 1` means one attempt, even when it moved bytes: the owner wants the next run to continue.
    """
    if error.retry in (RetryClass.NEVER, RetryClass.WHEN_IT_CHANGES, RetryClass.ASK_A_HUMAN):
        return GiveUp(why=_HOPELESS[error.retry])
    if attempt >= CAP:
        return GiveUp(
            why=f"{show_count(attempt, 'attempt')} in one run: that is enough; the next run continues from here"
        )
    # An attempt that only removed an obstacle, or went on from where the target no more was, has not tried yet.
    untried = isinstance(error, LookAgain | TokenStale | NamesExhausted | EntriesRefused | EntryVanished)
    attempts = max(rules.attempts, AT_ONCE + 1) if untried else rules.attempts
    if attempts == 1 or fruitless >= attempts:
        return GiveUp(why=f"{attempt} attempts, the last {fruitless} without progress (attempts = {rules.attempts})")
    wait = _wait(rules, fruitless=fruitless, jitter=jitter)
    match error.retry:
        case RetryClass.LATER:
            return _again(Seconds(max(wait, least)), fruitless=fruitless, attempts=rules.attempts)
        case RetryClass.NOW:
            # Also where bytes move each time: the very same command that fails again meets nothing that changed.
            if fruitless > AT_ONCE or repeats >= AT_ONCE:
                return GiveUp(why=f"looked again {AT_ONCE} times, and it is still so")
            # The second time at once was too soon: what a receive left may close only with the pool's next write, some seconds later.
            pause = Seconds(min(2**repeats, rules.wait)) if repeats else Seconds(0)
            when = f"in {show_duration(pause)}" if pause else "at once"
            if isinstance(error, EntriesRefused):
                return RetryAfter(wait=pause, why="without them")
            return RetryAfter(wait=pause, why=f"the world changed since the look: look again {when}")
        case RetryClass.ONCE:
            if repeats:
                return GiveUp(why="the same unknown failure twice; a person should look")
            return RetryAfter(wait=wait, why=f"an unknown failure: once more in {show_duration(wait)}")
        case unreachable:  # pragma: no cover
            assert_never(unreachable)


def failure_key(error: OrchestratorError) -> str:
    """Return the key by which two failures of a run are the same: the reason; of what may have changed also the commands."""
    lines = error.evidence.lines if isinstance(error, OutsideError) and error.retry is RetryClass.NOW else ()
    return "\n".join((error.why, *lines))


_HOPELESS = {
    RetryClass.NEVER: "trying again cannot help: the configuration is wrong",
    RetryClass.WHEN_IT_CHANGES: "not now; a later run may find it changed",
    RetryClass.ASK_A_HUMAN: "trying again cannot help until a person has acted",
}


def _again(wait: Seconds, *, fruitless: int, attempts: int) -> RetryAfter:
    counted = f"attempt {fruitless + 1} of {attempts}" if fruitless else "it got further"
    return RetryAfter(wait=wait, why=f"{counted}: again in {show_duration(wait)}")


def _wait(rules: RetryRules, *, fruitless: int, jitter: float) -> Seconds:
    """Return the wait, which doubles with each attempt without progress; progress resets it."""
    whole = min(rules.wait * 2 ** max(fruitless - 1, 0), rules.wait_at_most)
    return Seconds(whole * (1 - jitter / 2))
