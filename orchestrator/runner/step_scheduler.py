"""The order of a stage's steps: those of one worker one after the other, workers side by side."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Generic, TypeVar

from orchestrator.domain.plan import Step

if TYPE_CHECKING:  # its import takes 4 ms, and most runs do nothing in parallel
    from concurrent.futures import Future

Going = TypeVar("Going")  # result of `begin`, argument of `act`
End = TypeVar("End")
Waiting = deque[deque[Step]]


class StepScheduler(Generic[Going, End]):
    """A scheduler of steps: `begin` and `end` run in this thread, `act` in one that lives as long as its programs.

    `end` says how the worker continues: "on" with its next step, "lane" ends it, "all" prevents other workers from starting.
    `together` is entered around the ends of some steps and the begins of the next ones: one wait for the disk where many steps
    are short.
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
        """Run all steps of the stage, at most `most` workers at once. Returns after every started step has ended."""
        lanes: dict[str, deque[Step]] = {}
        for step in stage:
            lanes.setdefault(step.worker, deque()).append(step)
        wide = min(most or len(lanes), len(lanes))
        if wide == 1:
            self._in_order(deque(lanes.values()))
        else:
            self._side_by_side(deque(lanes.values()), wide)

    def _in_order(self, lanes: Waiting) -> None:
        begun = self._turn(lanes, (), 1)
        while begun:
            ((worker, step, going),) = begun
            begun = self._turn(lanes, ((worker, step, going, self._act(step, going)),), 1)

    def _side_by_side(self, lanes: Waiting, wide: int) -> None:
        from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

        running: dict[Future[End], tuple[deque[Step], Step, Going]] = {}
        ended: list[tuple[deque[Step], Step, Going, End]] = []
        with ThreadPoolExecutor(wide) as pool:  # each thread outlives its child, which dies with its thread
            while True:
                for worker, step, going in self._turn(lanes, ended, wide - len(running)):
                    running[pool.submit(self._act, step, going)] = (worker, step, going)
                if not running:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done
                ended = [(*running.pop(one), one.result()) for one in done]

    def _turn(
        self, lanes: Waiting, ended: Iterable[tuple[deque[Step], Step, Going, End]], free: int
    ) -> list[tuple[deque[Step], Step, Going]]:
        """Record the ended steps, and begin the next ones, as many as there are free workers."""
        begun: list[tuple[deque[Step], Step, Going]] = []
        with self._together():
            for worker, step, going, end in ended:
                match self._end(step, going, end):
                    case "on" if worker:
                        lanes.appendleft(worker)
                    case "all":
                        lanes.clear()
            while lanes and len(begun) < free:
                worker = lanes.popleft()
                step = worker.popleft()
                begun.append((worker, step, self._begin(step)))
        return begun
