"""A run on the model world: look, decide, do each deed as zfs would, look again; cut wherever a test wants it."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, assert_never

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Refusal
from orchestrator.engines.contract import Asked
from orchestrator.engines.zfs.model import (
    Abort,
    Bookmark,
    Dataset,
    Decided,
    Deed,
    Encryption,
    EndReceive,
    FullSend,
    IncrementalSend,
    KeepBases,
    LetGoBases,
    MakePlaceholder,
    ResumedSend,
    RollBack,
    Send,
    SetAside,
    Side,
    Snapshot,
    Token,
    World,
)
from orchestrator.engines.zfs.options import ZfsOptions, options_of
from orchestrator.engines.zfs.plan import resume_attempts as stuck
from orchestrator.engines.zfs.plan.hold_names import Keeper, cursor_name, held_name, hold_tag, keeper_of
from orchestrator.engines.zfs.plan.plan import decide
from orchestrator.engines.zfs.survey.parse import held_in
from tests.world import SIZE, Packet, Partial, Pool, ZfsError

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LOOKS = 4  # of a run in which nothing goes wrong: end a receive, do, and no more


class Cut(Exception):
    """The link, a process or the power went away."""


Mishap = Callable[[Any], int | None]
"""Asked before each deed, or each step of one: None lets it be done; a number cuts it after so many bytes. It may raise Cut at once."""


def unharmed(_: Deed) -> None:
    """No mishap."""


def job(**options: Any) -> Job:
    """A job named photos, from tank/photos to vault/copies/photos."""
    return Job(
        name="photos", file="photos.toml", engine="zfs", source=Location(path="tank/photos"),
        target=Place(name="vault", location=Location(path="vault/copies")), options=ZfsOptions(**options),
    )  # fmt: skip


def asked(*allowed: str, now: datetime = NOW) -> Asked:
    return Asked(now=now, notes="/notes", allowed=frozenset(allowed))


@dataclass
class Ferry:
    """Both pools, and the job between them."""

    source: Pool
    target: Pool
    job: Job
    root: str = "tank/photos"
    copy: str = "vault/copies/photos"
    moved: int = 0
    memory: dict[str, str] = field(default_factory=dict)  # what history remembers of the job
    order: random.Random | None = None

    def survey(self) -> World:
        """What a look finds."""
        below = {name: node for name, node in self.target.nodes.items() if f"{name}/".startswith(f"{self.copy}/")}
        here = _side(self.source, self.root, target=False)
        return World(
            source=here,
            target=_side(self.target, self.copy, target=True),
            tokens={node.partial.token: _token(node.partial) for node in below.values() if node.partial},
            receiving={self._below(name): pid for name, pid in self.target.receiving.items() if name in below},
            held=held_in(here.datasets, self.keeper),
            held_older=held_in(here.datasets, Keeper(pool=self.target.guid)),
        )

    @property
    def keeper(self) -> Keeper:
        """What the names of ours on the source tell of this job's copy."""
        return keeper_of(self.target.guid, Location(path=self.copy))

    def _below(self, whole: str) -> str:
        return whole[len(self.copy) + 1 :]

    def decide(self, wants: Asked | None = None) -> Decided | Refusal:
        return decide(self.job, self.survey(), replace(wants or asked(), remembered=self.memory))

    def run(self, wants: Asked | None = None, mishap: Mishap = unharmed) -> Decided | Refusal:
        """Looks and does until it is done or refused. Raises: Cut, ZfsError as they come; AssertionError: no end."""
        for _ in range(LOOKS):
            decided = self.decide(wants)
            if isinstance(decided, Refusal):
                return decided
            self.carry_out(decided, mishap)
            if not decided.again:
                return decided
        raise AssertionError("it looks again and again")

    def carry_out(self, decided: Decided, mishap: Mishap = unharmed) -> None:
        for stage in decided.stages:
            for deed in self._side_by_side(stage):
                self.do(deed, mishap(deed))

    def _side_by_side(self, stage: tuple[Deed, ...]) -> Iterator[Deed]:
        """The deeds of each dataset in order, the datasets in any."""
        lanes: dict[str, list[Deed]] = {}
        for deed in stage:
            lanes.setdefault(getattr(deed, "dataset", "main"), []).append(deed)
        while lanes:
            name = self.order.choice(sorted(lanes)) if self.order else next(iter(lanes))
            yield lanes[name].pop(0)
            if not lanes[name]:
                del lanes[name]

    def do(self, deed: Deed, cut: int | None = None) -> None:
        """One deed; a send that is cut after some bytes leaves what zfs would leave."""
        if isinstance(deed, Send):
            try:
                self._send(deed, cut)
            except Cut:
                if isinstance(deed, ResumedSend):
                    self.memory[stuck.key(deed.dataset)] = deed.vain
                raise
        elif cut is not None:
            raise Cut(f"before {deed}")
        else:
            self._change(deed)

    def _change(self, deed: Deed) -> None:
        there = getattr(deed, "dataset", "")
        name = f"{self.copy}/{there}" if there else self.copy
        match deed:
            case Abort():
                self.target.abort(name)
                self.memory[stuck.key(there)] = deed.told
            case EndReceive():
                assert self.target.receiving.pop(name) == deed.pid
            case RollBack():
                self.target.roll_back(name, deed.to.name, over=len(deed.dies) > 0)
            case SetAside():
                self.target.rename(name, deed.to)
            case MakePlaceholder():
                more = {"encrypted": False} if deed.encryption is Encryption.OFF else {}
                self.target.create(there if deed.above else name, placeholder=True, **more)
            case KeepBases() | LetGoBases():
                self._keep(deed)
            case FullSend() | IncrementalSend() | ResumedSend():
                raise AssertionError(deed)
            case _:
                assert_never(deed)

    def _keep(self, deed: KeepBases | LetGoBases) -> None:
        source, keeper = self.source, self.keeper
        if isinstance(deed, KeepBases):
            for name, one in deed.cursors:
                source.bookmark(self._at(name), one.guid, cursor_name(keeper, one.guid))
            for name, one in deed.holds:
                source.bookmark(self._at(name), one.guid, held_name(keeper, one.guid))
            source.holds |= {(one.guid, hold_tag(keeper)) for _, one in (*deed.holds, *deed.between)}
            return
        for kept, holds in ((keeper, deed.holds), (Keeper(pool=keeper.pool), deed.older)):
            for name, one in holds:
                source.holds.discard((one.guid, hold_tag(kept)))
                source.destroy_bookmark(self._at(name), held_name(kept, one.guid))
        source.holds -= {(one.guid, hold_tag(keeper)) for _, one in deed.between}
        for name, bookmark in deed.cursors:
            source.destroy_bookmark(self._at(name), bookmark.name)

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _send(self, deed: Send, cut: int | None) -> None:
        name = f"{self.copy}/{deed.dataset}" if deed.dataset else self.copy
        left = cut
        encryption = deed.encryption if isinstance(deed, FullSend) else None
        for packet in self._packets(deed):
            assert self.fits(packet.name), f"{packet.name} is left out"
            resumes = isinstance(deed, ResumedSend)
            partial = self.target.nodes[name].partial if resumes and name in self.target.nodes else None
            had = partial.done if partial else 0
            take = SIZE if left is None else min(SIZE, had + left)
            node = self.target.nodes.get(name)
            force = bool(node and node.placeholder)
            origin = self.target.holding(packet.from_guid) if packet.clone and packet.from_guid is not None else None
            self.target.receive(
                name, packet, take=take, resumes=resumes, force=force, origin=origin, encryption=encryption
            )
            self.moved += take - had
            left = None if left is None else left - (take - had)
            if take < SIZE:
                raise Cut(f"in {deed}")
        if left is not None:
            raise Cut(f"after {deed}")
        newest = self.target.nodes[name].snapshots[-1]
        assert newest.guid == deed.snapshot.guid, f"{deed} left {newest}"

    def _packets(self, deed: Send) -> tuple[Packet, ...]:
        source, name = self.source, self._at(deed.dataset)
        if isinstance(deed, ResumedSend):
            return source.resumed(deed.token)
        known = {one.guid: one for one in source.node(name).snapshots}
        if deed.snapshot.guid not in known:
            raise ZfsError(f"cannot open '{name}{deed.snapshot.mark}': dataset does not exist")
        if isinstance(deed, FullSend):
            return (source.packet(name, deed.snapshot, None, deed.flags),)
        base_at = self._at(deed.origin) if deed.origin is not None else name
        holder = source.node(base_at)
        if deed.base not in holder.snapshots and (deed.between or deed.base not in holder.bookmarks):
            raise ZfsError(f"{base_at}{deed.base.mark} does not exist")
        after = [
            one for one in known.values() if deed.base.createtxg < one.createtxg <= deed.snapshot.createtxg
        ] if deed.between else [deed.snapshot]  # fmt: skip
        bases = [deed.base, *after]
        return tuple(
            source.packet(name, to, base, deed.flags, clone=deed.origin is not None)
            for base, to in zip(bases, after, strict=False)
        )

    # What holds in the end.

    def newest_is_there(self, name: str = "") -> bool:
        """Whether the target's dataset holds the source's newest snapshot, or one that came after it, by guid."""
        here = self.source.nodes[self._at(name)]
        there = self.target.nodes.get(f"{self.copy}/{name}" if name else self.copy)
        wanted = [one for one in here.snapshots if self.fits(one.name)]
        if not wanted or there is None:
            return not wanted
        newest = wanted[-1].createtxg
        held: list[Snapshot | Bookmark] = [*here.snapshots, *here.bookmarks]
        return any(there.find(one.guid) for one in held if one.createtxg >= newest)

    def fits(self, mark: str) -> bool:
        """Whether the job's filters let a name pass."""
        options = options_of(self.job)
        return _matches(mark, options.snapshots) and not _matches(mark, options.skip_snapshots)

    def carries(self, name: str) -> bool:
        """Whether the job carries a dataset at all."""
        options, parts = options_of(self.job), name.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return not name or (options.recursive and not any(_matches(one, options.exclude) for one in above))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def ferry(*snapshots: str, **options: Any) -> Ferry:
    """A source with these snapshots, and a target pool with a place for copies."""
    source, target = Pool(name="tank", guid=7), Pool(name="vault", guid=9)
    source.create("tank/photos")
    target.create("vault/copies")
    for name in snapshots:
        source.snapshot("tank/photos", name)
    return Ferry(source=source, target=target, job=job(**options))


def _token(partial: Partial) -> Token:
    packet = partial.packet
    return Token(
        text=partial.token, to_guid=packet.guid, to_name=packet.told, from_guid=packet.from_guid, object=partial.done,
        offset=0, bytes=partial.done, flags=packet.flags,
    )  # fmt: skip


def _side(pool: Pool, root: str, *, target: bool) -> Side:
    parts = root.split("/")
    above = {"/".join(parts[:end]) for end in range(1, len(parts))} & set(pool.nodes)
    deepest = max(above, key=len, default=pool.name)
    below = (name for name in pool.nodes if f"{name}/".startswith(f"{root}/"))
    datasets = {name[len(root) + 1 :]: _dataset(pool, name, root, target=target) for name in below}
    return Side(
        root=Location(path=root), pool_guid=pool.guid, version=(2, 3, 0), above=frozenset(above),
        inherits_encryption=pool.nodes[deepest].encrypted, datasets=datasets,
    )  # fmt: skip


def _dataset(pool: Pool, whole: str, root: str, *, target: bool) -> Dataset:
    node = pool.nodes[whole]
    cut = node.partial if target else None
    return Dataset(
        name=whole[len(root) + 1 :], kind=node.kind, guid=node.guid, createtxg=node.txg, snapshots=node.snapshots,
        bookmarks=node.bookmarks, origin=node.origin, encrypted=node.encrypted,
        encryption_root=_encryption_root(pool, whole) if node.encrypted else None, key_loaded=node.key_loaded,
        token=cut.token if cut else None, partial=cut is not None, written=node.written if target else None,
        flags=node.flags, placeholder=node.placeholder,
    )  # fmt: skip


def _encryption_root(pool: Pool, whole: str) -> str:
    above = whole.rpartition("/")[0]
    if pool.nodes[whole].raw or above not in pool.nodes or not pool.nodes[above].encrypted:
        return whole
    return _encryption_root(pool, above)


def encrypt(pool: Pool, name: str, *, encrypted: bool = True, loaded: bool = True) -> None:
    """Makes a dataset an encrypted one, as if it had always been."""
    pool.nodes[name] = replace(pool.nodes[name], encrypted=encrypted, key_loaded=loaded)
