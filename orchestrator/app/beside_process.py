"""A process beside the daemon, which begins again after it ended: whatever happens to it delays no run."""

import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from orchestrator import compose
from orchestrator.app.worker import MANNERS, PASSED_ON, PrefixedLines
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest

Say = Callable[[str], None]


class BesideProcess:
    """One command of poolferry, for as long as it is wanted. `name`: before its lines; `again_s`: between two beginnings, at least.

    `ends`: it ends by itself when its work is done; else that is told.
    """

    def __init__(
        self, name: str, words: Sequence[str], where: compose.Directories, environment: Mapping[str, str], say: Say, *, again_s: float,
        ends: bool = False,
    ) -> None:  # fmt: skip
        self._name, self._words, self._where, self._say, self._again_s, self._ends = (
            name,
            words,
            where,
            say,
            again_s,
            ends,
        )
        self._environment = tuple((name, environment[name]) for name in PASSED_ON if name in environment)
        self._stop: StopRequest | None = None
        self._thread: threading.Thread | None = None
        self._began = float("-inf")

    def keep(self, *, wanted: bool, config: Callable[[], str] | None = None) -> None:
        """Begin the process if it is wanted and does not run, or end it. `config`: names the folder with the job files; None: as it was told."""
        running = self._thread is not None and self._thread.is_alive()
        if running and not wanted:
            self.end(0.0)
        elif wanted and not running and compose.monotonic() - self._began >= self._again_s:
            self._began = compose.monotonic()
            self._stop = StopRequest()
            command = self._command(config() if config else self._where.config)
            self._thread = threading.Thread(target=self._go, args=(command, self._stop), name=self._name, daemon=True)
            self._thread.start()

    def end(self, seconds: float) -> None:
        """Ask the process to end, and wait so long for it."""
        if self._stop is not None:
            self._stop.request("the daemon ends")
        if self._thread is not None:
            self._thread.join(seconds)

    def _command(self, config: str) -> Command:
        return Command(
            argv=(
                sys.executable, "-P", "-m", "orchestrator", "--config", config, "--state", self._where.state, *self._words
            ),
            effect=Effect.WRITES, environment=self._environment,
        )  # fmt: skip

    def _go(self, command: Command, stop: StopRequest) -> None:
        words = PrefixedLines(self._name, self._say)
        result = Writer().stream(
            Pipeline(stages=(command,)),
            stop=stop,
            stall_after=None,
            manners=MANNERS,
            on_output=words.add,
            on_errors=words.add,
        )
        words.end()
        if stop.reason is None and not self._ends:
            self._say(f"{self._name}: the process ended with {result.exits[0]}; it begins again by itself")
