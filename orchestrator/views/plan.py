"""The plan of a run or of a restore, as lines and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.plan import Decision, Plan, Refusal
from orchestrator.domain.run_values import brief_commands, decision_value, step_commands
from orchestrator.planners.choose_copy import CandidatePoint, CopyCandidate
from orchestrator.views.copies import newer_copy_lines, newer_copy_values
from orchestrator.views.format import fit_lines
from orchestrator.views.run_report import decision_lines

Removes = Sequence[tuple[str, str]]
Others = Sequence[tuple[CopyCandidate, CandidatePoint, str]]


def dry_run_value(job: str, decision: Decision, removes: Removes, forecast: Mapping[str, str]) -> dict[str, Any]:
    """Render `plan` for programs. `removes`: points that [keep] would remove, with why; `forecast`: each disk's next copy."""
    told = [{"disk": name, "forecast": text} for name, text in forecast.items()]
    removed = [{"point": name, "reason": reason} for name, reason in removes]
    return {"job": job, **decision_value(decision), "removes": removed, **({"forecast": told} if told else {})}


def dry_run_lines(
    job: str, decision: Decision, removes: Removes, forecast: Mapping[str, str], *, verbose: bool
) -> list[str]:
    """Render `plan` for people. `verbose`: with the whole text of each command."""
    lines = _planned_lines(job, decision, verbose=verbose)
    if not isinstance(decision, Refusal):
        lines += [f"  then [keep] removes {name}: {reason}" for name, reason in removes]
    lines += [f"  on disk {name}: {text}" for name, text in forecast.items()]
    return lines if verbose else fit_lines(lines)


def restore_plan_value(job: str, decision: Plan | Refusal, others: Others | None) -> dict[str, Any]:
    """Render `restore plan` for programs. `others`: newer copies elsewhere; None: unknown without a configuration."""
    value = {"job": job, **decision_value(decision)}
    return value if others is None else {**value, "others": newer_copy_values(others)}


def restore_plan_lines(job: str, decision: Plan | Refusal, others: Others | None, *, verbose: bool) -> list[str]:
    """Render `restore plan` for people."""
    lines = [*_planned_lines(job, decision, verbose=verbose), *newer_copy_lines(others or ())]
    return lines if verbose else fit_lines(lines)


def _planned_lines(job: str, decision: Decision, *, verbose: bool) -> list[str]:
    steps = () if isinstance(decision, Refusal) else [step for stage in decision.stages for step in stage]
    commands = step_commands if verbose else brief_commands
    return decision_lines(job, decision, [commands(step) for step in steps])
