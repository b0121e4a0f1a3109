"""Rotation sets of removable disks, their enrolled disks, and the known state of each disk."""

from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, Seconds

EXPECTS = ("oldest", "fixed", "weekday", "month-end")
CONTENTS = ("ext4", "xfs", "btrfs", "zfs")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
VISIT_WITHIN = Seconds(86400)
MOUNT_ROOT = "/run/poolferry/disks"  # below it disks are mounted, each under its own name
LUKS_NODE_SUFFIX = (
    "+disk"  # after a disk's name: the node of the opened LUKS container that holds a pool; no disk's own name has a +
)
POOL_PREFIX = "poolferry-"  # before the name of a disk: its pool while it is imported, and its node below /dev/mapper


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk as targets.toml declares it. `identity`: udev's ID_FS_UUID of a filesystem or LUKS, or a pool's guid.

    `inside`: of the filesystem or pool in an opened LUKS container; then `identity` is the container's.
    """

    name: str
    set: str
    identity: str
    content: str
    inside: str | None = None
    key_file: str | None = None
    days: tuple[str, ...] = ()
    note: str = ""

    @property
    def called(self) -> str:
        """Return the disk's name for people, with the owner's note."""
        return f"{self.name} ({self.note})" if self.note else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationSet:
    """Disks of which any one satisfies a job; `expect` selects the disk to request. Limits: None means no limit.

    `verify`: so much of the copies is read again in each visit; None: only what the jobs' own settings require.
    `away_at_least`: so many must stay away while others are plugged in. `keep_for`: how long a month's disk is left alone.
    `visit_within`: a copy to one of its disks that would take longer gets a warning. `use_again`: scheduled runs use a disk also
    when it was said to be safe to remove and nobody took it away.
    """

    name: str
    disks: tuple[Disk, ...]
    expect: str = "oldest"
    order: tuple[str, ...] = ()
    fresh_within: Seconds | None = None
    each_within: Seconds | None = None
    away_at_least: int = 0
    keep_for: Seconds | None = None
    power_off: bool = True
    use_again: bool = False
    verify: Bytes | None = None
    visit_within: Seconds = VISIT_WITHIN

    def disk(self, name: str) -> Disk:
        """Return the disk of this name. Raises: KeyError."""
        return {disk.name: disk for disk in self.disks}[name]


ATTACHED, IN_TRANSIT, AT_MACHINE = "attached", "in transit", "here"  # places that visits note by themselves
_SELF_NOTED = {
    ATTACHED: "it was last attached to this machine",
    IN_TRANSIT: "it was taken away after its last visit, and nobody said where to",
    AT_MACHINE: "it was last at this machine",
}


def describe_place(place: str) -> str:
    """Return where a disk is that is not plugged in, as text; empty when that is unknown."""
    return _SELF_NOTED.get(place, f"it is at: {place}") if place else ""


class DiskState(StrEnum):
    """Status of a disk as a person set it; only ACTIVE disks are requested and reported as missing."""

    ACTIVE = "active"
    LOST = "lost"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskMarker:
    """Identity of a disk, as written on the disk itself. `owner` is a machine; `generation` counts the visits.

    `authentication`: the id of a host's key, and the tag that was made with it; empty: written by an earlier version.
    """

    disk: str
    name: str
    set: str
    owner: str
    host: str
    generation: int
    authentication: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsability:
    """Write state of a disk. `attached`: the disk is mounted where copies go; `ails`: why it takes no more copies."""

    attached: bool
    ails: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRecord:
    """A disk as history knows it. Serial, model and wwn are hints only, because USB bridges report wrong ones.

    `generation`: the last one that was decided; `written`: the last one that is on the disk for certain.
    """

    disk: str
    name: str
    set: str
    identity: str
    content: str
    size: int
    serial: str
    model: str
    wwn: str
    generation: int
    written: int
    enrolled: datetime
    standing: DiskState


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskVisit:
    """One visit of a disk. `released` None: it is still here, or was pulled out. `safe`: it was released properly.

    `health`: the problem that the disk reported; empty: none; None: it reported nothing. `slow`: the warning about a copy that
    would have taken too long; empty: none. `beside`: other devices in use in its case as it was let go; empty: none.
    """

    id: int
    disk: str
    arrived: datetime
    jobs: tuple[str, ...]
    outcome: str
    why: str
    released: datetime | None
    safe: bool
    health: str | None = None
    slow: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLocation:
    """Place of a disk, since when it is there, and a note."""

    place: str
    since: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSnooze:
    """A person's instruction not to wait for a disk until an instant."""

    since: datetime
    until: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementBase:
    """Base of an increment to a disk. `kept`: until when the snapshot is kept; `bookmark`: a bookmark exists.

    `snapshot` False and no bookmark: there is no base. `whole`: bytes of a full copy.
    """

    dataset: str
    snapshot: bool
    bookmark: bool
    kept: datetime | None
    whole: Bytes | None
