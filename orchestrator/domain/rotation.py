"""Rotation: sets of removable disks, the disks that were enrolled in them, and what is remembered of each."""

from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, Seconds

EXPECTS = ("oldest", "fixed", "weekday", "month-end")
CONTENTS = ("ext4", "xfs", "btrfs", "zfs")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
VISIT_WITHIN = Seconds(86400)
ROOM = "/run/poolferry/disks"  # below it disks are mounted, each under its own name
BELOW = "+disk"  # behind a disk's name: the node under its LUKS container that holds a pool; no disk's own name has a +
POOL = "poolferry-"  # before the name of a disk: its pool while it is imported, and its node below /dev/mapper


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """A disk as targets.toml declares it. `identity`: what udev calls ID_FS_UUID: of a filesystem, of LUKS, or a pool's guid.

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
        """The disk for people: its name, and what its owner noted of it."""
        return f"{self.name} ({self.note})" if self.note else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationSet:
    """Disks of which any one satisfies a job; `expect` tells which one is asked for. Limits: None, nothing is promised.

    `verify`: so much of the copies is read again in each visit; None: nothing beyond what the jobs themselves promise.
    `away_at_least`: so many must not be plugged in at once with the rest. `keep_for`: how long a month's disk is left alone.
    `visit_within`: a copy to one of its disks that would take longer is warned of.
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
    verify: Bytes | None = None
    visit_within: Seconds = VISIT_WITHIN

    def disk(self, name: str) -> Disk:
        """The member of this name. Raises: KeyError."""
        return {disk.name: disk for disk in self.disks}[name]


class Standing(StrEnum):
    """What a person told of a disk; only ACTIVE disks are asked for and missed."""

    ACTIVE = "active"
    LOST = "lost"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Who a disk is, as it is written on the disk itself. `owner` is a machine; `generation` counts the visits."""

    disk: str
    name: str
    set: str
    owner: str
    host: str
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Whether copies may be written to a disk: it, and nothing else, lies where they go. `ails`: why nothing more can be."""

    attached: bool
    ails: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What history knows of a disk. Serial, model and wwn are advice only: what bridges tell is not to be relied on.

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
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One stay of a disk. `released` None: it is still here, or was pulled out. `safe`: it was let go in good order.

    `health`: what the disk said is wrong with it; empty: that it is well; None: it said nothing. `slow`: what was told of
    a copy that would have taken too long; empty: nothing.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """Where a disk is, since when, and what was noted."""

    place: str
    since: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snooze:
    """Nobody waits for a disk until an instant."""

    since: datetime
    until: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """What an increment to a disk would start from. `kept`: until when the snapshot stays; `bookmark`: one is there.

    `snapshot` False and no bookmark: there is nothing to start from. `whole`: bytes of a full copy.
    """

    dataset: str
    snapshot: bool
    bookmark: bool
    kept: datetime | None
    whole: Bytes | None
