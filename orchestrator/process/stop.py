"""The request to stop, which every running stream notices at once."""

import math
import os
import select
import time
import weakref

from orchestrator.domain.units import Seconds


class StopRequest:
    """One stop request for any number of threads; safe to call from a signal handler, as it takes no lock.

    `deadline`: seconds from now after which it is requested by itself, with `because` as the reason; a suspended
    machine's sleep counts. `above`: a request that this one follows, and not the other way round.
    """

    def __init__(
        self,
        *,
        deadline: Seconds | None = None,
        because: str = "the time window has ended",
        above: "StopRequest | None" = None,
    ) -> None:
        # Written once and never read, so it stays readable for every poll, in every thread.
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._wakeup)
        self._reasons: list[str] = []
        self._because = because
        self._ends = math.inf if deadline is None else _boot_time() + deadline
        self._above = above
        self._below: list[weakref.ref[StopRequest]] = []
        if above is not None:
            above._follow(self)

    def request(self, reason: str) -> None:
        """Request a stop of all threads. The first reason stays."""
        self._reasons.append(reason)
        self._wake()

    @property
    def reason(self) -> str | None:
        """Return why to stop; None to go on."""
        if not self._reasons and _boot_time() >= self._ends:
            self.request(self._because)
        if not self._reasons and self._above is not None:
            return self._above.reason
        return self._reasons[0] if self._reasons else None

    def _follow(self, below: "StopRequest") -> None:
        self._below = [*(each for each in self._below if each() is not None), weakref.ref(below)]
        if self._reasons:
            below._wake()

    def _wake(self) -> None:
        os.eventfd_write(self._wakeup, 1)
        for each in self._below:
            if (below := each()) is not None:
                below._wake()

    def wait(self, seconds: float) -> bool:
        """Wait at most `seconds`; return True as soon as a stop is requested."""
        poll = select.poll()
        poll.register(self._wakeup, select.POLLIN)
        until = time.monotonic() + seconds
        while self.reason is None and (left := until - time.monotonic()) > 0:
            # In short pieces: poll's own clock stands still while the machine sleeps, the deadline does not.
            poll.poll(1000 * max(0.0, min(left, 1.0, self._ends - _boot_time())))
        return self.reason is not None

    def fileno(self) -> int:
        """Return a descriptor that is readable from the request on, for ever."""
        return self._wakeup


def _boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)
