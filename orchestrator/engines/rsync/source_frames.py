"""The entries of a source as a look listed them, kept until the run that follows records them for the next look."""

import weakref
from collections.abc import Iterator
from typing import IO

from orchestrator.engines.rsync.look_record import PackedEntries, mark_young, pack_content
from orchestrator.process.background import nameless_file


class SourceFrames:
    """The frames of a source's listing, in its order: those that are as the last record has them by their place there, others in a file.

    Why not from a listing after the copy: an entry that changed meanwhile is listed otherwise then, so the next look sees it. `folder`:
    holds that file, which has no name.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._frames: list[
            tuple[bool, int, int, int]
        ] = []  # stands for a recorded frame; begin, bytes, entries; 0 bytes: as recorded
        self._end = 0

    def keep_recorded(self) -> None:
        """Keep the next frame of the record as it is."""
        self._frames.append((True, 0, 0, -1))

    def keep(self, content: bytes, entries: int, *, recorded: bool) -> None:
        """Keep entries with NUL between them. `recorded`: in place of the next frame of the record. Raises: OSError."""
        if self._file is None:
            self._file = nameless_file(self._folder)
            weakref.finalize(self, self._file.close)
        self._file.write(content)
        self._frames.append((recorded, self._end, len(content), entries))
        self._end += len(content)

    def packed(self, recorded: Iterator[PackedEntries], limit_ns: int) -> Iterator[PackedEntries]:
        """Yield all frames as the next record has them. `limit_ns`: from which time of change an entry is young. Raises: OSError."""
        for in_place, begin, size, entries in self._frames:
            older = next(recorded) if in_place else None
            if entries < 0 and older is not None:
                yield older  # what is as recorded is no younger than it was then
            elif entries and self._file is not None:
                self._file.seek(begin)
                listed = self._file.read(size).split(b"\0")
                yield pack_content(b"\0".join(mark_young(listed, limit_ns)), entries)
