"""Bookmarks and holds on the source that keep what a later run goes on from: made before the sends, let go after the proof. Pure."""

from collections.abc import Iterable

from orchestrator.engines.zfs.case import Case
from orchestrator.engines.zfs.lane import Lane
from orchestrator.engines.zfs.words import (
    Bookmark,
    FullSend,
    IncrementalSend,
    KeepBases,
    LetGoBases,
    ResumedSend,
    Snapshot,
    cursor_name,
    cursor_pool,
    held_pool,
)


def keep_and_let_go(case: Case, lanes: Iterable[Lane]) -> tuple[KeepBases, LetGoBases]:
    """What to make first and what to drop last, for all datasets that are not refused."""
    cursors: list[tuple[str, Snapshot]] = []
    holds: list[tuple[str, Snapshot]] = []
    old: list[tuple[str, Bookmark]] = []
    released: list[tuple[str, Snapshot]] = []
    for lane in lanes:
        if lane.refusal or lane.end is None:
            continue
        ours = _cursors_there(case, lane.name)
        new = {one.guid: one for one in _marked(lane) if one.guid not in ours}
        cursors += [(lane.name, one) for one in new.values()]
        ours |= {guid: _cursor(case, one) for guid, one in new.items()}
        old += [(lane.name, bookmark) for guid, bookmark in ours.items() if guid != lane.end.guid]
        old += [(lane.name, mark) for mark in _held_in_vain(case, lane.name)]
        held = _held(case, lane.name)
        needed = {deed.snapshot.guid: deed.snapshot for deed in lane.deeds if isinstance(deed, FullSend | ResumedSend)}
        holds += [(lane.name, one) for one in needed.values() if one.guid not in held]
        released += [(lane.name, one) for one in (held | needed).values()]
    return KeepBases(cursors=tuple(cursors), holds=tuple(holds)), LetGoBases(cursors=tuple(old), holds=tuple(released))


def _marked(lane: Lane) -> list[Snapshot]:
    """Where the target will stand after each send, and where it stands now."""
    ends = [deed.snapshot for deed in lane.deeds if isinstance(deed, FullSend | IncrementalSend | ResumedSend)]
    now = [lane.base.base] if lane.base and isinstance(lane.base.base, Snapshot) else []
    return now + ends


def _cursors_there(case: Case, name: str) -> dict[int, Bookmark]:
    """Our bookmarks for this target, by guid."""
    pool = case.world.target.pool_guid
    bookmarks = case.world.source.datasets[name].bookmarks
    return {one.guid: one for one in bookmarks if cursor_pool(one.name) == pool}


def _cursor(case: Case, snapshot: Snapshot) -> Bookmark:
    name = cursor_name(case.world.target.pool_guid, snapshot.guid)
    return Bookmark(name=name, guid=snapshot.guid, createtxg=snapshot.createtxg)


def _held(case: Case, name: str) -> dict[int, Snapshot]:
    """Snapshots that our hold for this target keeps."""
    names = frozenset(case.world.held.get(name, ()))
    if not names:
        return {}
    return {one.guid: one for one in case.world.source.datasets[name].snapshots if one.name in names}


def _held_in_vain(case: Case, name: str) -> list[Bookmark]:
    """What tells of a hold for this target whose snapshot is gone all the same: a run was killed before it held it."""
    pool, dataset = case.world.target.pool_guid, case.world.source.datasets[name]
    there = {snapshot.guid for snapshot in dataset.snapshots}
    return [mark for mark in dataset.bookmarks if held_pool(mark.name) == pool and mark.guid not in there]
