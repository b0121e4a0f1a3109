"""The data model of the sanoid engine, for surveys and decisions.

sanoid names a snapshot "autosnap_2026-11-20_02:30:00_daily": its own prefix, the time, and after the last _ its kind. It counts
and removes only snapshots with such a name.
"""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location

INTERVALS = ("frequently", "hourly", "daily", "weekly", "monthly", "yearly")
QUARTER = 15  # minutes between two of the kind "frequently"
# Source: sanoid 2.1 and 2.2: one of a kind is removed when it is older than so many of these, and more than so many exist.
INTERVAL_SECONDS = {
    "frequently": QUARTER * 60, "hourly": 3600, "daily": 86400, "weekly": 7 * 86400, "monthly": 31 * 86400,
    "yearly": 31557600,
}  # fmt: skip
PREFIX = "autosnap"
FLAGS = "poolferry:flags"  # holds a "b" on a dataset whose restore is not finished
ALL = 1_000_000  # so many of a kind never exist: none of it is removed
EXIT_TOLD = 70  # exit code of our script when sanoid reported a failure and ended with 0
EXIT_NOT_TAKEN = 71  # and when a due snapshot does not exist afterwards


@dataclass(frozen=True, slots=True, kw_only=True)
class SanoidRules:
    """The number of snapshots of each kind to keep; a kind of 0 is neither taken nor removed."""

    frequently: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0

    def of(self, kind: str) -> int:
        """Return the number of one kind."""
        number: int = getattr(self, kind)
        return number

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds with a number above 0."""
        return tuple(kind for kind in INTERVALS if self.of(kind))

    def __str__(self) -> str:
        return ", ".join(f"{self.of(kind)} {kind}" for kind in self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class SanoidSnapshot:
    """A snapshot that sanoid took. `at`: the time that ZFS reports, which may differ from its name."""

    name: str
    kind: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SanoidSurvey:
    """The survey of the source. `guid`: of its root dataset; `datasets`: full names, the root first; `snapshots`: sanoid's own of the root, by time.

    `restoring`: a restore into its root is not finished; `unfinished`: the datasets below that say so of themselves. `at`: the time of
    that machine's clock, by which sanoid there decides.
    """

    root: Location
    at: datetime
    guid: int
    datasets: tuple[str, ...]
    snapshots: tuple[SanoidSnapshot, ...]
    restoring: bool = False
    unfinished: tuple[str, ...] = ()

    def of(self, kind: str) -> tuple[SanoidSnapshot, ...]:
        """Return the snapshots of one kind, the oldest first."""
        return tuple(each for each in self.snapshots if each.kind == kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class SanoidReport:
    """The report of sanoid: snapshots it took, removed, and could not remove (with the reason). All by full name.

    `missed`: those not taken, as one of that name was there.
    """

    taken: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    deferred: bool = False  # it changed nothing, as a send, a receive, or another sanoid is running there
