"""The state of all jobs for a page that many look at: judged anew when history or configuration changed, and after some seconds."""

import threading
from datetime import datetime

from orchestrator import compose
from orchestrator.app.history_cache import HistoryCache
from orchestrator.app.job_status import survey_jobs, why_unrecorded
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import HistoryError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.views.status import Overview

_FAILURE_KEPT_S = 2.0


class OverviewCache:
    """The state of all jobs; threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._known = HistoryCache[Overview](settings)
        self._last: Overview | None = None
        self._failed: tuple[float, HistoryError] | None = None

    def get(self, now: datetime) -> Overview:
        """Return the state of all jobs; of those that run, as they are at this moment. Raises: DeclarationError · HistoryError."""
        with self._guard:
            found, before = self._known.get("", lambda: self._survey(now)), self._last
            self._last = found
            running = [each.job.name for each in found.jobs if each.running]
            if found is before and running:
                fresh = {each.job.name: each for each in survey_jobs(self._settings, running, now).jobs}
                found = replace(found, jobs=tuple(fresh.get(each.job.name, each) for each in found.jobs))
            # A history that nobody can write does not change: what hinders that is looked at each time.
            why = why_unrecorded(self._settings.where.state)
            return found if why == found.unrecorded else replace(found, unrecorded=why)

    def _survey(self, now: datetime) -> Overview:
        """Return the state of all jobs; who waited meanwhile for a history that is locked does not wait for it again."""
        if self._failed is not None and compose.monotonic() - self._failed[0] < _FAILURE_KEPT_S:
            raise HistoryError(self._failed[1].why, hint=self._failed[1].hint)
        try:
            return survey_jobs(self._settings, (), now)
        except HistoryError as error:
            self._failed = compose.monotonic(), error
            raise
