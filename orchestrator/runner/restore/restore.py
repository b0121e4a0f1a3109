"""`restore`: choose a point, survey the destination, copy, verify."""

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import assert_never

from orchestrator.domain.answers import parse_instant
from orchestrator.domain.command_line import quoted
from orchestrator.domain.dataset_restore import SnapshotView
from orchestrator.domain.errors import OrchestratorError, Stopped
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import FOUND, Location
from orchestrator.domain.plan import Plan, Refusal
from orchestrator.domain.point import MIRROR_MADE, RestorePoint
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.domain.units import Bytes, Seconds, show_count, show_size
from orchestrator.engines.contract.restore import DestinationSurvey, RestoreRequest
from orchestrator.planners.restore import (
    DestinationAbsent,
    DestinationNotDirectory,
    DestinationOccupied,
    DestinationState,
    DestinationUnfinished,
    MoveAside,
    OwnFolder,
    ResumeRestore,
    StartFresh,
    choose_point,
    decide_destination,
    own_copy_folders,
    refuse_around,
    refuse_inside,
    refuse_mounts,
    refuse_own_rooms,
)
from orchestrator.planners.retry import RetryAfter, decide_retry, failure_key
from orchestrator.process.executor import Writer
from orchestrator.process.mounted import find_inner_path
from orchestrator.runner.context import RunContext, file_restorer
from orchestrator.runner.last_look import find_points
from orchestrator.runner.locks import lock_destination, lock_job, lock_point
from orchestrator.runner.problems import look_for_points
from orchestrator.runner.publish_point import PointPublisher
from orchestrator.runner.restore import snapshot_files as showing
from orchestrator.runner.restore.request import (
    RestoreOptions,
    needs_datasets,
    restore_command,
    restore_phrases,
    restore_reason,
)
from orchestrator.runner.restore.vanished import name_lost, warn_of_lost
from orchestrator.runner.run_notes import sweep_restores
from orchestrator.runner.run_recorder import ENDS_A_RUN, RunRecorder, begin_run
from orchestrator.runner.steps import StepExecutor, told_where_full
from orchestrator.runner.verify.read_files import entry_looked_up

_SHOWN = 20
_UNWRITTEN = "unwritten restore to "  # before a destination, a small fact of a job: its disk did not take all


def plan_restore(job: Job, tools: RunContext, restore_request: RestoreOptions) -> Plan | Refusal:
    """Return the plan of `restore run`; nothing is changed."""
    if needs_datasets(tools, restore_request):
        from orchestrator.runner.restore.datasets import plan_dataset_restore

        return plan_dataset_restore(job, tools, restore_request, tools.writer(()))
    if tools.engine.needs_datasets:
        shown = showing.find_snapshot_view(job, tools, restore_request, tools.writer(()))
        return shown if isinstance(shown, Refusal) else showing.plan_files(shown, restore_request)
    points = find_points(job, tools, tools.writer(()))
    decided = _decide(job, tools, restore_request, points, notes=f"{tools.state}/notes/restore-{job.name}")
    return decided if isinstance(decided, Refusal) else decided[1]


def run_restore(job: Job, tools: RunContext, restore_request: RestoreOptions) -> RunReport:
    """Restore data and verify them. Resumable: the same command continues after an interruption."""
    why, phrases = (
        restore_reason(restore_request.path, restore_request.to),
        restore_phrases(job, restore_request),
    )
    journal = begin_run(job, tools, why, RunType.RESTORE, phrases)
    journal.own_notes = _notes(journal)
    journal.attempt_begun()
    try:
        with _locked(job, tools, restore_request) as inherit:
            tools.history.heal(tools.alive, journal.now)
            sweep_restores(tools.state, job.name, tools.history.open_runs())
            report = _attempts(journal, tools.writer(inherit), restore_request)
    except ENDS_A_RUN as error:
        report = journal.ended_by(error, continues="the same command continues from here")
    return report


@contextlib.contextmanager
def _locked(job: Job, tools: RunContext, restore_request: RestoreOptions) -> Iterator[tuple[int, ...]]:
    """Hold the lock of the destination; for datasets also that of the copy: else a run would use an incomplete source."""
    with contextlib.ExitStack() as held:
        wait, patience = tools.stop.wait, tools.lock_wait
        inherit = held.enter_context(lock_destination(restore_request.to, tools.state, wait=wait, patience=patience))
        if needs_datasets(tools, restore_request):
            inherit += held.enter_context(lock_job(job, tools.state, wait=wait, patience=patience))
        yield inherit


def _attempts(journal: RunRecorder, writer: Writer, restore_request: RestoreOptions) -> RunReport:
    once = _files_attempt if journal.tools.engine.needs_datasets else _attempt
    if needs_datasets(journal.tools, restore_request):
        from orchestrator.runner.restore.datasets import restore_datasets

        once = restore_datasets
    fruitless, seen = 0, list[str]()
    while True:
        moved = journal.moved
        try:
            with told_where_full(f"not all could come back to {restore_request.to}", _WHEN_FULL):
                return once(journal, writer, restore_request)
        except OrchestratorError as error:
            journal.attempt_ended(error)
            fruitless = 0 if journal.moved > moved else fruitless + 1
            again = decide_retry(
                error,
                attempt=journal.attempt,
                fruitless=fruitless,
                rules=journal.job.retry,
                jitter=journal.tools.chance(),
                repeats=seen.count(failure_key(error)),
                least=Seconds(0),
            )
            if not isinstance(again, RetryAfter):
                raise
            seen.append(failure_key(error))
            journal.warn(f"attempt {journal.attempt}: {error.why}; again ({again.why})")
            if journal.tools.stop.wait(again.wait):
                raise Stopped(journal.tools.stop.reason or "the restore was asked to stop") from error
        journal.attempt_begun()


_WHEN_FULL = (
    "what came back stays there: free space, or make that filesystem or its quota larger, then the same command goes on; "
    "or restore to another place: --to"
)


def _attempt(journal: RunRecorder, writer: Writer, restore_request: RestoreOptions) -> RunReport:
    job, tools = journal.job, journal.tools
    known = job.target.name != FOUND
    # What vanished is told by the plan's warning.
    points = look_for_points(journal, writer, quiet=True) if known else find_points(job, tools, writer)
    decided = _decide(job, tools, restore_request, points, notes=_notes(journal))
    if isinstance(decided, Refusal):
        return _refused(journal, decided)
    point, plan, _ = decided
    _do(journal, writer, decided)
    return _done(journal, point, plan)


def _files_attempt(journal: RunRecorder, writer: Writer, restore_request: RestoreOptions) -> RunReport:
    """Run one attempt to restore files from a snapshot that is mounted for it."""
    shown = showing.find_snapshot_view(journal.job, journal.tools, restore_request, writer)
    if isinstance(shown, Refusal):
        return _refused(journal, shown)
    with showing.mount_snapshot(journal, writer, shown) as tools:
        wanted = showing.make_point(journal, writer, shown, restore_request)
        decided = _decide_for(journal.job, tools, wanted, restore_request)
        if not isinstance(decided, Refusal):
            point, plan = _with_comparison(decided, wanted, shown, restore_request)
            _do(journal, writer, (point, plan, decided[2]))
    return _refused(journal, decided) if isinstance(decided, Refusal) else _done(journal, point, plan)


def _with_comparison(
    decided: tuple[RestorePoint, Plan, Location],
    wanted: RestoreRequest,
    shown: SnapshotView,
    restore_request: RestoreOptions,
) -> tuple[RestorePoint, Plan]:
    """Return the plan with our own summary; a single file without a manifest entry is compared before it gets its place."""
    point, plan, to = decided
    plan = replace(plan, summary=showing.plan_files(shown, restore_request).summary)
    if not showing.is_compared(wanted, to):
        return point, plan
    return replace(point, manifest=point.tree), replace(plan, warnings=())


def _refused(journal: RunRecorder, refusal: Refusal) -> RunReport:
    journal.decided(refusal)
    return journal.ended(Outcome.REFUSED, refusal.why, hint=refusal.hint, evidence=refusal.evidence)


def _notes(journal: RunRecorder) -> str:
    return f"{journal.tools.state}/notes/restore-{journal.job.name}-{journal.run}"


def _do(journal: RunRecorder, writer: Writer, decided: tuple[RestorePoint, Plan, Location]) -> None:
    point, plan, to = decided
    job, tools = journal.job, journal.tools
    journal.decided(plan)
    notes = _notes(journal)
    os.makedirs(notes, mode=0o700, exist_ok=True)
    with (
        lock_point(job, tools.state, point.name),
        entry_looked_up(plan, journal),
        _watched(journal, to) as publisher,
    ):
        for number, stage in enumerate(plan.stages, 1):
            if any(step.settles for step in stage):
                publisher.require_written()
            StepExecutor(journal, writer, notes).do(stage)
            if number == 1 and to.host is None:
                publisher.watch_disk(to.path if os.path.isdir(to.path) else os.path.dirname(to.path))


@contextlib.contextmanager
def _watched(journal: RunRecorder, to: Location) -> Iterator[PointPublisher]:
    """Yield what watches the destination's disk; note that the next try copies all anew where the disk did not take all, until one went well.

    Of a restore that was killed, or cut short with the machine, the comparison with a manifest tells: it reads each file from the disk.
    Why besides the reading: Linux tells a write error once, perhaps to another program, and shows in memory what the disk never took.
    """
    publisher, remember = PointPublisher(journal.tools.engine.explain), journal.tools.history.remember
    job, fact, journal.restored_damaged = journal.job.name, _unwritten(to), False
    try:
        yield publisher
        publisher.require_written()
        if journal.tools.history.recall(job, fact):
            remember(job, fact, "")
    except OrchestratorError:
        if not publisher.lost:  # a failed comparison, or a sync of its own that was told
            publisher.require_written()
        raise
    finally:
        publisher.let_go()
        if publisher.lost or journal.restored_damaged:
            remember(job, fact, "yes")


def _unwritten(to: Location) -> str:
    """Return the key of the fact that a destination's disk did not take all, whichever link leads there."""
    return _UNWRITTEN + str(to if to.host is not None else replace(to, path=os.path.realpath(to.path)))


def _done(journal: RunRecorder, point: RestorePoint, plan: Plan) -> RunReport:
    if journal.forged:
        why = f"{plan.summary}: all of it is back, and not verified: {journal.forged}"
        return journal.ended(
            Outcome.FAILED, why, hint="look at what came back with care, or restore an earlier --point, or another copy"
        )
    if journal.unmade and point.manifest:
        names = sorted(map(show_name, journal.unmade))
        lacking = show_count(len(names), "device node")
        return journal.ended(
            Outcome.INCOMPLETE,
            f"{plan.summary}: done and verified, {show_size(journal.moved)} moved, without {lacking}: only root makes them",
            hint="restore as root, where they are needed", evidence=names[:_SHOWN],
        )  # fmt: skip
    return journal.ended(
        Outcome.DONE,
        f"{plan.summary}: done and verified, {show_size(journal.moved)} moved"
        if point.manifest
        else f"{plan.summary}: done, not verified",
    )


def _decide(
    job: Job, tools: RunContext, restore_request: RestoreOptions, points: Sequence[RestorePoint], *, notes: str
) -> tuple[RestorePoint, Plan, Location] | Refusal:
    point = choose_point(points, point=restore_request.point, at=restore_request.at)
    if isinstance(point, Refusal):
        point = name_lost(job, tools, points, point, restore_request.point)
        return point if points else _of_mirror_left(job, tools, point)
    if point.tree.host is not None and restore_request.to.host is not None:
        return Refusal(
            why="the point lies on a host, and so does the destination: nothing is carried between two hosts",
            evidence=(str(point.tree), str(restore_request.to)),
            hint=f"restore to a path of this machine, or run poolferry on {point.tree.host.name}",
        )
    known = (
        each.bytes
        for each in tools.history.views.points(job.name)
        if (each.place, each.name) == (job.target.name, point.name)
    )
    size = next((Bytes(found) for found in known if found is not None), None)
    wanted = RestoreRequest(point=point, path=restore_request.path, to=restore_request.to, size=size, notes=notes)
    decided = _decide_for(job, tools, wanted, restore_request)
    newest = restore_request.at is None and restore_request.point in (None, "latest")
    if isinstance(decided, Refusal) or job.target.name == FOUND:
        return decided
    told = warn_of_lost(job, tools, points, point, newest=newest)
    return decided[0], replace(decided[1], warnings=(*decided[1].warnings, *told)), decided[2]


def _of_mirror_left(job: Job, tools: RunContext, refusal: Refusal) -> Refusal:
    """Return the refusal of a place without points, with the way to the mirror that history knows there, if it does."""
    made = tools.history.fact(job.name, MIRROR_MADE + job.target.name, parse_instant)
    if made is None or not getattr(job.options, "points", False):
        return refusal
    return replace(
        refusal,
        why=f"{refusal.why}; a mirror was made at {job.target.location}, the last time at {made:%Y-%m-%d %H:%M} UTC",
        hint=f"write points = false in [rsync] of {job.file}, and the same command brings the mirror back; or poolferry run {job.name}, which makes the point",
    )


def _where_it_may_be(job: Job, point: RestorePoint, path: bytes, request: RestoreOptions) -> str:
    """Return a hint for a path that a point does not hold. A copy that was found without its job has no names to search."""
    if job.target.name == FOUND:
        return f"look below {point.tree}, or choose another --point"
    top = os.fsencode(job.source.path.strip("/"))
    if top and path.startswith(top + b"/"):
        told = restore_command(job, replace(request, path=path[len(top) + 1 :]), None)
        return f"paths are named below the source: {told}"
    name = os.fsdecode(path.rpartition(b"/")[2])
    return f"`poolferry find {job.name} -- {quoted(name)}` looks for the name in all points"


def _decide_for(
    job: Job, tools: RunContext, wanted: RestoreRequest, restore_request: RestoreOptions
) -> tuple[RestorePoint, Plan, Location] | Refusal:
    """Decide from the point and the destination's state; also return the destination, with the name of a single file."""
    point, engine = wanted.point, file_restorer(tools.engine, wanted.point)
    seen = engine.survey_restore(job, wanted, tools.writer(()))
    # Without a manifest nothing is compared at the end, so nothing that an earlier try left is believed for its size and time.
    unproved = point.manifest is None and seen.unfinished is not None
    if unproved or tools.history.recall(job.name, _unwritten(seen.to)):
        wanted = replace(wanted, anew=True)
        seen = engine.survey_restore(job, wanted, tools.writer(()))
    seen = _without_excluded(seen, restore_request.stays)
    if seen.wanted == "absent":
        return Refusal(
            why=f"point {point.name} holds no {show_name(wanted.path)}",
            evidence=(),
            hint=_where_it_may_be(job, point, wanted.path, restore_request),
        )
    if (rooms := _refuse_own_rooms(job, point, seen.to, restore_request.apart)) is not None:
        return rooms
    beginning = decide_destination(
        _destination_state(seen),
        job=job.identity,
        point=point.name,
        path=show_name(wanted.path),
        destination=seen.to.path,
        aside=restore_request.aside,
        now=tools.clock(),
        finish=_finishing(job, seen),
    )
    if isinstance(beginning, Refusal | MoveAside) and (
        around := _refuse_around(job, point, seen.to, restore_request.apart)
    ):
        return around
    match beginning:
        case Refusal():
            return beginning
        case MoveAside():
            plan = _with_half_written(engine.plan_restore(job, wanted, seen, aside=beginning.path), job, point)
            return point, _with_space(plan, wanted, seen.to), seen.to
        case StartFresh() | ResumeRestore():
            filling = seen.filling if isinstance(beginning, ResumeRestore) else ()
            if refusal := refuse_mounts(seen.mounts, filling, destination=seen.to.path):
                return refusal
            plan = _with_half_written(engine.plan_restore(job, wanted, seen, aside=None), job, point)
            return point, plan if isinstance(beginning, ResumeRestore) else _with_space(plan, wanted, seen.to), seen.to
    assert_never(beginning)


def _finishing(job: Job, seen: DestinationSurvey) -> str:
    """Return the command that finishes an unfinished restore of this job; empty: there is none, or its marker does not say which.

    Why only names that are shown as they are: others cannot be typed so, and a marker is not ours alone to write.
    """
    found, *named = seen.unfinished or ("", "", "")
    point, path = showing.asked_for(*named)
    if found != job.identity or any(show_name(os.fsencode(name)) != name or "\\" in name for name in (point, path)):
        return ""
    origin = ("--from", str(job.target.location)) if job.target.name == FOUND else (job.name,)
    part = ("--path", path) if path else ()
    return shlex.join(("poolferry", "restore", "run", *origin, *part, "--point", point, "--to", str(seen.to)))


def _with_half_written(plan: Plan, job: Job, point: RestorePoint) -> Plan:
    """Return the plan with a warning where the copy is a mirror that a run did not end."""
    if not point.unfinished:
        return plan
    ends = "" if job.target.name == FOUND else f": `poolferry run {job.name}` goes on with it"
    told = f"the mirror is half written, as a run that changed it did not end, so a part of it may be newer than the rest, or missing{ends}"
    return replace(plan, warnings=(*plan.warnings, told))


def _with_space(plan: Plan, wanted: RestoreRequest, to: Location) -> Plan:
    """Return the plan with a warning where a whole point is larger than what is free at a destination on this machine."""
    if wanted.path or wanted.size is None or to.host is not None or (free := _free_bytes(to.path)) >= wanted.size:
        return plan
    told = f"{show_size(wanted.size)} are to come back, and {show_size(free)} are free at {to}: it fits only if that stores it in less"
    return replace(plan, warnings=(*plan.warnings, told))


def _free_bytes(path: str) -> int:
    """Return what is free on the filesystem that holds `path`, or that would hold it; all there could be where it does not tell."""
    while not os.path.exists(path):
        path = os.path.dirname(path)
    try:
        found = os.statvfs(path)
    except OSError:
        return sys.maxsize
    return found.f_bavail * found.f_frsize


def _refuse_own_rooms(job: Job, point: RestorePoint, to: Location, apart: tuple[OwnFolder, ...]) -> Refusal | None:
    real = os.path.realpath(to.path) if to.host is None else to.path
    if (found := refuse_inside(real, apart)) is not None:
        return found
    if point.tree.host != to.host:
        return None
    here = to.host is None
    destination, tree = (os.path.realpath(each.path) if here else each.path for each in (to, point.tree))
    if (found := refuse_own_rooms(destination, tree, job=job.name)) is not None or not here:
        return found
    inner, room = find_inner_path(destination), find_inner_path(tree)  # a folder that is mounted twice has two paths
    if inner is None or room is None or inner.device != room.device:
        return None
    return refuse_own_rooms(inner.path, room.path, job=job.name, shown=destination)


def _refuse_around(job: Job, point: RestorePoint, to: Location, apart: tuple[OwnFolder, ...]) -> Refusal | None:
    """Refuse a destination with copies or a state of ours below it; only what is there counts, as far as this machine sees."""
    if to.host is not None:
        own = own_copy_folders(point.tree.path, job=job.name) if point.tree.host == to.host else ()
        return refuse_around(to.path, own)
    own = own_copy_folders(os.path.realpath(point.tree.path), job=job.name) if point.tree.host is None else ()
    there = tuple(each for each in (*own, *apart) if os.path.lexists(each.path))
    return refuse_around(os.path.realpath(to.path), there)


def _without_excluded(seen: DestinationSurvey, stays: tuple[str, ...]) -> DestinationSurvey:
    """Return the same survey, as if the point had no data for mounts that stay unchanged."""
    if not stays:
        return seen
    front = os.fsencode(os.path.realpath(seen.to.path).rstrip("/")) + b"/"
    kept = {os.fsencode(path) for path in stays}
    mounts = (replace(one, wanted=one.wanted and front + one.path not in kept) for one in seen.mounts)
    return replace(seen, mounts=tuple(mounts))


def _destination_state(seen: DestinationSurvey) -> DestinationState:
    """Convert the survey to the planner's type. An empty folder counts as absent; our marker shows an unfinished restore."""
    if seen.kind == "absent":
        return DestinationAbsent()
    if seen.kind != "folder":
        return DestinationNotDirectory(kind="a file")
    if seen.unfinished:
        return DestinationUnfinished(job=seen.unfinished[0], point=seen.unfinished[1], path=seen.unfinished[2])
    return DestinationOccupied(entries=seen.entries, examples=seen.examples) if seen.entries else DestinationAbsent()
