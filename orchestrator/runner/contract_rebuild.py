"""What an engine of datasets promises that can tell whether a pool may go, and what of it is back."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

from orchestrator.domain.evacuation import KitFacts, PoolSeen
from orchestrator.domain.job import Job
from orchestrator.domain.kit import Kit
from orchestrator.engines.contract import Asked
from orchestrator.process.executor import Reader


@runtime_checkable
class Rebuilder(Protocol):
    """An engine whose pools can be made anew."""

    def survey_pool(self, pool: str, reader: Reader) -> PoolSeen:
        """All that a pool of this machine holds."""
        ...

    def survey_held(self, job: Job, asked: Asked, reader: Reader) -> Mapping[str, frozenset[int]]:
        """The guids of all snapshots that a job's copy holds, by whole name of the source's dataset."""
        ...

    def survey_home(self, job: Job, asked: Asked, reader: Reader) -> Mapping[str, frozenset[int]]:
        """The guids of all snapshots at a job's source that it copies, by whole name of the dataset."""
        ...

    def survey_kit(self, job: Job, now: datetime, reader: Reader) -> Kit:
        """What is needed to build the source again."""
        ...

    def read_kit(self, content: str, pool: str) -> KitFacts:
        """What a kit says of a pool."""
        ...

    def compare_kits(self, before: str, now: str) -> tuple[str, ...]:
        """One line for each thing that is not as it was."""
        ...
