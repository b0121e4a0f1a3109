"""Notices and metrics while the daemon runs, sent in a thread of their own, so that a slow channel delays nothing."""

import threading
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.machine import has_subscribers

if TYPE_CHECKING:
    from orchestrator.app.config_cache import LoadedConfig
    from orchestrator.daemon.metrics_server import MetricsServer

Say = Callable[[str], None]
OFTEN_S = 300.0  # also without any event: a job becomes late by time alone


class Notifier:
    """Sender of notices and metrics, after a change and at least every five minutes. One round at a time."""

    def __init__(self, where: compose.Directories, say: Say) -> None:
        self._where = where
        self._say = say
        self._kept: LoadedConfig | None = None
        self._thread: threading.Thread | None = None
        self._told = float("-inf")
        self._missed = False
        self._served: MetricsServer | None = None

    def take(self, kept: "LoadedConfig") -> None:
        """Use this configuration from now on."""
        before, self._kept = self._kept, kept
        if before is None or before.machine.metrics.listen != kept.machine.metrics.listen:
            self._serve(kept.machine.metrics.listen)

    def _serve(self, listen: str | None) -> None:
        if self._served is not None:
            self._served.close()
            self._served = None
        if listen is None:
            return
        from orchestrator.daemon.metrics_server import serve_metrics

        try:
            self._served = serve_metrics(listen, self._numbers)
        except OSError as error:
            self._say(f"metrics: cannot listen on {listen}: {error.strerror or error}")

    def _numbers(self) -> bytes:
        from orchestrator.app.metrics import metrics_text

        return metrics_text(self._where, self._kept.configuration.jobs if self._kept else (), compose.now())

    def notify(self, now: datetime, awake: datetime | None, *, changed: bool) -> None:
        """Start a round of notices and metrics, when something has changed or the interval has passed."""
        kept, instant = self._kept, compose.monotonic()
        if kept is None or not (_has_receivers(kept) or kept.machine.metrics.textfile):
            return
        self._missed |= changed
        busy = self._thread is not None and self._thread.is_alive()
        if busy or not (self._missed or instant - self._told >= OFTEN_S):
            return
        self._missed, self._told = False, instant
        self._thread = threading.Thread(target=self._go, args=(kept, now, awake), name="telling", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Start no more rounds; give the current one a moment to end."""
        self._serve(None)
        if self._thread is not None:
            self._thread.join(5)

    def _go(self, kept: "LoadedConfig", now: datetime, awake: datetime | None) -> None:
        try:
            if _has_receivers(kept):
                from orchestrator.app.notify import notify_changes

                notify_changes(self._where, kept.configuration.jobs, kept.machine, now, say=self._say, awake=awake)
            if kept.machine.metrics.textfile:
                from orchestrator.app.metrics import write_metrics

                write_metrics(self._where, kept.configuration.jobs, kept.machine, now, say=self._say)
        except (OrchestratorError, OSError) as error:
            self._say(f"notices of what changed could not be sent: {error}")


def _has_receivers(kept: "LoadedConfig") -> bool:
    """Return True when any receiver of notices is configured."""
    return has_subscribers(kept.configuration.jobs, kept.machine)
