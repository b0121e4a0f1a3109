"""Counts a stream by what passes between its first two programs, and hears how large it will be."""

_ABSURD = 1 << 60


class ZfsMeter:
    """`zfs send -P` tells the size on stderr, in lines of its own; what passes is counted outside of any program."""

    def __init__(self) -> None:
        self._expected: int | None = None
        self._moved: int | None = None
        self._rest = b""

    def feed(self, _chunk: bytes) -> int | None:
        """`zfs receive` tells nothing of its progress."""
        return None

    def heard(self, chunk: bytes) -> None:
        """Takes the size from a line "size N"; what the other programs say may stand between, and lines may be cut."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-64:]
        for line in lines:
            word, _, number = line.partition(b"\t")
            if word == b"size" and number.isdigit() and int(number) < _ABSURD:
                self._expected = int(number)

    def passed(self, count: int) -> int:
        """Bytes that went from the sender on."""
        self._moved = count
        return count

    @property
    def expected(self) -> int | None:
        """What the sender said it would send; None: it did not, or said nonsense."""
        return self._expected

    def moved(self) -> int | None:
        """Bytes that travelled; None: nobody counted."""
        return self._moved
