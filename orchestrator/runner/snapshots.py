"""The [snapshots] of a job: taken before each look at the source, pruned after the copy is confirmed."""

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.domain.errors import OrchestratorError, SourceMissing
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Plan, Step
from orchestrator.domain.problem import ProblemType
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.domain.source_state import is_restore_known
from orchestrator.engines.contract.engine import Engine
from orchestrator.engines.contract.snapshots import Snapshotter
from orchestrator.process.executor import Reader, Writer
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.source_state import remembered_facts
from orchestrator.runner.steps import StepExecutor

ANEW = "the source was made anew since the last run: no snapshot is taken of it before it is restored"

RESTORING = "the source is being restored: no snapshot is taken of it before that is finished"


def take_snapshots(journal: RunRecorder, writer: Writer, allowed: frozenset[str]) -> None:
    """Take due snapshots on the source. Raises: OrchestratorError: a run without them would copy yesterday's data.

    Of a source that was made anew none is taken: they would stand in the way of its restore, and hold nothing.
    """
    snapshotter, rules = journal.tools.snapshotter, journal.job.snapshots
    if snapshotter is None or rules is None or not rules.autosnap:
        return
    world = _survey(journal.job, journal.tools.engine, snapshotter, writer)
    if world is None:
        return
    remembered = remembered_facts(journal.job, journal.tools)
    if snapshotter.is_being_restored(world, known=is_restore_known(remembered)):
        journal.warn(RESTORING)
        return
    if _is_made_anew(snapshotter, world, remembered, allowed):
        journal.warn(ANEW)
        return
    _do(snapshotter, snapshotter.take(journal.job, world, _folder(journal)), journal, writer)


def plan_snapshots(
    job: Job,
    engine: Engine,
    snapshotter: Snapshotter,
    reader: Reader,
    state: str,
    remembered: Mapping[str, str],
    allowed: frozenset[str],
) -> Plan | None:
    """Return the plan of the snapshots that a run would take before its survey; None: none is due.

    Why nothing else: the data to send is only known once they are taken.
    """
    if job.snapshots is None or not job.snapshots.autosnap:
        return None
    world = _survey(job, engine, snapshotter, reader)
    if world is None or _is_made_anew(snapshotter, world, remembered, allowed):
        return None
    if snapshotter.is_being_restored(world, known=is_restore_known(remembered)):
        return None
    steps = snapshotter.take(job, world, _folder_of(job, state))
    summary = "take what snapshots are due; what is sent then is decided by a look after them"
    return Plan(summary=summary, stages=(steps,)) if steps else None


def _survey(job: Job, engine: Engine, snapshotter: Snapshotter, reader: Reader) -> Any:
    """Return the survey; None where the source of a copy is not there: the run's own look says so, and what brings it back."""
    try:
        return snapshotter.survey_snapshots(job, reader)
    except SourceMissing:
        if engine.stays or not engine.needs_datasets:
            raise
        return None


def _is_made_anew(snapshotter: Snapshotter, world: Any, remembered: Mapping[str, str], allowed: frozenset[str]) -> bool:
    """Return whether the source was made anew, and nobody asked to begin anew with it."""
    return "aside" not in allowed and snapshotter.is_made_anew(world, remembered.get(SOURCE_IDENTITY, ""))


def prune_snapshots(journal: RunRecorder, writer: Writer, *, source: bool, target: bool) -> None:
    """Remove snapshots that no rule keeps, on these sides; a failure is a warning."""
    snapshotter, job = journal.tools.snapshotter, journal.job
    if snapshotter is None:
        return
    if source and job.snapshots is not None and job.snapshots.autoprune:
        _try(lambda: _prune_source(snapshotter, journal, writer), snapshotter, journal, writer)
    if target:
        prune_target(journal, writer)


def note_unpruned(journal: RunRecorder, reader: Reader) -> None:
    """Record that snapshots of the source stay that no rule keeps, as the run did not copy all of it; and the space that they take.

    Why no error: the run's own end is what counts.
    """
    snapshotter, job = journal.tools.snapshotter, journal.job
    if snapshotter is None or job.snapshots is None or not job.snapshots.autoprune or journal.tools.engine.stays:
        return
    with contextlib.suppress(OrchestratorError):
        world = snapshotter.survey_snapshots(job, reader)
        if why := snapshotter.unpruned(job, world, reader):
            journal.verdicts.problems.open(
                job.name, job.target.name, ProblemType.UNPRUNED, "", why=why, paths=(), count=0, now=journal.now
            )


def prune_target(journal: RunRecorder, writer: Writer) -> bool:
    """Remove snapshots of the copy that [keep] lets go, never the newest of a kind; return whether there is such a rule."""
    snapshotter, job = journal.tools.snapshotter, journal.job
    if snapshotter is None or job.keep.everything:
        return False
    _try(lambda: snapshotter.prune_target(job, _folder(journal)), snapshotter, journal, writer)
    _see_what_stays(journal, writer)
    return True


def _see_what_stays(journal: RunRecorder, reader: Reader) -> None:
    """Record which points the copy holds now: until the next run, those that are gone would be listed, and counted.

    Why no error: the copy itself is good, and the next run looks again.
    """
    from orchestrator.runner.last_look import find_points
    from orchestrator.runner.problems import see_points

    with contextlib.suppress(OrchestratorError):
        see_points(journal, find_points(journal.job, journal.tools, reader))


def _prune_source(snapshotter: Snapshotter, journal: RunRecorder, writer: Writer) -> Sequence[Step]:
    world = snapshotter.survey_snapshots(journal.job, writer)
    return snapshotter.prune_source(journal.job, world, _folder(journal))


def _try(plan: Callable[[], Sequence[Step]], snapshotter: Snapshotter, journal: RunRecorder, writer: Writer) -> None:
    try:
        _do(snapshotter, plan(), journal, writer)
    except OrchestratorError as error:
        journal.warn(f"snapshots could not be pruned: {error.why}")


def _do(snapshotter: Snapshotter, steps: Sequence[Step], journal: RunRecorder, writer: Writer) -> None:
    """Run the steps one after the other; failures are explained by the snapshotter that planned them."""
    for step in steps:
        executor = StepExecutor(journal, writer, _folder(journal), explain=snapshotter.explain)
        executor.do((step,))
        for words in executor.words:
            for warning in snapshotter.told(words):
                journal.warn(warning)


def _folder(journal: RunRecorder) -> str:
    """Return the folder with sanoid's state for a job, which stays between runs; make it if needed."""
    folder = _folder_of(journal.job, journal.tools.state)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def _folder_of(job: Job, state: str) -> str:
    return f"{state}/sanoid/{job.name}"
