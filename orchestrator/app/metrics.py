"""Numbers for Prometheus, computed from history; as an answer or as a file."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.ended_jobs import stray_copies
from orchestrator.app.job_status import job_statuses
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.machine import MachineConfig
from orchestrator.views import metrics as drawn
from orchestrator.views.metrics import MetricsInput

if TYPE_CHECKING:
    from orchestrator.domain.job import Job

Say = Callable[[str], None]


def metrics_text(where: compose.Directories, jobs: "Sequence[Job]", now: datetime) -> bytes:
    """Return all metrics in Prometheus's text format. Raises: HistoryError; OrchestratorError without prometheus_client."""
    return drawn.metrics_text(_measure(where, jobs, now))


def write_metrics(
    where: compose.Directories, jobs: "Sequence[Job]", machine: MachineConfig, now: datetime, *, say: Say
) -> None:
    """Write the file that [metrics] names, completely or not at all; nothing if it names none. Raises nothing: logs errors."""
    if machine.metrics.textfile is None:
        return
    try:
        write_whole(machine.metrics.textfile, metrics_text(where, jobs, now))
    except OSError as error:
        say(f"metrics: {machine.metrics.textfile} could not be written: {error.strerror}")
    except OrchestratorError as error:
        say(f"metrics: {error.why}" + (f": {error.hint}" if error.hint else ""))


def write_whole(path: str, content: bytes) -> None:
    """Write the file with that content, by one rename, readable by all. Raises: OSError.

    Why another name while writing: node_exporter reads every file whose name ends in .prom. Its folder may be another user's.
    """
    from orchestrator.trees.beneath import new_file_at

    with new_file_at(path, mode=0o644) as file:
        file.write(content)


def _measure(where: compose.Directories, jobs: "Sequence[Job]", now: datetime) -> MetricsInput:
    with compose.open_history_reader(where) as views:
        found = tuple(job_statuses(jobs, views, now=now, alive=compose.is_process_alive))
        stray = stray_copies(jobs, views)
        declared = {job.name for job in jobs}
        totals = tuple(each for each in views.totals() if each.job in declared)
        due_runs = {name: each.scheduled_at for name, each in views.due_runs.due().items() if name in declared}
        queued = len(views.notifications.queued())
    return MetricsInput(standing=found, stray=stray, totals=totals, due=due_runs, queued=queued, now=now)
