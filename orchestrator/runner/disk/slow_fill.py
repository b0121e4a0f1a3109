"""Early warning when a copy to a disk would take too long at its present speed."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.domain.events import RunEvent, StepStarted, TransferProgress
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.units import Seconds, show_duration, show_size
from orchestrator.planners.throughput import Throughput, ThroughputCounter
from orchestrator.runner.run_recorder import RunRecorder

# Seconds from its first byte. Why not sooner: many small files, or a disk that reorganizes itself, are slow for a while.
MEASURED = 300.0


@contextmanager
def warn_when_slow(journal: RunRecorder, within: Seconds) -> Iterator[None]:
    """Warn once when a copy takes longer than `within` from now: in the run, and in the record of the disk's visit."""
    tools = journal.tools
    journal.tools = replace(tools, notify=_TimeWarning(journal, within).notify)
    try:
        yield
    finally:
        journal.tools = tools


class _TimeWarning:
    """A subscriber to a run's events, which come from worker threads; it passes them on."""

    def __init__(self, journal: RunRecorder, within: Seconds) -> None:
        self._journal, self._within = journal, within
        self._tell, self._monotonic = journal.tools.notify, journal.tools.monotonic
        self._long, self._now = ThroughputCounter(self._monotonic, window=MEASURED), ThroughputCounter(self._monotonic)
        self._guard = threading.Lock()
        self._told = False

    def notify(self, event: RunEvent) -> None:
        """Pass the event on, and warn when it shows that the copy takes too long."""
        self._tell(event)
        if told := self._slow(event):
            disk = self._journal.job.target.disk
            self._journal.warn(f"disk {disk}: {told}")
            self._journal.tools.history.disks.visit_is_slow(disk, told)

    def _slow(self, event: RunEvent) -> str:
        with self._guard:
            match event:
                case StepStarted():
                    self._long.step_begun()
                    self._now.step_begun()
                case TransferProgress(done=0):
                    self._long.restart()
                    self._now.restart()
                case TransferProgress() if not self._told:
                    told = self._judged(self._long.moved(event), self._now.moved(event))
                    self._told = bool(told)
                    return told
        return ""

    def _judged(self, pace: Throughput, now: Throughput) -> str:
        """Return the warning; empty when the average or the present speed is enough: a slow copy may get faster."""
        left, rate = pace.left_s, pace.rate
        measured = self._monotonic() - pace.begun >= MEASURED
        if not measured or left is None or rate is None or min(left, now.left_s or left) <= self._within:
            return ""
        rest = f"{show_size((pace.expected or 0) - pace.done)} of {show_size(pace.expected)}"
        return (
            f"{self._journal.job.name} goes at {show_size(int(rate))}/s, and {rest} are left: {show_duration(left)} at this pace "
            f"(limit {show_duration(self._within)})"
        )
