"""Whether what was decided fits where it goes, for engines that can tell before. Reads."""

from typing import Any, Protocol, runtime_checkable

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Plan, Refusal
from orchestrator.engines.contract import Asked, Engine
from orchestrator.process.executor import Reader


@runtime_checkable
class Roomy(Protocol):
    """An engine that can tell before a copy that its target has no room for it."""

    def check_room(self, job: Job, world: Any, plan: Plan, asked: Asked, reader: Reader) -> Plan | Refusal:
        """The plan, warned of what may not fit; or why it surely does not, with what could go there. Reads. Raises: Stopped."""
        ...


def fit(job: Job, engine: Engine, world: Any, plan: Plan, asked: Asked, reader: Reader) -> Plan | Refusal:
    """The plan, or why its target has no room for it. Raises: Stopped."""
    return engine.check_room(job, world, plan, asked, reader) if isinstance(engine, Roomy) else plan
