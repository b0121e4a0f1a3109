"""The model of the zfs engine: its surveys, decisions and actions, as values.

A dataset is named by its path below the job's root: "" is the root itself, "a/b" lies two below. Snapshots and bookmarks are
identified by guid and ordered by createtxg, never by name or time.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.renamed_dataset import NOT_RENAMED, RenamedDataset

FLAGS = "poolferry:flags"  # on each dataset of a copy: the flags of its chain, as `SendFlags` writes them
RECEIVE_MARK = "poolferry:receive"  # on no dataset: it stands on the command line of each receive of ours
# That of a receive without any option. With one, zfs looks at the dataset four times more, and the pool has one transaction more.
RECEIVE_MARK_BARE = ("-s", "-u", "-s", "-u")
PLACEHOLDER = "poolferry:placeholder"  # on a dataset that we made only as a parent of others
WAITS = "poolferry:waits"  # on a restored dataset with all its data, which waits for a key or for its mountpoint


class DatasetType(StrEnum):
    """The type of a dataset."""

    FILESYSTEM = "filesystem"
    VOLUME = "volume"


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot of one dataset. `name`: the part after the @."""

    name: str
    guid: int
    createtxg: int

    @property
    def mark(self) -> str:
        """Return the part with @ that follows the dataset's name."""
        return f"@{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookmark:
    """A bookmark of one dataset: guid and createtxg are those of its snapshot."""

    name: str
    guid: int
    createtxg: int

    @property
    def mark(self) -> str:
        """Return the part with # that follows the dataset's name."""
        return f"#{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFlags:
    """The flags of a chain: fixed with its first send, as ZFS refuses some changes later. `raw`: encrypted as stored.

    `backup`: a copy that is being restored, with its source's properties. A dataset with that flag is not complete yet.
    """

    raw: bool = False
    large: bool = True
    compressed: bool = True
    embedded: bool = True
    backup: bool = False

    def __str__(self) -> str:
        letters = zip("wLceb", (self.raw, self.large, self.compressed, self.embedded, self.backup), strict=True)
        return "".join(letter for letter, told in letters if told) or "-"


def parse_flags(text: str) -> SendFlags | None:
    """Parse the flags of a dataset's property; None for a value that is not ours."""
    if text != "-" and (not text or set(text) - set("wLceb")):
        return None
    return SendFlags(
        raw="w" in text, large="L" in text, compressed="c" in text, embedded="e" in text, backup="b" in text
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One dataset in a survey; snapshots and bookmarks by createtxg, oldest first. None: not reported, or none.

    `origin`: the full name of the snapshot that a clone comes from. `token`: a receive was interrupted here and can resume.
    `partial`: a receive was interrupted here, or is running (the hidden %recv child, or a dataset without a complete snapshot).
    `flags`, `placeholder`, `waits`: our own properties, set on this very dataset. `bare`: it was a placeholder and has received no
    properties since: the first received ones clear all that are set on it. `used`: bytes, including all datasets below.
    `burdens`: properties set on it that would weaken a copy, or burden its pool, with their values; only of a source.
    `exposed`: those of a copy by which it may be written to, or mounts by itself, as "readonly=off".
    """

    name: str
    kind: DatasetType
    guid: int
    createtxg: int
    snapshots: tuple[Snapshot, ...] = ()
    bookmarks: tuple[Bookmark, ...] = ()
    origin: str | None = None
    encrypted: bool = False
    encryption_root: str | None = None
    key_loaded: bool = False
    token: str | None = None
    partial: bool = False
    written: int | None = None
    mounted: bool = False
    flags: SendFlags | None = None
    placeholder: bool = False
    waits: bool = False
    bare: bool = False
    used: int | None = None
    burdens: Mapping[str, str] = field(default_factory=dict)
    exposed: tuple[str, ...] = ()

    @property
    def newest(self) -> Snapshot | None:
        """Return the newest snapshot."""
        return self.snapshots[-1] if self.snapshots else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SshAddresses:
    """The addresses of an ssh connection, as its remote end sees them."""

    here: str
    there: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MbufferConnection:
    """An mbuffer connection: from the sender, by the address that the receiver sees, to the receiver."""

    sender: str
    receiver: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SideSurvey:
    """One side in a survey. `root`: the dataset that the job names; `datasets`: by name below it.

    `programs`: channel programs (`zfs program`) may be used there; `above`: the existing datasets above the root, by full
    names, the pool's first; `inherits_encryption`: the root would be encrypted like its parent. `sudo`: changes there need
    sudo; `mbuffer`: it is installed there; `wire`: the addresses of our connection.
    """

    root: Location
    pool_guid: int
    version: tuple[int, ...]
    available: int | None = None
    programs: bool = False
    above: frozenset[str] = frozenset()
    inherits_encryption: bool = False
    sudo: bool = False
    mbuffer: bool = True
    wire: SshAddresses | None = None
    datasets: Mapping[str, Dataset] = field(default_factory=dict)

    def full(self, name: str) -> str:
        """Return the dataset's full name."""
        return f"{self.root.path}/{name}" if name else self.root.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeToken:
    """The content of a resume token. `to_name`: the full name of the snapshot, as it was then."""

    text: str
    to_guid: int
    to_name: str
    from_guid: int | None
    object: int
    offset: int
    bytes: int
    flags: SendFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveProcess:
    """A process that receives into a dataset of the target. `ours`: a run of ours began it."""

    pid: int
    ours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedEntry:
    """An entry of a dataset that changed since a snapshot, as `zfs diff` shows it. `path`: below the dataset; "" is itself.

    `how`: "M" modified, "+" made, "-" removed, "R" renamed. `folder`: it is one.
    """

    how: str
    folder: bool
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ZfsSurvey:
    """The input of a plan. `tokens`: the content of each token of the target; None: it could not be read.

    `target`: of the copy's snapshots that the source knows, only the newest may be listed. `receiving`: datasets of the target
    into which a process receives now. `held`: by dataset, the names of snapshots that our hold for this copy keeps;
    `held_older`: those kept by a hold whose tag names only the pool. `created`: creation times of snapshots, by guid; only for
    catch-up = "kept". `returning`: the source is a copy that is being restored, or a part of one, and this is the copy's root.
    `changes`: the changed entries of copies that were written to, where they could be seen. `origins`: the guids of snapshots outside of
    the source that its clones come from, where these share none with their copies. `moved`: where the dataset lies by its guid that was
    the source's root at the last run, and `moved_copy`: that was the copy's, each looked for only where it is not where it was.
    `plain`: by dataset, the guids of snapshots from the newest of its copy on, where a stream brings the copy nothing but data: neither
    dataset nor snapshot has a property of its own that the copy has not received. None where that was not looked for, or is not known.
    """

    source: SideSurvey
    target: SideSurvey
    tokens: Mapping[str, ResumeToken | None] = field(default_factory=dict)
    receiving: Mapping[str, ReceiveProcess] = field(default_factory=dict)
    held: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    held_older: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    created: Mapping[int, datetime] = field(default_factory=dict)
    returning: str | None = None
    changes: Mapping[str, tuple[ChangedEntry, ...]] = field(default_factory=dict)
    origins: Mapping[str, int] = field(default_factory=dict)
    plain: Mapping[str, frozenset[int]] = field(default_factory=dict)
    moved: RenamedDataset = NOT_RENAMED
    moved_copy: RenamedDataset = NOT_RENAMED


# Actions of a plan, one class each. `dataset`: the name below the root, the same on both sides.


class ReceiveEncryption(StrEnum):
    """The encryption of a dataset that is not sent raw, below an encrypted one.

    Why: otherwise it would be encrypted with a key that is not there; or, with the stream's own properties, not at all.
    """

    AS_ABOVE = "as above"  # `-x encryption`: the target encrypts all datasets there
    OFF = "off"  # `-o encryption=off`: the parent is a raw copy, with the source's key


@dataclass(frozen=True, slots=True, kw_only=True)
class FullSend:
    """A send of a full snapshot, into a dataset that does not exist, or is our placeholder."""

    dataset: str
    snapshot: Snapshot
    flags: SendFlags
    why: str
    encryption: ReceiveEncryption | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncrementalSend:
    """A send from a base that both sides hold to a newer snapshot; `between`: with all snapshots between (-I).

    `origin`: the base is a snapshot of this other dataset, and the copy becomes a clone of that dataset's copy.
    """

    dataset: str
    base: Snapshot | Bookmark
    snapshot: Snapshot
    between: bool
    flags: SendFlags
    why: str
    origin: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedSend:
    """A send of the rest of an interrupted stream, with the token's flags. `vain`: the record of a failure."""

    dataset: str
    token: ResumeToken
    snapshot: Snapshot
    first: bool  # the dataset had no complete snapshot before it
    why: str
    vain: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortReceive:
    """An action that discards a partial receive that cannot resume (`zfs receive -A`). `told`: the record of it."""

    dataset: str
    why: str
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReceive:
    """An action that ends a process that still receives from a broken connection, so that its token can be used."""

    dataset: str
    pid: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """An action that rolls back to a snapshot on both sides; `dies`: the target's snapshots and bytes it destroys."""

    dataset: str
    to: Snapshot
    dies: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameAside:
    """An action that renames the target's dataset and all below it, to free its name. `to`: its full new name."""

    dataset: str
    to: str
    why: str
    kind: DatasetType = DatasetType.FILESYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameCopy:
    """An action that renames a copy with all below it, as its source was renamed. `to`: its full new name."""

    dataset: str
    to: str
    why: str
    kind: DatasetType = DatasetType.FILESYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOverCopy:
    """An action that makes a copy of another program's ours: read-only, never mounted by itself, with our mark."""

    dataset: str
    flags: SendFlags
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePlaceholder:
    """An action that creates a dataset that is never mounted, only as a parent of others.

    `above`: it lies above the root, and `dataset` is its full name.
    """

    dataset: str
    above: bool = False
    encryption: ReceiveEncryption | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldBases:
    """Actions before the sends: bookmarks of the snapshots sent to this copy, and holds on those that a resume would need.

    Each is (dataset, snapshot). `between`: held too, as part of one stream of several snapshots; the bookmarks around them
    record this.
    """

    cursors: tuple[tuple[str, Snapshot], ...] = ()
    holds: tuple[tuple[str, Snapshot], ...] = ()
    between: tuple[tuple[str, Snapshot], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBases:
    """Actions after the confirmation: release of bookmarks that newer ones replace, and of holds that no token needs.

    `older`: those holds whose tag names only the pool.
    """

    cursors: tuple[tuple[str, Bookmark], ...] = ()
    holds: tuple[tuple[str, Snapshot], ...] = ()
    between: tuple[tuple[str, Snapshot], ...] = ()
    older: tuple[tuple[str, Snapshot], ...] = ()


Send = FullSend | IncrementalSend | ResumedSend
Action = (
    Send
    | AbortReceive
    | EndReceive
    | Rollback
    | RenameAside
    | RenameCopy
    | TakeOverCopy
    | CreatePlaceholder
    | HoldBases
    | ReleaseBases
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPlan:
    """The decision, in stages: actions of one dataset in order, those of different datasets in parallel.

    `refusals`: datasets that are left out, each with the reason. `current`: the name of the root's newest snapshot, as the
    target has it afterwards. `again`: the next actions depend on the result of these, so the same run surveys again.
    """

    stages: tuple[tuple[Action, ...], ...]
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    resumes: str | None = None
    current: str | None = None
    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPresent:
    """The check after a send: the newest snapshot of the target's dataset has this guid."""

    dataset: Location
    guid: int
    snapshot: str

    def __str__(self) -> str:
        return f"the newest snapshot of {self.dataset} is {self.snapshot} (guid {self.guid})"
