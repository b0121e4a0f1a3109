"""Whether anybody hears what we tell. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.machine import Machine


def anybody_listens(jobs: "Sequence[Job]", machine: "Machine") -> bool:
    """Whether there is a channel, or a hook for `late`."""
    return bool(machine.notice) or has_own_ears(jobs)


def has_own_ears(jobs: "Sequence[Job]") -> bool:
    """Whether a job has a hook for `late`, or for a disk that is."""
    return any((job.hooks.of("late") or job.hooks.of("disk-overdue")) for job in jobs)
