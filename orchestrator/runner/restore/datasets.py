"""Restore of datasets: survey, do the next part, survey again, until all is restored, verified and completed.

No remaining work is remembered here: each survey finds it, so the same command continues after any interruption.
"""

import os
from datetime import datetime, timedelta

from orchestrator.domain.age import is_over
from orchestrator.domain.answers import NOT_READ, parse_instant
from orchestrator.domain.command_line import quoted
from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest
from orchestrator.domain.errors import RecordsRefused, VerificationFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import NothingToDo, Plan, Refusal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.source_identity import RESTORE_BEGUN, RESTORED, SOURCE_IDENTITY
from orchestrator.domain.source_state import SourceState
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.engines.contract.restore import DatasetRestorer
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.decide import with_sizes
from orchestrator.runner.execute import partial_refusal
from orchestrator.runner.last_look import find_points
from orchestrator.runner.problems import missing_parts
from orchestrator.runner.restore.request import RestoreOptions, rename_away
from orchestrator.runner.restore.whole_point import find_whole_point, newer_point_lines
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.source_state import remember_state
from orchestrator.runner.steps import StepExecutor
from orchestrator.runner.verify.compare_sides import ComparisonResult, run_comparison
from orchestrator.runner.verify.read_files import describe_counts, describe_first_findings

_NO_RECORDS = "no-bookmarks"  # allowed: a copy without holds at the side that sends
_SAID_AGAIN = timedelta(days=1)  # so long a restore that was cut counts as one that goes on
_LOOKS = 8  # surveys: end a receive, send, release, properties, mounts; and more for changes meanwhile


def plan_dataset_restore(
    job: Job, tools: RunContext, restore_request: RestoreOptions, writer: Writer
) -> Plan | Refusal:
    """Return the plan of the whole restore, as far as one survey can show it."""
    dataset_request = _dataset_request(job, tools, restore_request, writer)
    if isinstance(dataset_request, Refusal):
        return dataset_request
    engine, run_request = _returner(tools), _run_request(job, tools, restore_request, "plan")
    found = engine.plan_dataset_restore(
        engine.survey_dataset_restore(job, dataset_request, run_request, writer, content=False), run_request
    )
    if isinstance(found.decision, NothingToDo):
        stays = _nothing_aside(restore_request, dataset_request, found)
        warnings = (*dataset_request.newer, *stays, found.decision.why, *found.decision.warnings)
        return Plan(summary="nothing is left to be done now", stages=found.decision.stages, warnings=warnings)
    if isinstance(found.decision, Refusal):
        return found.decision
    plan = with_sizes(_with_rest(found.decision, found), tools.engine, writer)
    older = {name.removeprefix(dataset_request.to.path) for name in found.short}
    top = f"{job.source.path}/{dataset_request.below}".rstrip("/")
    lacks = tuple(
        f"{name} is not at that point of this copy: it comes back older, or not at all; `poolferry restore plan {job.name}` lists "
        "whole points and other copies"
        for name in lacking_datasets(job, tools, dataset_request)
        if name.removeprefix(top) not in older
    )
    return replace(
        plan,
        warnings=(
            *dataset_request.newer,
            *_nothing_aside(restore_request, dataset_request, found),
            *plan.warnings,
            *lacks,
            *_owners(tools, restore_request, dataset_request, writer),
        ),
    )


def _nothing_aside(
    restore_request: RestoreOptions, dataset_request: DatasetRestoreRequest, found: DatasetRestorePlan
) -> tuple[str, ...]:
    """Return the warning that nothing is set aside, though it was asked for: all is there by a restore that was cut, and is said again."""
    if not restore_request.aside or not (found.whole or isinstance(found.decision, NothingToDo)):
        return ()
    told = (
        f"--aside sets nothing aside, as what is at {dataset_request.to} came back by a restore for which this one is taken, said again; "
        "what was changed there since is still there"
    )
    return (told,)


def _owners(
    tools: RunContext, restore_request: RestoreOptions, dataset_request: DatasetRestoreRequest, writer: Writer
) -> tuple[str, ...]:
    """Return warnings about files that would get another owner."""
    return (
        _returner(tools).survey_owners(dataset_request.kit, restore_request.to, writer)
        if restore_request.owners and dataset_request.kit
        else ()
    )


def _with_rest(plan: Plan, found: DatasetRestorePlan) -> Plan:
    return replace(plan, stages=(*plan.stages, *found.then))


def restore_datasets(journal: RunRecorder, writer: Writer, restore_request: RestoreOptions) -> RunReport:
    """Restore part after part, each from a survey of its own. Raises: OrchestratorError."""
    job, tools = journal.job, journal.tools
    dataset_request = _dataset_request(job, tools, restore_request, writer)
    if isinstance(dataset_request, Refusal):
        return _refused(journal, dataset_request)
    engine, run_request = _returner(tools), _run_request(job, tools, restore_request, str(journal.run))
    for warning in (*dataset_request.newer, *_owners(tools, restore_request, dataset_request, writer)):
        journal.warn(warning)
    verified: ComparisonResult | None = None
    for look in range(_LOOKS):
        seen = engine.survey_dataset_restore(job, dataset_request, run_request, writer, content=False)
        found = engine.plan_dataset_restore(seen, run_request)
        if look == 0 and (stays := _nothing_aside(restore_request, dataset_request, found)):
            journal.warn(stays[0])
        if found.whole and verified is None:
            if restore_request.content:  # a comparison of contents needs a larger survey
                seen = engine.survey_dataset_restore(job, dataset_request, run_request, writer, content=True)
            verified = _verify(journal, writer, dataset_request, run_request, seen)
        match found.decision:
            case Refusal() as refusal:
                return _refused(journal, refusal)
            case NothingToDo() as nothing:
                _tell_lost(journal, writer, dataset_request, restore_request)
                return _done(journal, dataset_request, nothing, verified, found)
            case Plan() as plan:
                if look == 0:
                    tools.history.remember(job.name, RESTORE_BEGUN, f"{journal.now.isoformat()} {dataset_request.to}")
                if look == 0 and dataset_request.to == job.source:
                    why, hint = (
                        f"{job.source} is being restored",
                        f"poolferry restore run {job.name} --to {quoted(str(job.source))}",
                    )
                    remember_state(journal, SourceState.RESTORING, why, hint)
                try:
                    _do(journal, writer, plan, found if look == 0 else None, run_request)
                except RecordsRefused as error:
                    run_request = _without_records(journal, run_request, error)
                    continue
                if not plan.again:
                    _tell_lost(journal, writer, dataset_request, restore_request)
                    return _done(journal, dataset_request, plan, verified, found)
    hint = f"look who else changes {dataset_request.to}, then run the same command again: it continues"
    raise VerificationFailed(f"after {_LOOKS} looks there is still something left to be done", hint=hint)


def _dataset_request(
    job: Job, tools: RunContext, restore_request: RestoreOptions, writer: Writer
) -> DatasetRestoreRequest | Refusal:
    """Return the request in the engine's terms: a point's name or a time becomes an existing point."""
    known = tools.history.kits.of(job.name)
    dataset_request = DatasetRestoreRequest(
        to=restore_request.to, below=os.fsdecode(restore_request.path), kit=known.kit.content if known else None,
        lost_keys=restore_request.lost_keys,
    )  # fmt: skip
    if whole := find_whole_point(job, tools, _returner(tools), restore_request, dataset_request.kit, writer):
        return replace(dataset_request, until=whole.point, newer=newer_point_lines(job, restore_request, whole))
    if restore_request.point is None and restore_request.at is None:
        return dataset_request
    point = choose_point(find_points(job, tools, writer), point=restore_request.point, at=restore_request.at)
    return point if isinstance(point, Refusal) else replace(dataset_request, until=point)


def _returner(tools: RunContext) -> DatasetRestorer:
    if not implements(tools.engine, DatasetRestorer):
        raise TypeError(f"the engine {tools.engine.name} brings no datasets back")
    return tools.engine


def _run_request(job: Job, tools: RunContext, restore_request: RestoreOptions, name: str) -> RunRequest:
    notes = f"{tools.state}/notes/restore-{job.name}-{name}"
    restored, begun = (tools.history.recall(job.name, key) or "" for key in (RESTORED, RESTORE_BEGUN))
    if is_same_restore(begun, restore_request.to, tools.clock()):
        restored = str(restore_request.to)
    return RunRequest(
        now=tools.clock(), notes=notes, allowed=frozenset({"aside"} if restore_request.aside else ()), remembered={RESTORED: restored},
    )  # fmt: skip


def is_same_restore(begun: str, to: Location, now: datetime) -> bool:
    """Return True when a restore to here began lately, and no end of it is known: cut after its last deed, it is said again.

    Why not for ever: what changed there since would pass for what came back. `begun`: as history remembers it; empty: none.
    """
    instant, _, where = begun.partition(" ")
    try:
        return where == str(to) and not is_over(parse_instant(instant), _SAID_AGAIN, now)
    except NOT_READ:
        return False


def _do(
    journal: RunRecorder, writer: Writer, plan: Plan, first: DatasetRestorePlan | None, run_request: RunRequest
) -> None:
    """Carry out one part: the first is recorded with all that follows; later plans are only reported."""
    if first is not None:
        journal.decided(_with_rest(plan, first))
    else:
        journal.say(plan.summary)
        for warning in plan.warnings:
            journal.warn(warning)
    executor = StepExecutor(journal, writer, run_request.notes, parallel=plan.parallel)
    executor.count(plan)
    executor.carry_out(plan)
    if plan.refusals:
        raise partial_refusal(plan.refusals)


def _without_records(journal: RunRecorder, run_request: RunRequest, error: RecordsRefused) -> RunRequest:
    """Return the request without holds at the copy. Raises: the error, where none are asked for already.

    Why not refused: a pool that is full, or was imported read-only with care, is just what people restore from.
    """
    if _NO_RECORDS in run_request.allowed:
        raise error
    journal.warn(
        f"the pool of {journal.job.target.location} takes no hold, as it is full, imported read-only or too old; "
        "the restore goes on without: let nothing prune that copy meanwhile"
    )
    return replace(run_request, allowed=run_request.allowed | {_NO_RECORDS})


def _verify(
    journal: RunRecorder, writer: Writer, dataset_request: DatasetRestoreRequest, run_request: RunRequest, seen: object
) -> ComparisonResult:
    """Verify the restored data against the copy: by guid, and by contents if surveyed. Raises: VerificationFailed."""
    engine = _returner(journal.tools)
    os.makedirs(run_request.notes, mode=0o700, exist_ok=True)
    comparison = engine.plan_restore_verification(seen, run_request)
    if isinstance(comparison, Refusal):
        raise VerificationFailed(f"nothing can be verified: {comparison.why}", hint=comparison.hint)
    verified = run_comparison(comparison, journal, writer, run_request.notes)
    if not verified.reading.sound:
        rename = rename_away(dataset_request.to)
        told = f"{describe_counts(verified.reading)}: {describe_first_findings(verified.reading)}"
        hint = (
            f"it stays as it is, and nothing is destroyed; `poolferry restore plan {journal.job.name}` names the other copies; to "
            f"begin again beside it: {rename}, then the same command"
            if rename else
            f"it stays as it is, and nothing is destroyed; `poolferry restore plan {journal.job.name}` names the other copies"
        )  # fmt: skip
        raise VerificationFailed(f"{dataset_request.to} is not as the copy: {told}", hint=hint)
    return verified


def _refused(journal: RunRecorder, refusal: Refusal) -> RunReport:
    journal.decided(refusal)
    return journal.ended(refusal.outcome, refusal.why, hint=refusal.hint, evidence=refusal.evidence)


def _done(
    journal: RunRecorder,
    dataset_request: DatasetRestoreRequest,
    last: Plan | NothingToDo,
    verified: ComparisonResult | None,
    found: DatasetRestorePlan,
) -> RunReport:
    """Report the end. What waits for a person is neither a failure nor done: the run waits, and all else is in use."""
    for warning in last.warnings:
        journal.warn(warning)
    held = ""
    if verified is not None:
        checked, datasets = verified.comparison.checked, verified.comparison.datasets
        read = (
            f", and {show_count(verified.reading.files_read, 'file')} read on both sides"
            if verified.comparison.stages
            else ""
        )
        held = f": {show_count(checked, 'snapshot')} of {show_count(datasets, 'dataset')}, as the copy by guid{read}"
    moved = f", {show_size(journal.moved)} moved" if journal.moved else ""
    to, history, waits = dataset_request.to, journal.tools.history, found.waits
    if to == journal.job.source:  # what was restored is no longer taken for one that was made anew
        history.remember(journal.job.name, SOURCE_IDENTITY, "")
        _remember_end(journal, waits, last, tuple(found.short.values()))
    if waits:
        why = f"{to} is back{held}{moved}, except that {_few(waits)} {'waits' if len(waits) == 1 else 'wait'}"
        return journal.ended(
            Outcome.WAITING,
            why,
            hint=last.warnings[0] if last.warnings else "",
            evidence=(*waits, *found.short.values()),
        )
    already = (
        isinstance(last, NothingToDo) and verified is None and history.recall(journal.job.name, RESTORED) == str(to)
    )
    history.remember(journal.job.name, RESTORED, str(to))
    history.remember(journal.job.name, RESTORE_BEGUN, "")
    as_of = (
        f" as of {dataset_request.until.name}, the newest whole point"
        if dataset_request.newer and dataset_request.until
        else ""
    )
    back = f"is back{' already' if already else ''}{as_of}{held}{moved}"
    if found.short:
        why = f"{to} {back}, but {show_count(len(found.short), 'dataset')} of it as of an earlier point, or not at all: the copy is partial"
        hint = f"`poolferry restore plan {journal.job.name}` names the other copies; what came back stays, and nothing is lost by it"
        return journal.ended(Outcome.FAILED, why, hint=hint, evidence=tuple(found.short.values()))
    if lacking := lacking_datasets(journal.job, journal.tools, dataset_request):
        count = show_count(len(lacking), "dataset")
        why = f"less came back than was asked for: {count} of the source lack the point; all else of {to} {back}"
        hint = f"`poolferry restore plan {journal.job.name}` lists whole points and other copies: bring the rest back from one of those"
        return journal.ended(
            Outcome.FAILED, why, hint=hint, evidence=tuple(f"{name} is not at that point" for name in lacking)
        )
    return journal.ended(Outcome.DONE, f"{to} {back}")


def lacking_datasets(job: Job, tools: RunContext, dataset_request: DatasetRestoreRequest) -> tuple[str, ...]:
    """Return the datasets of the source that the requested point lacks at this place, as far as history knows."""
    place = job.target.name
    if dataset_request.until is not None:
        name = dataset_request.until.name
    else:
        known = (point for point in tools.history.views.points(job.name) if point.place == place)
        name = max(((point.taken_at, point.name) for point in known if point.taken_at), default=(None, ""))[1]
    lacking = missing_parts(tools.history.memory(job.name), place, name)
    below = f"{job.source.path}/{dataset_request.below}".rstrip("/")
    return tuple(each for each in lacking if f"{each}/".startswith(f"{below}/"))


def _remember_end(
    journal: RunRecorder, waits: tuple[str, ...], last: Plan | NothingToDo, short: tuple[str, ...]
) -> None:
    """Remember that the source is restored, or which part of it waits; the next good run ends that."""
    if waits:
        hint = last.warnings[0] if last.warnings else ""
        why = f"restored, except that {_few(waits)} {'waits' if len(waits) == 1 else 'wait'}"
        remember_state(journal, SourceState.WAITING, why, hint)
    else:
        older = (
            f", though {short[0]}{f' and {len(short) - 1} more are older' if len(short) > 1 else ''}" if short else ""
        )
        why = f"restored{older}; the next good run ends this"
        remember_state(journal, SourceState.RESTORED, why, f"poolferry run {journal.job.name}")


def _tell_lost(
    journal: RunRecorder, writer: Writer, dataset_request: DatasetRestoreRequest, restore_request: RestoreOptions
) -> None:
    """Warn of what a stream never brings. A caller that compares the whole kit itself does not want it twice."""
    job = journal.job
    if dataset_request.kit is None or dataset_request.to != job.source or not restore_request.owners:
        return
    lines, received = _returner(journal.tools).survey_lost_rights(job, dataset_request.kit, journal.now, writer)
    for line in lines:
        journal.warn(line)
    if received:
        journal.say(received)


def _few(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{show_count(len(names), 'dataset')} ({names[0]}, …)"
