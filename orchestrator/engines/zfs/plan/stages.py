"""The stages of a plan: one stage after the other, the datasets of one stage in parallel."""

from orchestrator.engines.zfs.model import (
    Action,
    CreatePlaceholder,
    FullSend,
    IncrementalSend,
    ReleaseBases,
    ResumedSend,
    Snapshot,
)
from orchestrator.engines.zfs.plan.context import PlanContext, parent_dataset
from orchestrator.engines.zfs.plan.dataset_plan import DatasetPlan, brings_snapshot
from orchestrator.engines.zfs.plan.dependencies import dependency_levels
from orchestrator.engines.zfs.plan.holds import plan_holds

Stages = tuple[tuple[Action, ...], ...]


def arrange_stages(case: PlanContext, dataset_plans: tuple[DatasetPlan, ...]) -> Stages:
    """Return the stages: bookmarks and holds; parents of the root; needed datasets by level; the rest; releases."""
    keep, let_go = plan_holds(case, dataset_plans)
    early = _early(dataset_plans)
    level_of = dependency_levels(
        early, {dataset_plan.name: _needs(dataset_plan) for dataset_plan in dataset_plans if dataset_plan.name in early}
    )
    stages: list[list[Action]] = [[] for _ in range(max(level_of.values(), default=-1) + 2)]
    for dataset_plan in dataset_plans:
        first = early.get(dataset_plan.name, 0)
        stages[level_of.get(dataset_plan.name, -1)] += dataset_plan.actions[:first]
        stages[-1] += dataset_plan.actions[first:]
    return (
        *(((keep,),) if keep.cursors or keep.holds or keep.between else ()),
        *(_above_root(case) if "" in level_of else ()),
        *(tuple(stage) for stage in stages if stage),
        *(((let_go,),) if let_go != ReleaseBases() else ()),
    )


def _early(dataset_plans: tuple[DatasetPlan, ...]) -> dict[str, int]:
    """Return the number of actions for which other plans wait: up to its first dataset or snapshot, or to a clone's base."""
    early = {dataset_plan.name: _first(dataset_plan) for dataset_plan in dataset_plans if dataset_plan.comes}
    by_name = {dataset_plan.name: dataset_plan for dataset_plan in dataset_plans}
    for action in (action for dataset_plan in dataset_plans for action in dataset_plan.actions):
        if isinstance(action, IncrementalSend) and action.origin is not None and isinstance(action.base, Snapshot):
            for place, one in enumerate(by_name[action.origin].actions, start=1):
                if brings_snapshot(one, action.base):
                    early[action.origin] = max(place, early.get(action.origin, 0))
    return {dataset_plan.name: early[dataset_plan.name] for dataset_plan in dataset_plans if dataset_plan.name in early}


def _first(dataset_plan: DatasetPlan) -> int:
    making = FullSend | IncrementalSend | ResumedSend | CreatePlaceholder
    return next(place for place, action in enumerate(dataset_plan.actions, start=1) if isinstance(action, making))


def _needs(dataset_plan: DatasetPlan) -> tuple[str, ...]:
    """Return the datasets that must exist before one can: its parent, and the origin of a clone."""
    parent = (parent_dataset(dataset_plan.name),) if dataset_plan.name else ()
    starts = (action.origin for action in dataset_plan.actions if isinstance(action, IncrementalSend))
    return (*parent, *(origin for origin in starts if origin is not None))


def _above_root(case: PlanContext) -> Stages:
    """Return stages that create missing empty datasets above the copy's root; each needs the one above it."""
    parts = case.world.target.root.path.split("/")
    above = ("/".join(parts[:length]) for length in range(1, len(parts)))
    return tuple(
        (CreatePlaceholder(dataset=name, above=True),) for name in above if name not in case.world.target.above
    )
