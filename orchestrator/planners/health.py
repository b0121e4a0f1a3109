"""How a job stands, judged by the age of its newest proved copy, not by how its runs ended.

Pure.
"""

from datetime import datetime
from enum import StrEnum

from orchestrator.domain.quick import dataclass
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds, show_duration


class State(StrEnum):
    """Only LATE and FAILING need somebody."""

    NEW = "new"
    UP = "up"
    LATE = "late"
    FAILING = "failing"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is remembered of a job. `last`: how the newest run that ended did so, and `last_why`.

    `proved`: when a proved copy was last as the source was; a run that finds nothing to do renews it.
    """

    first_begun: datetime | None
    last: Outcome | None
    last_why: str
    proved: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A job's state. `age` of the newest proved copy; None: there is none."""

    state: State
    why: str
    age: Seconds | None


def judge(facts: Facts, *, now: datetime, late_after: Seconds | None) -> Health:
    """The state of a job; being late outranks how the last run ended. `late_after` None: never late."""
    age = None if facts.proved is None else Seconds((now - facts.proved).total_seconds())
    if facts.first_begun is None and facts.proved is None:
        return Health(state=State.NEW, why="has never run", age=None)
    late = _late(facts, age, now=now, late_after=late_after)
    if late:
        return Health(state=State.LATE, why=late, age=age)
    state, why = _by_last_run(facts, age)
    return Health(state=state, why=why, age=age)


def _late(facts: Facts, age: Seconds | None, *, now: datetime, late_after: Seconds | None) -> str:
    if late_after is None:
        return ""
    limit = f"late-after is {show_duration(late_after)}"
    if age is not None and age < -late_after:  # a clock was wrong; such a copy would else hide every failure until then
        return f"the newest proved copy is dated {show_duration(-age)} after now, so its age is unknown; {limit}"
    if age is not None:
        return f"the newest proved copy is {show_duration(age)} old; {limit}" if age > late_after else ""
    tried = (now - facts.first_begun).total_seconds() if facts.first_begun else 0
    return f"no proved copy, {show_duration(tried)} after the first run; {limit}" if tried > late_after else ""


def _by_last_run(facts: Facts, age: Seconds | None) -> tuple[State, str]:
    copy = "no proved copy yet" if age is None else f"the newest proved copy is {show_duration(max(age, 0))} old"
    told = f"{facts.last}: {facts.last_why}" if facts.last_why else f"{facts.last}"
    if facts.last in (Outcome.FAILED, Outcome.REFUSED):
        return State.FAILING, f"the last run {told}; {copy}"
    if facts.last in (Outcome.WAITING, Outcome.INTERRUPTED):
        return State.WAITING, f"the last run is {told}; {copy}"
    if age is not None:
        return State.UP, copy
    return (State.NEW if facts.last is None else State.FAILING), copy
