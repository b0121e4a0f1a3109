"""Runs the steps of one stage: those of one lane in order, lanes side by side. Changes things."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from orchestrator.domain.plan import Step

Going = TypeVar("Going")  # what `begin` hands to `act`
End = TypeVar("End")
Waiting = deque[deque[Step]]


class Lanes(Generic[Going, End]):
    """`begin` and `end` are called here, in this thread; `act` in a thread that stays while its programs live.

    `end` says how the lane goes on: "on" with its next step, "lane" ends it, "all" lets no further lane begin. `together`
    is entered around the ends of some steps and the begins of the next: one wait for the disk, where many steps are short.
    """

    def __init__(
        self,
        *,
        begin: Callable[[Step], Going],
        act: Callable[[Step, Going], End],
        end: Callable[[Step, Going, End], str],
        together: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._begin, self._act, self._end, self._together = begin, act, end, together

    def run(self, stage: Sequence[Step], most: int | None) -> None:
        """All of the stage, at most `most` lanes at once. Returns after every step that began has ended."""
        lanes: dict[str, deque[Step]] = {}
        for step in stage:
            lanes.setdefault(step.lane, deque()).append(step)
        wide = min(most or len(lanes), len(lanes))
        if wide == 1:
            self._in_order(deque(lanes.values()))
        else:
            self._side_by_side(deque(lanes.values()), wide)

    def _in_order(self, lanes: Waiting) -> None:
        begun = self._turn(lanes, (), 1)
        while begun:
            ((lane, step, going),) = begun
            begun = self._turn(lanes, ((lane, step, going, self._act(step, going)),), 1)

    def _side_by_side(self, lanes: Waiting, wide: int) -> None:
        running: dict[Future[End], tuple[deque[Step], Step, Going]] = {}
        ended: list[tuple[deque[Step], Step, Going, End]] = []
        with ThreadPoolExecutor(wide) as pool:  # each thread outlives its child, which dies with its thread
            while True:
                for lane, step, going in self._turn(lanes, ended, wide - len(running)):
                    running[pool.submit(self._act, step, going)] = (lane, step, going)
                if not running:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done
                ended = [(*running.pop(one), one.result()) for one in done]

    def _turn(
        self, lanes: Waiting, ended: Iterable[tuple[deque[Step], Step, Going, End]], free: int
    ) -> list[tuple[deque[Step], Step, Going]]:
        """Notes what has ended, and begins what may begin now, in as many places as are free."""
        begun: list[tuple[deque[Step], Step, Going]] = []
        with self._together():
            for lane, step, going, end in ended:
                match self._end(step, going, end):
                    case "on" if lane:
                        lanes.appendleft(lane)
                    case "all":
                        lanes.clear()
            while lanes and len(begun) < free:
                lane = lanes.popleft()
                step = lane.popleft()
                begun.append((lane, step, self._begin(step)))
        return begun
