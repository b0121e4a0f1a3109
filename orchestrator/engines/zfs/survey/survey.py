"""Survey of both sides at once, with one login and two listings each, for any number of datasets."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from orchestrator.domain.answers import split_lines, text_lines, understand
from orchestrator.domain.command_line import evidence_line, quoted
from orchestrator.domain.errors import (
    BaseGone,
    Evidence,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    Stopped,
    TargetUnable,
    UnreadableAnswer,
    mark_copies,
)
from orchestrator.domain.gate import GateTooOld
from orchestrator.domain.hint_phrases import LOOKS_AGAIN
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.renamed_dataset import NOT_RENAMED, RenamedDataset
from orchestrator.domain.source_identity import SOURCE_IDENTITY, known_copy, parse_identity
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.errors.explain import explain
from orchestrator.engines.zfs.errors.moved_copy import absent_pool
from orchestrator.engines.zfs.model import ChangedEntry, Dataset, DatasetType, ReceiveProcess, SideSurvey, ZfsSurvey
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, replication_target_id
from orchestrator.engines.zfs.plan.increments import find_common_snapshot
from orchestrator.engines.zfs.survey import parse
from orchestrator.engines.zfs.survey.parse import ABSENT, SideListing
from orchestrator.engines.zfs.survey.plain_copies import choose_candidates
from orchestrator.engines.zfs.survey.resume_token import parse_token
from orchestrator.engines.zfs.survey.versions import with_older_side
from orchestrator.process.executor import Reader
from orchestrator.process.moved_dataset import find_moved_dataset
from orchestrator.process.pipeline import PipelineResult, pipeline_failure
from orchestrator.process.reading_beside import ReadingBeside

_One = TypeVar("_One")
_Other = TypeVar("_Other")
PATIENCE = Seconds(600)  # for a list of a million snapshots on a busy disk; a dead pool never answers
LIMIT = 256 << 20  # two million snapshots
ASIDE = "aside"
HEALTHY = ("ONLINE", "DEGRADED")


def survey(job: Job, request: RunRequest, reader: Reader, *, whole: bool = False) -> ZfsSurvey:
    """Return everything the plan needs. Raises: OrchestratorError when a side cannot be surveyed.

    A missing root or pool is no failure: that side has no datasets, and `above` lists the existing parents. Of the target's
    snapshots the newest are listed first, and all only when those are not enough, or for the `whole`.
    """
    root, above = job.target.location, ASIDE in request.allowed
    brief = not whole and not request.allowed and not request.again
    look = _Surveyor(job, reader)
    (source, seen), (target, _) = side_by_side(
        reader,
        lambda here: _Surveyor(job, here).at(job.source, target=False, above=False),
        lambda there: _Surveyor(job, there).at(root, target=True, above=above, newest=brief),
    )
    if brief and not newest_is_enough(source, target):
        target, _ = look.at(root, target=True, above=above)
    changes = _survey_changes(source, target, reader)
    cut = any(dataset.partial for dataset in target.datasets.values())
    tokens = {dataset.token for dataset in target.datasets.values() if dataset.token}
    return ZfsSurvey(
        source=source,
        target=target,
        tokens={token: parse_token(token) for token in tokens},
        receiving=look.receiving(root) if cut else {},
        held=parse.find_holds(source.datasets, replication_target_id(target.pool_guid, root)),
        held_older=parse.find_holds(source.datasets, ReplicationTargetId(pool=target.pool_guid)),
        created=seen.created,
        changes=changes,
        origins=_survey_origins(source, target, reader),
        plain=_survey_plain_copies(job, source, target, reader),
        moved=_find_moved_source(job, source, request, reader),
        moved_copy=NOT_RENAMED if "" in target.datasets else find_moved_copy(job, request.remembered, reader),
    )


def _find_moved_source(job: Job, source: SideSurvey, request: RunRequest, reader: Reader) -> RenamedDataset:
    """Return where the source's root of the last run lies now, where something else or nothing has its name."""
    known, root = parse_identity(request.remembered.get(SOURCE_IDENTITY, "")), source.datasets.get("")
    if known is None or known.root != str(job.source) or (root is not None and root.guid == known.dataset):
        return NOT_RENAMED
    return find_moved_dataset(known.dataset, known.pool, job.source, reader)


def find_moved_copy(job: Job, remembered: Mapping[str, str], reader: Reader) -> RenamedDataset:
    """Return where the copy of the last run lies now, where nothing has its name.

    Why not in another pool than a disk's own: that has a name by which it is imported.
    """
    root, known = job.target.location, known_copy(remembered, job.target)
    found = find_moved_dataset(known, 0, root, reader) if known else NOT_RENAMED
    away = job.target.disk and found.name.partition("/")[0] != root.path.partition("/")[0]
    return NOT_RENAMED if away or found.name == root.path else found


def _survey_origins(source: SideSurvey, target: SideSurvey, reader: Reader) -> dict[str, int]:
    """Return the guids of snapshots outside of the source that its clones come from, where these share none with their copies.

    Why: a clone that was promoted takes over the snapshots. Nothing where it cannot be seen, as through a gate.
    """
    names = {
        here.origin
        for name, here in source.datasets.items()
        if here.origin and not f"{here.origin.partition('@')[0]}/".startswith(f"{source.root.path}/")
        and (there := target.datasets.get(name)) and there.snapshots and find_common_snapshot(here, there) is None
    }  # fmt: skip
    found: dict[str, int] = {}
    batches = commands.batch_arguments((name,) for name in sorted(names))
    asked = (commands.confirm_command(batch, source.root.host) for batch in batches)
    for told in _seen_answers(asked, reader, parse.parse_property_listing):
        found |= {name: int(value) for (name, key), value in told.items() if key == "guid" and value.isdecimal()}
    return found


def _survey_plain_copies(job: Job, source: SideSurvey, target: SideSurvey, reader: Reader) -> dict[str, frozenset[int]]:
    """Return by dataset the guids from its copy's newest snapshot on, where the copy needs none of the properties. Raises: Stopped."""
    found: dict[str, frozenset[int]] = {}
    candidates = choose_candidates(job, source, target)
    if not candidates:
        return found
    from orchestrator.engines.zfs.commands.library import plain_copies_commands  # most runs ask no library

    guids = {one.source: (one.name, one.guids) for one in candidates}
    for sources, command in plain_copies_commands(candidates, options_of(job).protect):
        read = partial(_read_plain, sources)
        for told in _seen_answers((command,), reader, read):
            found |= dict(guids[source] for source in told)
    return found


def _read_plain(sources: tuple[str, ...], lines: list[bytes]) -> tuple[str, ...]:
    return parse.parse_plain([line.decode("utf-8", "surrogateescape") for line in lines], sources)


def _survey_changes(source: SideSurvey, target: SideSurvey, reader: Reader) -> dict[str, tuple[ChangedEntry, ...]]:
    """Return what was changed in copies since their newest snapshot, where something is to be sent onto that one.

    Nothing where it cannot be seen: such a copy is refused.
    """
    written = {
        target.full(name): name
        for name, there in target.datasets.items()
        if _is_written_over(source.datasets.get(name), there)
    }
    found: dict[str, tuple[ChangedEntry, ...]] = {}
    if not (written and target.programs):  # only root mounts
        return found
    marks = ((f"{whole}{newest.mark}",) for whole, name in written.items() if (newest := target.datasets[name].newest))
    asked = (commands.changes_command(batch, target) for batch in commands.batch_arguments(marks))
    for seen in _seen_answers(asked, reader, parse.parse_changes):
        found |= {written[whole]: entries for whole, entries in seen.items() if whole in written}
    return found


def _seen_answers(asked: Iterable[Command], reader: Reader, read: Callable[[list[bytes]], _One]) -> Iterator[_One]:
    """Yield the answers, parsed; what cannot be seen is left out. Raises: Stopped."""
    for command in asked:
        try:
            result = run_read_command(reader, command)
            told = parse_result(command, result, partial(read, split_lines(result.stdout)))
        except Stopped:
            raise
        except OrchestratorError:
            continue
        yield told


def _is_written_over(source: Dataset | None, there: Dataset) -> bool:
    if not there.written or there.kind is not DatasetType.FILESYSTEM or source is None or source.newest is None:
        return False
    newest = there.newest
    if newest is None or source.newest.guid == newest.guid:
        return False
    return newest.guid in {one.guid for one in source.snapshots} | {one.guid for one in source.bookmarks}


def survey_copy(job: Job, reader: Reader) -> ZfsSurvey:
    """Return a survey of the copy alone, while the source cannot be surveyed: that side has no datasets here.

    Raises: OrchestratorError.
    """
    target, _ = _Surveyor(job, reader).at(job.target.location, target=True, above=False)
    return ZfsSurvey(source=SideSurvey(root=job.source, pool_guid=0, version=()), target=target)


def incomplete_points(
    job: Job, source: SideSurvey, known: Mapping[str, tuple[str, ...]], reader: Reader
) -> dict[str, tuple[str, ...]]:
    """Return each point of the copy with the datasets that lack it; none: all have it. Raises: OrchestratorError.

    `known`: what lacked a point before; it still does where the source has no such snapshot any more, and the copy none either.
    """
    if not source.datasets:
        return {}
    there = survey_copy(job, reader).target.datasets
    root = there.get("")
    return {
        point.name: _lacking(source, there, point.name, known.get(point.name, ()))
        for point in (root.snapshots if root else ())
    }


def _lacking(source: SideSurvey, there: Mapping[str, Dataset], point: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the full names of the source's datasets, below its root, whose copies lack a point."""
    start = len(source.root.path) + 1
    names = dict.fromkeys((*filter(None, source.datasets), *(full[start:] for full in known)))
    return tuple(
        source.full(name)
        for name in names
        if lacks_point(source.datasets.get(name), there.get(name), point, before=source.full(name) in known)
    )


def lacks_point(here: Dataset | None, there: Dataset | None, point: str, *, before: bool = False) -> bool:
    """Return True when a copied dataset lacks a point that its source has. `before`: it did; that stays where nothing shows more.

    One that is past the point lacks it not: with catch-up = "newest" older ones are passed over.
    """
    wanted = next((one for one in here.snapshots if one.name == point), None) if here else None
    copied = there.snapshots if there else ()
    if here is None or wanted is None:
        return before and not any(one.name == point for one in copied)
    later = {one.guid for one in here.snapshots if one.createtxg >= wanted.createtxg}
    return not any(one.guid in later for one in copied)


def newest_is_enough(source: SideSurvey, target: SideSurvey) -> bool:
    """Return whether the newest snapshot of each copy is enough for a plan: the source knows it, so it is the base.

    Older ones matter after a divergence, for a receive interrupted after them, and for a clone that is not sent yet.
    """
    if not target.datasets:
        return True
    for name, there in target.datasets.items():
        here = source.datasets.get(name)
        if here is None or there.newest is None or (here.newest and here.newest.guid == there.newest.guid):
            continue
        known = {one.guid for one in here.snapshots} | {one.guid for one in here.bookmarks}
        if there.newest.guid not in known:
            return False
    if any(there.partial and there.snapshots for there in target.datasets.values()):
        return False
    return all(name in target.datasets for name, here in source.datasets.items() if here.origin)


class _Surveyor:
    """The surveys of one job."""

    def __init__(self, job: Job, reader: Reader) -> None:
        self._options = options_of(job)
        self._reader = reader

    def at(self, root: Location, *, target: bool, above: bool, newest: bool = False) -> tuple[SideSurvey, SideListing]:
        """Survey one side. Raises: OrchestratorError.

        Where the answer is no listing, an owner may have given a property of ours a value of several lines: it is asked for apart.
        An older gate knows no such question: of it the last property is believed, where it is as we write it.
        """
        try:
            return self._look(root, target=target, above=above, newest=newest, marks_apart=False)
        except UnreadableAnswer as error:
            unreadable = error
            unreadable.__traceback__ = unreadable.__cause__ = unreadable.__context__ = (
                None  # they hold the whole answer
            )
        try:
            return self._look(root, target=target, above=above, newest=newest, marks_apart=True)
        except Stopped:
            raise
        except OrchestratorError as error:
            if isinstance(error, GateTooOld | PermissionDenied):
                return self._look(root, target=target, above=above, newest=newest, marks_apart=False, doubts=False)
            raise unreadable from None

    def _look(
        self, root: Location, *, target: bool, above: bool, newest: bool, marks_apart: bool, doubts: bool = True
    ) -> tuple[SideSurvey, SideListing]:
        command = commands.survey_command(
            root, target=target, above=above, recursive=self._options.recursive, sudo=self._options.sudo,
            created=self._options.catch_up == "kept" and not target, newest=newest, marks_apart=marks_apart,
        )  # fmt: skip
        with mark_copies(seen=False) if target else nullcontext():
            result = run_read_command(self._reader, command)

            def read() -> tuple[SideSurvey, SideListing]:
                look = parse.parse_survey(result.stdout.split(b"\n"), doubts=doubts)
                _judge(look, root, command, result)
                return parse.make_side(look, root), look

            return parse_result(command, result, read)

    def receiving(self, root: Location) -> dict[str, ReceiveProcess]:
        """Return the datasets that receive there now, with their processes."""
        command = commands.receiving_command(root.host)
        result = run_read_command(self._reader, command)
        lines = text_lines(result.stdout)
        return parse_result(command, result, lambda: parse.parse_receiving(lines, root.path))


def _judge(look: SideListing, root: Location, command: Command, result: PipelineResult) -> None:
    """Check a survey. Raises: OrchestratorError for a pool that cannot be read, and for an incomplete listing."""
    pool, evidence = root.path.partition("/")[0], _evidence(command, result)
    if look.health == ABSENT:
        return
    if look.health not in HEALTHY:
        raise OutsideError(
            f"the pool {pool} is {look.health.lower()}: its disks are gone or failing",
            evidence=evidence,
            hint=f"`zpool status {quoted(pool)}` names the fault: bring the disks back, then `zpool clear {quoted(pool)}`",
        )
    if root.path in look.above or not look.whole:
        raise BaseGone(f"{root} changed under the look", evidence=evidence, hint=LOOKS_AGAIN)


def _evidence(command: Command, result: PipelineResult) -> Evidence:
    host = str(command.host) if command.host else None
    return Evidence(lines=(evidence_line(command),), exits=result.exits, last_output=result.last_output, host=host)


def run_read_command(reader: Reader, command: Command, *, patience: Seconds = PATIENCE) -> PipelineResult:
    """Return the result of a read-only command that ended well and in time. Raises: OrchestratorError."""
    pipeline = Pipeline(stages=(command,))
    result = reader.read(pipeline, limit=LIMIT, timeout=patience)
    if not result.well:
        raise with_older_side(explain(pipeline_failure(pipeline, result, reader.ssh_options)), command, reader)
    return result


def parse_result(command: Command, result: PipelineResult, read: Callable[[], _One]) -> _One:
    """Return the result, parsed by `read`. Raises: UnreadableAnswer for other output, which never means an empty listing."""
    return understand("zfs", command, result.stdout, lambda _: read())


def side_by_side(
    reader: Reader, one: Callable[[Reader], _One], other: Callable[[Reader], _Other]
) -> tuple[_One, _Other]:
    """Run two surveys at once, here and in a thread that lives as long as its program. Raises: the error of either."""
    with ReadingBeside(reader, other) as beside:
        return one(beside.executor), beside.result()


def survey_points(job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
    """Return the snapshots of the copy's root, oldest first; none without a copy. Raises: OrchestratorError."""
    root = job.target.location
    command = commands.points_command(root)
    try:
        result = run_read_command(reader, command)
    except NotNow as error:
        away = absent_pool(job, root)
        raise TargetUnable(away.why, evidence=(), hint=away.hint) from error
    lines = text_lines(result.stdout)
    return tuple(
        RestorePoint(name=name, taken=taken, tree=Location(path=f"{root.path}@{name}", host=root.host), manifest=None)
        for name, taken in parse_result(command, result, lambda: tuple(parse.parse_points(lines)))
    )
