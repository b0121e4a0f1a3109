"""Keeps the machine from sleeping while a run goes on, where systemd-logind is there to be asked."""

import os
import threading

from orchestrator.domain.plan import Effect, alone
from orchestrator.process.executor import Writer
from orchestrator.process.stop import Stop

PROGRAM = "/usr/bin/systemd-inhibit"
_BOOTED, _BUS = "/run/systemd/system", "/run/dbus/system_bus_socket"  # source: sd_booted(3)


class Awake:
    """Holds one lock of logind as long as somebody needs it.

    Why a program of its own beside the runs, and not around each: where it fails, or is not allowed, the run goes on.
    Why "block": a lock that only delays is over after 5 s, and a run takes longer.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._stop: Stop | None = None
        self._useful = bool(what) and all(os.path.exists(path) for path in (PROGRAM, _BOOTED, _BUS))

    def need(self, wanted: bool) -> None:
        """From now on the machine is needed, or no longer."""
        if wanted and self._stop is None and self._useful:
            self._stop = Stop()
            threading.Thread(target=self._hold, args=(self._stop,), name="awake", daemon=True).start()
        elif not wanted and self._stop is not None:
            self._stop.request("nothing runs any more")
            self._stop = None

    def _hold(self, stop: Stop) -> None:
        argv = (
            PROGRAM, f"--what={self._what}", "--mode=block", "--who=poolferry", "--why=a backup is running", "sleep", "infinity",
        )  # fmt: skip
        Writer().stream(alone(*argv, effect=Effect.WRITES), stop=stop)
