"""The plan of a run or of a restore, as lines and as JSON."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.domain.names import printable_line
from orchestrator.domain.plan import Decision, Plan, Refusal
from orchestrator.domain.run_values import brief_commands, decision_value, step_commands
from orchestrator.planners.choose_copy import CandidatePoint, CopyCandidate
from orchestrator.views.copies import newer_copy_lines, newer_copy_values
from orchestrator.views.run_report import decision_lines

Removes = Sequence[tuple[str, str]]
Others = Sequence[tuple[CopyCandidate, CandidatePoint, str]]
_WIDEST = 200  # of a plan's lines
_SHORTEST = 20  # what a line that goes on has for words, however deep it is indented
# A word, or one in a shell's quotes, which may hold spaces.
_WORD = re.compile(r"(?:[^\s'=]*=)?(?:\$'(?:[^'\\]|\\.)*'|'[^']*')(?:\"'\"'[^']*')*\S*|\S+")


def dry_run_value(
    job: str, decision: Decision, removes: Removes, forecast: Mapping[str, str], *, short: str = ""
) -> dict[str, Any]:
    """Render `plan` for programs. `removes`: points that [keep] would remove, with why; `forecast`: each disk's next copy.

    `short`: why there may be no room, so that [keep] removes first.
    """
    told = [{"disk": name, "forecast": text} for name, text in forecast.items()]
    removed = [{"point": name, "reason": reason} for name, reason in removes]
    return {
        "job": job,
        **decision_value(decision),
        "removes": removed,
        **({"short": short} if short else {}),
        **({"forecast": told} if told else {}),
    }


def dry_run_lines(
    job: str, decision: Decision, removes: Removes, forecast: Mapping[str, str], *, short: str = "", verbose: bool
) -> list[str]:
    """Render `plan` for people. `short`: as of `dry_run_value`; `verbose`: with the whole text of each command."""
    lines = _planned_lines(job, decision, verbose=verbose)
    if short:
        lines.append("  there may be no room: a run removes first what [keep] lets go, and looks again")
    if short or not isinstance(decision, Refusal):
        when = "first" if short else "then"
        lines += [f"  {when} [keep] removes {name}: {reason}" for name, reason in removes]
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


def fit_lines(lines: Sequence[str]) -> list[str]:
    """Break lines wider than 200 characters at spaces, and shorten longer words in their middle.

    A hint keeps its words, and goes on as a shell reads it, so that its command works when it is pasted.
    """
    plain = map(printable_line, lines)
    return [part for line in plain for part in (_broken(line) if len(line) > _WIDEST else (line,))]


def _broken(line: str) -> Iterator[str]:
    hint = line.lstrip().startswith("what to do: ")
    margin = " " * (len(line) - len(line.lstrip()))
    part, most = margin, _WIDEST - (2 if hint else 0)
    for word in _WORD.findall(line):
        shown = word if hint else _cut_middle(word, max(most - len(margin) - 4, _SHORTEST))
        if part.strip() and len(part) + 1 + len(shown) > most:
            yield part + (" \\" if hint else "")
            part = f"{margin}    "
        part += f" {shown}" if part.strip() else shown
    yield part


def _cut_middle(word: str, most: int) -> str:
    half = (most - 1) // 2
    return word if len(word) <= most else f"{word[:half]}…{word[-half:]}"
