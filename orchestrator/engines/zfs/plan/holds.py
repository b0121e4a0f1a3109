"""Bookmarks and holds on the source for a later run: created before the sends, released after the confirmation.

A bookmark takes no room and remembers where the target may stand once a send has ended. What a cut stream still needs is
held: the snapshot of a first send or of a token, and in a stream of several those between, each of which may be the newest
that arrived. Why no bookmark for each of these: zfs makes many at once, but drops them one program at a time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from orchestrator.engines.zfs.model import (
    Bookmark,
    FullSend,
    IncrementalSend,
    KeepBases,
    LetGoBases,
    ResumedSend,
    Snapshot,
)
from orchestrator.engines.zfs.plan.context import Case
from orchestrator.engines.zfs.plan.dataset_plan import Lane
from orchestrator.engines.zfs.plan.hold_names import Keeper, cursor_keeper, cursor_name, held_keeper, keeper_of

_One = TypeVar("_One")


def keep_and_let_go(case: Case, lanes: Iterable[Lane]) -> tuple[KeepBases, LetGoBases]:
    """Return what to create first and what to release last; for a refused dataset, the record of its base stays."""
    keeper = keeper_of(case.world.target.pool_guid, case.world.target.root)
    parts = [_of_lane(case, lane, lane.end, keeper) for lane in lanes if lane.end is not None]
    keeps, drops = [keep for keep, _ in parts], [drop for _, drop in parts]
    keep = KeepBases(
        cursors=_all(one.cursors for one in keeps), holds=_all(one.holds for one in keeps),
        between=_all(one.between for one in keeps),
    )  # fmt: skip
    return keep, LetGoBases(
        cursors=_all(one.cursors for one in drops), holds=_all(one.holds for one in drops),
        between=_all(one.between for one in drops), older=_all(one.older for one in drops),
    )  # fmt: skip


def _all(parts: Iterable[tuple[_One, ...]]) -> tuple[_One, ...]:
    return tuple(chain.from_iterable(parts))


def _of_lane(case: Case, lane: Lane, end: Snapshot | Bookmark, keeper: Keeper) -> tuple[KeepBases, LetGoBases]:
    """Return the bookmarks and holds of one dataset: those to create, and those to release."""
    name, back = lane.name, case.world.returning is not None
    there = _cursors_there(case, name, keeper)
    # Nobody sends on from a copy that only came back from it.
    new = {one.guid: one for one in ([] if back else _marked(lane)) if one.guid not in there}
    if lane.refusal:
        return KeepBases(cursors=_named(name, new.values())), LetGoBases()
    made = {guid: _cursor(keeper, one) for guid, one in new.items()}
    old = [bookmark for guid, bookmark in (there | made).items() if guid != end.guid]
    held, older = _held(case, name, case.world.held), _held(case, name, case.world.held_older)
    needed = {deed.snapshot.guid: deed.snapshot for deed in lane.deeds if isinstance(deed, FullSend | ResumedSend)}
    inside = {one.guid: one for one in ([] if back else _between(case, lane)) if one.guid not in needed}
    left = {one.guid: one for one in _left_between(case, name, there.values()) if one.guid not in held | needed}
    keep = KeepBases(
        cursors=_named(name, new.values()), between=_named(name, inside.values()),
        holds=_named(name, (one for guid, one in needed.items() if guid not in held and guid not in older)),
    )  # fmt: skip
    return keep, LetGoBases(
        cursors=_named(name, (*old, *_held_in_vain(case, name, keeper))), between=_named(name, (left | inside).values()),
        holds=_named(name, (one for guid, one in (held | needed).items() if guid in held or guid not in older)),
        older=_named(name, older.values()),
    )  # fmt: skip


def _named(dataset: str, ones: Iterable[_One]) -> tuple[tuple[str, _One], ...]:
    return tuple((dataset, one) for one in ones)


def _marked(lane: Lane) -> list[Snapshot]:
    """Return the snapshot that the target holds now, and the one that it holds after each send."""
    now = [lane.base.base] if lane.base and isinstance(lane.base.base, Snapshot) else []
    return now + [deed.snapshot for deed in lane.deeds if isinstance(deed, FullSend | IncrementalSend | ResumedSend)]


def _between(case: Case, lane: Lane) -> list[Snapshot]:
    """Return the snapshots that streams of several snapshots bring before their last one."""
    several = (deed for deed in lane.deeds if isinstance(deed, IncrementalSend) and deed.between)
    return [one for deed in several for one in _inside(case, lane.name, deed.base, deed.snapshot)]


def _left_between(case: Case, name: str, cursors: Collection[Bookmark]) -> Sequence[Snapshot]:
    """Return the snapshots that an interrupted run may have held: all between the bookmarks that it left."""
    if len(cursors) < 2:
        return ()
    return _inside(case, name, min(cursors, key=_by_txg), max(cursors, key=_by_txg))


def _inside(case: Case, name: str, first: Snapshot | Bookmark, last: Snapshot | Bookmark) -> Sequence[Snapshot]:
    """Return the source's snapshots after `first` and before `last`."""
    snapshots = case.world.source.datasets[name].snapshots
    after = bisect_right(snapshots, first.createtxg, key=_by_txg)
    return snapshots[after : bisect_left(snapshots, last.createtxg, key=_by_txg)]


def _by_txg(one: Snapshot | Bookmark) -> int:
    return one.createtxg


def _cursors_there(case: Case, name: str, keeper: Keeper) -> dict[int, Bookmark]:
    """Return our bookmarks for this copy, by guid."""
    bookmarks = case.world.source.datasets[name].bookmarks
    return {one.guid: one for one in bookmarks if cursor_keeper(one.name) == keeper}


def _cursor(keeper: Keeper, snapshot: Snapshot) -> Bookmark:
    return Bookmark(name=cursor_name(keeper, snapshot.guid), guid=snapshot.guid, createtxg=snapshot.createtxg)


def _held(case: Case, name: str, held: Mapping[str, tuple[str, ...]]) -> dict[int, Snapshot]:
    """Return the snapshots of a dataset that a hold keeps, by guid."""
    names = frozenset(held.get(name, ()))
    if not names:
        return {}
    return {one.guid: one for one in case.world.source.datasets[name].snapshots if one.name in names}


def _held_in_vain(case: Case, name: str, keeper: Keeper) -> list[Bookmark]:
    """Return our hold bookmarks whose snapshot is gone: a run was killed before it placed the hold."""
    dataset, keepers = case.world.source.datasets[name], (keeper, Keeper(pool=keeper.pool))
    there = {snapshot.guid for snapshot in dataset.snapshots}
    return [mark for mark in dataset.bookmarks if held_keeper(mark.name) in keepers and mark.guid not in there]
