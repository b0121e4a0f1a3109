"""Names in a copy that share a file which the source has apart: of a tree of any size, in a memory that does not grow with it."""

import weakref
from collections.abc import Iterator

from orchestrator.process.background import nameless_file
from orchestrator.verify.build import sorted_records
from orchestrator.verify.entry import split_records

_MOST = 200_000  # inodes that are remembered; names of others wait in a file
_PIECE = 1 << 16


class SharedFiles:
    """The files with several names of a copy, by their inodes there. `folder`: where what memory should not hold is kept, without a name.

    Why so many: in a point each file that is linked to the one before has several names.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._known: dict[bytes, bytes] = {}
        self._further = nameless_file(folder)
        weakref.finalize(self, self._further.close)

    def is_apart(self, inode: bytes, theirs: bytes, other: bytes) -> bool:
        """Note a name; return whether one before it shares its file, and the source has both apart.

        `inode`: the copy's; `theirs`: the source's; `other`: the source's record. What is not known yet `late` tells.
        """
        known = self._known.get(inode)
        if known is not None:
            return known != theirs
        if len(self._known) < _MOST:
            self._known[inode] = theirs
        else:
            self._further.write(b"%b\t%b\t%b\0" % (inode, theirs, other))
        return False

    def late(self) -> Iterator[bytes]:
        """Yield the source's records of names that turn out to be so once all names are noted. Raises: OSError."""
        self._further.seek(0)
        noted = split_records(iter(lambda: self._further.read(_PIECE), b""))
        last = first = b""
        for record in sorted_records(noted, folder=self._folder):
            inode, theirs, other = record.split(b"\t", 2)
            if inode != last:
                last, first = inode, theirs
            elif theirs != first:
                yield other
