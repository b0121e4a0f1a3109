"""The check whether a clone's copy can be a clone too: the target must hold the origin's snapshot by then."""

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import Flags, Snapshot
from orchestrator.engines.zfs.plan.context import Case
from orchestrator.engines.zfs.plan.dataset_plan import Lanes, carries
from orchestrator.engines.zfs.plan.divergence import refuse_waiting
from orchestrator.engines.zfs.plan.send_flags import frozen_flags


def clone_start(case: Case, name: str, done: Lanes, origin: str | None) -> tuple[Snapshot, Flags] | Refusal | None:
    """Return the origin's snapshot and the flags of its chain; None: the target will not hold the snapshot by then."""
    found = case.origin(name)
    if origin is None or found is None:
        return None
    lane, snapshot = done[origin], found[1]
    if not lane.moved and case.target_holds(origin, snapshot.guid):
        datasets = case.world.source.datasets[origin], case.world.target.datasets[origin]
        flags = frozen_flags(case, origin, *datasets)
        return flags if isinstance(flags, Refusal) else (snapshot, flags)
    if lane.flags and any(carries(deed, snapshot) for deed in lane.deeds):
        return snapshot, lane.flags
    if lane.refusal:
        names = case.source_name(name), case.source_name(origin)
        why = f"{names[0]} waits for its origin {names[1]}: sent without it, it would take its room twice"
        return refuse_waiting(why, lane.refusal)
    return None
