"""The search for the newest snapshot that both sides hold: by guid, not by name; createtxg orders one side only."""

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.zfs.model import Bookmark, Dataset, Snapshot


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
