"""The sign of life of a host of a fleet: how each job stands, and the limits by which a centre sees by itself what is late."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBeat:
    """One job as its host judges it. `late_after_s` None: never late; `copied`: the newest verified copy; `due`: since when."""

    job: str
    engine: str
    source: str
    target: str
    state: str
    why: str
    hint: str
    late_after_s: float | None
    copied_at: datetime | None
    due_at: datetime | None
    next_at: datetime | None
    running_at: datetime | None
    last_outcome: str | None
    last_ended_at: datetime | None
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBeat:
    """A host's sign of life. `every_s`: within what time the next one is promised; `waiting`: rows not told yet.

    `jobs` None: its files have mistakes, so what it said of its jobs last still stands. `mistakes`: how many.
    """

    host_at: datetime
    every_s: float
    version: str
    waiting: int
    mistakes: int
    jobs: tuple[JobBeat, ...] | None
