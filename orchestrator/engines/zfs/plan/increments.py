"""The increments to send: the newest snapshot that both sides hold, the snapshots after it, and the fewest sends that carry these.

Snapshots are known by guid, not by name; createtxg orders those of one side only.
"""

from collections.abc import Iterator, Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.zfs.model import (
    Bookmark,
    Dataset,
    FullSend,
    IncrementalSend,
    ReceiveEncryption,
    Send,
    SendFlags,
    Snapshot,
)
from orchestrator.engines.zfs.plan.context import PlanContext


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSnapshot:
    """The base of an increment: `base` on the source, `there` the same snapshot on the target.

    `own`: the target's snapshots after it, oldest first; the source holds none of them.
    """

    base: Snapshot | Bookmark
    there: Snapshot
    own: tuple[Snapshot, ...] = ()

    def __str__(self) -> str:
        renamed = self.base.name != self.there.name and isinstance(self.base, Snapshot)
        target = f", {self.there.mark} on the target" if renamed else ""
        if isinstance(self.base, Bookmark):
            return (
                f"newest snapshot of the target that the source knows is {self.there.mark} (guid {self.there.guid}), "
                f"there only as bookmark {self.base.mark}"
            )
        return f"newest snapshot both sides hold is {self.base.mark} (guid {self.base.guid}{target})"


def find_common_snapshot(source: Dataset, target: Dataset) -> CommonSnapshot | None:
    """Return the target's newest snapshot that the source also holds, as a snapshot or a bookmark."""
    newest = target.newest
    if newest is not None and source.newest is not None and source.newest.guid == newest.guid:
        return CommonSnapshot(base=source.newest, there=newest)
    known: dict[int, Snapshot | Bookmark] = {bookmark.guid: bookmark for bookmark in source.bookmarks}
    known.update((snapshot.guid, snapshot) for snapshot in source.snapshots)
    for place in range(len(target.snapshots) - 1, -1, -1):
        there = target.snapshots[place]
        if there.guid in known:
            return CommonSnapshot(base=known[there.guid], there=there, own=target.snapshots[place + 1 :])
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSnapshots:
    """The source's snapshots after a base: `all` of them, and those `picked` to be sent, oldest first."""

    all: tuple[Snapshot, ...]
    picked: tuple[Snapshot, ...]


def choose_snapshots(case: PlanContext, source: Dataset, base: Snapshot | Bookmark | None) -> PendingSnapshots:
    """Return the snapshots to send after the base; without a base, from the beginning."""
    after = source.snapshots
    if base is not None:
        if after and after[-1].createtxg <= base.createtxg:
            return PendingSnapshots(all=(), picked=())
        after = tuple(snapshot for snapshot in after if snapshot.createtxg > base.createtxg)
    fitting = tuple(snapshot for snapshot in after if case.fits(snapshot))
    return PendingSnapshots(all=after, picked=_thinned(case, fitting))


def _thinned(case: PlanContext, fitting: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Return the snapshots that the catch-up mode selects; the newest is always one of them."""
    way, retain = case.options.catch_up, case.requested.retain
    if way == "newest":
        return fitting[-1:]
    if way != "kept" or retain is None:
        return fitting
    created = case.world.created
    dated = tuple((one.name, created[one.guid]) for one in fitting if one.guid in created)
    kept = retain(dated) | {one.name for one in fitting if one.guid not in created}
    return tuple(one for one in fitting if one.name in kept or one is fitting[-1])


def plan_sends(
    dataset: str, ahead: PendingSnapshots, base: Snapshot | Bookmark | None, flags: SendFlags, why: str, *, origin: str | None = None,
    encryption: ReceiveEncryption | None = None,
) -> Iterator[Send]:  # fmt: skip
    """Yield the fewest sends: -I where all snapshots between are picked; -i across gaps, from a bookmark or a clone's origin.

    Why: `zfs send -I` starts from no bookmark.
    """
    for near, run in _runs(ahead):
        if near and origin is None and isinstance(base, Snapshot):
            yield _increment(dataset, base, run, flags, why)
        else:
            if base is None:
                yield FullSend(dataset=dataset, snapshot=run[0], flags=flags, why=why, encryption=encryption)
            else:
                yield _increment(dataset, base, run[:1], flags, why, origin)
            if len(run) > 1:
                yield _increment(dataset, run[0], run[1:], flags, _by_then(run[0]))
        base, origin, why = run[-1], None, _by_then(run[-1])


def _increment(
    dataset: str,
    base: Snapshot | Bookmark,
    run: Sequence[Snapshot],
    flags: SendFlags,
    why: str,
    origin: str | None = None,
) -> IncrementalSend:
    return IncrementalSend(
        dataset=dataset, base=base, snapshot=run[-1], between=len(run) > 1, flags=flags, why=why, origin=origin
    )


def _by_then(snapshot: Snapshot) -> str:
    return f"{snapshot.mark} (guid {snapshot.guid}) is there by then"


def _runs(ahead: PendingSnapshots) -> Iterator[tuple[bool, list[Snapshot]]]:
    """Yield (near, run) for each run of picked snapshots without a gap; `near`: no other snapshot precedes it."""
    picked = {snapshot.guid for snapshot in ahead.picked}
    run: list[Snapshot] = []
    near = True
    for snapshot in ahead.all:
        if snapshot.guid in picked:
            run.append(snapshot)
            continue
        if run:
            yield near, run
        run, near = [], False
    if run:
        yield near, run
