"""Deadlines of waits: what is to happen unless a wait has ended by then, in one thread for all waits of this process.

Why not a timer for each: that is a thread for each statement, which took a third of the processor time of asking for a permit.
"""

import contextlib
import heapq
import itertools
import os
import threading
import time
from collections.abc import Callable

_numbers = itertools.count()


class Deadline:
    """One deadline; once it is cancelled, nothing happens any more."""

    def __init__(self, at: float, act: Callable[[], None]) -> None:
        self.at, self.act = at, act
        self.over = False
        self._number = next(_numbers)

    def __lt__(self, other: "Deadline") -> bool:
        return (self.at, self._number) < (other.at, other._number)

    def cancel(self) -> None:
        """End it: when this returns, it has happened, or never will."""
        with _watch.changed:
            self.over = True


class _Watch:
    """The thread that waits for the next deadline, begun with the first one. A forked child begins anew: it has no thread."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._next: list[Deadline] = []
        self._looks_at: float | None = None  # when the thread looks again; None: there is none
        self._runs = False

    def add(self, deadline: Deadline) -> None:
        """Watch one more. The thread is woken only for one that is earlier than its next look."""
        with self.changed:
            heapq.heappush(self._next, deadline)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._go, name="deadlines", daemon=True).start()
            elif self._looks_at is None or deadline.at < self._looks_at:
                self.changed.notify()

    def _go(self) -> None:
        with self.changed:
            while True:
                while self._next and (self._next[0].over or self._next[0].at <= time.monotonic()):
                    due = heapq.heappop(self._next)
                    if not due.over:
                        with contextlib.suppress(Exception):  # of one that is due, for the sake of the others
                            due.act()
                self._looks_at = self._next[0].at if self._next else None
                self.changed.wait(None if self._looks_at is None else max(0.0, self._looks_at - time.monotonic()))


_watch = _Watch()


def _begin_anew() -> None:
    global _watch  # noqa: PLW0603 - the state of a process
    _watch = _Watch()


os.register_at_fork(after_in_child=_begin_anew)


def call_at_deadline(seconds: float, act: Callable[[], None]) -> Deadline:
    """Call something quick after so long, in another thread, unless the deadline is cancelled before."""
    deadline = Deadline(time.monotonic() + seconds, act)
    _watch.add(deadline)
    return deadline
