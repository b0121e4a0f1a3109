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
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    Bookmark,
    CreatePlaceholder,
    Dataset,
    EndReceive,
    FullSend,
    HoldBases,
    IncrementalSend,
    ReceiveEncryption,
    ReceiveProcess,
    ReleaseBases,
    RenameAside,
    RenameCopy,
    ResumedSend,
    ResumeToken,
    Rollback,
    Send,
    SideSurvey,
    Snapshot,
    TakeOverCopy,
    ZfsSurvey,
)
from orchestrator.engines.zfs.options import ZfsOptions, options_of
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    replication_target_id,
)
from orchestrator.engines.zfs.plan.plan import decide_actions
from orchestrator.engines.zfs.plan.resume import attempts_key
from orchestrator.engines.zfs.survey.parse import find_holds
from tests.world import SIZE, Packet, Partial, Pool, ZfsError

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LOOKS = 8  # of a run in which nothing goes wrong: end a receive, do, and no more


class Cut(Exception):
    """The link, a process or the power went away."""


Mishap = Callable[[Any], int | None]
"""Asked before each deed, or each step of one: None lets it be done; a number cuts it after so many bytes. It may raise Cut at once."""


def unharmed(_: Action) -> None:
    """No mishap."""


def job(**options: Any) -> Job:
    """A job named photos, from tank/photos to vault/copies/photos."""
    return Job(
        name="photos", file="photos.toml", engine="zfs", source=Location(path="tank/photos"),
        target=Place(name="vault", location=Location(path="vault/copies")), options=ZfsOptions(**options),
    )  # fmt: skip


def requested(*allowed: str, now: datetime = NOW) -> RunRequest:
    return RunRequest(now=now, notes="/notes", allowed=frozenset(allowed))


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

    def survey(self) -> ZfsSurvey:
        """Return what a look finds."""
        below = {name: node for name, node in self.target.nodes.items() if f"{name}/".startswith(f"{self.copy}/")}
        here = _side(self.source, self.root, target=False)
        return ZfsSurvey(
            source=here,
            target=_side(self.target, self.copy, target=True),
            tokens={node.partial.token: _token(node.partial) for node in below.values() if node.partial},
            receiving={
                self._below(name): ReceiveProcess(pid=pid, ours=pid not in self.target.strangers)
                for name, pid in self.target.receiving.items()
                if name in below
            },
            held=find_holds(here.datasets, self.target_id),
            held_older=find_holds(here.datasets, ReplicationTargetId(pool=self.target.guid)),
        )

    @property
    def target_id(self) -> ReplicationTargetId:
        """Return what the names of ours on the source tell of this job's copy."""
        return replication_target_id(self.target.guid, Location(path=self.copy))

    def _below(self, whole: str) -> str:
        return whole[len(self.copy) + 1 :]

    def decide(self, wants: RunRequest | None = None) -> ActionPlan | Refusal:
        return decide_actions(self.job, self.survey(), replace(wants or requested(), remembered=self.memory))

    def run(self, wants: RunRequest | None = None, mishap: Mishap = unharmed) -> ActionPlan | Refusal:
        """Looks and does until it is done or refused. Raises: Cut, ZfsError as they come; AssertionError: no end."""
        for _ in range(LOOKS):
            decided = self.decide(wants)
            if isinstance(decided, Refusal):
                return decided
            self.carry_out(decided, mishap)
            if not decided.again:
                return decided
        raise AssertionError("it looks again and again")

    def carry_out(self, decided: ActionPlan, mishap: Mishap = unharmed) -> None:
        for stage in decided.stages:
            for action in self._side_by_side(stage):
                self.do(action, mishap(action))

    def _side_by_side(self, stage: tuple[Action, ...]) -> Iterator[Action]:
        """The deeds of each dataset in order, the datasets in any."""
        lanes: dict[str, list[Action]] = {}
        for action in stage:
            lanes.setdefault(getattr(action, "dataset", "main"), []).append(action)
        while lanes:
            name = self.order.choice(sorted(lanes)) if self.order else next(iter(lanes))
            yield lanes[name].pop(0)
            if not lanes[name]:
                del lanes[name]

    def do(self, action: Action, cut: int | None = None) -> None:
        """One deed; a send that is cut after some bytes leaves what zfs would leave."""
        if isinstance(action, Send):
            try:
                self._send(action, cut)
            except Cut:
                if isinstance(action, ResumedSend):
                    self.memory[attempts_key(action.dataset)] = action.vain
                raise
        elif cut is not None:
            raise Cut(f"before {action}")
        else:
            self._change(action)

    def _change(self, action: Action) -> None:
        there = getattr(action, "dataset", "")
        name = f"{self.copy}/{there}" if there else self.copy
        match action:
            case AbortReceive():
                self.target.abort(name)
                self.memory[attempts_key(there)] = action.told
            case EndReceive():
                assert self.target.receiving.pop(name) == action.pid
            case Rollback():
                self.target.roll_back(name, action.to.name, over=len(action.dies) > 0)
            case RenameAside() | RenameCopy():
                self.target.rename(name, action.to)
            case TakeOverCopy():
                node = self.target.node(name)
                self.target.nodes[name] = replace(node, flags=action.flags, exposed=())
            case CreatePlaceholder():
                more = {"encrypted": False} if action.encryption is ReceiveEncryption.OFF else {}
                self.target.create(there if action.above else name, placeholder=True, **more)
            case HoldBases() | ReleaseBases():
                self._keep(action)
            case FullSend() | IncrementalSend() | ResumedSend():
                raise AssertionError(action)
            case _:
                assert_never(action)

    def _keep(self, action: HoldBases | ReleaseBases) -> None:
        source, target_id = self.source, self.target_id
        if isinstance(action, HoldBases):
            for name, one in action.cursors:
                source.bookmark(self._at(name), one.guid, cursor_bookmark_name(target_id, one.guid))
            for name, one in action.holds:
                source.bookmark(self._at(name), one.guid, hold_bookmark_name(target_id, one.guid))
            source.holds |= {(one.guid, hold_tag(target_id)) for _, one in (*action.holds, *action.between)}
            return
        for kept, holds in ((target_id, action.holds), (ReplicationTargetId(pool=target_id.pool), action.older)):
            for name, one in holds:
                source.holds.discard((one.guid, hold_tag(kept)))
                source.destroy_bookmark(self._at(name), hold_bookmark_name(kept, one.guid))
        source.holds -= {(one.guid, hold_tag(target_id)) for _, one in action.between}
        for name, bookmark in action.cursors:
            source.destroy_bookmark(self._at(name), bookmark.name)

    def _at(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _send(self, action: Send, cut: int | None) -> None:
        name = f"{self.copy}/{action.dataset}" if action.dataset else self.copy
        left = cut
        encryption = action.encryption if isinstance(action, FullSend) else None
        for packet in self._packets(action):
            assert self.fits(packet.name), f"{packet.name} is left out"
            resumes = isinstance(action, ResumedSend)
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
                raise Cut(f"in {action}")
        if left is not None:
            raise Cut(f"after {action}")
        newest = self.target.nodes[name].snapshots[-1]
        assert newest.guid == action.snapshot.guid, f"{action} left {newest}"

    def _packets(self, action: Send) -> tuple[Packet, ...]:
        source, name = self.source, self._at(action.dataset)
        if isinstance(action, ResumedSend):
            return source.resumed(action.token)
        known = {one.guid: one for one in source.node(name).snapshots}
        if action.snapshot.guid not in known:
            raise ZfsError(f"cannot open '{name}{action.snapshot.mark}': dataset does not exist")
        if isinstance(action, FullSend):
            return (source.packet(name, action.snapshot, None, action.flags),)
        base_at = self._at(action.origin) if action.origin is not None else name
        holder = source.node(base_at)
        if action.base not in holder.snapshots and (action.between or action.base not in holder.bookmarks):
            raise ZfsError(f"{base_at}{action.base.mark} does not exist")
        after = [
            one for one in known.values() if action.base.createtxg < one.createtxg <= action.snapshot.createtxg
        ] if action.between else [action.snapshot]  # fmt: skip
        bases = [action.base, *after]
        return tuple(
            source.packet(name, to, base, action.flags, clone=action.origin is not None)
            for base, to in zip(bases, after, strict=False)
        )

    # What holds in the end.

    def newest_is_there(self, name: str = "") -> bool:
        """Return whether the target's dataset holds the source's newest snapshot, or one that came after it, by guid."""
        here = self.source.nodes[self._at(name)]
        there = self.target.nodes.get(f"{self.copy}/{name}" if name else self.copy)
        wanted = [one for one in here.snapshots if self.fits(one.name)]
        if not wanted or there is None:
            return not wanted
        newest = wanted[-1].createtxg
        held: list[Snapshot | Bookmark] = [*here.snapshots, *here.bookmarks]
        return any(there.find(one.guid) for one in held if one.createtxg >= newest)

    def fits(self, mark: str) -> bool:
        """Return whether the job's filters let a name pass."""
        options = options_of(self.job)
        return _matches(mark, options.snapshots) and not _matches(mark, options.skip_snapshots)

    def carries(self, name: str) -> bool:
        """Return whether the job carries a dataset at all."""
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


def _token(partial: Partial) -> ResumeToken:
    packet = partial.packet
    return ResumeToken(
        text=partial.token, to_guid=packet.guid, to_name=packet.told, from_guid=packet.from_guid, object=partial.done,
        offset=0, bytes=partial.done, flags=packet.flags,
    )  # fmt: skip


def _side(pool: Pool, root: str, *, target: bool) -> SideSurvey:
    parts = root.split("/")
    above = {"/".join(parts[:end]) for end in range(1, len(parts))} & set(pool.nodes)
    deepest = max(above, key=len, default=pool.name)
    below = (name for name in pool.nodes if f"{name}/".startswith(f"{root}/"))
    datasets = {name[len(root) + 1 :]: _dataset(pool, name, root, target=target) for name in below}
    return SideSurvey(
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
        flags=node.flags, placeholder=node.placeholder, waits=node.waits,
        exposed=node.exposed if target else (),
    )  # fmt: skip


def _encryption_root(pool: Pool, whole: str) -> str:
    above = whole.rpartition("/")[0]
    if pool.nodes[whole].raw or above not in pool.nodes or not pool.nodes[above].encrypted:
        return whole
    return _encryption_root(pool, above)


def encrypt(pool: Pool, name: str, *, encrypted: bool = True, loaded: bool = True) -> None:
    """Makes a dataset an encrypted one, as if it had always been."""
    pool.nodes[name] = replace(pool.nodes[name], encrypted=encrypted, key_loaded=loaded)
