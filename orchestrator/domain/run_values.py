"""Plans, refusals and reports as plain values for JSON, the public shapes, with former keys beside today's for one version;
and a failure's evidence as lines.
"""

import re
from collections.abc import Callable
from typing import Any

from orchestrator.domain.command_line import brief_line, cut_line, pipeline_line
from orchestrator.domain.errors import Evidence
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import (
    Decision,
    FolderTimes,
    NothingToDo,
    Pipeline,
    Plan,
    PointPublication,
    Refusal,
    SmallFileCopy,
    Step,
    TargetPreparation,
    TargetTrial,
)
from orchestrator.domain.run import RunReport


def decision_value(decision: Decision) -> dict[str, Any]:
    """Return a decision as `plan --json` prints it and history stores it."""
    match decision:
        case Plan():
            return {
                "decision": "plan",
                "summary": decision.summary,
                "resumes": decision.resumes,
                "stages": [[step_value(step) for step in stage] for stage in decision.stages],
                "warnings": list(decision.warnings),
                "refusals": [_refusal_value(refusal) for refusal in decision.refusals],
            }
        case NothingToDo():
            stages = [[step_value(step) for step in stage] for stage in decision.stages]
            return {
                "decision": "nothing-to-do",
                "why": decision.why,
                "current": decision.current,
                "stages": stages,
                "warnings": list(decision.warnings),
            }
    return _refusal_value(decision)


def _refusal_value(refusal: Refusal) -> dict[str, Any]:
    return {
        "decision": refusal.outcome.value,
        "why": refusal.why,
        "evidence": list(refusal.evidence),
        "hint": refusal.hint,
        "guard": refusal.guard,
    }


def step_value(step: Step) -> dict[str, Any]:
    """Return one step with its exact commands."""
    return {
        "action": step.action,
        "why": step.why,
        "worker": step.worker,
        "effect": step.effect.name.lower(),
        "commands": list(step_commands(step)),
        "expected_bytes": step.expected,
        "confirmation": str(step.confirmation) if step.confirmation is not None else None,
    }


def step_commands(step: Step) -> tuple[str, ...]:
    """Return the command lines of a step as a person would paste them."""
    return _lines(step, pipeline_line, show_name)


def brief_commands(step: Step) -> tuple[str, ...]:
    """Return the command lines of a step as a plan shows them: scripts by name, at most 200 characters each."""
    return _lines(step, brief_line, lambda words: cut_line(show_name(words)))


def _lines(step: Step, line: Callable[[Pipeline], str], own: Callable[[str], str]) -> tuple[str, ...]:
    match step.work:
        case Pipeline() as work:
            return (line(work),)
        case TargetTrial() | TargetPreparation() | PointPublication() | SmallFileCopy() | FolderTimes() as work:
            return (own(str(work)), line(work.otherwise))
    return (own(str(step.work)),)


def report_value(report: RunReport) -> dict[str, Any]:
    """Return a run as `run --json` prints it."""
    return {
        "run": report.run,
        "job": report.job,
        "outcome": report.outcome.value,
        "why": report.why,
        "hint": report.hint,
        "moved_bytes": report.moved_bytes,
        "took_s": round(report.took_s, 3),
        "resumed": report.resumed,
        "attempts": report.attempts,
        "steps": [
            {
                "action": step.action,
                "why": step.why,
                "moved_bytes": step.moved_bytes,
                "took_s": round(step.took_s, 3),
                "confirmed": step.confirmed,
            }
            for step in report.steps
        ],
        "points": list(report.points),
        "warnings": list(report.warnings),
        "evidence": list(report.evidence),
    }


def evidence_lines(evidence: Evidence | None) -> tuple[str, ...]:
    """Return the evidence of a failed pipeline as lines to show."""
    if evidence is None:
        return ()
    words = tuple(line for said in evidence.last_output for line in said.splitlines()[-5:])
    exits = ", ".join("?" if code is None else str(code) for code in evidence.exits)
    return (*evidence.lines, f"exit {exits}", *words)


_FORMER = {
    "hint": "cure",
    "action": "does",
    "confirmed": "proved",
    "due": "owed",
    "due_since": "owed_since",
    "last_output": "last_words",
    "requested": "asked",
    "newest_verified": "newest_proved",
    "verified_at": "proved",
    "confirmation": "proof",
    "self_test": "proves",
    "worker": "lane",
}


def with_readable_bytes(value: Any) -> Any:
    r"""Return the value with bytes that are no UTF-8 as \xff in its texts, at any depth: many programs read no JSON with lone surrogates."""
    if isinstance(value, dict):
        return {with_readable_bytes(name): with_readable_bytes(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_readable_bytes(each) for each in value]
    return (
        re.sub(r"[\udc80-\udcff]", lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", value)
        if isinstance(value, str)
        else value
    )


def with_former_keys(value: Any) -> Any:
    """Return the value with each renamed key under its former name too, at any depth."""
    if isinstance(value, dict):
        found = {name: with_former_keys(each) for name, each in value.items()}
        return found | {old: found[new] for new, old in _FORMER.items() if new in found and old not in found}
    if isinstance(value, (list, tuple)):
        return [with_former_keys(each) for each in value]
    return value
