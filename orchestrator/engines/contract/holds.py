"""Engines that leave holds and bookmarks behind, and the report of them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step
from orchestrator.process.executor import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Our hold or bookmark that keeps a snapshot, or the record of one, on a pool.

    `kind`: "hold" or "bookmark"; `at`: the snapshot or bookmark; `target`: the pool it is kept for, by its name where known,
    else by its guid. `tag`: of a hold. `bytes`: space that only this keeps in use. `job`: the job that still needs it; None:
    none, so it may be released.
    """

    kind: str
    at: Location
    target: str
    since: datetime | None
    bytes: int | None
    job: str | None
    why: str
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinReport:
    """All pins that a survey found, and the places that it could not read."""

    pins: tuple[Pin, ...]
    unseen: tuple[tuple[Location, str], ...] = ()


class PinInspector(Protocol):
    """An engine that leaves pins behind, on the source for each target."""

    def survey_pins(self, jobs: tuple[Job, ...], reader: Callable[[Job], Reader]) -> Any:
        """Return all pins on the pools of the jobs' sources and places, read in one command for each pool."""
        ...

    def judge_pins(self, jobs: tuple[Job, ...], seen: Any, now: datetime) -> PinReport:
        """Return all pins, each with the job that still needs it and the reason."""
        ...

    def plan_release(self, seen: Any, pins: PinReport) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
        """Return the steps that release unneeded pins, for each pool; the job represents the pool."""
        ...
