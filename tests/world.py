"""A model of two ZFS pools: what a deed does there, what ZFS refuses, and what a cut leaves. Every value is plain data.

Names are whole names, as in "tank/a". A stream is a tuple of packets, one for each snapshot; each packet has `SIZE` bytes.
"""

from dataclasses import dataclass, field, replace

from orchestrator.engines.zfs.model import Bookmark, DatasetType, ReceiveEncryption, ResumeToken, SendFlags, Snapshot

SIZE = 4


class ZfsError(Exception):
    """Refusal of zfs, with its words."""


@dataclass(frozen=True)
class Partial:
    """Remains of a cut receive. `done`: bytes of the stream that arrived."""

    packet: "Packet"
    done: int
    made_dataset: bool

    @property
    def token(self) -> str:
        return f"1-{self.packet.guid}-{self.packet.from_guid}-{self.done}"


@dataclass(frozen=True)
class Packet:
    """One snapshot's part of a stream. `clone`: it makes a new dataset from the snapshot `from_guid`."""

    guid: int
    name: str
    told: str
    from_guid: int | None
    kind: DatasetType
    flags: SendFlags
    encrypted: bool
    clone: bool = False


@dataclass(frozen=True)
class Node:
    """A dataset."""

    guid: int
    txg: int
    kind: DatasetType = DatasetType.FILESYSTEM
    snapshots: tuple[Snapshot, ...] = ()
    bookmarks: tuple[Bookmark, ...] = ()
    origin: str | None = None
    encrypted: bool = False
    raw: bool = False  # received raw: its key is that of the source
    key_loaded: bool = True
    large: bool = False
    written: int = 0
    placeholder: bool = False
    partial: Partial | None = None
    flags: SendFlags | None = None
    exposed: tuple[str, ...] = ()
    waits: bool = False  # restored, and waiting for its key

    def find(self, guid: int) -> Snapshot | None:
        return next((one for one in self.snapshots if one.guid == guid), None)


@dataclass
class Pool:
    """A pool with its datasets, parents included."""

    name: str
    guid: int
    nodes: dict[str, Node] = field(default_factory=dict)
    holds: set[tuple[int, str]] = field(default_factory=set)  # (snapshot's guid, tag)
    receiving: dict[str, int] = field(default_factory=dict)
    strangers: set[int] = field(default_factory=set)  # processes among them that no run of ours began
    readable: set[str] = field(default_factory=set)  # copies of encrypted data that lie open
    txg: int = 100

    def __post_init__(self) -> None:
        self.nodes.setdefault(self.name, Node(guid=self.guid, txg=1))

    def tick(self) -> int:
        self.txg += 1
        return self.txg

    def new_guid(self) -> int:
        return self.guid * 1_000_000 + self.tick()

    def node(self, name: str) -> Node:
        if name not in self.nodes:
            raise ZfsError(f"cannot open '{name}': dataset does not exist")
        return self.nodes[name]

    def idle(self, name: str) -> Node:
        if name in self.receiving:
            raise ZfsError(f"{name}: dataset is busy")
        return self.node(name)

    def below(self, name: str) -> list[str]:
        return [one for one in self.nodes if one == name or one.startswith(f"{name}/")]

    def clones_of(self, mark: str) -> list[str]:
        return [name for name, node in self.nodes.items() if node.origin == mark]

    def guids(self) -> set[int]:
        return {one.guid for node in self.nodes.values() for one in node.snapshots}

    # What people and programs do.

    def create(self, name: str, **more: object) -> None:
        parent = name.rpartition("/")[0]
        if name in self.nodes:
            raise ZfsError(f"cannot create '{name}': dataset already exists")
        above = self.node(parent)
        if above.encrypted and not above.key_loaded and not more.get("raw") and more.get("encrypted") is not False:
            raise ZfsError("inherited key must be loaded")
        made = Node(guid=self.new_guid(), txg=self.tick(), encrypted=above.encrypted)
        self.nodes[name] = replace(made, **more)  # type: ignore[arg-type]

    def snapshot(self, name: str, mark: str) -> Snapshot:
        node = self.node(name)
        if any(one.name == mark for one in node.snapshots):
            raise ZfsError("dataset already exists")
        made = Snapshot(name=mark, guid=self.new_guid(), createtxg=self.tick())
        self.nodes[name] = replace(node, snapshots=(*node.snapshots, made), written=0)
        return made

    def destroy_snapshot(self, name: str, guid: int) -> None:
        node = self.idle(name)
        gone = node.find(guid)
        pinned = node.partial and not node.partial.made_dataset and node.partial.packet.from_guid == guid
        if gone is None:
            raise ZfsError("could not find any snapshots to destroy; check snapshot names")
        if any(held == guid for held, _ in self.holds):
            raise ZfsError("dataset is busy")
        if pinned or self.clones_of(f"{name}{gone.mark}"):
            raise ZfsError("snapshot has dependent clones")
        self.nodes[name] = replace(node, snapshots=tuple(one for one in node.snapshots if one.guid != guid))

    def rename_snapshot(self, name: str, guid: int, mark: str) -> None:
        node = self.node(name)
        if any(one.name == mark for one in node.snapshots):
            raise ZfsError("dataset already exists")
        old = next(one for one in node.snapshots if one.guid == guid)
        new = tuple(replace(one, name=mark) if one.guid == guid else one for one in node.snapshots)
        self.nodes[name] = replace(node, snapshots=new)
        self._reorigin({f"{name}{old.mark}": f"{name}@{mark}"})

    def bookmark(self, name: str, guid: int, mark: str) -> None:
        node = self.node(name)
        if any(one.name == mark for one in node.bookmarks):
            return
        of = node.find(guid)
        if of is None:
            raise ZfsError("dataset does not exist")
        made = Bookmark(name=mark, guid=guid, createtxg=of.createtxg)
        self.nodes[name] = replace(node, bookmarks=tuple(sorted((*node.bookmarks, made), key=lambda b: b.createtxg)))

    def destroy_bookmark(self, name: str, mark: str) -> None:
        node = self.node(name)
        self.nodes[name] = replace(node, bookmarks=tuple(one for one in node.bookmarks if one.name != mark))

    def destroy(self, name: str) -> None:
        gone = self.below(name)
        marks = {f"{one}{snapshot.mark}" for one in gone for snapshot in self.nodes[one].snapshots}
        guids = {snapshot.guid for one in gone for snapshot in self.nodes[one].snapshots}
        if any(node.origin in marks for one, node in self.nodes.items() if one not in gone):
            raise ZfsError("filesystem has dependent clones")
        if any(held in guids for held, _ in self.holds) or any(one in self.receiving for one in gone):
            raise ZfsError("dataset is busy")
        for one in gone:
            del self.nodes[one]

    def rename(self, name: str, to: str) -> None:
        self.node(name)
        self.node(to.rpartition("/")[0])
        if to in self.nodes or to.startswith(f"{name}/"):
            raise ZfsError("dataset already exists")
        moved = {old: to + old[len(name) :] for old in self.below(name)}
        if any(old in self.receiving for old in moved):
            raise ZfsError("dataset is busy")
        self._reorigin(
            {f"{old}{one.mark}": f"{new}{one.mark}" for old, new in moved.items() for one in self.nodes[old].snapshots}
        )
        self.nodes = {moved.get(old, old): node for old, node in self.nodes.items()}

    def clone(self, name: str, guid: int, to: str) -> None:
        of = next(one for one in self.node(name).snapshots if one.guid == guid)
        self.create(to, origin=f"{name}{of.mark}", encrypted=self.node(name).encrypted)

    def promote(self, name: str) -> None:
        """The clone takes over its origin with all snapshots and bookmarks before it."""
        clone = self.node(name)
        if clone.origin is None:
            raise ZfsError("not a cloned filesystem")
        old, _, mark = clone.origin.partition("@")
        parent = self.node(old)
        place = next(at for at, one in enumerate(parent.snapshots) if one.name == mark) + 1
        taken = parent.snapshots[:place]
        if {one.name for one in taken} & {one.name for one in clone.snapshots}:
            raise ZfsError("conflicting snapshot name")
        gone = tuple(one for one in parent.bookmarks if one.createtxg <= taken[-1].createtxg)
        attached_disk = tuple(one for one in parent.bookmarks if one.createtxg > taken[-1].createtxg)
        self.nodes[old] = replace(
            parent, snapshots=parent.snapshots[place:], bookmarks=attached_disk, origin=f"{name}@{mark}"
        )  # fmt: skip
        self.nodes[name] = replace(
            clone, snapshots=taken + clone.snapshots, bookmarks=gone + clone.bookmarks, origin=parent.origin
        )  # fmt: skip
        self._reorigin({f"{old}{one.mark}": f"{name}{one.mark}" for one in taken}, but=old)

    def _reorigin(self, moved: dict[str, str], but: str = "") -> None:
        for name, node in self.nodes.items():
            if node.origin in moved and name != but:
                self.nodes[name] = replace(node, origin=moved[node.origin])

    def write(self, name: str) -> None:
        self.nodes[name] = replace(self.node(name), written=self.node(name).written + 1)

    def roll_back(self, name: str, mark: str, *, over: bool) -> None:
        node = self.idle(name)
        place = next((at for at, one in enumerate(node.snapshots) if one.name == mark), None)
        if place is None:
            raise ZfsError("dataset does not exist")
        later = node.snapshots[place + 1 :]
        if later and not over:
            raise ZfsError("more recent snapshots or bookmarks exist")
        if any(self.clones_of(f"{name}{one.mark}") for one in later):
            raise ZfsError("clones of previous snapshots exist")
        self.nodes[name] = replace(node, snapshots=node.snapshots[: place + 1], written=0)

    # Streams.

    def packet(
        self, name: str, to: Snapshot, base: Snapshot | Bookmark | None, flags: SendFlags, **more: bool
    ) -> Packet:
        node = self.node(name)
        if node.encrypted and not flags.raw and not node.key_loaded:
            raise ZfsError("dataset key must be loaded")
        return Packet(
            guid=to.guid, name=to.name, told=f"{name}{to.mark}", from_guid=base.guid if base else None, kind=node.kind,
            flags=replace(flags, raw=flags.raw and node.encrypted), encrypted=node.encrypted, **more,
        )  # fmt: skip

    def resumed(self, token: ResumeToken) -> tuple[Packet, ...]:
        """As `zfs send -t`: by guid, first in the dataset that the token names, then in all of the pool."""
        owners = sorted(self.nodes, key=lambda name: name != token.to_name.partition("@")[0])
        holding = ((name, self.nodes[name].find(token.to_guid)) for name in owners)
        found = next(((name, one) for name, one in holding if one), None)
        if found is None:
            raise ZfsError(f"cannot resume send: '{token.to_name}' used in the initial send no longer exists")
        bases: list[Snapshot | Bookmark] = []
        for node in self.nodes.values():
            bases += [*node.snapshots, *node.bookmarks]
        base = next((one for one in bases if one.guid == token.from_guid), None)
        if token.from_guid is not None and base is None:
            raise ZfsError(f"cannot resume send: incremental source {token.from_guid:#x} no longer exists")
        return (self.packet(*found, base, token.flags),)

    def receive(
        self, name: str, packet: Packet, *, take: int = SIZE, resumes: bool = False, force: bool = False,
        origin: str | None = None, encryption: ReceiveEncryption | None = None,
    ) -> None:  # fmt: skip
        """One packet; after `take` bytes the stream ends."""
        node = self.nodes.get(name)
        if name in self.receiving:
            raise ZfsError(f"{name}: dataset is busy")
        if node and node.partial:
            if not resumes or (node.partial.packet.guid, node.partial.packet.from_guid) != (
                packet.guid,
                packet.from_guid,
            ):
                raise ZfsError("contains partially-complete state from zfs receive -s")
            take = max(take, node.partial.done)
        elif resumes:
            raise ZfsError("no partially-complete state to resume")
        else:
            if node and node.find(packet.guid):
                return  # recv_skip: the stream is read, nothing is done, and the exit status is 0
            if node is None:
                self._make(name, packet, origin, encryption)
            else:
                self._admit(name, node, packet, force=force)
        if take < SIZE:
            made = node is None or bool(node.partial and node.partial.made_dataset)
            self.nodes[name] = replace(self.nodes[name], partial=Partial(packet=packet, done=take, made_dataset=made))
        else:
            self._finish(name, packet)

    def _make(self, name: str, packet: Packet, origin: str | None, encryption: ReceiveEncryption | None) -> None:
        """A dataset that comes to be with the first byte it receives."""
        above = self.node(name.rpartition("/")[0])
        raw = packet.flags.raw
        if packet.from_guid is not None:
            if not packet.clone or origin is None or self.holding(packet.from_guid) != origin:
                raise ZfsError("local origin for clone does not exist")
            of = self.nodes[origin.partition("@")[0]]
            sealed, key = of.encrypted, of.key_loaded
        elif raw or not above.encrypted or encryption is ReceiveEncryption.OFF:
            sealed, key = raw, not raw
        elif encryption is None:
            raise ZfsError("without a word about encryption it depends on the stream's properties, and on keys")
        else:
            sealed, key = True, above.key_loaded
        if sealed and not raw and not key:
            raise ZfsError("inherited key must be loaded")
        if sealed and not raw and packet.flags.embedded:
            raise ZfsError("incompatible embedded data stream feature with encrypted receive")
        self.nodes[name] = Node(
            guid=self.new_guid(), txg=self.tick(), kind=packet.kind, origin=origin, encrypted=sealed, raw=raw, key_loaded=key
        )  # fmt: skip

    def _admit(self, name: str, node: Node, packet: Packet, *, force: bool) -> None:
        """Check a dataset that is there as ZFS does before it takes the first byte."""
        if packet.from_guid is None or packet.clone:
            if not force or packet.clone or node.snapshots:
                raise ZfsError(f"destination '{name}' exists must specify -F to overwrite it")
            if node.encrypted or packet.flags.raw:
                raise ZfsError("zfs receive -F cannot be used to destroy an encrypted filesystem or overwrite one")
            return
        if not node.snapshots or node.snapshots[-1].guid != packet.from_guid:
            raise ZfsError(f"most recent snapshot of {name} does not match incremental source")
        if node.written:
            raise ZfsError(f"destination {name} has been modified since most recent snapshot")
        if packet.encrypted and packet.flags.raw != node.raw:
            raise ZfsError("IV set guid mismatch")
        if node.encrypted and not packet.flags.raw and not node.key_loaded:
            raise ZfsError("inherited key must be loaded")
        if node.large and not packet.flags.large:
            raise ZfsError("requires -L (--large-block), to match previous receive")

    def holding(self, guid: int) -> str | None:
        marks = (f"{name}{one.mark}" for name, node in self.nodes.items() for one in node.snapshots if one.guid == guid)
        return next(marks, None)

    def _finish(self, name: str, packet: Packet) -> None:
        node = self.nodes[name]
        last = node.snapshots[-1].guid if node.snapshots else None
        if node.snapshots and last != packet.from_guid:
            raise ZfsError("most recent snapshot does not match incremental source")
        if node.snapshots and node.written:
            raise ZfsError("destination has been modified since most recent snapshot")
        new = Snapshot(name=packet.name, guid=packet.guid, createtxg=self.tick())
        if any(one.name == new.name for one in node.snapshots):
            raise ZfsError(f"cannot restore to {name}@{new.name}: destination already exists")
        first = not node.snapshots
        if packet.encrypted and not node.encrypted:
            self.readable.add(name)
        self.nodes[name] = replace(
            node, snapshots=(*node.snapshots, new), partial=None, written=0, placeholder=False, kind=packet.kind,
            large=node.large or packet.flags.large, flags=packet.flags if first else node.flags,
        )  # fmt: skip

    def abort(self, name: str) -> None:
        node = self.idle(name)
        if node.partial is None:
            return  # "does not have any resumable receive state to abort"
        if node.partial.made_dataset:
            if len(self.below(name)) > 1:
                raise ZfsError(f"cannot destroy '{name}': dataset already exists")
            del self.nodes[name]
        else:
            self.nodes[name] = replace(node, partial=None)
