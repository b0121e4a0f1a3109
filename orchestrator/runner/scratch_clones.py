"""`try`: scratch copies of a restore point, made, listed, and dropped by command or after their time."""

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from orchestrator.domain.errors import NotNow, OrchestratorError, Stopped
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Plan, Refusal, Step
from orchestrator.domain.point import Point
from orchestrator.domain.run import Kind, Outcome, RunReport
from orchestrator.domain.scratch import Scratch
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract import Asked
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Reader, Writer
from orchestrator.runner.context import Tools
from orchestrator.runner.locks import locked
from orchestrator.runner.run_recorder import Journal, begin, evidence_of
from orchestrator.runner.steps import Hands


@runtime_checkable
class Scratcher(Protocol):
    """An engine that can clone its points."""

    def plan_try(
        self, job: Job, below: str, until: Point, keep: datetime | None, asked: Asked, reader: Reader
    ) -> Plan | Refusal:
        """Return the plan of a point's clones, or a refusal."""
        ...

    def survey_scratch(self, job: Job, reader: Reader) -> tuple[Scratch, ...]:
        """Return the scratch copies in a job's place."""
        ...

    def drop_scratch(self, job: Job, scratch: Scratch) -> Step:
        """Return the step that destroys one scratch copy."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The request for a scratch copy: all of a copy or the part `below`, as of a point; `keep`: for how long."""

    below: str = ""
    point: str | None = None
    at: datetime | None = None
    keep: Seconds | None = None


def run_try(job: Job, tools: Tools, trial: Trial) -> RunReport:
    """Make a scratch copy."""

    def make(journal: Journal, writer: Writer) -> RunReport:
        engine, now = _scratcher(tools), tools.clock()
        point = choose_point(tools.engine.points(job, writer), point=trial.point, at=trial.at)
        keep = now + timedelta(seconds=trial.keep) if trial.keep is not None else None
        asked = Asked(now=now, notes=_notes(job, tools))
        plan = point if isinstance(point, Refusal) else engine.plan_try(job, trial.below, point, keep, asked, writer)
        if isinstance(plan, Refusal):
            journal.decided(plan)
            return journal.ended(Outcome.REFUSED, plan.why, cure=plan.cure, evidence=plan.evidence)
        journal.decided(plan)
        for stage in plan.stages:
            Hands(journal, writer, asked.notes).do(stage)
        return journal.ended(Outcome.DONE, plan.summary)

    return _recorded(job, tools, "try a point", make)


def drop(job: Job, tools: Tools, name: str | None) -> RunReport:
    """Drop the scratch copy of that name; without a name, all that have expired."""

    def let_go(journal: Journal, writer: Writer) -> RunReport:
        engine = _scratcher(tools)
        found = engine.survey_scratch(job, writer)
        gone = [each for each in found if each.name == name] if name else over(found, tools.clock())
        if name and not gone:
            told = tuple(each.name for each in found)
            return journal.ended(
                Outcome.REFUSED, f"there is no scratch copy {name}", cure="poolferry try --list", evidence=told
            )
        for each in gone:
            Hands(journal, writer, _notes(job, tools)).do((engine.drop_scratch(job, each),))
        return journal.ended(
            Outcome.DONE if gone else Outcome.NOTHING, ", ".join(each.name for each in gone) or "nothing is over yet"
        )

    return _recorded(job, tools, f"drop {name or 'what is over'}", let_go)


def over(found: Sequence[Scratch], now: datetime) -> list[Scratch]:
    """Return the scratch copies that have expired."""
    return [each for each in found if each.until is not None and each.until <= now]


def _scratcher(tools: Tools) -> Scratcher:
    if not isinstance(tools.engine, Scratcher):
        raise OrchestratorError(f"the engine {tools.engine.name} makes no scratch copies", cure="restore to a path")
    return tools.engine


def _notes(job: Job, tools: Tools) -> str:
    return f"{tools.state}/notes/try-{job.name}"


def _recorded(job: Job, tools: Tools, why: str, deed: Callable[[Journal, Writer], RunReport]) -> RunReport:
    journal = begin(job, tools, why, Kind.TRY)
    journal.attempt_begun()
    os.makedirs(_notes(job, tools), mode=0o700, exist_ok=True)
    try:
        with locked(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
            return deed(journal, tools.writer(inherit))
    except NotNow as error:
        return journal.ended(Outcome.WAITING, error.why, cure=error.cure)
    except Stopped as error:
        return journal.ended(Outcome.INTERRUPTED, tools.stop.reason or error.why, cure="poolferry try --list")
    except OrchestratorError as error:
        journal.attempt_ended(error)
        return journal.ended(Outcome.FAILED, error.why, cure=error.cure, evidence=evidence_of(error))
