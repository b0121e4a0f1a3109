"""Restore of datasets: survey, do the next part, survey again, until all is restored, verified and completed.

Nothing that is left to be done is remembered here: each look tells it, so the same command goes on after any cut.
"""

import os

from orchestrator.domain.dataset_restore import Return, Wished
from orchestrator.domain.errors import ProofFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Nothing, Plan, Refusal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract import Asked
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.context import Tools
from orchestrator.runner.contract_restore import Returner
from orchestrator.runner.execute import partly
from orchestrator.runner.restore.request import Wish
from orchestrator.runner.run_recorder import Journal
from orchestrator.runner.steps import Hands
from orchestrator.runner.verify.compare_sides import Compared, compare
from orchestrator.runner.verify.read_files import tell_counts, tell_first

_LOOKS = 8  # end a receive, carry, let go, properties, mounts; and as much again for what changes meanwhile


def comes_as_datasets(tools: Tools, wish: Wish) -> bool:
    """Return True when a request is for datasets, and not for files."""
    return tools.engine.wants_datasets and not wish.to.path.startswith("/")


def plan_return(job: Job, tools: Tools, wish: Wish, writer: Writer) -> Plan | Refusal:
    """Return the plan of the whole restore, as far as one survey can show it."""
    wished = _wished(job, tools, wish, writer)
    if isinstance(wished, Refusal):
        return wished
    engine, asked = _returner(tools), _asked(job, tools, wish, "plan")
    found = engine.plan_return(engine.survey_return(job, wished, asked, writer, content=False), asked)
    if isinstance(found.decision, Nothing):
        warnings = (found.decision.why, *found.decision.warnings)
        return Plan(summary="nothing is left to be done now", stages=found.decision.stages, warnings=warnings)
    if isinstance(found.decision, Refusal):
        return found.decision
    plan = tools.engine.weigh(_with_rest(found.decision, found), writer)
    return replace(plan, warnings=(*plan.warnings, *_owners(tools, wish, wished, writer)))


def _owners(tools: Tools, wish: Wish, wished: Wished, writer: Writer) -> tuple[str, ...]:
    """Return warnings about files that would get another owner."""
    return _returner(tools).survey_owners(wished.kit, wish.to, writer) if wish.owners and wished.kit else ()


def _with_rest(plan: Plan, found: Return) -> Plan:
    return replace(plan, stages=(*plan.stages, *found.then))


def attempt(journal: Journal, writer: Writer, wish: Wish) -> RunReport:
    """Restore part after part, each from a survey of its own. Raises: OrchestratorError."""
    job, tools = journal.job, journal.tools
    wished = _wished(job, tools, wish, writer)
    if isinstance(wished, Refusal):
        return _refused(journal, wished)
    engine, asked = _returner(tools), _asked(job, tools, wish, str(journal.run))
    for warning in _owners(tools, wish, wished, writer):
        journal.warn(warning)
    proved: Compared | None = None
    for look in range(_LOOKS):
        seen = engine.survey_return(job, wished, asked, writer, content=False)
        found = engine.plan_return(seen, asked)
        if found.whole and proved is None:
            if wish.content:  # that needs to know more
                seen = engine.survey_return(job, wished, asked, writer, content=True)
            proved = _prove(journal, writer, wished, asked, seen)
        match found.decision:
            case Refusal() as refusal:
                return _refused(journal, refusal)
            case Nothing() as nothing:
                return _done(journal, wished, nothing, proved)
            case Plan() as plan:
                _do(journal, writer, plan, found if look == 0 else None, asked)
                if not plan.again:
                    return _done(journal, wished, plan, proved)
    cure = f"look who else changes {wished.to}, then say the same command again: it goes on"
    raise ProofFailed(f"after {_LOOKS} looks there is still something left to be done", cure=cure)


def _wished(job: Job, tools: Tools, wish: Wish, writer: Writer) -> Wished | Refusal:
    """Return the request in the engine's terms: a point's name or a time becomes an existing point."""
    known = tools.history.kits.of(job.name)
    wished = Wished(to=wish.to, below=os.fsdecode(wish.path), kit=known.kit.content if known else None)
    if wish.point is None and wish.at is None:
        return wished
    point = choose_point(tools.engine.points(job, writer), point=wish.point, at=wish.at)
    return point if isinstance(point, Refusal) else replace(wished, until=point)


def _returner(tools: Tools) -> Returner:
    if not isinstance(tools.engine, Returner):
        raise TypeError(f"the engine {tools.engine.name} brings no datasets back")
    return tools.engine


def _asked(job: Job, tools: Tools, wish: Wish, name: str) -> Asked:
    notes = f"{tools.state}/notes/restore-{job.name}-{name}"
    return Asked(now=tools.clock(), notes=notes, allowed=frozenset({"aside"} if wish.aside else ()))


def _do(journal: Journal, writer: Writer, plan: Plan, first: Return | None, asked: Asked) -> None:
    """Carry out one part: the first is recorded with all that follows; later plans are only reported."""
    if first is not None:
        journal.decided(_with_rest(plan, first))
    else:
        journal.say(plan.summary)
        for warning in plan.warnings:
            journal.warn(warning)
    hands = Hands(journal, writer, asked.notes, parallel=plan.parallel)
    hands.count(plan)
    for stage in plan.stages:
        hands.do(stage)
    if plan.refusals:
        raise partly(plan.refusals)


def _prove(journal: Journal, writer: Writer, wished: Wished, asked: Asked, seen: object) -> Compared:
    """Verify the restored data against the copy: by guid, and by contents if surveyed. Raises: ProofFailed."""
    engine = _returner(journal.tools)
    os.makedirs(asked.notes, mode=0o700, exist_ok=True)
    comparison = engine.plan_return_proof(seen, asked)
    if isinstance(comparison, Refusal):
        raise ProofFailed(f"nothing can be proved: {comparison.why}", cure=comparison.cure)
    proved = compare(comparison, journal, writer, asked.notes)
    if not proved.reading.sound:
        told = f"{tell_counts(proved.reading)}: {tell_first(proved.reading)}"
        cure = f"nothing of it is mounted yet; to begin anew: destroy {wished.to}, or tell --aside"
        raise ProofFailed(f"{wished.to} is not as the copy: {told}", cure=cure)
    return proved


def _refused(journal: Journal, refusal: Refusal) -> RunReport:
    journal.decided(refusal)
    return journal.ended(refusal.outcome, refusal.why, cure=refusal.cure, evidence=refusal.evidence)


def _done(journal: Journal, wished: Wished, last: Plan | Nothing, proved: Compared | None) -> RunReport:
    """Report the end; work that waits for a person is a warning, and no failure."""
    for warning in last.warnings:
        journal.warn(warning)
    held = ""
    if proved is not None:
        checked, datasets = proved.comparison.checked, proved.comparison.datasets
        read = (
            f", and {show_count(proved.reading.files_read, 'file')} read on both sides"
            if proved.comparison.stages
            else ""
        )
        held = f": {show_count(checked, 'snapshot')} of {show_count(datasets, 'dataset')}, as the copy by guid{read}"
    moved = f", {show_size(journal.moved)} moved" if journal.moved else ""
    waits = ", with a part that waits" if isinstance(last, Nothing) and last.warnings else ""
    return journal.ended(Outcome.DONE, f"{wished.to} is back{held}{moved}{waits}")
