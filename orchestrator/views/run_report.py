"""Decisions, steps and reports as the lines that people read."""

from collections.abc import Sequence

from orchestrator.domain.events import StepStarted
from orchestrator.domain.plan import Decision, Effect, NothingToDo, Plan, Refusal, Step
from orchestrator.domain.run import UNRECORDED, Outcome, RunReport
from orchestrator.domain.units import show_duration, show_size
from orchestrator.views.format import indent

Lines = list[str]


def reason_lines(head: str, *, hint: str, evidence: Sequence[str], evidence_first: bool = False) -> Lines:
    """Render what happened, the hint, and the evidence. A refusal shows the evidence first, as it gives the reason."""
    seen = indent([line for line in evidence if line.strip()])
    todo = indent([f"what to do: {hint}"]) if hint else []
    return [head, *(seen + todo if evidence_first else todo + seen)]


def report_lines(report: RunReport) -> Lines:
    """Render how a run ended."""
    number = "not recorded" if report.run == UNRECORDED else f"run {report.run}"
    told = f"{report.job}: {report.outcome.value}: {report.why} ({number}, {show_duration(report.took_s)})"
    if report.outcome in (Outcome.DONE, Outcome.NOTHING):
        return [told]
    return reason_lines(
        told, hint=report.hint, evidence=report.evidence, evidence_first=report.outcome is Outcome.REFUSED
    )


def refusal_lines(job: str, refusal: Refusal) -> Lines:
    """Render the reason why nothing is done."""
    return reason_lines(
        f"{job}: {refusal.outcome.value}: {refusal.why}",
        hint=refusal.hint,
        evidence=refusal.evidence,
        evidence_first=True,
    )


def decision_lines(job: str, decision: Decision, commands: Sequence[Sequence[str]]) -> Lines:
    """Render the plan of a run. `commands`: the lines of each step, in the order of `decision.steps`."""
    match decision:
        case Refusal():
            return refusal_lines(job, decision)
        case NothingToDo():
            steps = [step for stage in decision.stages for step in stage]
            head = f"{job}: nothing to do: {decision.why}"
        case Plan():
            steps = list(decision.steps)
            head = f"{job}: {decision.summary}"
    resumes = decision.resumes if isinstance(decision, Plan) else None
    refusals = decision.refusals if isinstance(decision, Plan) else ()
    lines = [head, *([f"  resumes: {resumes}"] if resumes else [])]
    lines += [f"  compares everything: {decision.compared}"] if decision.compared else []
    lines += [f"  warning: {warning}" for warning in decision.warnings]
    lines += [f"  left out: {refusal.why}" for refusal in refusals]
    for number, (step, told) in enumerate(zip(steps, commands, strict=True), start=1):
        lines += step_lines(number, step, told)
    return lines


def step_lines(number: int, step: Step, commands: Sequence[str]) -> Lines:
    """Render one step of a plan with its exact commands."""
    expected = f", {show_size(step.expected)} expected" if step.expected is not None else ""
    lines = [f"  {number}. {step.action}{expected}", f"     why:  {step.why}"]
    if step.effect is Effect.DESTROYS or step.removes:
        lines.append(f"     destroys: {step.removes or 'what the target has and the source no longer has'}")
    return [*lines, *(f"     runs: {command}" for command in commands)]


def step_line(event: StepStarted) -> str:
    """Render a step as it begins."""
    return event.action + (f" ({show_size(event.expected)})" if event.expected else "")
