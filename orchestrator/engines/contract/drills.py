"""Engines whose copies can be tested: restore tests of datasets, and scratch clones that may be written and dropped."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from orchestrator.domain.drill import DrillDataset, DrillPlan
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Plan, Refusal, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.comparison import ComparisonPlan
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchClone:
    """One scratch copy. `of`: its restore point; `until`: when it may expire by itself; `used`: bytes written to it."""

    name: str
    at: Location
    job: str
    of: str
    until: datetime | None
    used: int
    mountpoint: str


class DatasetDriller(Protocol):
    """An engine of datasets whose copies can be tested by a restore."""

    def survey_both(self, job: Job, request: RunRequest, reader: Reader, *, content: bool) -> Any:
        """Return a survey of both sides."""
        ...

    def survey_copy(self, job: Job, reader: Reader, *, away: str) -> Any:
        """Return a survey of the copy alone, like `survey_both`, if the source cannot be read: `away` is the reason."""
        ...

    def plan_drill(
        self, job: Job, seen: Any, request: RunRequest, *, whole: bool, kit: str | None
    ) -> DrillPlan | Refusal:
        """Plan the test copy. `kit`: the newest recovery kit, which lists guids that the source has lost."""
        ...

    def drill_check(self, job: Job, drill_plan: DrillPlan, folder: str, owner: Command) -> Command | Refusal:
        """Build the command of the owner's check on the restored data, mounted below a private folder."""
        ...

    def drill_listing(self, job: Job, drill_plan: DrillPlan, part: DrillDataset, keeps: str) -> Step:
        """Return the step that lists the files of a part: size, TAB, path, NUL."""
        ...

    def drill_damage(self, job: Job, drill_plan: DrillPlan, part: DrillDataset, names: str) -> Step:
        """Return the step that damages files of a part."""
        ...

    def plan_drill_comparison(
        self, job: Job, seen: Any, drill_plan: DrillPlan, names: Mapping[int, str], notes: str
    ) -> ComparisonPlan:
        """Return the comparison that reads the chosen files of each part, or all of it, on both sides."""
        ...


class ScratchCloner(Protocol):
    """An engine that can clone its points."""

    def plan_try(
        self, job: Job, below: str, until: RestorePoint, keep: datetime | None, run_request: RunRequest, reader: Reader
    ) -> Plan | Refusal:
        """Return the plan of a point's clones, or a refusal."""
        ...

    def survey_scratch(self, job: Job, reader: Reader) -> tuple[ScratchClone, ...]:
        """Return the scratch copies in a job's place."""
        ...

    def drop_scratch(self, job: Job, scratch: ScratchClone) -> Step:
        """Return the step that destroys one scratch copy."""
        ...
