"""The check whether a clone's copy can be a clone too: the target must hold the origin's snapshot by then."""

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import SendFlags, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.dataset_plan import DatasetPlans, brings_snapshot
from orchestrator.engines.zfs.plan.divergence import refuse_waiting
from orchestrator.engines.zfs.plan.send_flags import frozen_flags


def find_clone_origin(
    case: PlanContext, name: str, done: DatasetPlans, origin: str | None
) -> tuple[Snapshot, SendFlags] | Refusal | None:
    """Return the origin's snapshot and the flags of its chain; None: the target will not hold the snapshot by then."""
    found = case.origin(name)
    if origin is None or found is None:
        return None
    dataset_plan, snapshot = done[origin], found[1]
    if not dataset_plan.moved and case.target_holds(origin, snapshot.guid):
        datasets = case.world.source.datasets[origin], case.world.target.datasets[origin]
        flags = frozen_flags(case, origin, *datasets)
        return flags if isinstance(flags, Refusal) else (snapshot, flags)
    if dataset_plan.flags and any(brings_snapshot(action, snapshot) for action in dataset_plan.actions):
        return snapshot, dataset_plan.flags
    if dataset_plan.refusal:
        names = case.source_name(name), case.source_name(origin)
        why = f"{names[0]} waits for its origin {names[1]}: sent without it, it would take its room twice"
        return refuse_waiting(why, dataset_plan.refusal)
    return None
