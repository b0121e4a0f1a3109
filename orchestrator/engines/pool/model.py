"""The data model of the pool engine: what it reads, and what it reports.

Names are ZFS's own: a pool consists of top-level vdevs (a disk, a mirror, a raidz), and these of devices.
"""

from collections.abc import Iterator
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location

DATA = "data"
HEALTHY = ("ONLINE", "AVAIL", "INUSE")  # the last two are states of spares
GROUPS = ("mirror", "raidz", "draid", "replacing", "spare")
# The names of all advice.
ADVICE = (
    "arc", "capacity", "checksum-off", "dedup", "device", "device-names", "mixed", "old-scrub", "repaired", "slow",
    "sync-disabled", "uneven", "other",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Vdev:
    """A vdev and its members. `kind`: "disk", "file", "hole", or the group: "mirror", "raidz2", "replacing" …

    Numbers count errors since the last `zpool clear`, or since the import; `slow`: answers that took longer than 30 s.
    """

    name: str
    kind: str
    role: str
    state: str
    reads: int = 0
    writes: int = 0
    checksums: int = 0
    slow: int = 0
    note: str = ""
    below: tuple["Vdev", ...] = ()

    def all(self) -> Iterator["Vdev"]:
        """Yield the device itself and all its descendants."""
        yield self
        for each in self.below:
            yield from each.all()

    @property
    def leaf(self) -> bool:
        """Return True when it is a device, and not a group of devices."""
        return not self.below and not self.kind.startswith(GROUPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolScan:
    """The newest scrub or resilver. `kind`: "scrub" or "resilver"; `state`: "finished", "running", "paused", "canceled".

    `ended` None: it is running. `share`: the part that is done, from 0 to 1, while it is running. `whole`: it looked at all that
    was allocated when it began, not at what some transactions wrote (`zpool scrub -C`, `-S`, since OpenZFS 2.4).
    """

    kind: str
    state: str
    began: datetime | None = None
    ended: datetime | None = None
    share: float | None = None
    left: float | None = None  # seconds, by ZFS's own estimate
    repaired: int = 0
    errors: int = 0
    whole: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SpaceUsage:
    """The used and free space of a top-level vdev, or of the pool itself."""

    name: str
    size: int
    used: int
    free: int

    @property
    def share(self) -> float:
        """Return the used share of the total, from 0 to 1."""
        return self.used / self.size if self.size else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetProperty:
    """A property that was set locally on a dataset."""

    dataset: str
    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUsage:
    """Memory in bytes: the machine's total, the ARC's limit, and the use of dedup tables; None: unknown."""

    total: int | None = None
    arc_most: int | None = None
    dedup: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """The content of `zpool status`. `says` and `action`: its own text about problems; `damaged`: files with lost data.

    `errors`: how many errors no redundancy could repair.
    """

    name: str
    state: str
    says: str
    action: str
    scan: PoolScan | None
    devices: tuple[Vdev, ...]
    errors: int
    damaged: tuple[str, ...] = ()

    def each(self) -> Iterator[Vdev]:
        """Yield all devices and groups."""
        for device in self.devices:
            yield from device.all()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSurvey:
    """The survey of one pool. `at`: by that machine's clock, as are the times of scans.

    `vdevs`: the top-level ones that hold data; `at_work`: sends, receives and copies that are running from or into this pool.
    """

    root: Location
    at: datetime
    version: tuple[int, ...]
    guid: str
    status: PoolStatus
    whole: SpaceUsage
    vdevs: tuple[SpaceUsage, ...]
    settings: tuple[DatasetProperty, ...]
    memory: MemoryUsage
    at_work: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFinding:
    """One problem of a pool. `grave`: data is lost, or the next fault loses it."""

    word: str
    grave: bool
    says: str
    hint: str

    def __str__(self) -> str:
        return f"{self.says}: {self.hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubState:
    """The expected state after a step: the pool is being scrubbed since `since`, or that scrub is paused."""

    root: Location
    since: datetime
    paused: bool

    def __str__(self) -> str:
        return f"the scrub of {self.root} is paused" if self.paused else f"a scrub of {self.root} is running"
