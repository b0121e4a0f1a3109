"""The stages of a plan: one stage after the other, the datasets of one stage in parallel."""

from orchestrator.engines.zfs.model import (
    Deed,
    FullSend,
    IncrementalSend,
    LetGoBases,
    MakePlaceholder,
    ResumedSend,
    Snapshot,
)
from orchestrator.engines.zfs.plan.context import Case, parent_of
from orchestrator.engines.zfs.plan.dataset_plan import Lane, carries
from orchestrator.engines.zfs.plan.dependencies import levels
from orchestrator.engines.zfs.plan.holds import keep_and_let_go

Stages = tuple[tuple[Deed, ...], ...]


def put_in_stages(case: Case, lanes: tuple[Lane, ...]) -> Stages:
    """Return the stages: bookmarks and holds; parents of the root; needed datasets by level; the rest; releases."""
    keep, let_go = keep_and_let_go(case, lanes)
    early = _early(lanes)
    level_of = levels(early, {lane.name: _needs(lane) for lane in lanes if lane.name in early})
    stages: list[list[Deed]] = [[] for _ in range(max(level_of.values(), default=-1) + 2)]
    for lane in lanes:
        first = early.get(lane.name, 0)
        stages[level_of.get(lane.name, -1)] += lane.deeds[:first]
        stages[-1] += lane.deeds[first:]
    return (
        *(((keep,),) if keep.cursors or keep.holds or keep.between else ()),
        *(_above_root(case) if "" in level_of else ()),
        *(tuple(stage) for stage in stages if stage),
        *(((let_go,),) if let_go != LetGoBases() else ()),
    )


def _early(lanes: tuple[Lane, ...]) -> dict[str, int]:
    """Return how many actions of a plan others wait for: up to its first dataset or snapshot, or to a clone's base."""
    early = {lane.name: _first(lane) for lane in lanes if lane.comes}
    by_name = {lane.name: lane for lane in lanes}
    for deed in (deed for lane in lanes for deed in lane.deeds):
        if isinstance(deed, IncrementalSend) and deed.origin is not None and isinstance(deed.base, Snapshot):
            for place, one in enumerate(by_name[deed.origin].deeds, start=1):
                if carries(one, deed.base):
                    early[deed.origin] = max(place, early.get(deed.origin, 0))
    return {lane.name: early[lane.name] for lane in lanes if lane.name in early}


def _first(lane: Lane) -> int:
    making = FullSend | IncrementalSend | ResumedSend | MakePlaceholder
    return next(place for place, deed in enumerate(lane.deeds, start=1) if isinstance(deed, making))


def _needs(lane: Lane) -> tuple[str, ...]:
    """Return the datasets that must exist before one can: its parent, and the origin of a clone."""
    parent = (parent_of(lane.name),) if lane.name else ()
    starts = (deed.origin for deed in lane.deeds if isinstance(deed, IncrementalSend))
    return (*parent, *(origin for origin in starts if origin is not None))


def _above_root(case: Case) -> Stages:
    """Return stages that create missing empty datasets above the copy's root; each needs the one above it."""
    parts = case.world.target.root.path.split("/")
    above = ("/".join(parts[:length]) for length in range(1, len(parts)))
    return tuple((MakePlaceholder(dataset=name, above=True),) for name in above if name not in case.world.target.above)
