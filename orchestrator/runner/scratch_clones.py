"""`try`: scratch copies of a restore point, made, listed, and dropped by command or after their time."""

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.drills import ScratchClone, ScratchCloner
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.last_look import find_points
from orchestrator.runner.locks import lock_job
from orchestrator.runner.run_recorder import ENDS_A_RUN, RunRecorder, begin_run
from orchestrator.runner.steps import StepExecutor


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchRequest:
    """The request for a scratch copy: all of a copy or the part `below`, as of a point; `keep`: for how long."""

    below: str = ""
    point: str | None = None
    at: datetime | None = None
    keep: Seconds | None = None


def run_try(job: Job, tools: RunContext, trial: ScratchRequest) -> RunReport:
    """Make a scratch copy."""

    def make(journal: RunRecorder, writer: Writer) -> RunReport:
        engine, now = _scratcher(tools), tools.clock()
        point = choose_point(find_points(job, tools, writer), point=trial.point, at=trial.at)
        keep = now + timedelta(seconds=trial.keep) if trial.keep is not None else None
        run_request = RunRequest(now=now, notes=_notes(job, tools))
        plan = (
            point if isinstance(point, Refusal) else engine.plan_try(job, trial.below, point, keep, run_request, writer)
        )
        if isinstance(plan, Refusal):
            journal.decided(plan)
            return journal.ended(Outcome.REFUSED, plan.why, hint=plan.hint, evidence=plan.evidence)
        journal.decided(plan)
        for stage in plan.stages:
            StepExecutor(journal, writer, run_request.notes).do(stage)
        return journal.ended(Outcome.DONE, plan.summary)

    return _recorded(job, tools, "try a point", make)


def drop_scratch_clones(job: Job, tools: RunContext, name: str | None) -> RunReport:
    """Drop the scratch copy of that name; without a name, all that have expired."""

    def let_go(journal: RunRecorder, writer: Writer) -> RunReport:
        engine = _scratcher(tools)
        found = engine.survey_scratch(job, writer)
        gone = [each for each in found if each.name == name] if name else expired_clones(found, tools.clock())
        if name and not gone:
            told = tuple(each.name for each in found)
            return journal.ended(
                Outcome.REFUSED, f"there is no scratch copy {name}", hint="poolferry try --list", evidence=told
            )
        for each in gone:
            StepExecutor(journal, writer, _notes(job, tools)).do((engine.drop_scratch(job, each),))
        return journal.ended(
            Outcome.DONE if gone else Outcome.NOTHING, ", ".join(each.name for each in gone) or "nothing is over yet"
        )

    return _recorded(job, tools, f"drop {name or 'what is over'}", let_go)


def expired_clones(found: Sequence[ScratchClone], now: datetime) -> list[ScratchClone]:
    """Return the scratch copies that have expired."""
    return [each for each in found if each.until is not None and each.until <= now]


def _scratcher(tools: RunContext) -> ScratchCloner:
    if not implements(tools.engine, ScratchCloner):
        raise OrchestratorError(f"the engine {tools.engine.name} makes no scratch copies", hint="restore to a path")
    return tools.engine


def _notes(job: Job, tools: RunContext) -> str:
    return f"{tools.state}/notes/try-{job.name}"


def _recorded(job: Job, tools: RunContext, why: str, action: Callable[[RunRecorder, Writer], RunReport]) -> RunReport:
    journal = begin_run(job, tools, why, RunType.TRY)
    journal.attempt_begun()
    try:
        os.makedirs(_notes(job, tools), mode=0o700, exist_ok=True)
        with lock_job(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
            return action(journal, tools.writer(inherit))
    except ENDS_A_RUN as error:
        return journal.ended_by(error, continues="poolferry try --list")
