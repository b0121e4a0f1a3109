"""The text of a listing as it comes, compared frame by frame with a record, and cut into entries only where it differs."""

from collections.abc import Iterator

from orchestrator.engines.rsync.look_record import PackedEntries


class ListingText:
    """A listing that is read as it comes. `pieces`: its text, cut anywhere; behind each entry is a NUL."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._held = pieces, b""

    def passes(self, frame: PackedEntries) -> bool:
        """Return whether the next entries are those of a frame, and pass over them then; else none is taken."""
        parts, size = [self._held], len(self._held)
        while size <= frame.size and (piece := next(self._pieces, b"")):
            parts.append(piece)
            size += len(piece)
        self._held = b"".join(parts)
        same = self._held[frame.size : frame.size + 1] == b"\0" and frame.is_as(self._held[: frame.size])
        if same:
            self._held = self._held[frame.size + 1 :]
        return same

    def take(self, count: int) -> list[bytes]:
        """Take so many entries, or what is left."""
        parts, known = [self._held], self._held.count(b"\0")
        while known < count and (piece := next(self._pieces, b"")):
            parts.append(piece)
            known += piece.count(b"\0")
        *entries, self._held = b"".join(parts).split(b"\0", count)
        if known < count and self._held:  # one without its end
            entries.append(self._held)
            self._held = b""
        return entries
