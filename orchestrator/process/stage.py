"""One running program of a pipeline: its last words, its end, signals to its whole group.

Changes things.
"""

import contextlib
import os
import signal
import subprocess

from orchestrator.domain.command import Command
from orchestrator.process.meter import living
from orchestrator.process.words import Tail

_END_NOW = 5.0
# What even SIGKILL did not end (it waits for a dead disk): kept, so that it is reaped when it ends after all.
_LEFT_BEHIND: list[subprocess.Popen[bytes]] = []


class Stage:
    """One program and its children. It stays unreaped up to the last, so that its pid, its group's name, stays its own.

    `errors`: where to read what it says; `exit_bell`: readable once it has ended.
    """

    def __init__(self, *, command: Command, process: subprocess.Popen[bytes], errors: int) -> None:
        self.command = command
        self.errors = errors
        self.words = Tail()
        self.alive = True
        self.status: int | None = None
        self.group = process.pid
        self.exit_bell = _exit_bell(process.pid)
        self._process = process
        os.set_blocking(errors, False)

    def note_exit(self) -> None:
        """Remembers how it ended; None where nobody can know.

        Why not Popen's own word: where our parent made us ignore SIGCHLD it says 0, whatever happened.
        """
        self.alive = False
        with contextlib.suppress(OSError):
            end = os.waitid(os.P_PIDFD, self.exit_bell, os.WEXITED | os.WNOWAIT)
            if end is not None:
                self.status = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def send(self, number: signal.Signals) -> None:
        """Signals the group, and wakes it, as a stopped process hears nothing; SIGKILL finds the whole session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)
            os.killpg(self.group, signal.SIGCONT)
        if number == signal.SIGKILL:
            for member in living({self.group}):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(member.pid, number)

    def left_behind(self) -> str:
        """One line about those of it that do not end; empty when there are none."""
        left = ", ".join(f"{member.pid} (state {member.state})" for member in living({self.group}))
        return f"{self.command.argv[0]}: does not end even when killed: process {left}" if left else ""

    def end_now(self) -> None:
        """Kills it and lets it go."""
        self.send(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_NOW)
        self.let_go()

    def let_go(self) -> None:
        """Reaps it and closes what we hold of it."""
        if self._process.poll() is None:
            _LEFT_BEHIND.append(self._process)
        os.close(self.exit_bell)
        os.close(self.errors)


def _exit_bell(pid: int) -> int:
    """Readable once the process has ended; from the start for one that is gone already, because SIGCHLD is ignored."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return os.eventfd(1, os.EFD_CLOEXEC)


def reap_left_behind() -> None:
    """Lets go of those that have ended since."""
    for process in tuple(_LEFT_BEHIND):
        if process.poll() is not None:
            with contextlib.suppress(ValueError):
                _LEFT_BEHIND.remove(process)
