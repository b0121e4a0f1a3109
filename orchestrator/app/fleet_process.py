"""The process beside the daemon that tells the centre of a fleet: whatever happens to it, or to the centre, delays no run.

Why a process: the libraries for PostgreSQL cost 20 MiB and are another's C code; nothing of it may hold the daemon's threads.
"""

import os
from collections.abc import Callable, Mapping

from orchestrator import compose
from orchestrator.app.beside_process import BesideProcess
from orchestrator.domain.fleet import KEY_FILE

EVERY_S = 300.0
AGAIN_S = 60.0  # after it ended by itself
Say = Callable[[str], None]


class SenderProcess:
    """The sender of a daemon: begun where a centre is declared and joined, and begun again when it ended."""

    def __init__(
        self, where: compose.Directories, environment: Mapping[str, str], say: Say, *, every_s: float = EVERY_S
    ) -> None:
        self._state = where.state
        self._process = BesideProcess(
            "fleet", ("fleet", "send", "--every", f"{every_s:g}s"), where, environment, say, again_s=AGAIN_S
        )

    def keep(self, centre: str | None) -> None:
        """Begin the process if it is wanted and does not run, or end it. `centre`: as poolferry.toml names it."""
        self._process.keep(wanted=centre is not None and os.path.exists(os.path.join(self._state, KEY_FILE)))

    def end(self, seconds: float) -> None:
        """Ask the process to end, and wait so long for it."""
        self._process.end(seconds)
