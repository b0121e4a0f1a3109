"""Work around a run: pings at its start and end, notices of its changes, and metrics.

It is imported only where poolferry.toml requires it, and none of it can make the run fail.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import DeclarationError, HistoryError
from orchestrator.domain.machine import has_late_hook, has_subscribers
from orchestrator.domain.run import Outcome

if TYPE_CHECKING:
    from orchestrator.app.heartbeat import StartPing
    from orchestrator.domain.job import Job
    from orchestrator.domain.machine import MachineConfig
    from orchestrator.domain.run import RunReport

Say = Callable[[str], None]


class RunObservers:
    """The pings, notices and metrics around runs. `jobs`: all declared ones. A wrong poolferry.toml is logged, not fatal."""

    def __init__(self, where: compose.Directories, jobs: "Sequence[Job]", say: Say) -> None:
        self._where = where
        self._jobs = jobs
        self._say = say
        # Without notices and metrics nothing of this is imported.
        self._machine = self._read() if compose.has_machine_config(where) or has_late_hook(jobs) else None

    def _read(self) -> "MachineConfig":
        try:
            return compose.read_machine_config(self._where)
        except DeclarationError as error:
            for mistake in error.mistakes:
                self._say(f"{mistake} (no notice is sent for this run)")
        from orchestrator.domain.machine import MachineConfig

        return MachineConfig()

    def begins(self, job: "Job") -> "StartPing | None":
        """Send the start ping of a run that is about to begin; return it, or None when no notices are configured."""
        if self._machine is None or not self._machine.notice:
            return None
        from orchestrator.app.heartbeat import start_ping

        return start_ping(self._where, job, self._machine, self._say)

    def ended(self, job: "Job", report: "RunReport", begun: "StartPing | None") -> None:
        """Queue the end ping of a run that is already recorded in history; then publish the changes."""
        if report.outcome is not Outcome.NOTHING:
            self._thin()
        if self._machine is None:
            return
        if self._machine.notice:
            from orchestrator.app.heartbeat import queue_end_ping

            if begun is not None:
                begun.over()
            queue_end_ping(self._where, job, report, self._machine, self._say)
        self.changed()

    def _thin(self) -> None:
        """Remove the details of old runs, as [history] keep says; a failure is logged only."""
        from orchestrator.domain.machine import HistoryOptions

        keep = (self._machine.history if self._machine else HistoryOptions()).keep
        try:
            with compose.open_history(self._where) as history:
                history.thin(compose.now() - timedelta(seconds=keep))
        except HistoryError as error:
            self._say(f"the details of old runs could not be removed: {error.why}")

    def changed(self) -> None:
        """Write the metrics and send the notices after history has changed."""
        if self._machine is None:
            return
        if self._machine.metrics.textfile:
            from orchestrator.app.metrics import write_metrics

            write_metrics(self._where, self._jobs, self._machine, compose.now(), say=self._say)
        if has_subscribers(self._jobs, self._machine):
            from orchestrator.app.notify import notify_changes

            notify_changes(self._where, self._jobs, self._machine, compose.now(), say=self._say)
