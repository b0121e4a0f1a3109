"""The process beside the daemon that tells the centre of a fleet: whatever happens to it, or to the centre, delays no run.

Why a process: the libraries for PostgreSQL cost 20 MiB and are another's C code; nothing of it may hold the daemon's threads.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping

from orchestrator import compose
from orchestrator.app.worker import MANNERS, PASSED_ON, PrefixedLines
from orchestrator.domain.fleet import KEY_FILE
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest

EVERY_S = 300.0
AGAIN_S = 60.0  # after it ended by itself
Say = Callable[[str], None]


class SenderProcess:
    """The sender of a daemon: begun where a centre is declared and joined, and begun again when it ended."""

    def __init__(
        self, where: compose.Directories, environment: Mapping[str, str], say: Say, *, every_s: float = EVERY_S
    ) -> None:
        self._where = where
        self._say = say
        self._argv = (
            sys.executable, "-P", "-m", "orchestrator", "--config", where.config, "--state", where.state,
            "fleet", "send", "--every", f"{every_s:g}s",
        )  # fmt: skip
        self._environment = tuple((name, environment[name]) for name in PASSED_ON if name in environment)
        self._stop: StopRequest | None = None
        self._thread: threading.Thread | None = None
        self._began = float("-inf")

    def keep(self, centre: str | None) -> None:
        """Begin the process if it is wanted and does not run, or end it. `centre`: as poolferry.toml names it."""
        wanted = centre is not None and os.path.exists(os.path.join(self._where.state, KEY_FILE))
        running = self._thread is not None and self._thread.is_alive()
        if running and not wanted:
            self.end(0.0)
        elif wanted and not running and compose.monotonic() - self._began >= AGAIN_S:
            self._began = compose.monotonic()
            self._stop = StopRequest()
            self._thread = threading.Thread(target=self._go, args=(self._stop,), name="fleet", daemon=True)
            self._thread.start()

    def end(self, seconds: float) -> None:
        """Ask the process to end, and wait so long for it."""
        if self._stop is not None:
            self._stop.request("the daemon ends")
        if self._thread is not None:
            self._thread.join(seconds)

    def _go(self, stop: StopRequest) -> None:
        words = PrefixedLines("fleet", self._say)
        command = Command(argv=self._argv, effect=Effect.WRITES, environment=self._environment)
        result = Writer().stream(
            Pipeline(stages=(command,)),
            stop=stop,
            stall_after=None,
            manners=MANNERS,
            on_output=words.add,
            on_errors=words.add,
        )
        words.end()
        if stop.reason is None:
            self._say(f"fleet: the sender ended with {result.exits[0]}; it begins again in a minute")
