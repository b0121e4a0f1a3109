"""Speed and remaining time, computed from the bytes moved over time."""

from collections import deque
from collections.abc import Callable

from orchestrator.domain.events import TransferProgress
from orchestrator.domain.units import show_duration, show_size

_WINDOW = 30.0


class Throughput:
    """Speed of one step over a time window, half a minute by default. Units: seconds of a monotonic clock, bytes."""

    def __init__(self, begun: float, window: float = _WINDOW) -> None:
        self.begun = begun
        self.window = window
        self.done = 0
        self.expected: int | None = None
        self._seen: deque[tuple[float, int]] = deque([(begun, 0)])

    def moved(self, at: float, done: int, expected: int | None) -> None:
        """Record the progress at an instant."""
        self.done = done
        self.expected = expected
        if at > self._seen[-1][0]:
            self._seen.append((at, done))
        while len(self._seen) > 2 and self._seen[0][0] < at - self.window:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Return the speed in bytes per second; None while unknown."""
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - first) if last > first and after > before else None

    @property
    def percent(self) -> int | None:
        """Return the progress in percent, at most 100; None when the total is unknown."""
        return min(100, self.done * 100 // self.expected) if self.expected else None

    @property
    def left_s(self) -> float | None:
        """Return the seconds until the end at this speed; None when unknown."""
        rate = self.rate
        return max(0, self.expected - self.done) / rate if self.expected and rate else None

    def told(self) -> str:
        """Return "12%, 120.0 MiB of 1.0 GiB, 60.0 MiB/s, 15 s left", as far as it is known.

        Why without the rest once all expected bytes have moved: an exceeded estimate says nothing about the remaining time.
        """
        return show_pace(self.done, self.expected, self.rate, self.left_s)


def show_pace(done: int, expected: int | None, rate: float | None, left_s: float | None) -> str:
    """Render progress as `Throughput.told` does."""
    percent = f"{min(100, done * 100 // expected)}%, " if expected else ""
    of = f" of {show_size(expected)}" if expected and done < expected else ""
    speed = f", {show_size(int(rate))}/s" if rate else ""
    left = f", {show_duration(left_s)} left" if of and left_s is not None else ""
    return f"{percent}{show_size(done)}{of}{speed}{left}"


class ThroughputCounter:
    """Speed of the current count: one step, or all copying steps of a run, which are counted across steps."""

    def __init__(self, monotonic: Callable[[], float], window: float = _WINDOW) -> None:
        self._monotonic = monotonic
        self._window = window
        self._whole = False
        self.pace = Throughput(monotonic(), window)

    def restart(self) -> None:
        """Start a new count."""
        self._whole = False
        self.pace = Throughput(self._monotonic(), self._window)

    def step_begun(self) -> bool:
        """Restart the count at a step unless the whole run is counted; return True when it was restarted."""
        if not self._whole:
            self.restart()
        return not self._whole

    def moved(self, event: TransferProgress) -> Throughput:
        """Record the bytes moved so far and return the speed."""
        if (self._whole and not event.whole) or event.done < self.pace.done:
            self.restart()
        self._whole = event.whole
        self.pace.moved(self._monotonic(), event.done, event.expected)
        return self.pace
