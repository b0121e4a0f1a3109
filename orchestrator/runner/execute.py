"""The part of a run after the survey: guard, decide, act, confirm, follow-up work, report."""

import contextlib
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, assert_never

from orchestrator.domain.errors import LookAgain, OrchestratorError, PartlyRefused, RecordsRefused, TargetFull
from orchestrator.domain.job import Job
from orchestrator.domain.place import USED
from orchestrator.domain.plan import ManifestRecording, NothingToDo, Plan, Refusal, Step, gather_hints
from orchestrator.domain.problem import UNSEEN
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.domain.source_identity import LAST_RESTORE, RESTORED, SOURCE_IDENTITY, SOURCE_STATE
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.copies import (
    ChangeReporter,
    CompletenessReporter,
    Copier,
    LookRecorder,
    PointLister,
    SourceIdentifier,
)
from orchestrator.engines.contract.engine import RunRequest, SkippedEntries, implements
from orchestrator.planners.guard import GUARD_MEMORY, OTHER_MACHINE, copy_name, next_guard_memory, parse_guard_memory
from orchestrator.process.executor import PipelineFailed, Writer
from orchestrator.runner.after_run import copy_history, finish_run, has_after_run, make_room
from orchestrator.runner.context import RunContext
from orchestrator.runner.decide import (
    GROUND,
    check_fit,
    compared_copy,
    count_folders,
    decide_run,
    find_other_machine,
    find_shortage,
    given_up_folders,
    moves_finder,
    refuse_other_machine,
    source_ground,
    with_sizes,
)
from orchestrator.runner.kit_digests import require_key
from orchestrator.runner.last_look import forget_other_copy, note_copy_identity, note_seen, note_unseen
from orchestrator.runner.meanwhile import import_meanwhile
from orchestrator.runner.problems import (
    changed_mirror,
    end_incomplete,
    end_left_out,
    follow_renamed_place,
    missing_parts,
    note_incomplete_points,
    see_points,
)
from orchestrator.runner.run_recorder import RunRecorder, begin_run, close_notes, forget_notes
from orchestrator.runner.steps import StepExecutor

_AFTER_A_COPY = ("orchestrator.runner.recovery_kit", "orchestrator.history.views", "tarfile", "shutil")
_FOR_A_MANIFEST = ("orchestrator.runner.own_way", "orchestrator.runner.manifests")
# With more copies no sizes are read before a run: a count of the whole is not worth so much time.
_WEIGHED = 50


def execute_decision(journal: RunRecorder, writer: Writer, world: Any, request: RunRequest) -> RunReport:
    """Carry out the decision after the survey, or report a refusal. Raises: OrchestratorError at a failed step."""
    engine = journal.tools.engine
    require_key(journal)
    unseen = bool(request.remembered.get(UNSEEN + journal.job.target.name))
    if unseen and implements(engine, Copier) and engine.holds_copies(journal.job, world):
        note_seen(journal.job, journal.tools)
    if implements(engine, PointLister) and (points := engine.surveyed_points(journal.job, world)) is not None:
        elsewhere = partial(journal.tools.history.made_elsewhere, journal.job.name, journal.job.target.name)
        facts = request.remembered
        if other := find_other_machine(journal.job, engine, points, writer, facts=facts, elsewhere=elsewhere):
            if OTHER_MACHINE not in request.allowed:
                return _refuse(journal, refuse_other_machine(journal.job, other), world)
            from orchestrator.runner.manifests import note_use

            note_use(other.key, other.since, journal)  # its points are now as those of a key that we lost
        see_points(journal, points, pruned_there=engine.pruned_there(world), reader=writer)
    else:
        follow_renamed_place(journal, writer)
    if request.judge is not None:
        from orchestrator.runner.arrivals import note_first_sight

        note_first_sight(journal, world, request)
    folders, moves = count_folders(journal.job, engine, world, writer), moves_finder(journal.job, engine, world, writer)
    decision = decide_run(journal.job, engine, world, request, folders, moves)
    match decision:
        case Refusal():
            _note_incomplete(journal, writer, world)
            return _refuse(journal, decision, world)
        case NothingToDo():
            return _confirm(journal, writer, decision, world, request)
        case Plan():
            return _carry_out(journal, writer, decision, world, request)
    assert_never(decision)


def _note_incomplete(journal: RunRecorder, writer: Writer, world: Any, *, doubtful: bool = True) -> None:
    """Record which points at the target lack datasets. Why no error: the run's own result is what counts."""
    with contextlib.suppress(OrchestratorError):
        note_incomplete_points(journal, writer, world, doubtful=doubtful)


def _refuse(journal: RunRecorder, refusal: Refusal, world: Any) -> RunReport:
    journal.decided(refusal)
    engine = journal.tools.engine
    if implements(engine, Copier) and not engine.holds_copies(journal.job, world):
        note_unseen(journal.job, journal.tools, refusal.why)
    if refusal.source is not None:
        from orchestrator.runner.source_state import remember_refusal

        remember_refusal(journal, refusal)
    elif implements(engine, SourceIdentifier):
        from orchestrator.runner.source_state import end_absence

        end_absence(journal, engine, world)
    return journal.ended(refusal.outcome, refusal.why, hint=refusal.hint, evidence=refusal.evidence)


def _confirm(journal: RunRecorder, writer: Writer, nothing: NothingToDo, world: Any, request: RunRequest) -> RunReport:
    """Record that the newest point is current. One transaction when nothing follows, as on most nights.

    A run whose earlier attempt moved all, and was cut only then, ends as one that did it now.
    """
    job, history, changed = journal.job, journal.tools.history, journal.moved > 0
    if not nothing.left_out:
        end_left_out(journal)
    follows, touched = bool(nothing.stages) or has_after_run(journal, changed=changed), bool(nothing.stages)
    _forget_other_copy(journal, world)
    with history.together():
        journal.decided(nothing)
        if request.remembered.get(UNSEEN + job.target.name):
            note_seen(job, journal.tools)
        _remember(journal, world, request, nothing.current)
        history.remember(job.name, USED, str(job.target.location))
        if nothing.current:
            _book_point(journal, nothing.current, request.remembered)
        report = None if follows or changed else _end_unchanged(journal, nothing)
    if report is None:
        executor = StepExecutor(journal, writer, request.notes)
        whole = _record_bases(nothing, executor, world)
        touched |= finish_run(journal, writer, executor, changed=changed, whole=whole)
        if changed:
            _refresh_kit(journal, writer)
        if changed and not nothing.left_out:
            report = journal.ended(Outcome.DONE, _done(journal, "an earlier attempt carried all of it"))
        else:
            report = _end_unchanged(journal, nothing)
    if nothing.current and not changed and not nothing.left_out:
        _record_look(journal, writer, world, request, nothing.current, touched=touched)
    copy_history(journal, writer, changed=changed or touched)
    return report


def _record_bases(nothing: NothingToDo, executor: StepExecutor, world: Any) -> bool:
    """Carry out what follows where nothing is copied; return False, and warn, where the source takes no bookmark: then it is not pruned."""
    try:
        _do(nothing, executor, world)
    except RecordsRefused as error:
        journal = executor.journal
        journal.warn(
            f"nothing had to be sent, but {error.why}: nothing is pruned there; {journal.said_hint(error.hint)}"
        )
        return False
    return True


def _end_unchanged(journal: RunRecorder, nothing: NothingToDo) -> RunReport:
    """End a run that found nothing to copy: incomplete, where entries of the source are left out all the same."""
    if not nothing.left_out or nothing.current is None:
        return journal.ended(Outcome.NOTHING, nothing.why)
    left_out = (SkippedEntries(unmade=nothing.left_out),)
    return end_incomplete(journal, left_out, point=nothing.current, made=nothing.why)


def _forget_other_copy(journal: RunRecorder, world: Any) -> None:
    if told := forget_other_copy(journal.job, journal.tools, world):
        journal.warn(told)


def _book_point(journal: RunRecorder, name: str, memory: Mapping[str, str]) -> None:
    """Record the newest point, which is as new as the source. One of many parts counts only now: a run may be cut in between."""
    job, tools, place = journal.job, journal.tools, journal.job.target.name
    history = tools.history
    with history.together():
        if name not in journal.brought:
            whole = implements(tools.engine, CompletenessReporter) and not missing_parts(memory, place, name)
            history.point_current(job.name, place, name, journal.run, journal.now, whole=whole)
            return
        taken = journal.brought[name]
        history.point_made(job.name, place, name, journal.run, entries=None, bytes=None, taken=taken, now=journal.now)
        history.point_verified(job.name, place, name, journal.run, journal.now)
        journal.points.append(name)


def _carry_out(journal: RunRecorder, writer: Writer, plan: Plan, world: Any, request: RunRequest) -> RunReport:
    plan = _weighed(journal, plan, writer)
    fitting = _fitting(journal, writer, world, plan, request)
    if isinstance(fitting, Refusal):
        return _refuse(journal, fitting, world)
    plan = fitting
    journal.decided(plan)
    if plan.anew:
        forget_notes(request.notes)
    close_notes(request.notes)
    if plan.current and plan.brings:
        journal.brought[plan.current] = plan.taken
    executor = StepExecutor(journal, writer, request.notes, parallel=plan.parallel)
    executor.count(plan)
    executor.leave_out(plan)
    records = any(isinstance(step.work, ManifestRecording) for step in plan.steps)
    try:
        modules = (*(_FOR_A_MANIFEST if records else ()), *_AFTER_A_COPY)
        with import_meanwhile(writer, *modules), changed_mirror(journal, plan):
            _do(plan, executor, world)
    except OrchestratorError as error:
        _drop_records(plan)
        _note_incomplete(journal, writer, world)
        if executor.done_in_part:
            _finish_in_part(journal, writer)
        elif isinstance(error, TargetFull) and make_room(journal, writer, request.notes):
            raise LookAgain(f"{error.why}: what [keep] lets go is removed now") from error
        raise
    _forget_other_copy(journal, world)
    _note_incomplete(journal, writer, world, doubtful=bool(plan.refusals))
    if plan.again:
        raise LookAgain(f"{plan.summary}: done; another survey decides what comes next")
    if plan.current and not plan.refusals:
        _book_point(journal, plan.current, journal.tools.history.memory(journal.job.name))
    _remember(journal, world, request, plan.current, made=writer)
    note_seen(journal.job, journal.tools)
    touched = finish_run(journal, writer, executor, changed=True, whole=not plan.refusals)
    journal.tools.history.remember(journal.job.name, USED, str(journal.job.target.location))
    _refresh_kit(journal, writer)
    import shutil  # 6 ms that a run without changes saves

    shutil.rmtree(request.notes, ignore_errors=True)
    if plan.refusals:
        raise partial_refusal(plan.refusals)
    if journal.points and any(each.missing or each.unstored for each in executor.left_out):
        made = _done(journal, plan.summary)
        report = end_incomplete(journal, executor.left_out, point=journal.points[-1], made=made)
    else:
        end_left_out(journal)
        report = journal.ended(Outcome.DONE, _done(journal, plan.summary))
        if journal.points and not executor.left_out:
            _record_look(journal, writer, world, request, journal.points[-1], touched=touched)
    copy_history(journal, writer)
    return report


def _finish_in_part(journal: RunRecorder, writer: Writer) -> None:
    """Prune the copy, and refresh the kit, after a run in which some datasets failed: one that fails each night would let the target fill.

    Why not the source: there, what was not sent yet is all that there is of those points.
    """
    from orchestrator.runner.snapshots import prune_target

    prune_target(journal, writer)
    _refresh_kit(journal, writer)


def _record_look(
    journal: RunRecorder, writer: Writer, world: Any, request: RunRequest, point: str, *, touched: bool
) -> None:
    """Let the engine record what it saw. Why no error: without a record the next survey reads everything."""
    engine = journal.tools.engine
    if implements(engine, LookRecorder):
        try:
            engine.record_look(journal.job, world, request, point, writer, touched=touched)
        except (OrchestratorError, PipelineFailed, OSError) as error:
            journal.note(f"how source and newest point are could not be recorded: {error}")


def _fitting(journal: RunRecorder, writer: Writer, world: Any, plan: Plan, request: RunRequest) -> Plan | Refusal:
    """Return the plan, or as much of it as fits, or a refusal: the target has too little free space, even without what [keep] lets go.

    Raises: LookAgain where that could be too little, and what [keep] lets go is removed now.
    """
    fitting = check_fit(journal.job, journal.tools.engine, world, plan, request, writer)
    if not (short := find_shortage(plan, fitting)) or not make_room(journal, writer, request.notes):
        return fitting
    if journal.tools.snapshotter is None:
        raise LookAgain(f"{short}: what [keep] lets go is removed first")
    return check_fit(journal.job, journal.tools.engine, world, plan, request, writer)


def _refresh_kit(journal: RunRecorder, writer: Writer) -> None:
    from orchestrator.runner.recovery_kit import refresh_kit, refresh_tree_kit

    if journal.tools.engine.needs_datasets:
        refresh_kit(journal, writer)
    else:
        refresh_tree_kit(journal, writer)


def _done(journal: RunRecorder, summary: str) -> str:
    """Return what the run made; without points of its own, the summary."""
    warnings = f", with {show_count(len(journal.warnings), 'warning')}" if journal.warnings else ""
    made = f"made {', '.join(journal.points)}, moved {show_size(journal.moved)}" if journal.points else summary
    return f"{made}{warnings}"


def _drop_records(plan: Plan) -> None:
    """Give up what a failed attempt recorded for the next look: another attempt records anew."""
    for step in plan.steps:
        if isinstance(step.work, ManifestRecording) and step.work.recorder is not None:
            step.work.recorder.drop()


def _weighed(journal: RunRecorder, plan: Plan, writer: Writer) -> Plan:
    """Return the plan with its sizes, when several copies share one displayed count; a single copy reports its size itself."""
    if not (journal.tools.watched or journal.job.target.within):
        return plan
    unknown = sum(step.copies and not (step.ahead or step.spare) and step.expected is None for step in plan.steps)
    return with_sizes(plan, journal.tools.engine, writer) if 1 < unknown <= _WEIGHED else plan


def partial_refusal(refusals: tuple[Refusal, ...]) -> PartlyRefused:
    """Return the error that ends a run in which only the refused parts are missing."""
    first, more = refusals[0], len(refusals) - 1
    lines = tuple(line for refusal in refusals for line in (refusal.why, *(f"  {told}" for told in refusal.evidence)))
    why = f"all else is done, but {first.why}" + (f"; and {show_count(more, 'more refusal')}" if more else "")
    return PartlyRefused(why, evidence=lines, hint=gather_hints(refusals))


def _do(decision: Plan | NothingToDo, executor: StepExecutor, world: Any) -> None:
    """Carry out all stages; when the target is full, add how much space was missing."""
    try:
        executor.carry_out(decision)
    except TargetFull as error:
        engine = executor.journal.tools.engine
        # What is free beside a quota is nothing that the copy can use.
        space = engine.space(world) if implements(engine, Copier) and "quota at" not in error.why else ""
        told = f": {space}" if space else ""
        raise TargetFull(f"{error.why}{told}", evidence=error.evidence, hint=error.hint) from error
    finally:
        executor.let_go()


def _remember(
    journal: RunRecorder, world: Any, request: RunRequest, current: str | None, *, made: Writer | None = None
) -> None:
    """Remember what the next run is judged by. `current`: the point that is as the source, where the run made none.

    `made`: the run may have made the copy.
    """
    job, tools = journal.job, journal.tools
    note_copy_identity(job, tools, world, made)
    if request.judge is not None:
        from orchestrator.runner.arrivals import remember_look

        remember_look(journal, world, request)
    if implements(tools.engine, ChangeReporter):
        tools.history.remember(job.name, GROUND, source_ground(tools.engine.ground(world)))
        if (look := tools.engine.changes(world)) is not None:
            before = parse_guard_memory(request.remembered.get(GUARD_MEMORY), compared_copy(job, tools.engine, world))
            fewer = given_up_folders(request.remembered.get(GROUND), tools.engine.ground(world))
            allowed = "max-deleted" in request.allowed or bool(fewer)
            copy = copy_name(job.target.name, journal.points[-1] if journal.points else current or "")
            told = next_guard_memory(before, look, request.now, copy=copy, loss_allowed=allowed)
            tools.history.remember(job.name, GUARD_MEMORY, told)
    if implements(tools.engine, SourceIdentifier):
        tools.history.remember(job.name, SOURCE_IDENTITY, tools.engine.identity(world))
        if any(request.remembered.get(key) for key in (SOURCE_STATE, RESTORED, LAST_RESTORE)):
            from orchestrator.runner.source_state import end_state

            end_state(journal, tools.engine, world, request.remembered)


def release_holds(job: Job, tools: RunContext, steps: tuple[Step, ...]) -> RunReport:
    """Run the steps of one pool. `job`: an artificial job that represents it."""
    journal = begin_run(job, tools, f"let go of pins on {job.source}", RunType.PINS)
    journal.attempt_begun()
    notes = f"{tools.state}/notes/pins"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    try:
        for step in steps:
            StepExecutor(journal, tools.writer(()), notes).do((step,))
    except OrchestratorError as error:
        return journal.ended_by(error, continues="the same command does the rest")
    return journal.ended(Outcome.DONE, "; ".join(step.action for step in steps))
