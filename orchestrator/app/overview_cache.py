"""The state of all jobs for a page that many look at: judged anew when history or configuration changed, and after some seconds."""

import threading
from datetime import datetime

from orchestrator import compose
from orchestrator.app.config_cache import config_fingerprint
from orchestrator.app.job_status import survey_jobs
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import HistoryError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.history.database import history_mark
from orchestrator.views.status import Overview

_KEPT_S = 10.0  # a job becomes late by time alone
_FAILURE_KEPT_S = 2.0


class OverviewCache:
    """The state of all jobs; threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._known: tuple[object, float, Overview] | None = None
        self._failed: tuple[float, HistoryError] | None = None

    def get(self, now: datetime) -> Overview:
        """Return the state of all jobs; of those that run, as they are at this moment. Raises: DeclarationError · HistoryError."""
        with self._guard:
            # Before the look: what is written meanwhile makes the next mark another one.
            mark = (history_mark(self._settings.where.history), config_fingerprint(self._settings.where.config))
            known, instant = self._known, compose.monotonic()
            if known is None or known[0] != mark or instant - known[1] > _KEPT_S:
                found = self._survey(now)
                self._known = (mark, instant, found)
                return found
            running = [each.job.name for each in known[2].jobs if each.running]
            if not running:
                return known[2]
            fresh = {each.job.name: each for each in survey_jobs(self._settings, running, now).jobs}
            return replace(known[2], jobs=tuple(fresh.get(each.job.name, each) for each in known[2].jobs))

    def _survey(self, now: datetime) -> Overview:
        """Return the state of all jobs; who waited meanwhile for a history that is locked does not wait for it again."""
        if self._failed is not None and compose.monotonic() - self._failed[0] < _FAILURE_KEPT_S:
            raise HistoryError(self._failed[1].why, hint=self._failed[1].hint)
        try:
            return survey_jobs(self._settings, (), now)
        except HistoryError as error:
            self._failed = compose.monotonic(), error
            raise
