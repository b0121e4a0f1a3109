"""The data model of the rsync engine, for surveys and decisions."""

from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import GateHello
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Changes, RestorePoint
from orchestrator.domain.units import Bytes

if TYPE_CHECKING:  # most surveys end before a tree is split, and many have no looks that are recorded
    from orchestrator.engines.rsync.next_look import NextLook
    from orchestrator.engines.rsync.parallel import ParallelCopies

PARTIAL = ".~poolferry-partial~"
OURS = ".poolferry"
WORK = f"{OURS}/work"
ROOT = "."  # among folders of ours that are open: the target's root itself
PARTIALS = f"{OURS}/partial"  # of a mirror: the part of a file that rsync keeps after an interruption
TEMPORARY = f"{OURS}/temporary"  # of a mirror: where rsync writes a file before it gets its name
CANNOT_CLOSE = "cannot-be-closed"  # a file in our folder: this filesystem stores no modes
RESTORE_MARKER = ".poolferry-restoring.json"
LARGE_FILE = Bytes(16 << 20)  # from here on a file is worth a comparison of its blocks, where it can be a clone
RESERVED = (PARTIAL, RESTORE_MARKER)  # never in a copy, at any path and of any type
WORTH_A_REMAINDER = 1 << 20  # bytes; within one machine a smaller file is soon copied anew
WORTH_A_REMAINDER_THERE = 1 << 16  # the same over a network, of which the slowest takes so much in some seconds
MOST_ALTERED = 50_000  # files with other metadata that are named; a later run mends what is beyond them
MOST_DIFFERING = 100_000  # paths; with more of them a copy gains little by links made before
MOST_NAMED = 1_000_000  # the same, for a gate, which links nothing by rsync
MOST_JOINED = 10_000  # names of files with several names: each takes a look at the source
CROWDED = (
    64  # names of one file: from here on the points of a few years may use up what a filesystem allows (ext4: 65,000)
)
MOST_NAMES = 65_000  # of one file; with more of them even a point alone has not enough
LOCK = f"{OURS}/lock"
BUSY = 75  # exit code of flock when the lock stays busy
MARKER = f"{OURS}/target.json"
UNREADABLE_OWNER = "(unreadable)"  # in place of a job, where the marker is damaged; no job has such a name
MANIFEST = f"{OURS}/manifest.gz"
LINK_UNCHANGED = "link-unchanged"  # what only a gate does, by itself
UNWRITTEN = "unwritten"  # a file in our folder: a note from before all is written to the disk until that is done
MIRROR_DAMAGED = f"{OURS}/mirror.damaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncProgram:
    """The abilities of one side's rsync, as it reports them. `gated`: a gate starts it, and keeps it apart from others."""

    version: tuple[int, ...]
    protocol: int
    checksums: tuple[str, ...]
    compressions: tuple[str, ...]
    gated: bool = False

    def at_least(self, *version: int) -> bool:
        """Return True when it is this version or a later one."""
        return self.version >= version


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSurvey:
    """The state of the source's root, or of one of its folders. `mounted`: it is the root of a filesystem of its own."""

    exists: bool
    directory: bool
    device: int
    mounted: bool
    empty: bool
    owner: int = 0
    shared: bool = False  # others may write into its root
    folder: str = ""  # its path
    leads: str = ""  # a link on the way to one of several folders: the path that it really has


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialFile:
    """A file that an earlier run began to copy: its path in the work tree, and the source's present size.

    `wanted` None: the source no longer has it. `orphan`: rsync was killed and would never use it again.
    """

    path: bytes
    lies: bytes
    orphan: bool
    have: int
    wanted: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSurvey:
    """The state of the target. `owner`: the job in its marker; None: no marker."""

    exists: bool
    parent: bool
    mounted: bool
    owner: str | None
    coarse: bool  # it stores whole seconds only
    points: tuple[RestorePoint, ...]
    damaged: tuple[bytes, ...]  # entries of the newest point in which a reading found damage
    work: bool
    half: tuple[PartialFile, ...]
    litter: tuple[str, ...]  # removed points and other leftovers of ours
    orphans: frozenset[str] = (
        frozenset()
    )  # of them, manifests and notes of points that are neither there nor being removed
    foreign: tuple[str, ...]  # entries there that are not ours
    free_bytes: int | None
    free_inodes: int | None
    whole_bytes: int | None = None  # of its filesystem
    latest: str | None
    mirrored: datetime | None = None  # when the mirror's manifest was written
    open: tuple[str, ...] = ()  # folders of ours that other users may enter
    swapped: tuple[str, ...] = ()  # names of ours with a link or another entry that is no folder
    root_owner: int = 0
    root_shared: bool = False  # other users than its owner may write into the root
    by_root: bool = False  # root looked at it, and will write there
    unwritten: bool = (
        False  # the disk may not have taken all of what was to become a point, or of what changed in a mirror
    )
    dated: tuple[str, ...] = ()  # of a mirror that never began: restore points that lie where it would be made
    stored: bool = False  # its copies keep owners, modes and kinds in attributes
    led: bool = False  # another user may exchange a folder above the root, so no path of it is safe to write by

    @property
    def all_damaged(self) -> bool:
        """Return True when nothing of the newest point may be believed: its manifest is missing, damaged or forged."""
        return b"" in self.damaged

    def holds_copies(self, job: str, *, points: bool) -> bool:
        """Return whether there are copies of the job; a lost marker takes no point away. `points`: else it is a mirror.

        Those of the other kind count, too, until the first of its kind is made. A work tree may have a manifest beside it, and is no mirror.
        """
        return self.owner in (None, job) and (
            bool(self.points) or self.holds_old_mirror if points else self.mirrored is not None or bool(self.dated)
        )

    @property
    def holds_old_mirror(self) -> bool:
        """Return whether a mirror lies where points are to be, and none is begun."""
        return self.owner is not None and self.mirrored is not None and not (self.points or self.work)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingPaths:
    """The paths in which source and newest copy differ, all of them; but of folders only those that one side lacks.

    `joined`: those that share their file with another name of the source, and not in the copy, or not as it is there.
    """

    paths: tuple[bytes, ...]
    joined: tuple[bytes, ...]
    present: tuple[bytes, ...] = ()  # of `paths`, those of the source, as far as no pattern leaves them out
    folders: tuple[bytes, ...] = ()  # folders that both have, with other metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The way in which source and newest point were compared. `began_ns`: when, by the clock of the filesystems.

    `settings`: a digest of what decides how rsync compares; empty: looks of this job are not recorded. `made_with`: the same when the
    point was made; empty: unknown. `own`: a look of our own was enough, and rsync compared what it found; `clean`: all was as recorded.
    `why`: the reason why it was not. `whole_ns`, `since`: when rsync last compared everything, and how many looks were our own since.
    `clock_ns`: the clock less the time since boot, when the look began. `verified`: what is as recorded at the source has the attributes
    that the point's manifest says, whose digest is `manifest`; empty: unknown. `recording`: for the next look.
    """

    began_ns: int
    clock_ns: int = 0
    settings: str = ""
    made_with: str = ""
    own: bool = False
    clean: bool = False
    why: str = ""
    whole_ns: int = 0
    since: int = 0
    verified: bool = False
    manifest: str = ""
    recording: "NextLook | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseFile:
    """A file with holes, by all its names. Units: bytes. `reads`: so often it is read, where names do not stay names of one file."""

    paths: tuple[bytes, ...]
    size: int
    hole: int
    owner: int
    reads: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """A number of rsyncs and its reason. `why`: for a plan; empty where the job file says it, or there is little to copy."""

    count: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncSurvey:
    """Everything that a plan needs."""

    here: RsyncProgram | None  # None: not read, as both sides use this machine's rsync
    there: RsyncProgram | None
    source: SourceSurvey
    target: TargetSurvey
    changes: Changes | None
    unread: bool = False  # the survey could not read everything, so an equal result is uncertain
    holes: bool | None = None  # whether files of the source have holes; None: unknown
    parallel_copies: "ParallelCopies | Refusal | None" = None  # None: one rsync copies all
    side_by_side: SideBySide = SideBySide(count=1, why="")
    noted: bool = True  # our notes say what an interrupted copy wrote
    reserved: tuple[bytes, ...] = ()  # paths of the source with a name of ours, if a listing found some
    sparse: tuple[SparseFile, ...] = ()  # files that are left out for their holes
    refused: tuple[tuple[bytes, str], ...] = ()  # entries that the target did not take just now, each with the reason
    differing: DifferingPaths | None = None  # None: unknown, or too many to name
    clones: bool = False  # the target's filesystem may make clones, and enough differs for large files to be among it
    walled: bool = False  # no link in a tree leads our rsync elsewhere, so it may be told paths by name
    parts: tuple[SourceSurvey, ...] = ()  # of a source of several folders, each of them
    others: tuple[bytes, ...] = ()  # of such a source, what the newest copy holds besides: it was taken from the list
    gate: GateHello | None = None  # the gate that our key goes through there
    look: Look | None = None  # how source and newest point were compared; None: there was none
    crowded: tuple[
        bytes, ...
    ] = ()  # names of files that are linked to no point, as one has used up the names that its file can have
    # Of a first copy: no entry of the source has access lists or attributes; what its review knows them by. None: some have, or may have.
    bare: tuple[bytes, ...] | None = None
    # Of a first copy: each file is so small that to copy it anew after a cut is no loss.
    small: bool = False
    # Of a first copy within this machine: so many programs write its small files before it; of several copies each one.
    ahead: int = 0
    # Large plain files that are copied whole, each with its bytes; so many programs write them before rsync, of a copy within this machine.
    large: tuple[tuple[bytes, int], ...] = ()
    ahead_of_large: int = 0
    older: frozenset[bytes] = frozenset()  # of these, the paths at which the newest copy has one, too
    mixed: str = ""  # how source and target of this machine overlap, though their paths do not; empty: they do not

    @property
    def made_with_the_same_patterns(self) -> bool:
        """Return True when the newest point was made by a run with the settings of this one, so it holds nothing that they leave out."""
        return self.look is not None and bool(self.look.settings) and self.look.settings == self.look.made_with

    @property
    def adds(self) -> bool:
        """Return True when our key only adds to points: then the far side keeps each copy apart from them, and links by itself."""
        return self.there is not None and self.there.gated

    def links_at_gate(self, base: RestorePoint | None) -> bool:
        """Return True when a gate links what is unchanged, after the copy: then no rsync changes what a point shares."""
        newest = self.points[-1].name if self.points else ""
        return self.adds and base is not None and base.name == newest and self.differing is not None and not self.unread

    @property
    def keeps_partials(self) -> bool:
        """Return True when the copying user owns the mirror's root during the whole run: then our folder in it is ours alone.

        The root gets the owner and mode of the source's root, and whoever may write into it may exchange its entries.
        """
        source, target = self.source, self.target
        if target.led:
            return False
        if self.parts:  # the root stays as it is
            return not target.root_shared and not (target.by_root and target.root_owner)
        return source.owner == target.root_owner and not source.shared and not target.root_shared

    @property
    def points(self) -> tuple[RestorePoint, ...]:
        """Return the restore points on the target, oldest first."""
        return self.target.points


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsEqual:
    """The check of a copy: the tree has as many entries and bytes as rsync reports as sent."""

    tree: Location

    def __str__(self) -> str:
        return f"{self.tree} holds what the source's list names"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointVisible:
    """The check of publishing: the tree has its name and its manifest, and `latest` names it."""

    root: Location
    name: str

    def __str__(self) -> str:
        return f"{self.root}/points/{self.name} is there and latest"
