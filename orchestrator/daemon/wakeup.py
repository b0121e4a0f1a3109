"""The wakeups of the loop: timers, runs that end, signals."""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType


class Wakeup:
    """The loop's wakeup, safe in any thread or signal handler: it takes no lock. Several before one check count as one."""

    def __init__(self) -> None:
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def ring(self) -> None:
        """Wake the current waiter, or the next one."""
        os.eventfd_write(self._wakeup, 1)

    def wait(self, seconds: float) -> None:
        """Wait for a wakeup, up to the time limit."""
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        if poll.poll(max(0.0, seconds) * 1000):
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._wakeup)


class SignalRequests:
    """Requests received by signals."""

    def __init__(self) -> None:
        self.end = ""
        self.reload = False


@contextlib.contextmanager
def listen_to_signals(wakeup: Wakeup) -> Iterator[SignalRequests]:
    """Handle signals while inside: SIGTERM and SIGINT request the end, SIGHUP a reload of the configuration."""
    found = SignalRequests()

    def ends(number: int, _: FrameType | None) -> None:
        found.end = signal.Signals(number).name
        wakeup.ring()

    def reloads(_: int, __: FrameType | None) -> None:
        found.reload = True
        wakeup.ring()

    handlers = {signal.SIGTERM: ends, signal.SIGINT: ends, signal.SIGHUP: reloads}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
