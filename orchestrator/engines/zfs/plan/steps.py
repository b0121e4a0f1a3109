"""The builder of steps with exact commands, from the decided actions."""

from collections.abc import Iterator
from typing import assert_never

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline, Step
from orchestrator.domain.units import show_count
from orchestrator.engines.contract import Asked
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import At, at
from orchestrator.engines.zfs.model import (
    Abort,
    Bookmark,
    Decided,
    Deed,
    Encryption,
    EndReceive,
    Flags,
    FullSend,
    IncrementalSend,
    KeepBases,
    Kind,
    LetGoBases,
    Line,
    MakePlaceholder,
    ResumedSend,
    RollBack,
    Send,
    SetAside,
    Snapshot,
    SnapshotPresent,
    World,
)
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan import resume_attempts as stuck
from orchestrator.engines.zfs.plan import transport
from orchestrator.engines.zfs.plan.hold_names import Keeper, cursor_name, held_name, hold_tag, keeper_of

MAIN = "main"
Stage = tuple[Step, ...]


def build(job: Job, world: World, decided: Decided, asked: Asked) -> tuple[Stage, ...]:
    """Build the steps of each stage; the last send of the root's newest snapshot makes the restore point."""
    aside = tuple(deed.dataset for stage in decided.stages for deed in stage if isinstance(deed, SetAside))
    made = _making(decided)
    line = transport.lines(job, world, asked.now)
    makers = (_Maker(job, world, aside, _lanes(job, stage), line) for stage in decided.stages)
    return tuple(
        tuple(step for deed in stage for step in maker.steps(deed, decided.current if deed is made else None))
        for stage, maker in zip(decided.stages, makers, strict=True)
    )


def _making(decided: Decided) -> Deed | None:
    """Return the action after which the root's newest snapshot is on the target."""
    sends = (deed for stage in decided.stages for deed in stage if isinstance(deed, Send) and deed.dataset == "")
    return next((deed for deed in sends if deed.snapshot.name == decided.current), None)


def _lanes(job: Job, stage: tuple[Deed, ...]) -> int:
    """Return how many streams of a stage may run at once: they share the rate."""
    sending = {deed.dataset for deed in stage if isinstance(deed, Send)}
    return max(1, min(options_of(job).parallel, len(sending)))


class _Maker:
    """The builder of one stage's steps. `aside`: datasets whose copies get another name in this plan."""

    def __init__(
        self, job: Job, world: World, aside: tuple[str, ...], lanes: int, lines: Iterator[Line] | None
    ) -> None:
        self.job = job
        self.world = world
        self.options = options_of(job)
        self.source, self.target = world.source, world.target
        self._aside = aside
        self._lanes = lanes
        self._lines = lines

    def steps(self, deed: Deed, makes: str | None) -> Iterator[Step]:
        match deed:
            case FullSend():
                yield from self._full(deed, makes)
            case IncrementalSend():
                yield self._incremental(deed, makes)
            case ResumedSend():
                yield from self._resumed(deed, makes)
            case KeepBases():
                yield from self._keep(deed)
            case LetGoBases():
                yield from self._let_go(deed)
            case _:
                yield self._small(deed)

    # Sends.

    def _full(self, deed: FullSend, makes: str | None) -> Iterator[Step]:
        properties = self._properties(deed.dataset, deed.flags)
        words = commands.full_words(
            self._at_source(deed.dataset, deed.snapshot.mark), deed.flags, properties=properties
        )
        placeholder = self._is_placeholder(deed.dataset)
        received = self._received(
            deed.dataset, first=True, properties=properties, flags=deed.flags, placeholder=placeholder,
            encryption=deed.encryption,
        )  # fmt: skip
        yield self._send(deed, f"{deed.snapshot.mark}, the whole", words, received, makes)
        if placeholder:
            yield self._no_placeholder(deed.dataset)

    def _incremental(self, deed: IncrementalSend, makes: str | None) -> Step:
        base = self._at_source(deed.dataset if deed.origin is None else deed.origin, deed.base.mark)
        properties = self._properties(deed.dataset, deed.flags) and not isinstance(deed.base, Bookmark)
        words = commands.incremental_words(
            base, self._at_source(deed.dataset, deed.snapshot.mark), deed.flags, between=deed.between,
            properties=properties,
        )  # fmt: skip
        clone = deed.origin is not None
        origin = self._origin(deed.origin, deed.base) if deed.origin is not None else None
        received = self._received(
            deed.dataset,
            first=clone or self._is_bare(deed.dataset),
            properties=properties,
            flags=deed.flags,
            origin=origin,
        )
        how = "a clone" if clone else "with all between" if deed.between else "incremental"
        return self._send(deed, f"{deed.base.mark} → {deed.snapshot.mark}, {how}", words, received, makes)

    def _resumed(self, deed: ResumedSend, makes: str | None) -> Iterator[Step]:
        placeholder = deed.first and self._is_placeholder(deed.dataset)
        # A token tells of large blocks only when there were some; the chain was begun with -L.
        flags = replace(deed.token.flags, large=True, backup=self.world.returning is not None)
        received = self._received(
            deed.dataset, first=deed.first, properties=False, flags=flags, placeholder=placeholder
        )
        words = commands.resumed_words(deed.token.text)
        # A placeholder's mark stays: no properties come with a rest. Those of the next increment take it away.
        yield self._send(deed, f"{deed.snapshot.mark}, the rest", words, received, makes)

    def _send(self, deed: Send, what: str, sent: tuple[str, ...], received: tuple[str, ...], makes: str | None) -> Step:
        target = self.target.full(deed.dataset)
        return Step(
            does=f"send {self.source.full(deed.dataset)} {what}",
            why=deed.why,
            lane=target,
            work=self._pipe(sent, received),
            expected=None,
            proof=SnapshotPresent(
                dataset=Location(path=target, host=self.target.root.host),
                guid=deed.snapshot.guid,
                snapshot=deed.snapshot.name,
            ),
            makes=makes,
            taken=self.world.created.get(deed.snapshot.guid),
            copies=True,
            vain=(stuck.key(deed.dataset), deed.vain) if isinstance(deed, ResumedSend) and deed.vain else None,
        )

    def _pipe(self, sent: tuple[str, ...], received: tuple[str, ...]) -> Pipeline:
        if self._lines is None:
            return Pipeline(stages=tuple(self._stages(sent, received)))
        return self._open_pipe(sent, received, next(self._lines))

    def _open_pipe(self, sent: tuple[str, ...], received: tuple[str, ...], line: Line) -> Pipeline:
        """Build an mbuffer connection: the pipe between its ends carries only its key. Bytes are counted here."""
        pipe, source, target = self.job.pipe, self.source, self.target
        if source.root.host is None:
            stages = (
                commands.send_command(sent, source, pipe),
                commands.connect_command(("cat",), source, line, pipe, lanes=self._lanes),
                commands.listen_command(received, target, line, pipe),
            )
            return Pipeline(stages=stages)
        buffer = commands.buffer_command(pipe, lanes=self._lanes).argv
        stages = (
            commands.connect_command(("zfs", *sent), source, line, pipe, lanes=None),
            commands.listen_command(buffer, target, line, pipe),
            commands.receive_command(received, target, pipe),
        )
        return Pipeline(stages=stages, counts=1)

    def _stages(self, sent: tuple[str, ...], received: tuple[str, ...]) -> Iterator[Command]:
        """Yield the sender, our own buffer, the receiver. A rate needs mbuffer, so its absence is then a failure."""
        yield commands.send_command(sent, self.source, self.job.pipe)
        here = self.source if self.source.root.host is None else self.target
        if here.mbuffer or self.job.pipe.rate_limit:
            yield commands.buffer_command(self.job.pipe, lanes=self._lanes)
        yield commands.receive_command(received, self.target, self.job.pipe)

    def _received(
        self, dataset: str, *, first: bool, properties: bool, flags: Flags, placeholder: bool = False,
        origin: str | None = None, encryption: Encryption | None = None,
    ) -> tuple[str, ...]:  # fmt: skip
        return commands.receive_words(
            self.target.full(dataset), self._kind(dataset), first=first, properties=properties, flags=flags,
            protect=self.options.protect, onto_placeholder=placeholder, origin=origin,
            encryption=encryption,
        )  # fmt: skip

    def _kind(self, dataset: str) -> Kind:
        known = self.source.datasets.get(dataset) or self.target.datasets.get(dataset)
        return known.kind if known else Kind.FILESYSTEM

    def _properties(self, dataset: str, flags: Flags) -> bool:
        """Return whether to send properties: encrypted datasets need a raw stream, and bookmarks send none.

        None on the way back of a raw copy: it did not receive where its key is, and `zfs receive` dies without that word.
        """
        known = self.source.datasets.get(dataset)
        sealed = known is not None and known.encrypted
        if flags.backup and not dataset and "/" not in self.target.root.path:
            return False  # `rooting` tells why
        return self.options.properties and (not sealed or (flags.raw and not flags.backup))

    def _is_placeholder(self, dataset: str) -> bool:
        known = self.target.datasets.get(dataset)
        return known is not None and known.placeholder and not self._set_aside(dataset)

    def _is_bare(self, dataset: str) -> bool:
        """Return whether the first received properties clear those that we set on a copy, so that we set them again.

        Source: OpenZFS 2.1 and 2.3, whose receive takes local values for received ones where nothing was received before.
        """
        known = self.target.datasets.get(dataset)
        return known is not None and (known.placeholder or known.bare) and not self._set_aside(dataset)

    def _set_aside(self, dataset: str) -> bool:
        return any(dataset == top or not top or dataset.startswith(f"{top}/") for top in self._aside)

    def _origin(self, dataset: str, base: Snapshot | Bookmark) -> str:
        """Return the copy of a clone's origin, under the name that it has on the target."""
        known = self.target.datasets.get(dataset)
        there = () if known is None or self._set_aside(dataset) else known.snapshots
        name = next((snapshot.name for snapshot in there if snapshot.guid == base.guid), base.name)
        return f"{self.target.full(dataset)}@{name}"

    def _at_source(self, dataset: str, mark: str) -> str:
        return f"{self.source.full(dataset)}{mark}"

    # Small deeds.

    def _small(self, deed: Abort | EndReceive | RollBack | SetAside | MakePlaceholder) -> Step:
        where = at(self.target)
        target = deed.dataset if isinstance(deed, MakePlaceholder) and deed.above else self.target.full(deed.dataset)
        match deed:
            case Abort():
                does, command = f"throw away what was cut in {target}", commands.abort_command(target, where)
            case EndReceive():
                does = f"end process {deed.pid}, which still receives into {target}"
                command = commands.end_receive_command(target, deed.pid, where)
            case RollBack():
                does, command = self._rollback(deed, target, where)
            case SetAside():
                does, command = f"rename {target} to {deed.to}", commands.rename_command(target, deed.to, where)
            case MakePlaceholder():
                does, command = (
                    f"make {target}, never mounted",
                    commands.placeholder_command(target, where, encryption=deed.encryption),
                )
            case _:
                assert_never(deed)
        why = "others lie below it" if isinstance(deed, MakePlaceholder) else deed.why
        told = (stuck.key(deed.dataset), deed.told) if isinstance(deed, Abort) and deed.told else None
        return replace(_one(does, why, target, command), remembers=told)

    def _rollback(self, deed: RollBack, target: str, where: At) -> tuple[str, Command]:
        """Build a rollback by guid, as the target may have the snapshot under another name."""
        known = self.target.datasets.get(deed.dataset)
        there = known.snapshots if known else ()
        found = next((snapshot for snapshot in there if snapshot.guid == deed.to.guid), deed.to)
        over = bool(there) and there[-1].guid != deed.to.guid
        command = commands.rollback_command(f"{target}{found.mark}", over_snapshots=over, where=where)
        return f"roll {target} back to {found.mark}, which destroys {', '.join(deed.dies)}", command

    def _no_placeholder(self, dataset: str) -> Step:
        target = self.target.full(dataset)
        command = commands.no_placeholder_command(target, at(self.target))
        return _one(f"take the placeholder's mark from {target}", "it is a copy now", target, command)

    # What keeps a chain alive.

    def _keep(self, deed: KeepBases) -> Iterator[Step]:
        keeper = self._keeper()
        marks = [(self.source.full(name), one.name, cursor_name(keeper, one.guid)) for name, one in deed.cursors]
        marks += [(self.source.full(name), one.name, held_name(keeper, one.guid)) for name, one in deed.holds]
        for command in commands.keep_commands(tuple(marks), self.source):
            does = f"remember {show_count(len(deed.cursors) or len(deed.holds), 'snapshot')} by bookmarks"
            yield _one(does, "the next send starts from them, even when the snapshots are gone by then", MAIN, command)
        held = tuple(self._at_source(name, one.mark) for name, one in (*deed.holds, *deed.between))
        for command in commands.hold_commands(hold_tag(keeper), held, self.source):
            yield _one(
                f"hold {show_count(len(held), 'snapshot')}", "a send that is cut needs them to go on", MAIN, command
            )

    def _let_go(self, deed: LetGoBases) -> Iterator[Step]:
        ours, older = self._keeper(), Keeper(pool=self.target.pool_guid)
        for keeper, holds in ((ours, (*deed.holds, *deed.between)), (older, deed.older)):
            held = tuple(self._at_source(name, one.mark) for name, one in holds)
            for command in commands.release_commands(hold_tag(keeper), held, self.source):
                does = f"release {show_count(len(held), 'snapshot')}"
                yield _one(does, "no cut send needs them any more", MAIN, command)
        gone = [self._at_source(name, one.mark) for name, one in deed.cursors]
        gone += [f"{self.source.full(name)}#{held_name(ours, one.guid)}" for name, one in deed.holds]
        gone += [f"{self.source.full(name)}#{held_name(older, one.guid)}" for name, one in deed.older]
        for command in commands.drop_commands(tuple(gone), self.source):
            yield _one(f"drop {show_count(len(gone), 'bookmark')} of ours", "newer ones replace them", MAIN, command)

    def _keeper(self) -> Keeper:
        return keeper_of(self.target.pool_guid, self.target.root)


def _one(does: str, why: str, lane: str, command: Command) -> Step:
    return Step(does=does, why=why, lane=lane, work=Pipeline(stages=(command,)), expected=None)
