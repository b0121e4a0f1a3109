"""The limit of what streams bring through a gate, together: what is used when one begins, and all that comes meanwhile.

Each stream counts its bytes in one file of the gate before they pass, by a lock, so no number of streams at once brings more. What another
one brought before this one began counts whole, though some of it is in what is used: rather too much than too little, near the limit alone.
"""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_NUMBER = struct.Struct("=Q")
_LOCK = struct.Struct("hhqqi4x")


def open_counters(state: str, gate: str) -> int:
    """Return the open file in which a gate's streams count their bytes. Raises: OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(f"{state}/gate-{gate}.bytes", flags, 0o600)


class InputLimit:
    """The limit as one stream meets it. Begun before it is looked how much is used; `used`: that, in bytes, once it is known.

    `counters`: the open file; `places`: the open file of the gate's places, of which this stream has the one of the number `place`.
    """

    def __init__(self, counters: int, places: int, place: int, *, at_most: int) -> None:
        self.used = 0
        self._counters, self._places, self._place, self._at_most = counters, places, place, at_most
        with self._alone():
            self._write(1 + place, 0)  # of who had this place before
            self._before = self._read(0)
            self._others = sum(self._read(1 + each) for each in range(self._places_known()) if self._is_taken(each))

    def take(self, most: int) -> int:
        """Return how many of so many bytes may come; they count as come."""
        with self._alone():
            came = self._read(0)
            count = max(0, min(most, self._at_most - self.used - self._others - (came - self._before)))
            self._count(came, count)
        return count

    def give_back(self, count: int) -> None:
        """Count bytes no more that were taken and did not come."""
        with self._alone():
            self._count(self._read(0), -count)

    def _count(self, came: int, count: int) -> None:
        self._write(0, came + count)
        self._write(1 + self._place, self._read(1 + self._place) + count)

    def _places_known(self) -> int:
        return os.fstat(self._counters).st_size // _NUMBER.size - 1

    def _is_taken(self, place: int) -> bool:
        """Return whether another stream has this place."""
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
        return int(_LOCK.unpack(fcntl.fcntl(self._places, fcntl.F_OFD_GETLK, asked))[0]) != fcntl.F_UNLCK

    def _read(self, number: int) -> int:
        read = os.pread(self._counters, _NUMBER.size, number * _NUMBER.size)
        return int(_NUMBER.unpack(read)[0]) if len(read) == _NUMBER.size else 0

    def _write(self, number: int, value: int) -> None:
        os.pwrite(self._counters, _NUMBER.pack(max(0, value)), number * _NUMBER.size)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.flock(self._counters, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._counters, fcntl.LOCK_UN)
