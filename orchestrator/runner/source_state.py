"""The memory of a job's source in history: its identity, and its state on the day that it is lost."""

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.command_line import quoted
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.domain.source_identity import (
    LAST_RESTORE,
    RESTORED,
    SOURCE_IDENTITY,
    SOURCE_STATE,
    parse_identity,
    seen_restore_key,
)
from orchestrator.domain.source_state import SourceState, SourceStateRecord, next_source_state, parse_source_state
from orchestrator.engines.contract.copies import SourceIdentifier
from orchestrator.engines.contract.engine import implements
from orchestrator.runner.context import RunContext
from orchestrator.runner.run_recorder import RunRecorder


def remembered_facts(job: Job, tools: RunContext) -> dict[str, str]:
    """Return the small facts of a job. The identity of a source that no run remembered yet is that of its kit."""
    facts = tools.history.memory(job.name)
    if SOURCE_IDENTITY not in facts and implements(tools.engine, SourceIdentifier):
        kit = tools.history.kits.of(job.name)
        if kit is not None and (identity := tools.engine.identity_of_kit(kit.kit.content)):
            facts[SOURCE_IDENTITY] = identity
    return facts


def remember_refusal(journal: RunRecorder, refusal: Refusal) -> None:
    """Remember the state of a source that a refusal names."""
    if refusal.source is not None:
        remember_state(journal, refusal.source, refusal.why, refusal.hint)


def remember_state(journal: RunRecorder, state: SourceState, why: str, hint: str) -> None:
    """Remember the state of the job's source."""
    history, job = journal.tools.history, journal.job.name
    now = SourceStateRecord(state=state, since=journal.now, why=why, hint=hint)
    history.remember(job, SOURCE_STATE, str(next_source_state(history.recall(job, SOURCE_STATE) or "", now)))


def end_absence(journal: RunRecorder, engine: SourceIdentifier, world: Any) -> None:
    """End the state of a source that was gone, or renamed, where the survey found it as it was at the last good run.

    Why not at a good run alone: one that is refused for another reason, such as a target that is away, would leave it called gone.
    """
    history, job = journal.tools.history, journal.job.name
    known = parse_source_state(history.recall(job, SOURCE_STATE) or "")
    if known is not None and known.state in (SourceState.GONE, SourceState.RENAMED):
        found, before = (
            parse_identity(text) for text in (engine.identity(world), history.recall(job, SOURCE_IDENTITY) or "")
        )
        if found and before and (found.dataset, found.pool) == (before.dataset, before.pool):
            history.remember(job, SOURCE_STATE, "")


def end_state(journal: RunRecorder, engine: SourceIdentifier, world: Any, facts: Mapping[str, str]) -> None:
    """End the state of a source at a good run; while a part of it waits, it lasts."""
    history, job = journal.tools.history, journal.job
    if facts.get(RESTORED):
        history.remember(job.name, RESTORED, "")
    if facts.get(LAST_RESTORE):
        history.remember(job.name, seen_restore_key(job.target.name), facts[LAST_RESTORE])
    if not facts.get(SOURCE_STATE):
        return
    waits = engine.waiting(world)
    if not waits:
        history.remember(job.name, SOURCE_STATE, "")
        return
    why = f"restored; {', '.join(waits[:5])}{' …' if len(waits) > 5 else ''} {'waits' if len(waits) == 1 else 'wait'}"
    remember_state(
        journal, SourceState.WAITING, why, f"poolferry restore run {job.name} --to {quoted(str(job.source))}"
    )
