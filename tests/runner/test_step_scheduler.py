"""Lanes: what runs after what, what ends a lane and what ends all, and how few records it takes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.runner.step_scheduler import StepScheduler


def steps(*names: str) -> tuple[Step, ...]:
    """A step for each name; its first letter is its lane."""
    work = Pipeline(stages=(Command(argv=("true",), effect=Effect.READS),))
    return tuple(Step(action=name, why="", worker=name[0], work=work, expected=None) for name in names)


class StageLog:
    """Log of a stage, in order; "(" and ")" stand around what is recorded at once."""

    def __init__(self, says: Callable[[str], str] = lambda _: "on") -> None:
        self.says = says
        self.words: list[str] = []
        self.threads: set[int] = set()

    def run(self, stage: tuple[Step, ...], most: int | None = None) -> list[str]:
        lanes = StepScheduler(begin=self._begin, act=self._act, end=self._end, together=self._together)
        lanes.run(stage, most)
        return self.words

    @contextmanager
    def _together(self) -> Iterator[None]:
        self.words.append("(")
        yield
        self.words.append(")")

    def _begin(self, step: Step) -> str:
        self.words.append(f"+{step.action}")
        return step.action

    def _act(self, step: Step, going: str) -> str:
        assert going == step.action
        self.threads.add(threading.get_ident())
        return going

    def _end(self, step: Step, going: str, end: str) -> str:
        assert step.action == going == end
        self.words.append(f"-{end}")
        return self.says(end)


def test_one_lane_after_the_other_and_one_record_between_two_steps() -> None:
    assert "".join(StageLog().run(steps("a1", "b1", "a2"), 1)) == "(+a1)(-a1+a2)(-a2+b1)(-b1)"


def test_a_lane_that_ends_leaves_the_others_and_all_leaves_none() -> None:
    stage = steps("a1", "a2", "b1", "b2", "c1")
    assert (
        "".join(StageLog(lambda name: "lane" if name == "a1" else "on").run(stage, 1))
        == "(+a1)(-a1+b1)(-b1+b2)(-b2+c1)(-c1)"
    )
    assert "".join(StageLog(lambda name: "all" if name == "b1" else "on").run(stage, 1)) == "(+a1)(-a1+a2)(-a2+b1)(-b1)"


@pytest.mark.parametrize("most", [2, 3, None])
def test_side_by_side_each_lane_keeps_its_order(most: int | None) -> None:
    told = StageLog()
    names = [f"{worker}{number}" for number in range(9) for worker in "abcd"]
    words = told.run(steps(*names), most)
    assert sorted(word[1:] for word in words if word[0] == "+") == sorted(names)
    for worker in "abcd":
        own = [word for word in words if word[1:2] == worker]
        assert own == [f"{sign}{worker}{number}" for number in range(9) for sign in "+-"]
    depth = 0
    for word in words:
        depth += {"(": 1, ")": -1}.get(word, 0)
        assert depth == 1 or word == ")", "begun or ended without a record"
    assert words.count("(") <= len(names) + 1, "no more than one record between two steps"
    assert threading.get_ident() not in told.threads


def test_never_more_at_once_than_allowed_and_nothing_begins_after_all() -> None:
    running = most = 0
    for word in StageLog(lambda name: "all" if name == "c1" else "on").run(steps("a1", "b1", "c1", "d1", "e1"), 2):
        running += {"+": 1, "-": -1}.get(word[0], 0)
        most = max(most, running)
    assert most == 2
    words = StageLog(lambda _: "all").run(steps(*(f"{chr(97 + number)}1" for number in range(9))), 2)
    assert [word for word in words if word[0] == "+"] == ["+a1", "+b1"]
