"""Values that history views return, with texts unchanged, so names may hold surrogates."""

from datetime import datetime

from orchestrator.domain.errors import Evidence
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import Verdict
from orchestrator.domain.run import Outcome, RunType


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. `outcome` None: it goes on, or its process died and that is not recorded; then all fields below are None.

    `ended_at` of a run whose process died is when that was noticed; its `took_s` and `moved_bytes` are unknown.
    """

    id: int
    job: str
    engine: str
    source: str
    target: str
    begun_at: datetime
    begun_why: str
    kind: RunType
    pid: int
    process_started: int
    boot: str
    host: str
    outcome: Outcome | None
    ended_at: datetime | None
    why: str | None
    hint: str | None
    moved_bytes: int | None
    took_s: float | None
    resumed: bool | None
    attempts: int | None
    points: tuple[str, ...]
    warnings: tuple[str, ...]
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTotals:
    """Totals of a job's runs with one outcome: their number, bytes moved and time."""

    job: str
    outcome: str
    runs: int
    moved_bytes: int
    took_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step. `confirmed` None: it never ended. `moved` and `expected` None: unknown."""

    id: int
    attempt: int
    number: int
    action: str
    why: str
    worker: str
    commands: tuple[str, ...]
    expected: int | None
    begun_at: datetime
    ended_at: datetime | None
    moved: int | None
    confirmed: bool | None
    exits: tuple[int | None, ...]
    last_output: tuple[str, ...]
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRecord:
    """One attempt of a run: its decision (plan or refusal, as JSON), and why it ended if not well."""

    number: int
    begun_at: datetime
    ended_at: datetime | None
    why: str | None
    evidence: Evidence | None
    plan: str | None
    refusal: str | None
    steps: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """One message of a run."""

    said_at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRecord:
    """One call of a hook. `exit` None: poolferry ended it, or it never began."""

    called_at: datetime
    event: str
    argv: tuple[str, ...]
    exit: int | None
    took_s: float
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """One run with all its attempts, messages and hook calls."""

    run: RunRecord
    attempts: tuple[AttemptRecord, ...]
    events: tuple[EventRecord, ...]
    hooks: tuple[HookRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRecord:
    """One verification of a point. `left_out`: findings that were only counted."""

    id: int
    read_at: datetime
    scope: str
    entries: int
    files_read: int
    bytes_read: int
    took_s: float
    sound: bool
    counts: tuple[tuple[Verdict, int], ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRecord:
    """One restore point that exists.

    `made_at` None: no recorded run made it. `taken_at` None: its name holds no instant.
    `sound` None: never read again; False: a reading found damage, and no whole reading has been good since.
    `confirmed_at`: a survey found it as new as the source. `whole_at`: the last reading of all of it, good or bad.
    """

    job: str
    place: str
    name: str
    run: int | None
    taken_at: datetime | None
    made_at: datetime | None
    entries: int | None
    bytes: int | None
    verified_at: datetime | None
    confirmed_at: datetime | None
    sound: bool | None
    whole_at: datetime | None
    reading: VerificationRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCounts:
    """Counts of a job's restore points. `unsound`: found damaged; `whole_at`: when all of one was last read."""

    number: int
    newest: str | None
    unsound: int
    whole_at: datetime | None


NO_POINTS = PointCounts(number=0, newest=None, unsound=0, whole_at=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedCopy:
    """The newest verified copy at one place: the point `name` holds the source as it was at `current_at`."""

    place: str
    name: str
    current_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthFacts:
    """Facts needed to judge the health of a job.

    `copies`: per place, newest first. `last`: the newest runs first, an open one included. `failures`: runs that failed, were
    refused or interrupted since the last one that ended well; waiting runs neither count nor end the series. `last_failed`: the
    newest failure that no good run has followed; runs that waited or were interrupted after it do not count. `broken`: the last
    reading of an existing copy found differences from its manifest. `first_begun`: of the first run, where there are no copies;
    else None.
    """

    job: str
    copies: tuple[ConfirmedCopy, ...]
    last: tuple[RunRecord, ...]
    last_well: RunRecord | None
    last_failed: RunRecord | None
    failures: int
    going_on: RunRecord | None
    first_begun: datetime | None
    broken: bool

    @property
    def newest_copy(self) -> datetime | None:
        """Return the time of the newest verified copy, at any place."""
        return self.copies[0].current_at if self.copies else None
