"""Bookmarks and holds on the source for a later run: created before the sends, released after the confirmation.

A bookmark takes no space and records the state that the target may have after a send. A hold keeps the snapshots that an
interrupted stream still needs: that of a first send or of a token, and in a stream of several snapshots those between, each of
which may be the newest received one. Why no bookmark for each of these: zfs creates many at once, but destroys one per command.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from orchestrator.engines.zfs.model import (
    Bookmark,
    FullSend,
    HoldBases,
    IncrementalSend,
    ReleaseBases,
    ResumedSend,
    Snapshot,
)
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.dataset_plan import DatasetPlan
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    fits_bookmark,
    parse_cursor_bookmark,
    parse_hold_bookmark,
    replication_target_id,
)

_One = TypeVar("_One")
NO_BOOKMARKS = "no-bookmarks"  # allowed: change nothing on a source that takes no bookmark, and copy it all the same


def plan_holds(case: PlanContext, dataset_plans: Iterable[DatasetPlan]) -> tuple[HoldBases, ReleaseBases]:
    """Return the bookmarks and holds to create first and to release last; a refused dataset keeps the record of its base.

    None at all for a source that takes none: then the older ones stay, too, as no newer one replaces them.
    """
    if NO_BOOKMARKS in case.requested.allowed:
        return HoldBases(), ReleaseBases()
    target_id = replication_target_id(case.world.target.pool_guid, case.world.target.root)
    parts = [
        _of_dataset(case, dataset_plan, dataset_plan.end, target_id)
        for dataset_plan in dataset_plans
        if dataset_plan.end is not None
    ]
    keeps, drops = [keep for keep, _ in parts], [drop for _, drop in parts]
    keep = HoldBases(
        cursors=_all(one.cursors for one in keeps), holds=_all(one.holds for one in keeps),
        between=_all(one.between for one in keeps),
    )  # fmt: skip
    return keep, ReleaseBases(
        cursors=_all(one.cursors for one in drops), holds=_all(one.holds for one in drops),
        between=_all(one.between for one in drops), older=_all(one.older for one in drops),
    )  # fmt: skip


def _all(parts: Iterable[tuple[_One, ...]]) -> tuple[_One, ...]:
    return tuple(chain.from_iterable(parts))


def _of_dataset(
    case: PlanContext, dataset_plan: DatasetPlan, end: Snapshot | Bookmark, target_id: ReplicationTargetId
) -> tuple[HoldBases, ReleaseBases]:
    """Return the bookmarks and holds of one dataset: those to create, and those to release."""
    name, back = dataset_plan.name, case.world.returning is not None
    if not fits_bookmark(case.source_name(name)):
        return HoldBases(), ReleaseBases()  # a hold that no bookmark records would never be found again
    there = _cursors_there(case, name, target_id)
    # A restored dataset is no base for further sends to the copy that it came from.
    new = {one.guid: one for one in ([] if back else _cursors_needed(dataset_plan)) if one.guid not in there}
    if dataset_plan.refusal:
        return HoldBases(cursors=_named(name, new.values())), ReleaseBases()
    made = {guid: _cursor(target_id, one) for guid, one in new.items()}
    old = [bookmark for guid, bookmark in (there | made).items() if guid != end.guid]
    held, older = _held_snapshots(case, name, case.world.held), _held_snapshots(case, name, case.world.held_older)
    needed = {
        action.snapshot.guid: action.snapshot
        for action in dataset_plan.actions
        if isinstance(action, FullSend | ResumedSend)
    }
    inside = {one.guid: one for one in ([] if back else _between(case, dataset_plan)) if one.guid not in needed}
    left = {one.guid: one for one in _left_between(case, name, there.values()) if one.guid not in held | needed}
    keep = HoldBases(
        cursors=_named(name, new.values()), between=_named(name, inside.values()),
        holds=_named(name, (one for guid, one in needed.items() if guid not in held and guid not in older)),
    )  # fmt: skip
    return keep, ReleaseBases(
        cursors=_named(name, (*old, *_holds_without_snapshot(case, name, target_id))), between=_named(name, (left | inside).values()),
        holds=_named(name, (one for guid, one in (held | needed).items() if guid in held or guid not in older)),
        older=_named(name, older.values()),
    )  # fmt: skip


def _named(dataset: str, ones: Iterable[_One]) -> tuple[tuple[str, _One], ...]:
    return tuple((dataset, one) for one in ones)


def _cursors_needed(dataset_plan: DatasetPlan) -> list[Snapshot]:
    """Return the snapshot that the target holds now, and the one that it holds after each send."""
    now = [dataset_plan.base.base] if dataset_plan.base and isinstance(dataset_plan.base.base, Snapshot) else []
    return now + [
        action.snapshot
        for action in dataset_plan.actions
        if isinstance(action, FullSend | IncrementalSend | ResumedSend)
    ]


def _between(case: PlanContext, dataset_plan: DatasetPlan) -> list[Snapshot]:
    """Return the snapshots that streams of several snapshots send before their last one."""
    several = (action for action in dataset_plan.actions if isinstance(action, IncrementalSend) and action.between)
    return [one for action in several for one in _inside(case, dataset_plan.name, action.base, action.snapshot)]


def _left_between(case: PlanContext, name: str, cursors: Collection[Bookmark]) -> Sequence[Snapshot]:
    """Return the snapshots that an interrupted run may have held: all between the bookmarks that it left."""
    if len(cursors) < 2:
        return ()
    return _inside(case, name, min(cursors, key=_by_txg), max(cursors, key=_by_txg))


def _inside(case: PlanContext, name: str, first: Snapshot | Bookmark, last: Snapshot | Bookmark) -> Sequence[Snapshot]:
    """Return the source's snapshots after `first` and before `last`."""
    snapshots = case.world.source.datasets[name].snapshots
    after = bisect_right(snapshots, first.createtxg, key=_by_txg)
    return snapshots[after : bisect_left(snapshots, last.createtxg, key=_by_txg)]


def _by_txg(one: Snapshot | Bookmark) -> int:
    return one.createtxg


def _cursors_there(case: PlanContext, name: str, target_id: ReplicationTargetId) -> dict[int, Bookmark]:
    """Return our bookmarks for this copy, by guid."""
    bookmarks = case.world.source.datasets[name].bookmarks
    return {one.guid: one for one in bookmarks if parse_cursor_bookmark(one.name) == target_id}


def _cursor(target_id: ReplicationTargetId, snapshot: Snapshot) -> Bookmark:
    return Bookmark(
        name=cursor_bookmark_name(target_id, snapshot.guid), guid=snapshot.guid, createtxg=snapshot.createtxg
    )


def _held_snapshots(case: PlanContext, name: str, held: Mapping[str, tuple[str, ...]]) -> dict[int, Snapshot]:
    """Return the snapshots of a dataset that a hold keeps, by guid."""
    names = frozenset(held.get(name, ()))
    if not names:
        return {}
    return {one.guid: one for one in case.world.source.datasets[name].snapshots if one.name in names}


def _holds_without_snapshot(case: PlanContext, name: str, target_id: ReplicationTargetId) -> list[Bookmark]:
    """Return our hold bookmarks whose snapshot is gone: a run was killed before it placed the hold."""
    dataset, target_ids = case.world.source.datasets[name], (target_id, ReplicationTargetId(pool=target_id.pool))
    there = {snapshot.guid for snapshot in dataset.snapshots}
    return [
        mark for mark in dataset.bookmarks if parse_hold_bookmark(mark.name) in target_ids and mark.guid not in there
    ]
