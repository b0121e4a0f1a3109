"""The part of a run after the survey: guard, decide, act, confirm, follow-up work, report."""

from typing import Any, assert_never

from orchestrator.domain.errors import LookAgain, PartlyRefused, TargetFull
from orchestrator.domain.plan import Nothing, Plan, Refusal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract import Asked
from orchestrator.process.executor import Writer
from orchestrator.runner.after_run import after_done, carry_history, has_aftercare
from orchestrator.runner.decide import GROUND, USED, count_folders, decide, fit, ground
from orchestrator.runner.run_recorder import Journal, forget, turn_page
from orchestrator.runner.steps import Hands

# Of more copies no sizes are asked before a run: that would take longer than a count of the whole is worth.
_WEIGHED = 50


def act(journal: Journal, writer: Writer, world: Any, asked: Asked) -> RunReport:
    """Carry out the decision after the survey, or report a refusal. Raises: OrchestratorError at a failed step."""
    engine = journal.tools.engine
    decision = decide(journal.job, engine, world, asked, count_folders(journal.job, engine, world, writer))
    match decision:
        case Refusal():
            return _refuse(journal, decision)
        case Nothing():
            return _confirm(journal, writer, decision, world, asked)
        case Plan():
            return _carry_out(journal, writer, decision, world, asked)
    assert_never(decision)


def _refuse(journal: Journal, refusal: Refusal) -> RunReport:
    journal.decided(refusal)
    return journal.ended(refusal.outcome, refusal.why, cure=refusal.cure, evidence=refusal.evidence)


def _confirm(journal: Journal, writer: Writer, nothing: Nothing, world: Any, asked: Asked) -> RunReport:
    """Record that the newest point is current. One transaction when nothing follows: the cost of most nights."""
    job, history = journal.job, journal.tools.history
    follows = bool(nothing.stages) or has_aftercare(journal, changed=False)
    with history.together():
        journal.decided(nothing)
        _remember(journal, world)
        if nothing.current:
            history.point_current(job.name, job.target.name, nothing.current, journal.run, journal.now)
        report = None if follows else journal.ended(Outcome.NOTHING, nothing.why)
    if report is None:
        hands = Hands(journal, writer, asked.notes)
        _do(nothing, hands, world)
        after_done(journal, writer, hands, changed=False)
        report = journal.ended(Outcome.NOTHING, nothing.why)
    carry_history(journal, writer)
    return report


def _carry_out(journal: Journal, writer: Writer, plan: Plan, world: Any, asked: Asked) -> RunReport:
    plan = _weighed(journal, plan, writer)
    fitting = fit(journal.job, journal.tools.engine, world, plan, asked, writer)
    if isinstance(fitting, Refusal):
        return _refuse(journal, fitting)
    plan = fitting
    journal.decided(plan)
    if plan.anew:
        forget(asked.notes)
    turn_page(asked.notes)
    hands = Hands(journal, writer, asked.notes, parallel=plan.parallel)
    hands.count(plan)
    _do(plan, hands, world)
    if plan.again:
        raise LookAgain(f"{plan.summary}: done, and what comes next is for another look to tell")
    _remember(journal, world)
    after_done(journal, writer, hands, changed=True)
    if journal.tools.engine.wants_datasets:
        from orchestrator.runner.recovery_kit import refresh_kit
    else:
        from orchestrator.runner.recovery_kit import refresh_tree_kit as refresh_kit
    refresh_kit(journal, writer)
    import shutil  # 6 ms that a run without changes need not pay

    shutil.rmtree(asked.notes, ignore_errors=True)
    if plan.refusals:
        raise partly(plan.refusals)
    warnings = f", with {show_count(len(journal.warnings), 'warning')}" if journal.warnings else ""
    made = f"made {', '.join(journal.points)}, moved {show_size(journal.moved)}" if journal.points else plan.summary
    report = journal.ended(Outcome.DONE, f"{made}{warnings}")
    carry_history(journal, writer)
    return report


def _weighed(journal: Journal, plan: Plan, writer: Writer) -> Plan:
    """Return the plan with its sizes, when several copies share one displayed count; a single copy reports its size itself."""
    if not (journal.tools.watched or journal.job.target.within):
        return plan
    unknown = sum(step.copies and step.expected is None for step in plan.steps)
    return journal.tools.engine.weigh(plan, writer) if 1 < unknown <= _WEIGHED else plan


def partly(refusals: tuple[Refusal, ...]) -> PartlyRefused:
    """Return the error that ends a run in which only the refused parts are missing."""
    first, more = refusals[0], len(refusals) - 1
    lines = tuple(line for refusal in refusals for line in (refusal.why, *(f"  {told}" for told in refusal.evidence)))
    why = f"all else is done, but {first.why}" + (f"; and {show_count(more, 'more refusal')}" if more else "")
    return PartlyRefused(why, evidence=lines, cure=first.cure)


def _do(decision: Plan | Nothing, hands: Hands, world: Any) -> None:
    """Carry out all stages; when the target is full, add how much space was missing."""
    try:
        for stage in decision.stages:
            hands.do(stage)
    except TargetFull as error:
        room = hands.journal.tools.engine.room(world)
        told = f": {room}" if room else ""
        raise TargetFull(f"{error.why}{told}", evidence=error.evidence, cure=error.cure) from error


def _remember(journal: Journal, world: Any) -> None:
    job, tools = journal.job, journal.tools
    tools.history.remember(job.name, GROUND, ground(*tools.engine.ground(world)))
    tools.history.remember(job.name, USED, str(job.target.location))
