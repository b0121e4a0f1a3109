"""The limit of what streams bring through a gate, together: what is used when one begins, and all that comes meanwhile.

Each stream counts its bytes in one file of the gate before they pass, by a lock, so no number of streams at once brings more. What is used
when one begins may lack what those under way have brought: it is on its way yet. So with each stream the file holds the most that can be there,
less what had come by then: what is used and all that those under way have brought, or what one of them knows itself, if that is less. The
least of what those under way know counts.
"""

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# What came through the gate; then of each place whether its stream has begun and whether it knows a bound, what it brought, and the bound.
_CAME = struct.Struct("=q")
_STREAM = struct.Struct("=qqq")
_NONE, _BEGINS, _COUNTS = 0, 1, 2
_LOCK = struct.Struct("hhqqi4x")


def _path(state: str, gate: str) -> str:
    return f"{state}/gate-{gate}.bytes"


def open_counters(state: str, gate: str) -> int:
    """Return the open file in which a gate's streams count their bytes. Raises: OSError."""
    return os.open(_path(state, gate), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


@contextmanager
def place_taker(state: str, gate: str) -> Iterator[Callable[[int], None]]:
    """Keep streams from looking who is under way while a place is taken; yield what forgets the stream that had it before.

    As `hand-over.pl` does it. Where nothing was counted yet, there is nothing to forget.
    """
    try:
        counters = os.open(_path(state, gate), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield lambda _: None
        return
    try:
        fcntl.flock(counters, fcntl.LOCK_EX)
        yield lambda place: _write_stream(counters, place, _NONE, 0, 0)
    finally:
        os.close(counters)


class InputLimit:
    """The limit as one stream meets it. Made before it is looked how much is used, and begun with that.

    `counters`: the open file; `places`: the open file of the gate's places, of which this stream has the one of the number `place`.
    """

    def __init__(self, counters: int, places: int, place: int, *, at_most: int) -> None:
        self._counters, self._places, self._place, self._at_most = counters, places, place, at_most
        with self._alone():
            _write_stream(counters, place, _BEGINS, 0, 0)
            self._before = self._came()
            self._others = sum(brought for _, brought, _ in self._under_way())

    def begin(self, *, used: int) -> None:
        """Let it begin, with so many bytes used."""
        with self._alone():
            bounds = (bound for knows, _, bound in self._under_way() if knows == _COUNTS)
            bound = min((used + self._others - self._before, *bounds))
            _write_stream(self._counters, self._place, _COUNTS, 0, bound)

    def take(self, most: int) -> int:
        """Return how many of so many bytes may come; they count as come. After `begin`."""
        with self._alone():
            _, _, bound = self._read_stream(self._place)
            bounds = (other for knows, _, other in self._under_way() if knows == _COUNTS)
            count = max(0, min(most, self._at_most - self._came() - min((bound, *bounds))))
            self._count(count)
        return count

    def give_back(self, count: int) -> None:
        """Count bytes no more that were taken and did not come."""
        with self._alone():
            self._count(-count)

    def _count(self, count: int) -> None:
        knows, brought, bound = self._read_stream(self._place)
        os.pwrite(self._counters, _CAME.pack(self._came() + count), 0)
        _write_stream(self._counters, self._place, knows, brought + count, bound)

    def _came(self) -> int:
        read = os.pread(self._counters, _CAME.size, 0)
        return int(_CAME.unpack(read)[0]) if len(read) == _CAME.size else 0

    def _under_way(self) -> Iterator[tuple[int, int, int]]:
        """Yield what the other streams under way brought and know. A place that a question has now, has none."""
        places = (os.fstat(self._counters).st_size - _CAME.size) // _STREAM.size
        for place in range(places):
            stream = self._read_stream(place)
            if stream[0] != _NONE and self._is_taken(place):
                yield stream

    def _is_taken(self, place: int) -> bool:
        """Return whether another request has this place."""
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
        return int(_LOCK.unpack(fcntl.fcntl(self._places, fcntl.F_OFD_GETLK, asked))[0]) != fcntl.F_UNLCK

    def _read_stream(self, place: int) -> tuple[int, int, int]:
        read = os.pread(self._counters, _STREAM.size, _CAME.size + place * _STREAM.size)
        return _STREAM.unpack(read) if len(read) == _STREAM.size else (_NONE, 0, 0)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.flock(self._counters, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._counters, fcntl.LOCK_UN)


def _write_stream(counters: int, place: int, knows: int, brought: int, bound: int) -> None:
    os.pwrite(counters, _STREAM.pack(knows, brought, bound), _CAME.size + place * _STREAM.size)
