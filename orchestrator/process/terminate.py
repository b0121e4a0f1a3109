"""Forced end of a pipeline: which signal goes to which stage at what time, and when a stage is left behind."""

import signal
from collections.abc import Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.process.pipeline import PipelineStage

_FIRST, _ALL = slice(1), slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationPolicy:
    """Steps of a forced end as (seconds after the request, signal, stages), and when to leave the rest behind."""

    steps: tuple[tuple[float, signal.Signals, slice], ...]
    give_up: float


# The sender first: then the receiver sees the end of its input, keeps what it has, and ends by itself.
# All ends within 10 s, so that no service manager's timeout is reached.
GENTLE = TerminationPolicy(
    steps=((0.0, signal.SIGTERM, _FIRST), (8.0, signal.SIGTERM, _ALL), (8.8, signal.SIGKILL, _ALL)), give_up=9.8
)
# After a stall the disk may be the cause: a process that hangs on it may need seconds to end, or never ends.
PATIENT = TerminationPolicy(steps=GENTLE.steps, give_up=8.8 + 5.0)
# A pipeline that only reads has nothing to save.
QUICK = TerminationPolicy(steps=((0.0, signal.SIGTERM, _ALL), (0.5, signal.SIGKILL, _ALL)), give_up=2.5)


class PipelineTermination:
    """A forced end in progress; `gave_up` once the remaining stages are left behind."""

    def __init__(self, stages: Sequence[PipelineStage], manners: TerminationPolicy, now: float) -> None:
        self.gave_up = False
        self._stages = stages
        self._manners = manners
        self._began = now
        self._steps = list(manners.steps)

    def press(self, now: float) -> None:
        """Send the signals that are due, and give up when it is time."""
        while self._steps and now - self._began >= self._steps[0][0]:
            _, number, whom = self._steps.pop(0)
            for stage in self._stages[whom]:
                stage.send(number)
        if now - self._began >= self._manners.give_up and not self.gave_up:
            self.gave_up = True
            for stage in self._stages:
                stage.words.add(stage.left_behind().encode("utf-8", "surrogateescape"))
