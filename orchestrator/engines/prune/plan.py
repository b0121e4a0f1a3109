"""The plan of a pruning: the removals that were judged, as steps, each dataset's by itself, a folder's some at a time."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from orchestrator.domain.arrival import PointRemoval
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Decision, NothingToDo, Pipeline, Plan, PointsRemoval, Refusal, Step
from orchestrator.domain.units import show_count, show_duration
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.prune import commands
from orchestrator.engines.prune.model import PruneSurvey, SnapshotsGone, is_folder
from orchestrator.engines.prune.options import options_of

_FOLDERS_AT_ONCE = 10  # and points of a folder
_AT_ONCE = 200  # snapshots in one step: a run that is cut has done what is recorded


def plan(job: Job, world: PruneSurvey, request: RunRequest) -> Decision:
    """Return the steps that destroy what no rule keeps, nothing, or a refusal when arrivals look wrong."""
    root = world.root
    if job.keep.everything or request.judge is None:
        return Refusal(
            why="nothing says how many points stay",
            evidence=(f"{job.file} has no [keep]",),
            hint="write how many stay, such as [keep] daily = 14",
        )
    judged = request.judge(world.points)
    if isinstance(judged, Refusal):
        return judged
    there = show_count(len(world.points), "point" if is_folder(root) else "snapshot")
    if not judged and not world.trash:
        return NothingToDo(why=f"{there} of {root}: none is to go", current=root.path)
    if is_folder(root):
        return _plan_folder(job, world, judged)
    # One stage of one worker: one after the other, and one look at the end tells that all are gone.
    stage = tuple(_steps(job, world, judged))
    return Plan(
        summary=f"removed {len(judged)} of {there} of {root}", stages=(stage,), current=root.path, taken=world.at
    )


def _plan_folder(job: Job, world: PruneSurvey, removals: Sequence[PointRemoval]) -> Plan:
    """Return the plan that removes points of a folder. One stage for each few, as each removal is known to be one by a look."""
    root, there = world.root, show_count(len(world.points), "point")
    young = show_duration(options_of(job).never_younger_than)
    stages: list[tuple[Step, ...]] = []
    if world.trash:
        what, why = f"empty the trash in {root}", "a removal was cut in the middle"
        work = PointsRemoval(root=root, points=())
        stages.append((Step(action=what, why=why, worker="main", work=work, expected=None),))
    for start in range(0, len(removals), _FOLDERS_AT_ONCE):
        part = removals[start : start + _FOLDERS_AT_ONCE]
        step = Step(
            action=f"remove {show_count(len(part), 'point')} in {root}, come {_span(part)}",
            why=f"{part[0].reason}, and come more than {young} ago", worker="main",
            work=PointsRemoval(root=root, points=tuple((each.point.name, each.point.identity) for each in part)),
            expected=None,
            confirmation=SnapshotsGone(root=root, guids=frozenset((each.point.series, each.point.identity) for each in part)),
        )  # fmt: skip
        stages.append((step,))
    summary = f"removed {len(removals)} of {there} in {root}"
    return Plan(summary=summary, stages=tuple(stages), current=root.path, taken=world.at)


def _span(part: Sequence[PointRemoval]) -> str:
    return f"{part[0].arrived:%Y-%m-%d}" + (f" to {part[-1].arrived:%Y-%m-%d}" if len(part) > 1 else "")


def _steps(job: Job, world: PruneSurvey, removals: Sequence[PointRemoval]) -> Iterator[Step]:
    young = show_duration(options_of(job).never_younger_than)
    for series, group in groupby(removals, key=lambda each: each.point.series):
        whole = list(group)
        for start in range(0, len(whole), _AT_ONCE):
            part = whole[start : start + _AT_ONCE]
            guids = frozenset((each.point.series, each.point.identity) for each in part)
            yield Step(
                action=f"remove {show_count(len(part), 'snapshot')} of {series}, come {_span(part)}",
                why=f"{part[0].reason}, and come more than {young} ago",
                worker="main",
                work=Pipeline(stages=(commands.destroy_command(each.point for each in part),)),
                expected=None,
                confirmation=SnapshotsGone(root=world.root, guids=guids),
            )
