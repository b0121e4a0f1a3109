"""What is owed: slots that a schedule promised, what is remembered of them, and when the clock was not there."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run import Outcome
from orchestrator.domain.schedule import Schedule
from orchestrator.domain.window import Window

BY_STOP_AT = "(stop-at)"  # in the words of a run that its stop-at ended: such a run is over until the next slot


class Calendar(Protocol):
    """Turns schedules into instants, in the zone of one machine. Instants go in and come out in UTC."""

    def next_after(self, schedule: Schedule, instant: datetime) -> datetime | None:
        """The first slot after an instant; None: this schedule has none of its own."""

    def last_until(self, schedule: Schedule, after: datetime, until: datetime) -> datetime | None:
        """The last slot in (after, until]; None: there is none."""

    def count(self, schedule: Schedule, after: datetime, until: datetime) -> int:
        """How many slots lie in (after, until], up to a large number."""

    def show(self, instant: datetime) -> str:
        """The instant as people here read it."""

    def is_open(self, window: Window, instant: datetime) -> bool:
        """Whether the window is open at an instant."""

    def opens(self, window: Window, instant: datetime) -> datetime:
        """When the window opens next after an instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """Up to where the slots of a job have been seen to. `schedule`: the one it was judged by; `run`: the newest run then.

    Why the schedule: slots are counted by the one that held when they came, and by a new one from when it is first seen.
    """

    job: str
    at: datetime
    schedule: str
    run: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    """A run that a job owes. It stands for all `slots` from `slot` to `newest`.

    `after_run`: only a run with a higher number can serve it. `tried`: the newest run that tried; `not_before`: when to
    try again; `told`: why the last try did not do. `noted`: when it was written down.
    """

    job: str
    slot: datetime
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
class Past:
    """A run as far as the clock cares. `outcome` None: it goes on."""

    id: int
    begun: datetime
    begun_why: str
    ended: datetime | None
    outcome: Outcome | None
    why: str

    @property
    def well(self) -> bool:
        """Whether it ended well."""
        return self.outcome in (Outcome.DONE, Outcome.NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPast:
    """What history knows of a job's runs: the newest, the newest that ended, the newest that ended well.

    `since`: those after the owed row's `after_run`, oldest first.
    """

    last: Past | None = None
    last_ended: Past | None = None
    last_well: Past | None = None
    since: tuple[Past, ...] = ()


class Away(StrEnum):
    """Why the clock could not look."""

    OFF = "the machine was off"
    SLEPT = "the machine slept"
    STOPPED = "the daemon was not running"
    SET = "the clock was set forth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A span of time in which nobody looked."""

    away: Away
    begun: datetime
    ended: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A job that somebody told to rest. `until` None: until somebody resumes it."""

    job: str
    since: datetime
    until: datetime | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """What a daemon wrote down of itself: a later one knows from it since when nobody looked.

    `seen`: when it last lived for certain; `orderly`: it said that it ends.
    """

    boot: str
    pid: int
    begun: datetime
    seen: datetime
    orderly: bool
