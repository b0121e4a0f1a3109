"""Restore points that a place held by all that history knows, and that are not there now: told in the plan of a restore, and in its refusal."""

from collections.abc import Sequence

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import POINT_NAME
from orchestrator.domain.place import FOUND
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.copies import PointLister
from orchestrator.engines.contract.engine import implements
from orchestrator.runner.context import RunContext
from orchestrator.runner.problems import are_pruned_there

_NAMED = 3


def lost_points(job: Job, tools: RunContext, points: Sequence[RestorePoint]) -> tuple[str, ...]:
    """Return the names of points that this place held, and that no removal of ours took, oldest first."""
    there = {each.name for each in points}
    missed = tools.history.problems.missed_points(job.name, job.target.name)
    return tuple(sorted(name for name in missed - there if POINT_NAME.fullmatch(name)))


def warn_of_lost(
    job: Job, tools: RunContext, points: Sequence[RestorePoint], chosen: RestorePoint, *, newest: bool
) -> tuple[str, ...]:
    """Return the warnings of a plan about points that vanished. `newest`: the newest one was asked for."""
    lost = lost_points(job, tools, points)
    newer = [name for name in lost if name > chosen.name]
    names_all = f"`poolferry restore plan {job.name}` names all"
    if newest and newer:
        told = (
            f"history knows {show_count(len(newer), 'newer point')} of {job.target.name}, up to {newer[-1]}, and none of them is there: they were "
            f"removed, or an older state or another copy of it lies there; another copy may hold what is newer: {names_all}"
        )
        return (told,)
    if not lost or not _is_told(job, tools, lost, points):
        return ()
    recorded = {path for each in tools.history.problems.open_of(job.name, job.target.name) for path in each.paths}
    shown = "says what to do" if recorded >= set(lost) else "shows that once a restore, a reading or a run has looked"
    told = f"{_vanished(job, lost)}; `poolferry status` {shown}; another copy may hold {_it(lost)}: {names_all}"
    return (told,)


def name_lost(
    job: Job, tools: RunContext, points: Sequence[RestorePoint], refusal: Refusal, requested: str | None
) -> Refusal:
    """Return a refusal for want of a point with the words about those that vanished, if one of these was asked for, or nothing is left."""
    lost = lost_points(job, tools, points) if job.target.name != FOUND else ()
    if points:
        lost = tuple(name for name in lost if requested and name.startswith(requested))
    if not lost:
        return refusal
    other = f"`poolferry restore plan {job.name}` names other copies"
    hint = f"{other}; {refusal.hint}"
    if not points:
        hint = f"see whether the right disk or folder lies at {job.target.location}; {other}"
    return replace(refusal, why=f"{refusal.why}: {_vanished(job, lost)}", hint=hint)


def _vanished(job: Job, lost: Sequence[str]) -> str:
    shown = ", ".join(lost[-_NAMED:]) + (f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else "")
    count = show_count(len(lost), "point")
    return (
        f"{count} that history knows vanished from {job.target.name}, and no removal of ours took {_it(lost)}: {shown}"
    )


def _it(lost: Sequence[str]) -> str:
    return "it" if len(lost) == 1 else "them"


def _is_told(job: Job, tools: RunContext, lost: Sequence[str], points: Sequence[RestorePoint]) -> bool:
    """Return whether what vanished is a loss: snapshots are pruned by others, too, and a target's own machine may prune its points."""
    newest = max((each.name for each in points), default="")
    return implements(tools.engine, PointLister) and not (are_pruned_there(job, tools) and max(lost) < newest)
