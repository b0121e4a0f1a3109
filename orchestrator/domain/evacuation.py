"""A pool that is going to be emptied or destroyed: its contents, the copies of it, and the data that no copy holds."""

from collections.abc import Mapping
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDataset:
    """A dataset of the pool. `snapshots`: (name, guid), the oldest first; `written`: bytes since the newest one.

    `empty`: it holds no file; None: unknown, as only datasets without snapshots are read. `unsettled`: a restore of it, or of a
    dataset above it, has begun and not ended.
    """

    name: str
    volume: bool
    guid: int
    snapshots: tuple[tuple[str, int], ...]
    written: int
    empty: bool | None = None
    unsettled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestPool:
    """Another pool that lies on this one. `dataset`: the one that holds its device or file; empty: an unknown volume."""

    pool: str
    device: str
    dataset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolContents:
    """The pool as a survey found it, by full dataset names; without datasets the pool does not exist.

    `taken`: creation time of each snapshot, by guid. `mounts`: (what, folder) of all mounts of this machine. `guests`: other
    pools on it. `unmounted`: (dataset, folder) of those that `zfs mount -a` would mount, and that are not.
    """

    name: str
    datasets: tuple[PoolDataset, ...]
    taken: Mapping[int, datetime] = field(default_factory=dict)
    mounts: tuple[tuple[str, str], ...] = ()
    guests: tuple[GuestPool, ...] = ()
    unmounted: tuple[tuple[str, str], ...] = ()

    @property
    def guid(self) -> int | None:
        """Return the guid of the pool's own dataset, which changes when the pool is recreated; None: no such pool."""
        return next((one.guid for one in self.datasets if one.name == self.name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KitFacts:
    """Facts that a kit holds about a pool.

    `top_guid`: of its own dataset; `guids`: of each dataset's snapshots, the oldest first. `create`, `above`, `own`: the lines
    that create the pool, the datasets above the source, and the source itself again.
    """

    top_guid: int | None
    create: str
    above: tuple[str, ...]
    guids: Mapping[str, tuple[int, ...]]
    own: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCopy:
    """Snapshots and files of a job's datasets that one target, or one disk of a set, holds.

    `held`: the guids of its snapshots by full name of the source's dataset; None: it could not be surveyed, for the reason
    `why`. `files`: of a file job, by dataset, why it did not copy all of it; empty: it did. `point`: the restore point. From
    history: `known_at`: the source as it was then is verified there; `told`: the guids that it had. `disk`: the removable disk
    that holds it; `where`: the host, or where that disk is, as a person noted it.
    """

    job: str
    place: str
    held: Mapping[str, frozenset[int]] | None
    why: str = ""
    known_at: datetime | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    point: str = ""
    told: Mapping[str, frozenset[int]] = field(default_factory=dict)
    disk: str = ""
    where: str = ""

    @property
    def called(self) -> str:
        """Return the copy's place as text for people."""
        name = f"disk {self.disk}" if self.disk else self.place
        return f"{name} at {self.where}" if self.where else name


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetStatus:
    """Copy status of one dataset. `copies`: those with any of its snapshots, and how many; `lost`: data that no copy holds.

    `files`: copies that hold its files alone. `keeps`: the job whose copies it holds. `let_go`: a person named it as data that
    may be lost.
    """

    dataset: str
    snapshots: int
    copies: tuple[tuple[DatasetCopy, int], ...]
    lost: str = ""
    files: tuple[DatasetCopy, ...] = ()
    keeps: tuple[str, ...] = ()
    let_go: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEvacuation:
    """All datasets of a pool, and the copies that could not be surveyed. `trusted`: disks that count by their history."""

    standings: tuple[DatasetStatus, ...]
    unseen: tuple[DatasetCopy, ...]
    trusted: frozenset[str] = frozenset()

    @property
    def lost(self) -> tuple[DatasetStatus, ...]:
        """Return the datasets that would be lost without consent."""
        return tuple(one for one in self.standings if one.lost and not one.let_go)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvacuation:
    """One job whose source lies on a pool, after its run and a verification. `whole`: its place holds all of the source, as it was read.

    `why`: what the verification says; else what is not whole.
    """

    job: str
    source: str
    place: str
    whole: bool
    why: str
