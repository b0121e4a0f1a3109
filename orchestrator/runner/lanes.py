"""Runs the steps of one stage: those of one lane in order, lanes side by side. Changes things."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from orchestrator.domain.plan import Step

Going = TypeVar("Going")  # what `begin` hands to `act`
End = TypeVar("End")


class Lanes(Generic[Going, End]):
    """`begin` and `end` are called here, in this thread; `act` in a thread that stays while its programs live.

    `end` says how the lane goes on: "on" with its next step, "lane" ends it, "all" lets no further lane begin.
    """

    def __init__(
        self,
        *,
        begin: Callable[[Step], Going],
        act: Callable[[Step, Going], End],
        end: Callable[[Step, Going, End], str],
    ) -> None:
        self._begin, self._act, self._end = begin, act, end

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

    def _in_order(self, lanes: deque[deque[Step]]) -> None:
        while lanes:
            lane = lanes.popleft()
            while lane:
                step = lane.popleft()
                going = self._begin(step)
                match self._end(step, going, self._act(step, going)):
                    case "all":
                        return
                    case "lane":
                        lane.clear()

    def _side_by_side(self, lanes: deque[deque[Step]], wide: int) -> None:
        running: dict[Future[End], tuple[deque[Step], Step, Going]] = {}
        with ThreadPoolExecutor(wide) as pool:  # each thread outlives its child, which dies with its thread
            while lanes or running:
                while lanes and len(running) < wide:
                    lane = lanes.popleft()
                    step = lane.popleft()
                    going = self._begin(step)
                    running[pool.submit(self._act, step, going)] = (lane, step, going)
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    lane, step, going = running.pop(done)
                    match self._end(step, going, done.result()):
                        case "on" if lane:
                            lanes.appendleft(lane)
                        case "all":
                            lanes.clear()
