"""The pools that jobs watch, as history remembers them."""

from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.app.job_status import survey_jobs

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.views.watched_pools import WatchedPool

_ENGINE = "pool"
_RUNS = 400


def list_watched_pools(settings: "Settings", now: datetime) -> "tuple[WatchedPool, ...]":
    """Return each watched pool with its newest runs. Raises: DeclarationError, HistoryError."""
    from orchestrator.views.watched_pools import watched_pool

    names = [job.name for job in settings.configuration().jobs if job.engine == _ENGINE]
    if not names:
        return ()
    found = survey_jobs(settings, names, now).jobs
    with settings.views() as views:
        return tuple(watched_pool(each, views.runs(each.job.name, _RUNS), now) for each in found)
