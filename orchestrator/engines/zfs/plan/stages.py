"""The order of datasets, parents before children and origins before clones, and the stages of a plan.

One stage runs after the other, the datasets of one stage in parallel.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

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
from orchestrator.engines.zfs.plan.holds import plan_holds


def order_datasets(names: tuple[str, ...], origins: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the datasets, each after its parent and after its origin; and the origins that could be kept.

    In a cycle (a dataset that is a clone of a dataset below itself) one clone loses its origin: it is sent in full.
    """
    kept = dict(origins)
    return (_sorted(names, kept), kept) if kept else (names, kept)


def _sorted(names: tuple[str, ...], origins: dict[str, str]) -> tuple[str, ...]:
    """Sort the datasets: repeatedly take those that wait for no other; break a cycle when all others wait."""
    waits = {name: _before(name, origins) for name in names}
    followers: dict[str, list[str]] = {name: [] for name in names}
    for name, before in waits.items():
        for other in before:
            followers[other].append(name)
    ready = deque(name for name in names if not waits[name])
    order: list[str] = []
    while len(order) < len(names):
        while not ready:
            clone = _break_circle(waits, origins)
            if not waits[clone]:
                ready.append(clone)
        name = ready.popleft()
        order.append(name)
        for follower in followers[name]:
            if name in waits[follower]:
                waits[follower].remove(name)
                if not waits[follower]:
                    ready.append(follower)
    return tuple(order)


def _before(name: str, origins: Mapping[str, str]) -> set[str]:
    return ({parent_dataset(name)} if name else set()) | ({origins[name]} if name in origins else set())


def _break_circle(waits: dict[str, set[str]], origins: dict[str, str]) -> str:
    """Find a cycle of waiting datasets, remove the origin of one clone in it, and return that clone."""
    walk: dict[str, None] = {}
    name = next(name for name, before in waits.items() if before)
    while name not in walk:
        walk[name] = None
        name = min(waits[name])
    circle = [*list(walk)[list(walk).index(name) :], name]
    clone, origin = next(
        (one, other)
        for one, other in pairwise(circle)
        if origins.get(one) == other and (not one or parent_dataset(one) != other)
    )
    del origins[clone]
    waits[clone].discard(origin)
    return clone


def dependency_levels(order: Iterable[str], needs: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return the level of each dataset: one above the highest that it needs. `order`: needed ones come first."""
    level: dict[str, int] = {}
    for name in order:
        level[name] = 1 + max((level[other] for other in needs[name] if other in level), default=-1)
    return level


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
