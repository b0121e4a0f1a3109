"""The points at a job's place as it shows them now, beside what history knows of them: a place without any may not be mounted."""

from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import HistoryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.domain.job import Job
    from orchestrator.domain.point import RestorePoint


def find_visible_points(settings: Settings, job: "Job") -> "tuple[RestorePoint, ...]":
    """Return the points at the place of a job, oldest first.

    Raises: OrchestratorError, also where a place held copies of the job and shows no sign of them.
    """
    from orchestrator.engines.registry import load_engine
    from orchestrator.runner.last_look import look_at_place

    with compose.make_reader(job, compose.make_stop_request(job), settings.log, apart=True) as reader:
        return look_at_place(
            job, load_engine(job.engine), reader, held=lambda: _held_points(settings, job), remembered=lambda: _facts(settings, job),
        )  # fmt: skip


def _facts(settings: Settings, job: "Job") -> "Mapping[str, str]":
    """Return the small facts of the job; none where history cannot be read, as of points that it holds."""
    try:
        with settings.views() as views:
            return views.memory(job.name)
    except HistoryError:
        return {}


def _held_points(settings: Settings, job: "Job") -> bool:
    """Return whether history knows points there; not of a place that lies elsewhere now.

    Why no error: copies can be read where nothing is remembered, too.
    """
    from orchestrator.domain.place import USED

    try:
        with settings.views() as views:
            used = views.memory(job.name).get(USED)
            moved = not job.target.disk and used not in (None, str(job.target.location))
            return not moved and any(each.place == job.target.name for each in views.points(job.name))
    except HistoryError:
        return False
