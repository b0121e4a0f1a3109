"""Values that many look at, made of history and configuration: made anew when one of these changed, and after some seconds."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from orchestrator import compose
from orchestrator.app.config_cache import config_fingerprint
from orchestrator.app.settings import Settings
from orchestrator.history.database import history_mark

_KEPT_S = 10.0  # a job becomes late by time alone
_MOST = 16  # values
_Value = TypeVar("_Value")


class HistoryCache(Generic[_Value]):
    """The values that were asked for last, by name; threads may share it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._kept: dict[Hashable, tuple[object, float, _Value]] = {}

    def get(self, name: Hashable, make: Callable[[], _Value]) -> _Value:
        """Return the value of this name, as it was where nothing changed since. Raises what making raises, which is not kept."""
        where = self._settings.where
        # Before the look: what is written meanwhile makes the next mark another one.
        mark = (history_mark(where.history), config_fingerprint(where.config))
        kept, instant = self._kept.get(name), compose.monotonic()
        if kept is not None and kept[0] == mark and instant - kept[1] <= _KEPT_S:
            return kept[2]
        made = make()
        with self._guard:
            self._kept.pop(name, None)
            self._kept[name] = (mark, instant, made)
            if len(self._kept) > _MOST:
                del self._kept[next(iter(self._kept))]
        return made
