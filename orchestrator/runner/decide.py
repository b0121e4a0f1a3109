"""The decision after a survey: guards, the engine's plan, the check for free space, and the points to keep."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import takewhile
from typing import Any

from orchestrator.domain.answers import split_lines
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import GuardLimits, Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Pipeline, Plan, Refusal
from orchestrator.domain.point import Changes, RestorePoint
from orchestrator.engines.contract.copies import ChangeReporter, Copier, MoveFinder, SizeEstimator
from orchestrator.engines.contract.engine import Engine, RunRequest, implements
from orchestrator.history.store import History
from orchestrator.planners.guard import (
    GUARD_MEMORY,
    OTHER_MACHINE,
    copy_name,
    decide_guard,
    loses_much,
    parse_guard_memory,
)
from orchestrator.planners.retention import RetentionDecision, decide_retention
from orchestrator.process.executor import Reader, pipeline_failure
from orchestrator.runner.context import tree_engine

_LARGEST = 1 << 30  # bytes of a manifest that is fetched from a host


def count_folders(job: Job, engine: Engine, world: Any, reader: Reader) -> Mapping[bytes, int]:
    """Return the entries below each top folder of the newest point; empty if no limit needs it, or if unchanged or unknown."""
    if not implements(engine, ChangeReporter):
        return {}
    changes, newest = engine.changes(world), engine.newest(world)
    if (
        changes is None
        or not changes.folders
        or not (_has_folder_limit(job.guard) or loses_much(changes))
        or newest is None
        or newest.manifest is None
    ):
        return {}
    try:
        return _count(newest.manifest, job, engine, reader)
    except (OrchestratorError, OSError):
        return {}  # the guard then uses the smallest possible number


def with_folders(changes: Changes, before: Mapping[bytes, int]) -> Changes:
    """Return the changes with the former entry count of each folder."""
    if not before:
        return changes
    folders = {top: replace(found, before=before.get(top, 0)) for top, found in changes.folders.items()}
    return replace(changes, folders=folders)


def _has_folder_limit(guard: GuardLimits) -> bool:
    limits = (guard.max_deleted_per_folder, guard.max_changed_per_folder)
    return any(limit is not None and limit.percent for limit in limits)


def _count(manifest: Location, job: Job, engine: Engine, reader: Reader) -> Mapping[bytes, int]:
    from orchestrator.verify.manifest import read_manifest

    with _fetched(manifest, engine, reader) as path:
        groups = (job.tree.group_of(entry.path) for entry in read_manifest(path)[1])
        return Counter(filter(None, groups))


@contextmanager
def _fetched(manifest: Location, engine: Engine, reader: Reader) -> Iterator[str]:
    """Yield the local path of a manifest, for reading. Raises: OrchestratorError when its host does not send it."""
    if manifest.host is None:
        yield manifest.path
        return
    pipeline = Pipeline(stages=tree_engine(engine).fetch(manifest, "").stages)
    result = reader.read(pipeline, limit=_LARGEST)
    if not result.well:
        raise engine.explain(pipeline_failure(pipeline, result, reader.ssh_options))
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(result.stdout)
        file.flush()
        yield file.name


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherMachine:
    """Another machine that made points at a target since this one did. `since`: when its first was taken; `ours`: our keys there."""

    point: str
    since: datetime
    key: str
    ours: Sequence[str]


def find_other_machine(
    job: Job,
    engine: Engine,
    points: Sequence[RestorePoint],
    reader: Reader,
    *,
    facts: Mapping[str, str],
    elsewhere: Callable[[str], bool],
) -> OtherMachine | None:
    """Return who made the newest point, where the tag of its manifest is of a key that this machine never used there.

    `elsewhere`: whether runs of this machine made points there, but not the one of that name. Why a machine without any is not
    asked: it may be set up anew after the loss of its state.
    """
    newest = points[-1] if points else None
    if newest is None or newest.manifest is None or not elsewhere(newest.name):
        return None
    from orchestrator.domain.answers import NOT_READ
    from orchestrator.domain.authentication import USES, parse_uses
    from orchestrator.verify.manifest import read_tag

    try:
        ours = sorted({key for key, _ in parse_uses(facts.get(f"{USES}{job.target.name}", ""))})
        with _fetched(newest.manifest, engine, reader) as path:
            key = read_tag(path, None).key
    except (*NOT_READ, OrchestratorError, OSError):
        return None  # what cannot be read is judged where it is needed
    if not key or not ours or key in ours:
        return None
    last = list(takewhile(lambda each: elsewhere(each.name), reversed(points)))[-1]
    return OtherMachine(point=newest.name, since=last.taken, key=key, ours=ours)


def refuse_other_machine(job: Job, other: OtherMachine) -> Refusal:
    """Return the refusal: each of two machines at one place would remove the points of the other."""
    return Refusal(
        why=f"another machine copied to {job.target.location} since this one did: point {other.point} is not of ours",
        evidence=(f"the tag of its manifest is of the key {other.key}; {job.name} used {', '.join(other.ours)} here",),
        hint="give the job of the other machine a target of its own; when it has stopped: "
        f"poolferry run {job.name} --allow {OTHER_MACHINE}",
        guard=OTHER_MACHINE,
    )


def check_fit(job: Job, engine: Engine, world: Any, plan: Plan, request: RunRequest, reader: Reader) -> Plan | Refusal:
    """Return the plan, or a refusal when its target has not enough free space. Raises: Stopped."""
    from orchestrator.engines.contract.copies import SpaceChecker

    return engine.check_space(job, world, plan, request, reader) if implements(engine, SpaceChecker) else plan


def find_shortage(plan: Plan, fitting: Plan | Refusal) -> str:
    """Return why a plan may not fit its target, as `check_fit` found; empty: it does. A run removes first then what [keep] lets go."""
    if isinstance(fitting, Refusal):
        return fitting.why
    told = [each.why for each in fitting.refusals[len(plan.refusals) :]]
    return next(iter((*told, *fitting.warnings[len(plan.warnings) :])), "")


GROUND = "source-ground"
_LOSSES = ("max-deleted", "max-deleted-per-folder")


def no_moves() -> Mapping[bytes, int]:
    """Return that no entry was moved."""
    return {}


def moves_finder(job: Job, engine: Engine, world: Any, reader: Reader) -> Callable[[], Mapping[bytes, int]]:
    """Return a function that searches for moved entries, for a run that would be refused without it."""
    return lambda: engine.find_moved(job, world, reader) if implements(engine, MoveFinder) else {}


def decide_run(
    job: Job,
    engine: Engine,
    world: Any,
    request: RunRequest,
    folders: Mapping[bytes, int],
    moves: Callable[[], Mapping[bytes, int]] = no_moves,
) -> Decision:
    """Return the decision of this run. Nothing has been written yet.

    `folders`: the result of `count_folders`; `moves`: of `moves_finder`.
    """
    return _guard(job, engine, world, request, folders, moves) or engine.plan(job, world, request)


def _guard(
    job: Job,
    engine: Engine,
    world: Any,
    request: RunRequest,
    folders: Mapping[bytes, int],
    moves: Callable[[], Mapping[bytes, int]],
) -> Refusal | None:
    changes = engine.changes(world) if implements(engine, ChangeReporter) else None
    if changes is None or not implements(engine, ChangeReporter):
        return None
    changes = with_folders(changes, folders)
    before, ground = request.remembered.get(GROUND), engine.ground(world)
    # Device numbers change with a reboot; a source that was a filesystem of its own and is none now is not mounted.
    known = parse_ground(before)
    changes = replace(changes, given_up=given_up_folders(before, ground))
    if moved := tuple(folder for folder, (_, own) in ground.items() if known.get(show_name(folder)) and not own):
        named = tuple(filter(None, moved))
        changes = replace(changes, device_before=before, device_now=source_ground(ground), unmounted=named)
    memory = parse_guard_memory(request.remembered.get(GUARD_MEMORY), compared_copy(job, engine, world))

    def decide(look: Changes) -> Refusal | None:
        return decide_guard(look, job.guard, job=job.name, allowed=request.allowed, memory=memory, now=request.now)

    refusal = decide(changes)
    if refusal is not None and refusal.guard in _LOSSES and (found := moves()):
        refusal = decide(with_moves(changes, found))
    return refusal


def compared_copy(job: Job, engine: Engine, world: Any) -> str:
    """Return the name of the copy that the survey compared the source with, as guards remember it; empty: there is none."""
    if not (implements(engine, ChangeReporter) and implements(engine, Copier) and engine.holds_copies(job, world)):
        return ""
    newest = engine.newest(world)
    return copy_name(job.target.name, newest.name if newest is not None else "")


def with_moves(changes: Changes, found: Mapping[bytes, int]) -> Changes:
    """Return the changes with the number of moved entries, in all and in each top folder."""
    folders = {top: replace(each, moved=min(found.get(top, 0), each.deleted)) for top, each in changes.folders.items()}
    return replace(changes, moved=min(sum(found.values()), changes.deleted), folders=folders)


def with_sizes(plan: Plan, engine: Engine, reader: Reader) -> Plan:
    """Return the plan with the sizes that its programs can estimate; unchanged where they cannot."""
    return engine.weigh(plan, reader) if implements(engine, SizeEstimator) else plan


def source_ground(ground: Mapping[str, tuple[str, bool]]) -> str:
    """Return the text that history remembers about the filesystems of a source: a line for each of its folders."""
    lines = ((f"{show_name(folder)}: " if folder else "", device, own) for folder, (device, own) in ground.items())
    return "\n".join(f"{folder}device {device}{' mounted' if own else ''}" for folder, device, own in lines)


def given_up_folders(before: str | None, ground: Mapping[str, tuple[str, bool]]) -> tuple[str, ...]:
    """Return the folders of a remembered text that the source has no more."""
    now = set(map(show_name, ground))
    return tuple(folder for folder in parse_ground(before) if folder and folder not in now)


def parse_ground(text: str | None) -> Mapping[str, bool]:
    """Return from a remembered text whether each folder was the root of a filesystem; a source of one folder has the name ""."""
    lines = (line.rpartition(": ") for line in split_lines(text or ""))
    return {folder: told.endswith(" mounted") for folder, _, told in lines}


def decide_points(
    points: Sequence[RestorePoint], job: Job, *, now: datetime, protected: Mapping[str, str]
) -> tuple[RetentionDecision, ...]:
    """Decide for each point whether [keep] keeps it, with the reason."""
    return decide_retention(points, job.keep, now=now, protected=protected)


def points_to_remove(decisions: Sequence[RetentionDecision]) -> tuple[RetentionDecision, ...]:
    """Return the decisions for points that are removed."""
    return tuple(decision for decision in decisions if not decision.keep)


def protected_points(sound: Sequence[str], busy: Sequence[str]) -> dict[str, str]:
    """Return the points that stay regardless of [keep], with the reason: the newest verified one, those in use."""
    newest = {max(sound): "the newest point that a reading found sound"} if sound else {}
    return newest | dict.fromkeys(busy, "a restore or a reading is using it")


def brought_points(job: Job, history: History) -> frozenset[str]:
    """Return the names of points that runs of this machine made at the job's place, or found as new as the source."""
    there = (point for point in history.views.points(job.name) if point.place == job.target.name)
    return frozenset(point.name for point in there if point.made_at or point.confirmed_at)


def retention_filter(job: Job, now: datetime) -> Callable[[tuple[tuple[str, datetime], ...]], frozenset[str]] | None:
    """Return a function that selects the names that [keep] would keep on the target; None: it keeps all."""
    if job.keep.everything:
        return None

    def retain(dated: tuple[tuple[str, datetime], ...]) -> frozenset[str]:
        root = job.target.location
        points = [RestorePoint(name=name, taken=taken, tree=root, manifest=None) for name, taken in dated]
        return frozenset(each.point.name for each in decide_points(points, job, now=now, protected={}) if each.keep)

    return retain
