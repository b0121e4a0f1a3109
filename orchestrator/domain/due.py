"""Due runs: scheduled times, what is remembered of them, and times when the daemon did not check the clock."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import TimeWindow
from orchestrator.domain.run import Outcome
from orchestrator.domain.schedule import Schedule

BY_STOP_AT = "(stop-at)"  # in the reason of a run that its stop-at ended: it is over until the next scheduled time


class Calendar(Protocol):
    """Conversion of schedules to instants, in the time zone of one machine. Instants go in and come out in UTC."""

    def next_after(self, schedule: Schedule, instant: datetime) -> datetime | None:
        """Return the first scheduled time after an instant; None when the schedule has no times of its own."""

    def last_until(self, schedule: Schedule, after: datetime, until: datetime) -> datetime | None:
        """Return the last scheduled time in (after, until]; None when there is none."""

    def count(self, schedule: Schedule, after: datetime, until: datetime) -> int:
        """Count the scheduled times in (after, until], up to a large number."""

    def show(self, instant: datetime) -> str:
        """Return the instant as text for people, in local time."""

    def is_open(self, window: TimeWindow, instant: datetime) -> bool:
        """Return True when the window is open at an instant."""

    def opens(self, window: TimeWindow, instant: datetime) -> datetime:
        """Return the next instant after `instant` at which the window opens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleAnchor:
    """The instant up to which a job's scheduled times are handled. `schedule`: as judged then; `run`: the newest then.

    Why the schedule: scheduled times are counted by the schedule that was valid then, and by a new one from when it is first
    read.
    """

    job: str
    at: datetime
    schedule: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRun:
    """A due run of a job. It stands for all `slots` scheduled times from `scheduled_at` to `newest`.

    `after_run`: only a run with a higher number can serve it. `tried`: the newest run that tried; `not_before`: when to
    try again; `told`: why the last try did not succeed. `noted`: when it was recorded.
    """

    job: str
    scheduled_at: datetime
    newest: datetime
    slots: int
    why: str
    noted: datetime
    after_run: int
    tries: int = 0
    tried: int = 0
    not_before: datetime | None = None
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """A run with the facts that the due decision needs. `outcome` None: the run is still going on."""

    id: int
    begun: datetime
    begun_why: str
    ended: datetime | None
    outcome: Outcome | None
    why: str

    @property
    def well(self) -> bool:
        """Return True when the run ended well."""
        return self.outcome is not None and self.outcome.well


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """A job's runs as history knows them: the newest, the newest that ended, and the newest that ended well.

    `since`: those after the due run's `after_run`, oldest first.
    """

    last: PastRun | None = None
    last_ended: PastRun | None = None
    last_well: PastRun | None = None
    since: tuple[PastRun, ...] = ()


_RESTART = timedelta(minutes=1)


class DowntimeCause(StrEnum):
    """Reason why the daemon could not check the clock."""

    OFF = "the machine was off"
    SLEPT = "the machine slept"
    STOPPED = "the daemon was not running"
    SET = "the clock was set forth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Downtime:
    """A span of time in which the daemon did not check the clock. `latest`: it may have begun later, as nobody recorded its begin."""

    away: DowntimeCause
    begun: datetime
    ended: datetime
    latest: bool = False

    @property
    def restart(self) -> bool:
        """Return True for a daemon that was ended in order and started again soon: nothing was missed by it."""
        short = self.ended - self.begun < _RESTART
        return self.away is DowntimeCause.STOPPED and not self.latest and short


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPause:
    """A job that a person paused. `until` None: until a person resumes it."""

    job: str
    since: datetime
    until: datetime | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A daemon's heartbeat record; a later daemon learns from it since when the clock was not checked.

    `seen`: when it was last certainly alive; `orderly`: it announced its end.
    """

    boot: str
    pid: int
    begun: datetime
    seen: datetime
    orderly: bool
