"""The entries of a source as a look listed them, kept until the run that follows records them for the next look."""

from collections.abc import Iterator

from orchestrator.engines.rsync.look_record import PackedEntries, mark_young, pack_entries


class SourceFrames:
    """The frames of a source's listing, in its order: those that are as the last record has them by their place there, others packed.

    Why not from a listing after the copy: an entry that changed meanwhile is listed otherwise then, so the next look sees it. `limit_ns`:
    from which time of change an entry is young.
    """

    def __init__(self, limit_ns: int) -> None:
        self._limit_ns = limit_ns
        # Whether it stands for a recorded frame; None: it is as that.
        self._frames: list[tuple[bool, PackedEntries | None]] = []

    def keep_recorded(self) -> None:
        """Keep the next frame of the record as it is."""
        self._frames.append((True, None))  # what is as recorded is no younger than it was then

    def keep(self, entries: list[bytes], *, recorded: bool) -> None:
        """Keep entries. `recorded`: in place of the next frame of the record."""
        if entries:
            self._frames.append((recorded, pack_entries(mark_young(entries, self._limit_ns))))
        elif recorded:
            self._frames.append((True, pack_entries([])))

    def packed(self, recorded: Iterator[PackedEntries]) -> Iterator[PackedEntries]:
        """Yield all frames as the next record has them. `recorded`: those of the last one. Raises: RecordUnusable · OSError."""
        for in_place, frame in self._frames:
            older = next(recorded) if in_place else None
            if frame is None and older is not None:
                yield older
            elif frame is not None and frame.count:
                yield frame
