"""The large files among what rsync's look says is copied: those that may have holes worth a limit, or are worth a program of ours."""

import heapq
from collections.abc import Callable

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.rsync.model import LARGE_FILE

MOST_LARGE = 20_000  # files that are remembered by name, the largest; a name may take 4 KiB
LEAST_HOLEY = 1 << 20  # bytes; a smaller file is not looked at for holes


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeFiles:
    """The paths of large files: those that are read and copied, and those that the newest copy lacks, be it only as a name.

    `largest`: those of at least `LARGE_FILE` bytes that are copied, each with its bytes.
    """

    copied: frozenset[bytes]
    new: frozenset[bytes]
    largest: tuple[tuple[bytes, int], ...] = ()


class LargeFilesReader:
    """A collector of the large files of a look; its memory use does not grow with their number."""

    def __init__(self, parse_name: Callable[[bytes], bytes]) -> None:
        self._parse_name = parse_name
        self._first: list[tuple[int, bytes, bytes]] = []  # a heap: size, name, item

    def note(self, item: bytes, size: int, name: bytes) -> int:
        """Remember a file by what rsync's look says of it; return how many bytes of it are copied."""
        copied = item[0:1] in (b">", b"<")
        if size >= LEAST_HOLEY and (copied or item[2:3] == b"+"):
            heapq.heappush(self._first, (size, name, item))
            if len(self._first) > MOST_LARGE:
                heapq.heappop(self._first)
        return size if copied else 0

    def files(self) -> LargeFiles:
        """Return the largest of them."""
        copied = [(self._parse_name(name), size) for size, name, item in self._first if item[0:1] in (b">", b"<")]
        return LargeFiles(
            copied=frozenset(name for name, _ in copied),
            largest=tuple(sorted(each for each in copied if each[1] >= LARGE_FILE)),
            new=frozenset(self._parse_name(name) for _, name, item in self._first if item[2:3] == b"+"),
        )
