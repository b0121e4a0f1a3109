"""The builder of steps with exact commands, from the decided actions."""

from collections.abc import Iterator
from typing import assert_never

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job, PipeOptions
from orchestrator.domain.place import Location
from orchestrator.domain.plan import COMMON, Command, Pipeline, Step
from orchestrator.domain.units import Bytes, show_count
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost, command_host
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    Bookmark,
    CreatePlaceholder,
    DatasetType,
    EndReceive,
    FullSend,
    HoldBases,
    IncrementalSend,
    MbufferConnection,
    ReceiveEncryption,
    ReleaseBases,
    RenameAside,
    RenameCopy,
    ResumedSend,
    Rollback,
    Send,
    SendFlags,
    Snapshot,
    SnapshotPresent,
    TakeOverCopy,
    ZfsSurvey,
)
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan import transport
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    replication_target_id,
)
from orchestrator.engines.zfs.plan.resume import attempts_key

Stage = tuple[Step, ...]
# Bytes of a stream that the pipe between its two programs takes within one machine: where all of it fits, a buffer has nothing to do.
_IN_PIPES = 512 << 10
_NAMED = 100  # snapshots that one step names: it stands in the history, and on a screen


def build_steps(job: Job, world: ZfsSurvey, decided: ActionPlan, request: RunRequest) -> tuple[Stage, ...]:
    """Build the steps of each stage."""
    aside = tuple(action.dataset for stage in decided.stages for action in stage if isinstance(action, RenameAside))
    line = transport.choose_connections(job, world, request.now)
    makers = (_StepBuilder(job, world, aside, _count_streams(job, stage), line) for stage in decided.stages)
    return tuple(
        tuple(step for action in stage for step in maker.steps(action))
        for stage, maker in zip(decided.stages, makers, strict=True)
    )


def _count_streams(job: Job, stage: tuple[Action, ...]) -> int:
    """Return how many streams of a stage may run at once: they share the rate."""
    sending = {action.dataset for action in stage if isinstance(action, Send)}
    return max(1, min(options_of(job).parallel, len(sending)))


class _StepBuilder:
    """The builder of one stage's steps. `aside`: datasets whose copies get another name in this plan."""

    def __init__(
        self,
        job: Job,
        world: ZfsSurvey,
        aside: tuple[str, ...],
        streams: int,
        lines: Iterator[MbufferConnection] | None,
    ) -> None:
        self.job = job
        self.world = world
        self.options = options_of(job)
        self.source, self.target = world.source, world.target
        self._aside = aside
        self._lanes = streams
        self._lines = lines

    def steps(self, action: Action) -> Iterator[Step]:
        match action:
            case FullSend():
                yield from self._full(action)
            case IncrementalSend():
                yield self._incremental(action)
            case ResumedSend():
                yield from self._resumed(action)
            case HoldBases():
                yield from self._keep(action)
            case ReleaseBases():
                yield from self._let_go(action)
            case _:
                yield self._small(action)

    # Sends.

    def _full(self, action: FullSend) -> Iterator[Step]:
        properties = self._properties(action.dataset, action.flags)
        words = commands.full_send_arguments(
            self._at_source(action.dataset, action.snapshot.mark), action.flags, properties=properties
        )
        placeholder = self._is_placeholder(action.dataset)
        received = self._received(
            action.dataset, first=True, properties=properties, flags=action.flags, placeholder=placeholder,
            encryption=action.encryption,
        )  # fmt: skip
        yield self._send(action, f"{action.snapshot.mark}, the whole", words, received)
        if placeholder:
            yield self._no_placeholder(action.dataset)

    def _incremental(self, action: IncrementalSend) -> Step:
        base = self._at_source(action.dataset if action.origin is None else action.origin, action.base.mark)
        properties = (
            self._properties(action.dataset, action.flags)
            and not isinstance(action.base, Bookmark)
            and not self._is_plain(action)
        )
        words = commands.incremental_send_arguments(
            base, self._at_source(action.dataset, action.snapshot.mark), action.flags, between=action.between,
            properties=properties,
        )  # fmt: skip
        clone = action.origin is not None
        origin = self._origin(action.origin, action.base) if action.origin is not None else None
        received = self._received(
            action.dataset,
            first=clone or self._is_bare(action.dataset),
            properties=properties,
            flags=action.flags,
            origin=origin,
        )
        how = "a clone" if clone else "with all between" if action.between else "incremental"
        return self._send(action, f"{action.base.mark} → {action.snapshot.mark}, {how}", words, received)

    def _resumed(self, action: ResumedSend) -> Iterator[Step]:
        placeholder = action.first and self._is_placeholder(action.dataset)
        # A token records large blocks only when there were some; the chain was begun with -L.
        flags = replace(action.token.flags, large=True, backup=self.world.returning is not None)
        received = self._received(
            action.dataset, first=action.first, properties=False, flags=flags, placeholder=placeholder
        )
        words = commands.resumed_send_arguments(action.token.text)
        # A placeholder's mark stays: a resumed stream brings no properties. Those of the next increment remove it.
        yield self._send(action, f"{action.snapshot.mark}, the rest", words, received)

    def _send(self, action: Send, what: str, sent: tuple[str, ...], received: tuple[str, ...]) -> Step:
        target = self.target.full(action.dataset)
        return Step(
            action=f"send {self.source.full(action.dataset)} {what}",
            why=action.why,
            worker=target,
            work=self._pipe(sent, received, self._transfer(action)),
            expected=None,
            confirmation=SnapshotPresent(
                dataset=Location(path=target, host=self.target.root.host),
                guid=action.snapshot.guid,
                snapshot=action.snapshot.name,
            ),
            copies=True,
            vain=(attempts_key(action.dataset), action.vain)
            if isinstance(action, ResumedSend) and action.vain
            else None,
        )

    def _transfer(self, action: Send) -> PipeOptions:
        """Return the job's settings, with no more memory for buffers than the stream can fill.

        Why: mbuffer takes all of it at once, and the kernel clears it: with many small datasets that took longer than their streams.
        """
        pipe, known = self.job.pipe, self.source.datasets.get(action.dataset)
        flags = action.token.flags if isinstance(action, ResumedSend) else action.flags
        if known is None or known.used is None or not (flags.compressed or flags.raw):
            return pipe  # what is sent decompressed may be any multiple of what it takes
        return replace(pipe, buffer=Bytes(min(pipe.buffer, known.used)))

    def _pipe(self, sent: tuple[str, ...], received: tuple[str, ...], pipe: PipeOptions) -> Pipeline:
        if self._lines is None:
            return Pipeline(stages=tuple(self._stages(sent, received, pipe)))
        return self._open_pipe(sent, received, next(self._lines), pipe)

    def _open_pipe(
        self, sent: tuple[str, ...], received: tuple[str, ...], line: MbufferConnection, pipe: PipeOptions
    ) -> Pipeline:
        """Build an mbuffer connection: the pipe between its ends carries only its key. Bytes are counted here."""
        source, target = self.source, self.target
        if source.root.host is None:
            stages = (
                commands.send_command(sent, source, pipe),
                commands.connect_command(("cat",), source, line, pipe, streams=self._lanes),
                commands.listen_command(received, target, line, pipe),
            )
            return Pipeline(stages=stages)
        buffer = commands.buffer_command(pipe, streams=self._lanes).argv
        stages = (
            commands.connect_command(("zfs", *sent), source, line, pipe, streams=None),
            commands.listen_command(buffer, target, line, pipe),
            commands.receive_command(received, target, pipe),
        )
        return Pipeline(stages=stages, counts=1)

    def _stages(self, sent: tuple[str, ...], received: tuple[str, ...], pipe: PipeOptions) -> Iterator[Command]:
        """Yield the sender, our own buffer, the receiver. A rate needs mbuffer, so its absence is then a failure."""
        yield commands.send_command(sent, self.source, pipe)
        here = self.source if self.source.root.host is None else self.target
        fits = pipe.buffer <= _IN_PIPES and self.source.root.host is None and self.target.root.host is None
        if (here.mbuffer and not fits) or pipe.rate_limit:
            yield commands.buffer_command(pipe, streams=self._lanes)
        yield commands.receive_command(received, self.target, pipe)

    def _received(
        self, dataset: str, *, first: bool, properties: bool, flags: SendFlags, placeholder: bool = False,
        origin: str | None = None, encryption: ReceiveEncryption | None = None,
    ) -> tuple[str, ...]:  # fmt: skip
        return commands.receive_arguments(
            self.target.full(dataset), self._kind(dataset), first=first, properties=properties, flags=flags,
            protect=self.options.protect, onto_placeholder=placeholder, origin=origin,
            encryption=encryption, burdens=self._burdens(dataset), local=self.target.root.host is None,
        )  # fmt: skip

    def _burdens(self, dataset: str) -> tuple[str, ...]:
        """Return the source's properties that the copy does not take; a restore brings them back."""
        known = self.source.datasets.get(dataset)
        return tuple(known.burdens) if known and self.world.returning is None else ()

    def _kind(self, dataset: str) -> DatasetType:
        known = self.source.datasets.get(dataset) or self.target.datasets.get(dataset)
        return known.kind if known else DatasetType.FILESYSTEM

    def _kind_there(self, dataset: str) -> DatasetType:
        known = self.target.datasets.get(dataset)
        return known.kind if known else DatasetType.FILESYSTEM

    def _properties(self, dataset: str, flags: SendFlags) -> bool:
        """Return whether to send properties: encrypted datasets need a raw stream, and bookmarks send none.

        None in a restore of a raw copy: it did not receive the place of its key, and `zfs receive` dies without it.
        """
        known = self.source.datasets.get(dataset)
        if self.world.returning is None and known is not None and known.waits:
            return False  # what it has until it is in use again, such as canmount=noauto, is not the source's own
        target_encrypts = known is not None and known.encrypted
        if flags.backup and not dataset and "/" not in self.target.root.path:
            return False  # the reason is in `restore/pool_root.py`
        return self.options.properties and (not target_encrypts or (flags.raw and not flags.backup))

    def _is_plain(self, action: IncrementalSend) -> bool:
        """Return whether the copy has all properties that the stream could bring it, as the survey saw."""
        known = self.world.plain.get(action.dataset)
        here = self.source.datasets.get(action.dataset)
        if known is None or here is None or action.origin is not None or self._set_aside(action.dataset):
            return False
        between = (
            one.guid for one in here.snapshots if action.base.createtxg < one.createtxg <= action.snapshot.createtxg
        )
        sent = between if action.between else (action.snapshot.guid,)
        return self.world.returning is None and action.base.guid in known and known.issuperset(sent)

    def _is_placeholder(self, dataset: str) -> bool:
        known = self.target.datasets.get(dataset)
        return known is not None and known.placeholder and not self._set_aside(dataset)

    def _is_bare(self, dataset: str) -> bool:
        """Return whether the first received properties clear those that we set on a copy, so that we set them again.

        Source: OpenZFS 2.1 and 2.3, whose receive treats local values as received ones where nothing was received before.
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

    # Small actions.

    def _small(
        self, action: AbortReceive | EndReceive | Rollback | RenameAside | RenameCopy | TakeOverCopy | CreatePlaceholder
    ) -> Step:
        where = command_host(self.target)
        target = (
            action.dataset
            if isinstance(action, CreatePlaceholder) and action.above
            else self.target.full(action.dataset)
        )
        match action:
            case AbortReceive():
                text, command = f"throw away what was cut in {target}", commands.abort_command(target, where)
            case EndReceive():
                text = f"end process {action.pid}, which still receives into {target}"
                command = commands.end_receive_command(target, action.pid, where)
            case Rollback():
                text, command = self._rollback(action, target, where)
            case RenameAside() | RenameCopy():
                text, command = (
                    f"rename {target} to {action.to}",
                    commands.rename_command(target, action.to, where, action.kind),
                )
            case TakeOverCopy():
                kind = self._kind_there(action.dataset)
                text = f"take {target} over: nobody writes to it or mounts it by itself any more"
                command = commands.take_over_command(target, kind, action.flags, where)
            case CreatePlaceholder():
                text, command = (
                    f"make {target}, never mounted",
                    commands.placeholder_command(target, where, encryption=action.encryption),
                )
            case _:
                assert_never(action)
        why = "others lie below it" if isinstance(action, CreatePlaceholder) else action.why
        told = (attempts_key(action.dataset), action.told) if isinstance(action, AbortReceive) and action.told else None
        return replace(_one(text, why, target, command), remembers=told)

    def _rollback(self, action: Rollback, target: str, where: CommandHost) -> tuple[str, Command]:
        """Build a rollback by guid, as the target may have the snapshot under another name."""
        known = self.target.datasets.get(action.dataset)
        there = known.snapshots if known else ()
        found = next((snapshot for snapshot in there if snapshot.guid == action.to.guid), action.to)
        over = bool(there) and there[-1].guid != action.to.guid
        command = commands.rollback_command(f"{target}{found.mark}", over_snapshots=over, where=where)
        return f"roll {target} back to {found.mark}, which destroys {_listed(action.dies)}", command

    def _no_placeholder(self, dataset: str) -> Step:
        target = self.target.full(dataset)
        command = commands.no_placeholder_command(target, command_host(self.target))
        return _one(f"take the placeholder's mark from {target}", "it is a copy now", target, command)

    # Bookmarks and holds for later increments.

    def _keep(self, action: HoldBases) -> Iterator[Step]:
        target_id = self._target_id()
        marks = [
            (self.source.full(name), one.mark, cursor_bookmark_name(target_id, one.guid))
            for name, one in action.cursors
        ]
        marks += [
            (self.source.full(name), one.mark, hold_bookmark_name(target_id, one.guid)) for name, one in action.holds
        ]
        for command in commands.bookmark_commands(tuple(marks), self.source):
            text = f"remember {show_count(len(action.cursors) or len(action.holds), 'snapshot')} by bookmarks"
            yield _one(
                text, "the next send starts from them, even when the snapshots are gone by then", COMMON, command
            )
        held = tuple(self._at_source(name, one.mark) for name, one in (*action.holds, *action.between))
        for command in commands.hold_commands(hold_tag(target_id), held, self.source):
            yield _one(
                f"hold {show_count(len(held), 'snapshot')}", "a send that is cut needs them to go on", COMMON, command
            )

    def _let_go(self, action: ReleaseBases) -> Iterator[Step]:
        ours, older = self._target_id(), ReplicationTargetId(pool=self.target.pool_guid)
        for target_id, holds in ((ours, (*action.holds, *action.between)), (older, action.older)):
            held = tuple(self._at_source(name, one.mark) for name, one in holds)
            for command in commands.release_commands(hold_tag(target_id), held, self.source):
                text = f"release {show_count(len(held), 'snapshot')}"
                yield _one(text, "no cut send needs them any more", COMMON, command)
        gone = [self._at_source(name, one.mark) for name, one in action.cursors]
        gone += [f"{self.source.full(name)}#{hold_bookmark_name(ours, one.guid)}" for name, one in action.holds]
        gone += [f"{self.source.full(name)}#{hold_bookmark_name(older, one.guid)}" for name, one in action.older]
        for command in commands.destroy_bookmark_commands(tuple(gone), self.source):
            yield _one(f"drop {show_count(len(gone), 'bookmark')} of ours", "newer ones replace them", COMMON, command)

    def _target_id(self) -> ReplicationTargetId:
        return replication_target_id(self.target.pool_guid, self.target.root)


def _listed(names: tuple[str, ...]) -> str:
    """Return the names in one line; of very many the first, how many more, and the last."""
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])}, {len(names) - _NAMED - 1} more, and {names[-1]}"


def _one(action: str, why: str, worker: str, command: Command) -> Step:
    return Step(action=action, why=why, worker=worker, work=Pipeline(stages=(command,)), expected=None)
