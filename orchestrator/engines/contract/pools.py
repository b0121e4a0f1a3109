"""Engines whose pools can be rebuilt, and the recovery kits that a rebuild needs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from orchestrator.domain.evacuation import KitFacts, PoolContents
from orchestrator.domain.job import Job
from orchestrator.domain.kit import KitContents
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.scrub import PoolScrub
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Reader


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

    def rename_kit(self, content: str, before: str, now: str, *, keep_paths: bool) -> str:
        """Return a kit as it is for a pool of another name. `keep_paths`: mounted where the former one was."""
        ...

    def compare_kits(self, before: str, now: str) -> tuple[str, ...]:
        """Return one line for each difference between two kits."""
        ...


class KitMaker(Protocol):
    """An engine that can rebuild its source from a kit."""

    def survey_kit(self, job: Job, now: datetime, reader: Reader) -> KitContents:
        """Return the data that are needed to rebuild the source."""
        ...

    def kit_for_place(self, job: Job, kit: KitContents) -> KitContents:
        """Return a kit as it is for the place of this job's copy."""
        ...

    def store_kit(self, job: Job, archive: str) -> Pipeline:
        """Return the pipeline that stores an archive of the kit's files beside the copy."""
        ...


class ScrubWatcher(Protocol):
    """An engine that can look for the newest scrub of a pool."""

    def survey_scrub(self, pool: Location, reader: Reader) -> PoolScrub | None:
        """Return the newest scrub of a pool; None: there is none, or a resilver came after it. Raises: OrchestratorError."""
        ...
