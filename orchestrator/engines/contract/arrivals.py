"""Engines that prune what others sent here."""

from typing import Any, Protocol

from orchestrator.domain.arrival import ArrivalRules, ReceivedPoint
from orchestrator.domain.job import Job


class ArrivalPruner(Protocol):
    """An engine whose source holds points that others sent: its plan asks `judge` of the request which of them go."""

    def arrival_rules(self, job: Job) -> ArrivalRules:
        """Return the limits within which a job prunes."""
        ...

    def received_points(self, world: Any) -> tuple[ReceivedPoint, ...]:
        """Return the points that a survey found."""
        ...
