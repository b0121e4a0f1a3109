"""Engines that can predict the base of the next copy, and whether it fits."""

from typing import Any, Protocol

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.rotation import IncrementBase
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Reader


class Forecaster(Protocol):
    """An engine that records on the source what each pool has, so that the next copy can be predicted in its absence."""

    def bases(self, job: Job, pool_guid: int, reader: Reader) -> "tuple[IncrementBase, ...]":
        """Return the base of the next copy for each dataset of the source."""
        ...


class SpaceChecker(Protocol):
    """An engine that can find out before a copy that its target has not enough free space."""

    def check_space(self, job: Job, world: Any, plan: Plan, request: RunRequest, reader: Reader) -> Plan | Refusal:
        """Return the plan, with a warning if it may not fit; or a refusal with what could be removed there. Raises: Stopped."""
        ...
