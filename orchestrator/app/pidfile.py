"""One clock per state directory, and its heartbeats: a later daemon learns from them since when the clock was not checked."""

import contextlib
import fcntl
import os
import signal
from collections.abc import Iterator
from datetime import datetime, timedelta

from orchestrator.app.local_clock import downtime_between, downtime_since, read_clocks
from orchestrator.domain.due import Downtime
from orchestrator.domain.errors import NotNow
from orchestrator.history.due_runs import DueRunWriter

OFTEN = timedelta(minutes=5)  # not more often: a sleeping disk should not wake up for it
_MOST_DOWNTIMES = 50


class DaemonPresence:
    """The known absences of the clock. One per daemon."""

    def __init__(self, book: DueRunWriter, *, boot: str, pid: int, now: datetime) -> None:
        self._book = book
        self._last = read_clocks(now)
        self.absences = downtime_since(book.last_beat(), self._last, boot)
        self._beat = book.begin_beat(boot=boot, pid=pid, now=now)
        self._written = self._last.steady

    def look(self, now: datetime) -> Downtime | None:
        """Record a clock check; return the absence since the last one, if it was unusual."""
        here = read_clocks(now)
        found = downtime_between(self._last, here)
        if found is not None:
            self.absences = (*self.absences, found)[-_MOST_DOWNTIMES:]
        self._last = here
        if here.steady - self._written >= OFTEN.total_seconds():
            self._book.beat(self._beat, now)
            self._written = here.steady
        return found

    def end(self, now: datetime) -> None:
        """Record the orderly end of the daemon."""
        self._book.beat(self._beat, now, orderly=True)


@contextlib.contextmanager
def hold_daemon_lock(state: str) -> Iterator[None]:
    """Hold the lock of the one clock of a state directory. Raises: NotNow."""
    folder = os.path.join(state, "locks")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor = os.open(os.path.join(folder, "daemon"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            who = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise NotNow(
                f"another daemon, process {who}, already uses {state}",
                hint="one is enough; end it first, or use --state",
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def ask_to_reload(state: str) -> int | None:
    """Ask the daemon of a state directory to read the configuration again; return its process, or None: there is none."""
    from orchestrator.process.holders import find_file_holders

    path = os.path.join(state, "locks", "daemon")
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            process = int(os.pread(descriptor, 32, 0))
            # The signal ends any program but ours: a number is believed of a process alone that has this very file open.
            if process not in {holder.pid for holder in find_file_holders(path)}:
                return None
            os.kill(process, signal.SIGHUP)
            return process
        finally:
            os.close(descriptor)
    return None
