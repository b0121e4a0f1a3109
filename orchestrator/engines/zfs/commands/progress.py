"""The byte count of a stream, taken between its first two programs, and its announced size."""

_ABSURD = 1 << 60


class ZfsMeter:
    """The progress of a zfs stream: the size from `zfs send -P` on stderr, and bytes counted outside of any program."""

    def __init__(self) -> None:
        self._expected: int | None = None
        self._moved: int | None = None
        self._rest = b""

    def feed(self, _chunk: bytes) -> int | None:
        """Return None: `zfs receive` reports no progress."""
        return None

    def heard(self, chunk: bytes) -> None:
        """Parse the size from a line "size N"; messages of other programs may come between, and lines may be split."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-64:]
        for line in lines:
            word, _, number = line.partition(b"\t")
            if word == b"size" and number.isdigit() and int(number) < _ABSURD:
                self._expected = int(number)

    def passed(self, count: int) -> int:
        """Record the bytes that left the sender, and return them."""
        self._moved = count
        return count

    @property
    def expected(self) -> int | None:
        """Return the size that the sender announced; None: it announced none, or an impossible one."""
        return self._expected

    def moved(self) -> int | None:
        """Return the bytes that were transferred; None: they were not counted."""
        return self._moved
