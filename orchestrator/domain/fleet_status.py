"""Hosts, jobs and runs of a fleet, as its centre knows them."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, show_count

NEARLY_FULL = 0.9  # of a quota
CLOCK_ERROR = timedelta(minutes=5)  # a clock that is wrong by more is named


class HostState(StrEnum):
    """State of a host. SILENT: three times its own promise have passed without a sign of life. NEW: it has sent none yet."""

    HEARD = "heard"
    SILENT = "silent"
    NEW = "new"
    INVITED = "invited"
    LEFT = "left"


def silent_at_once(silent: int, heard: int) -> str:
    """Return what it means when so many hosts are silent beside so many that are heard; empty: nothing beyond each of them."""
    if silent < 3 or silent <= heard:
        return ""
    return (
        f"{silent} of {show_count(silent + heard, 'host')} are silent at once: look first at the centre, at the way to it and at its certificate; "
        "their runs go on meanwhile, and are told later"
    )


def twice_as_much(most: Bytes) -> str:
    """Return a quota of twice that size, as an option of a command; at least a mebibyte."""
    return f"{max(1, most * 2 >> 20)}M"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHost:
    """One host. `clock_ahead`: of its clock before the centre's, None: unknown; `bad`: its jobs that need a person.

    `oldest_copy`: the newest verified copy of the job whose copy is the oldest; `waiting`: rows that it had not told yet;
    `told`, `most`: bytes of the rows that it told, and its quota.
    """

    name: str
    state: HostState
    seen: datetime | None
    clock_ahead: timedelta | None
    version: str
    jobs: int
    bad: int
    oldest_copy: datetime | None
    waiting: int
    mistakes: int
    told: Bytes
    most: Bytes

    @property
    def nearly_full(self) -> bool:
        """Return True when more than nine tenths of its quota are used."""
        return self.told > self.most * NEARLY_FULL


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetJob:
    """One job of a host. `state`: late also by the centre's own look; instants by the host's own clock."""

    host: str
    host_state: HostState
    job: str
    state: str
    why: str
    hint: str
    late_after_s: float | None
    copied: datetime | None
    last_outcome: str | None
    last_ended: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """One run of a host. `arrived`: by the centre's clock, when it was told last."""

    host: str
    run: int
    incarnation: int
    job: str
    type: str
    outcome: str | None
    begun: datetime
    ended: datetime | None
    moved_bytes: int | None
    why: str
    arrived: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPool:
    """One pool that a job of `engine = "pool"` looks at, as its newest look found it. `looked`: by the host's clock; None: not yet.

    `found`: what that look says of its health, fill and scrub; `advice`: its warnings.
    """

    host: str
    host_state: HostState
    job: str
    pool: str
    state: str
    looked: datetime | None
    found: str
    advice: tuple[str, ...]
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRecord:
    """One row that a host told beside its runs. `key`: its number there, or a disk's id; `body`: its columns, as JSON has them."""

    host: str
    key: str
    incarnation: int
    body: Mapping[str, object]
    arrived: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetWeek:
    """The runs of all hosts that began in the last seven days. `worst`: the hosts with the most bad ends, and how many each had."""

    well: int
    badly: int
    moved_bytes: Bytes
    worst: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """The whole fleet. `hosts`, `jobs`: how many by state; `silent`, `bad`: the worst of them, of `bad_count` jobs in all."""

    hosts: tuple[tuple[str, int], ...]
    jobs: tuple[tuple[str, int], ...]
    silent: tuple[FleetHost, ...]
    odd: tuple[FleetHost, ...]
    bad: tuple[FleetJob, ...]
    bad_count: int

    @property
    def silent_count(self) -> int:
        """Return how many hosts are silent, of which `silent` are the worst."""
        return dict(self.hosts).get(HostState.SILENT.value, 0)

    @property
    def silent_sentence(self) -> str:
        """Return what it means when most hosts are silent; empty: most are heard."""
        return silent_at_once(self.silent_count, dict(self.hosts).get(HostState.HEARD.value, 0))

    @property
    def well(self) -> bool:
        """Return True when no host is silent or has used up its quota, and no job needs a person."""
        return not (self.silent or self.bad or any(each.mistakes or each.nearly_full for each in self.odd))
