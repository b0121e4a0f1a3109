"""Work after a successful run: verify if it is due, let [keep] remove points, copy the history to the target."""

import os
from typing import TYPE_CHECKING

from orchestrator.domain.age import is_over
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.kit import DIGESTS, HISTORY
from orchestrator.domain.plan import Refusal, Step, TreeVerification
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.problem import ProblemType
from orchestrator.engines.contract.copies import PointRemover
from orchestrator.engines.contract.engine import implements
from orchestrator.planners.retention import RetentionDecision
from orchestrator.process.executor import Writer
from orchestrator.runner.decide import decide_points, points_to_remove, protected_points
from orchestrator.runner.kit_digests import (
    COPIED,
    OWN_FOLDER,
    damage_sentence,
    file_digest,
    find_damaged,
    keep_earlier_history,
    knows_history_beside,
    note_stored,
    record_damage,
    seal_files,
)
from orchestrator.runner.last_look import find_points
from orchestrator.runner.locks import points_being_read
from orchestrator.runner.problems import see_points
from orchestrator.runner.run_recorder import RunRecorder, store_file
from orchestrator.runner.steps import StepExecutor

if TYPE_CHECKING:
    from orchestrator.engines.contract.comparison import CopyComparer


def has_after_run(journal: RunRecorder, *, changed: bool) -> bool:
    """Return True when `finish_run` has something to do."""
    return _asks_points(journal, changed=changed) or journal.tools.snapshotter is not None


def _asks_points(journal: RunRecorder, *, changed: bool) -> bool:
    job = journal.job
    often = changed or not job.keep.everything or job.verify.every is not None or journal.tools.engine.stays
    return often or bool(journal.tools.history.problems.open_of(job.name, job.target.name))


def finish_run(
    journal: RunRecorder, writer: Writer, executor: StepExecutor, *, changed: bool, whole: bool = True
) -> bool:
    """Do the work that follows a copy; return True when points were read or removed.

    `whole`: no dataset was left out; else the source is not pruned, as what was not sent yet is all that there is of those points.
    A removal that fails is a warning: the copy itself is good.
    """
    job, tools = journal.job, journal.tools
    points: tuple[RestorePoint, ...] | None = None
    if whole:
        by = f"run {journal.run} copied all of it"
        tools.history.problems.end(job.name, job.target.name, (ProblemType.UNPRUNED,), "", by=by, now=journal.now)
    if _asks_points(journal, changed=changed):
        points = find_points(job, tools, writer)
        see_points(journal, points)
    if points and tools.engine.stays:  # there is no copy: such a job exists for the newest snapshot itself
        tools.history.point_verified(job.name, job.target.name, points[-1].name, journal.run, journal.now)
    if points and tools.history.problems.open_of(job.name, job.target.name):
        from orchestrator.runner.mend import mend_points

        mend_points(journal, writer, points, notes=executor.notes, changed=changed)
    verified = bool(points) and is_verification_due(journal)
    if points and verified:
        _verify(journal, writer, executor, points[-1])
    if tools.snapshotter is not None:
        from orchestrator.runner.snapshots import prune_snapshots

        prune_snapshots(journal, writer, source=whole, target=changed)
    elif points and not job.keep.everything:
        return _prune(journal, executor, points) or verified
    return verified


def verification_step(point: RestorePoint, workers: int) -> Step:
    """Return the step that reads a point again."""
    work = TreeVerification(point=point, tree=point.tree, apart=point.apart, workers=workers)
    return Step(
        action=f"read point {point.name} again",
        why="[verify] every asks for it",
        worker="main",
        work=work,
        expected=None,
    )


def _compare(journal: RunRecorder, writer: Writer, engine: "CopyComparer") -> None:
    """Compare the contents of both sides, as [verify] every requires. Raises: VerificationFailed."""
    from orchestrator.runner.verify.compare_sides import compare_copy, require_same

    notes = f"{journal.tools.state}/notes/verify-{journal.job.name}"
    compared = compare_copy(journal, writer, engine, notes, point=None, content=True)
    if isinstance(compared, Refusal):
        journal.warn(f"nothing could be compared: {compared.why}")
    else:
        require_same(compared, journal)


def is_verification_due(journal: RunRecorder) -> bool:
    """Return True when [verify] every makes a reading of the newest point due; each disk of a set has its own due time."""
    every = journal.job.verify.every
    if every is None:
        return False
    read = journal.tools.history.newest_whole_reading(journal.job.name, journal.job.target.name)
    return not every or is_over(read, every, journal.now)


def _verify(journal: RunRecorder, writer: Writer, executor: StepExecutor, newest: RestorePoint) -> None:
    from orchestrator.engines.contract.comparison import CopyComparer

    engine = journal.tools.engine
    if implements(engine, CopyComparer):
        _compare(journal, writer, engine)
    elif newest.manifest is not None:
        executor.do((verification_step(newest, journal.job.verify.workers),))


def make_room(journal: RunRecorder, writer: Writer, notes: str) -> bool:
    """Remove what [keep] lets go, where a target has no room for the next copy; return True where that may have made some. Once a run.

    Why before that copy is there: else a target that is full would stay so for ever, whatever [keep] says.
    """
    if journal.job.keep.everything or journal.room_made or journal.tools.engine.stays:
        return False
    journal.room_made = True
    if journal.tools.snapshotter is not None:
        from orchestrator.runner.snapshots import prune_target

        return prune_target(journal, writer)
    gone = _unkept(journal, find_points(journal.job, journal.tools, writer))
    return bool(gone) and _remove(journal, StepExecutor(journal, writer, notes), gone)


def _prune(journal: RunRecorder, executor: StepExecutor, points: tuple[RestorePoint, ...]) -> bool:
    """Remove the points that no rule keeps; return True when there were some."""
    gone = _unkept(journal, points)
    if gone:
        _remove(journal, executor, gone)
    return bool(gone)


def _unkept(journal: RunRecorder, points: tuple[RestorePoint, ...]) -> tuple[RetentionDecision, ...]:
    """Return the decisions for the points that no rule keeps, and that nobody reads."""
    job = journal.job
    tools = journal.tools
    if not points_to_remove(decide_points(points, job, now=journal.now, protected={})):
        return ()  # most runs: the past is not read for them, which would be a good part of a run with nothing to do
    sound = [known.name for known in tools.history.views.points(job.name) if known.sound]
    protected = protected_points(sound, points_being_read(job, tools.state, [point.name for point in points]))
    return points_to_remove(decide_points(points, job, now=journal.now, protected=protected))


def _remove(journal: RunRecorder, executor: StepExecutor, gone: tuple[RetentionDecision, ...]) -> bool:
    """Remove points; return False where the engine removes none, or, with a warning, where that failed."""
    engine, job = journal.tools.engine, journal.job
    if not implements(engine, PointRemover):
        return False
    names = tuple(decision.point.name for decision in gone)
    journal.tools.history.removing(job.name, job.target.name, names)
    try:
        executor.do(engine.plan_removal(job, names, tuple(decision.reason for decision in gone)))
    except OrchestratorError as error:
        journal.warn(f"points could not be removed: {error}")
        return False
    return True


def copy_history(journal: RunRecorder, writer: Writer, *, changed: bool = True) -> None:
    """Copy a consistent history, with the end of this run, to the target; a failure is only a warning.

    `changed`: False for a run that found nothing to do; then the last copy tells the same, unless it failed or is gone. Raises:
    HistoryError when the history is damaged: then the older copy on the target stays as it is.
    """
    journal.tools.history.check_when_due(journal.now)
    if journal.tools.engine.stays:
        return  # what lies beside these copies is the sender's
    job, history = journal.job, journal.tools.history
    missing = f"no history copy:{job.target.name}"
    found, damaged, whole = tuple[str, ...](), tuple[str, ...](), False
    try:
        found = _find_damaged(journal, writer)
        damaged = (*found, *_told_damaged(journal))
        whole = _renew_page(journal, writer, damaged)
        again = _concerns_history(damaged) or history.recall(job.name, missing) or _is_gone(journal)
        if changed or again or not knows_history_beside(journal):
            _carry(journal, writer)
            if history.recall(job.name, missing):
                history.remember(job.name, missing, "")
    except (OrchestratorError, OSError) as error:
        whole = False
        history.remember(job.name, missing, "yes")
        journal.note(f"the history could not be copied to the target: {error}")
    if damaged:
        _tell_renewal(journal, found, whole=whole)


def _find_damaged(journal: RunRecorder, writer: Writer) -> tuple[str, ...]:
    """Return the files beside the copies that a quick look finds damaged."""
    if not journal.job.target.location.path.startswith("/"):
        return ()
    return find_damaged(journal, writer, f"{journal.tools.state}/notes/kit-{journal.job.name}", all_of_it=False)


def _told_damaged(journal: RunRecorder) -> tuple[str, ...]:
    """Return the files that a verification found damaged; they are renewed whatever the quick look says."""
    known = journal.tools.history.problems.open_of(journal.job.name, journal.job.target.name)
    return tuple(path for each in known if each.kind is ProblemType.KIT for path in each.paths)


def _concerns_history(damaged: tuple[str, ...]) -> bool:
    return HISTORY in damaged or DIGESTS in damaged


def _renew_page(journal: RunRecorder, writer: Writer, damaged: tuple[str, ...]) -> bool:
    """Write the page and the configuration anew where they, or their digests, are damaged; return whether all was stored."""
    if DIGESTS not in damaged and {HISTORY}.issuperset(damaged):
        return True
    from orchestrator.runner.recovery_kit import refresh_tree_kit

    return refresh_tree_kit(journal, writer, anew=True)


def _tell_renewal(journal: RunRecorder, found: tuple[str, ...], *, whole: bool) -> None:
    """Record what became of damaged files beside the copies. `whole`: all of them were written anew; else the problem stays open."""
    job, problems = journal.job, journal.tools.history.problems
    if found:
        journal.note(f"{damage_sentence(journal, found)}; {'' if whole else 'not '}written anew")
    if whole:
        by = f"run {journal.run} wrote it anew"
        problems.end(job.name, job.target.name, (ProblemType.KIT,), "", by=by, now=journal.now)
    elif found:
        record_damage(journal, tuple(dict.fromkeys((*found, *_told_damaged(journal)))))


def _is_gone(journal: RunRecorder) -> bool:
    """Return True when the copy beside a local target is not there. A far one costs a login, so it is believed."""
    root = journal.job.target.location
    return root.host is None and not os.path.lexists(f"{root.path}/{OWN_FOLDER}/{HISTORY}")


def _tell_kept_history(journal: RunRecorder, kept: str) -> str:
    """Return what became of an earlier history beside the copies. It takes this one's place only where that knows nothing of any job."""
    if journal.tools.history.views.has_run_before(journal.run, None):
        return f"this history knows no earlier run of {journal.job.name} that ended well here, and another one lay beside the copies: it is kept as {kept}"
    return (
        f"this history begins with this run, and another one lay beside the copies: it is kept. To go on with that one: "
        f"cp -- {quoted(kept)} {quoted(f'{journal.tools.state}/history.sqlite')}"
    )


def _carry(journal: RunRecorder, writer: Writer) -> None:
    tools, root = journal.tools, journal.job.target.location
    if not root.path.startswith("/"):
        return  # a dataset that is never mounted
    # Why not right beside the copies: SQLite opens a file by its path, which others may lead elsewhere meanwhile.
    local = f"{tools.state}/notes/history-{journal.job.name}.sqlite"
    if kept := keep_earlier_history(journal):
        journal.note(_tell_kept_history(journal, kept))
    tools.history.backup_to(local)
    try:
        seal_files(journal, writer, {HISTORY: file_digest(local)})
        store_file(local, root / f"{OWN_FOLDER}/{HISTORY}", journal, writer)
    finally:
        os.unlink(local)
    note_stored(journal, (HISTORY,))
    tools.history.remember(journal.job.name, COPIED + journal.job.target.name, "yes")
