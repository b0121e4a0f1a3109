"""How fast something goes, and how long it still takes: from what was moved when."""

from collections import deque
from collections.abc import Callable

from orchestrator.domain.events import Moved
from orchestrator.domain.units import show_duration, show_size

_WINDOW = 30.0


class Pace:
    """The pace of one step over a window of time, half a minute when not told. Units: seconds of a monotonic clock, bytes."""

    def __init__(self, begun: float, window: float = _WINDOW) -> None:
        self.begun = begun
        self.window = window
        self.done = 0
        self.expected: int | None = None
        self._seen: deque[tuple[float, int]] = deque([(begun, 0)])

    def moved(self, at: float, done: int, expected: int | None) -> None:
        """Takes in how far it is."""
        self.done = done
        self.expected = expected
        if at > self._seen[-1][0]:
            self._seen.append((at, done))
        while len(self._seen) > 2 and self._seen[0][0] < at - self.window:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Bytes per second; None: nothing is known yet."""
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - first) if last > first and after > before else None

    @property
    def percent(self) -> int | None:
        """How much is done, never more than all; None: nobody knows how much there is."""
        return min(100, self.done * 100 // self.expected) if self.expected else None

    @property
    def left_s(self) -> float | None:
        """Seconds until the end at this pace; None: unknown."""
        rate = self.rate
        return max(0, self.expected - self.done) / rate if self.expected and rate else None

    def told(self) -> str:
        """ "12%, 120.0 MiB of 1.0 GiB, 60.0 MiB/s, 15 s left", as far as it is known.

        Why less once all that was expected is there: an estimate that is passed tells nothing of the rest.
        """
        percent = f"{self.percent}%, " if self.percent is not None else ""
        of = f" of {show_size(self.expected)}" if self.expected and self.done < self.expected else ""
        rate = f", {show_size(int(self.rate))}/s" if self.rate else ""
        left = f", {show_duration(self.left_s)} left" if of and self.left_s is not None else ""
        return f"{percent}{show_size(self.done)}{of}{rate}{left}"


class Count:
    """The pace of what is counted now: one step, or all copying steps of a run, whose count goes on from step to step."""

    def __init__(self, monotonic: Callable[[], float], window: float = _WINDOW) -> None:
        self._monotonic = monotonic
        self._window = window
        self._whole = False
        self.pace = Pace(monotonic(), window)

    def restart(self) -> None:
        """Something else is counted from now on."""
        self._whole = False
        self.pace = Pace(self._monotonic(), self._window)

    def step_begun(self) -> bool:
        """Whether a step's begin begins a count."""
        if not self._whole:
            self.restart()
        return not self._whole

    def moved(self, event: Moved) -> Pace:
        """The pace with what was moved by now."""
        if (self._whole and not event.whole) or event.done < self.pace.done:
            self.restart()
        self._whole = event.whole
        self.pace.moved(self._monotonic(), event.done, event.expected)
        return self.pace
