"""Numbers for Prometheus, measured out of history; as an answer or as a file."""

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.job_status import standings
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.machine import Machine
from orchestrator.views import metrics as drawn
from orchestrator.views.metrics import Measured

if TYPE_CHECKING:
    from orchestrator.domain.job import Job

Say = Callable[[str], None]


def metrics_text(where: compose.Directories, jobs: "Sequence[Job]", now: datetime) -> bytes:
    """Return all metrics in Prometheus's text format. Raises: HistoryError; OrchestratorError without prometheus_client."""
    return drawn.metrics_text(_measure(where, jobs, now))


def write_metrics(
    where: compose.Directories, jobs: "Sequence[Job]", machine: Machine, now: datetime, *, say: Say
) -> None:
    """Write the file that [metrics] names, completely or not at all; nothing if it names none. Raises nothing: logs errors."""
    if machine.metrics.textfile is None:
        return
    try:
        write_whole(machine.metrics.textfile, metrics_text(where, jobs, now))
    except OSError as error:
        say(f"metrics: {machine.metrics.textfile} could not be written: {error.strerror}")
    except OrchestratorError as error:
        say(f"metrics: {error.why}" + (f": {error.cure}" if error.cure else ""))


def write_whole(path: str, content: bytes) -> None:
    """Write the file with that content, by one rename, readable by all. Raises: OSError.

    Why this other name: node_exporter takes every name that ends in .prom.
    """
    made = f"{path}.{os.getpid()}"
    try:
        with open(made, "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
        os.replace(made, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def _measure(where: compose.Directories, jobs: "Sequence[Job]", now: datetime) -> Measured:
    with compose.open_views(where) as views:
        found = tuple(standings(jobs, views, now=now, alive=compose.alive))
        declared = {job.name for job in jobs}
        totals = tuple(each for each in views.totals() if each.job in declared)
        owed = {name: each.slot for name, each in views.owing.owed().items() if name in declared}
        queued = len(views.telling.queued())
    return Measured(standing=found, totals=totals, owed=owed, queued=queued, now=now)
