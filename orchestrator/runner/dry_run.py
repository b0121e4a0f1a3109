"""`plan`: the same survey and the same decision as a run's, without any action."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.arrival import PointRemoval
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Plan
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.copies import PointLister
from orchestrator.engines.contract.engine import Engine, RunRequest, implements
from orchestrator.engines.contract.snapshots import Snapshotter
from orchestrator.planners.guard import OTHER_MACHINE
from orchestrator.planners.retention import RetentionDecision
from orchestrator.process.executor import Reader
from orchestrator.runner.arrivals import arrival_judge, removals
from orchestrator.runner.context import begin_bare_look
from orchestrator.runner.decide import (
    check_fit,
    count_folders,
    decide_points,
    decide_run,
    find_other_machine,
    find_shortage,
    moves_finder,
    points_to_remove,
    protected_points,
    refuse_other_machine,
    retention_filter,
    with_sizes,
)
from orchestrator.runner.locks import points_being_read
from orchestrator.runner.snapshots import plan_snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunResult:
    """The decision that a run would make now, and the points that [keep] would remove after it.

    `short`: why there may be no room for the copy; then the run removes them first.
    """

    decision: Decision
    going: tuple[RetentionDecision, ...]
    short: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedFacts:
    """The remembered data of history: small facts by key, and the names of points that a reading found intact.

    `ours`: those that runs of this machine made, or found as new as the source. `missed`: those that were at the place, and
    that we never removed.
    """

    facts: Mapping[str, str]
    sound: Sequence[str]
    ours: Sequence[str] = ()
    missed: frozenset[str] = frozenset()

    def made_elsewhere(self, name: str) -> bool:
        """Return True when runs of this machine made points, and not that one."""
        return bool(self.ours) and name not in self.ours


def plan_job(
    job: Job,
    engine: Engine,
    reader: Reader,
    known: RememberedFacts,
    *,
    state: str,
    now: datetime,
    allowed: frozenset[str],
    snapshotter: Snapshotter | None = None,
) -> DryRunResult:
    """Survey and decide; where snapshots are due, the plan only takes them. Raises: OrchestratorError when a survey fails."""
    if snapshotter and (taking := plan_snapshots(job, engine, snapshotter, reader, state, known.facts, allowed)):
        return DryRunResult(decision=taking, going=())
    request = RunRequest(
        now=now,
        notes=f"{state}/notes/{job.name}",
        looks=f"{state}/notes/look-{job.name}",
        bare=begin_bare_look,
        allowed=allowed,
        remembered=known.facts,
        retain=retention_filter(job, now),
        missed=lambda: known.missed,
        brought=lambda: frozenset(known.ours),
    )
    if engine.stays:
        judge = arrival_judge(job, engine, known.facts, state=state, now=now, allowed=allowed)
        request = replace(request, judge=judge)
    world = engine.survey(job, request, reader)
    decision: Decision | None = None
    if implements(engine, PointLister) and (there := engine.surveyed_points(job, world)) is not None:
        other = find_other_machine(job, engine, there, reader, facts=known.facts, elsewhere=known.made_elsewhere)
        decision = refuse_other_machine(job, other) if other and OTHER_MACHINE not in allowed else None
    decision = decision or decide_run(
        job, engine, world, request, count_folders(job, engine, world, reader), moves_finder(job, engine, world, reader)
    )
    short = ""
    if isinstance(plan := decision, Plan):
        plan = with_sizes(plan, engine, reader)
        decision = check_fit(job, engine, world, plan, request, reader)
        short = "" if job.keep.everything or engine.stays else find_shortage(plan, decision)
    if isinstance(decision, Plan) and request.judge is not None:
        return DryRunResult(decision=decision, going=_arrivals_going(removals(engine, world, request)))
    if job.keep.everything or engine.needs_datasets:  # sanoid prunes snapshots by its own decision
        return DryRunResult(decision=decision, going=(), short=short)
    points = engine.points(job, reader)
    protected = protected_points(known.sound, points_being_read(job, state, [point.name for point in points]))
    going = points_to_remove(decide_points(points, job, now=now, protected=protected))
    return DryRunResult(decision=decision, going=going, short=short)


def _arrivals_going(gone: Sequence[PointRemoval]) -> tuple[RetentionDecision, ...]:
    """Return the removals of points that others sent here as decisions, each with the time when it came."""
    return tuple(
        RetentionDecision(
            point=RestorePoint(
                name=f"{each.point.series}@{each.point.name}", taken=each.arrived, tree=Location(path=each.point.series), manifest=None
            ),
            keep=False,
            reason=f"came {each.arrived:%Y-%m-%d %H:%M} UTC, {each.reason}",
        )
        for each in gone
    )  # fmt: skip
