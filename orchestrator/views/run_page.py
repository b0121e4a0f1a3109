"""One run as a page: its stages with their steps, how far it is, and what was said meanwhile."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.command_line import brief_text
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run_progress import RunProgress
from orchestrator.domain.units import show_duration, show_size
from orchestrator.history.values import AttemptRecord, RunDetails, StepRecord
from orchestrator.views.run_progress import pace_words


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step. `state`: "done", "running", "failed", "unverified" or "planned"; `output`: the last lines of a failed one."""

    number: int | None
    action: str
    why: str
    state: str
    facts: str
    worker: str
    commands: tuple[tuple[str, str], ...]
    error: str
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRows:
    """One attempt. `decision`: the summary of its plan, or why it was refused; `left`: how many steps are not listed."""

    number: int
    why: str
    decision: str
    stages: tuple[tuple[StepRow, ...], ...]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPageValues:
    """One run. `share`: the part that is done, of one that goes on; None while unknown."""

    attempts: tuple[AttemptRows, ...]
    share: float | None
    pace: str
    step: str
    done: int
    planned: int


def run_page(
    story: RunDetails, step: str, progress: RunProgress | None, now: datetime, *, most: int
) -> RunPageValues:  # fmt: skip
    """Return the values of a run's page. `step`, `progress`: of a run that goes on; `most`: steps to list of an attempt."""
    open_run = story.run.outcome is None
    attempts = tuple(_attempt(each, most, open_run=open_run) for each in story.attempts)
    last = [row for stage in attempts[-1].stages for row in stage] if attempts else []
    return RunPageValues(
        attempts=attempts, share=min(progress.done / progress.expected, 1) if progress and progress.expected else None,
        pace=pace_words(progress, now=now) if progress else "", step=step,
        done=sum(row.state == "done" for row in last), planned=len(last) + (attempts[-1].left if attempts else 0),
    )  # fmt: skip


def _attempt(attempt: AttemptRecord, most: int, *, open_run: bool) -> AttemptRows:
    decided = _decision(attempt)
    known = [_step(each, open_run=open_run) for each in attempt.steps[:most]]
    stages = tuple(_stages(decided.get("stages") or (), known, planned=open_run and attempt.ended_at is None))
    return AttemptRows(
        number=attempt.number, why=attempt.why or "", decision=str(decided.get("summary") or decided.get("why") or ""),
        stages=stages or ((tuple(known),) if known else ()), left=max(len(attempt.steps) - most, 0),
    )  # fmt: skip


def _decision(attempt: AttemptRecord) -> dict[str, Any]:
    text = attempt.plan or attempt.refusal
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}


def _stages(stages: Any, known: Sequence[StepRow], *, planned: bool) -> Iterator[tuple[StepRow, ...]]:
    """Yield the steps by stage, as the plan has them; those that did not begin only while the run goes on.

    Steps were recorded as they began, so a step is found by its action, the first of that name.
    """
    rest = list(known)
    for stage in stages if isinstance(stages, list) else ():
        rows = []
        for told in stage if isinstance(stage, list) else ():
            action = str(told.get("action", "")) if isinstance(told, dict) else ""
            found = next((row for row in rest if row.action == action), None)
            if found is not None:
                rest.remove(found)
                rows.append(found)
            elif planned and action:
                rows.append(_planned(action, str(told.get("why", ""))))
        if rows:
            yield tuple(rows)
    if rest:
        yield tuple(rest)


def _planned(action: str, why: str) -> StepRow:
    return StepRow(
        number=None, action=action, why=why, state="planned", facts="", worker="", commands=(), error="", output=()
    )


def _step(step: StepRecord, *, open_run: bool) -> StepRow:
    moved = f"{show_size(step.moved)} moved" if step.moved is not None else ""
    took = show_duration((step.ended_at - step.begun_at).total_seconds()) if step.ended_at else ""
    expected = f"{show_size(step.expected)} expected" if step.expected and step.ended_at is None else ""
    return StepRow(
        number=step.number, action=step.action, why=step.why, state=_state(step, open_run=open_run),
        facts=" · ".join(filter(None, (took, moved, expected))), worker=step.worker,
        commands=tuple((brief_text(command), command) for command in step.commands), error=step.error or "",
        output=tuple(line for said in step.last_output for line in said.split("\n") if line) if step.error else (),
    )  # fmt: skip


def _state(step: StepRecord, *, open_run: bool) -> str:
    if step.error:
        return "failed"
    if step.ended_at is None:
        return "running" if open_run else "unended"
    return "unverified" if step.confirmed is False else "done"
