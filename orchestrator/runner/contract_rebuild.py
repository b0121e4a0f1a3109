"""The interface of a dataset engine that checks whether a pool may be destroyed, and its restored parts."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol, runtime_checkable

from orchestrator.domain.evacuation import KitFacts, PoolContents
from orchestrator.domain.job import Job
from orchestrator.domain.kit import KitContents
from orchestrator.engines.contract import RunRequest
from orchestrator.process.executor import Reader


@runtime_checkable
class PoolRebuilder(Protocol):
    """An engine that can rebuild its pools."""

    def survey_pool(self, pool: str, reader: Reader) -> PoolContents:
        """Return everything that a pool of this machine holds."""
        ...

    def survey_copy_guids(self, job: Job, request: RunRequest, reader: Reader) -> Mapping[str, frozenset[int]]:
        """Return the guids of all snapshots of a job's copy, by full name of the source's dataset."""
        ...

    def survey_source_guids(self, job: Job, request: RunRequest, reader: Reader) -> Mapping[str, frozenset[int]]:
        """Return the guids of all snapshots at a job's source that it copies, by full name of the dataset."""
        ...

    def survey_kit(self, job: Job, now: datetime, reader: Reader) -> KitContents:
        """Return the data that are needed to rebuild the source."""
        ...

    def read_kit(self, content: str, pool: str) -> KitFacts:
        """Return the facts about a pool in a kit."""
        ...

    def compare_kits(self, before: str, now: str) -> tuple[str, ...]:
        """Return one line for each difference between two kits."""
        ...
