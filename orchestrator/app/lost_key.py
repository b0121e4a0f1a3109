"""This host's key where it is gone, though manifests were tagged with it."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.domain.names import KEY_FILE
from orchestrator.views.status import LostKey

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.history.views import HistoryReader


def find_lost_key(state: str, jobs: "Sequence[Job]", views: "HistoryReader") -> LostKey | None:
    """Return what is known of the key that a state directory lacks; None: it is there, or there never was one."""
    path = f"{state}/{KEY_FILE}"
    if os.path.lexists(path):
        return None
    from orchestrator.domain.answers import NOT_READ
    from orchestrator.domain.authentication import USES, parse_uses

    keys: dict[str, str] = {}
    for job, memory in views.memory_of_jobs([job.name for job in jobs]).items():
        for fact, told in memory.items():
            try:
                uses = parse_uses(told) if fact.startswith(USES) else ()
            except NOT_READ:
                continue  # a damaged record: the run that needs it says so
            if uses:
                keys[job] = uses[-1][0]
    return LostKey(path=path, keys=keys) if keys else None
