"""Access lists and attributes of a tree on this machine, read as its listing comes: one call for each entry that has none."""

import os
import threading
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import IO

from orchestrator.verify.attributes import NO_ATTRIBUTES, OWN_NAMES, attribute_text
from orchestrator.verify.digest import OpenTree
from orchestrator.verify.entry import split_records

_PIECE = 1 << 18
_OWN_FOLDER = 0x200  # CLONE_FS, for unshare(2)


class TreeAttributes:
    """The attributes of a tree's entries: `read` notes those of the records that pass through it, in a file.

    `without_own`: attributes by rsync's own names are left out; `own_names` then counts the entries that have some. `changed`: entries
    without any that changed since `since_ns`, whatever the listing says: it was made a little before.
    """

    def __init__(self, root: str, file: IO[bytes], *, without_own: bool, since_ns: int) -> None:
        self._root, self._file, self._without_own, self._since_ns = root, file, without_own, since_ns
        self.own_names = 0
        self.changed: set[bytes] = set()

    def read(self, records: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the records of a listing, each once its entry's attributes are noted: path, `//` and text. Raises: OSError.

        What cannot be read, or has just gone, has none: the copy itself has told of it.
        Why a current folder: no call reads attributes below a descriptor, and a path by /proc takes three times as long.
        """
        listing = iter(records)
        first = tuple(islice(listing, 1))  # a source that is not there is the listing's to tell
        if not first:
            return
        enters = _leave_shared_folder()
        above = None
        front = b""
        listed, look, since = os.listxattr, os.lstat, self._since_ns
        with OpenTree(os.fsencode(self._root)) as tree:
            for record in chain(first, listing):
                path = record[: record.index(b"//")]
                folder, _, name = path.rpartition(b"/")
                try:
                    if folder != above or not path:
                        name, fd = tree.place(path)
                        above = folder if path else None
                        if enters:
                            os.fchdir(fd)
                        else:
                            front = b"/proc/self/fd/%d/" % fd
                    names = listed(front + name, follow_symlinks=False)
                    if names:
                        self._note(path, front + name, names)
                    elif look(front + name).st_ctime_ns >= since:
                        self.changed.add(path)
                except OSError:
                    above = None
                    self.changed.add(path)
                yield record

    def records(self) -> Iterator[bytes]:
        """Yield what was noted, in the order of the listing."""
        self._file.seek(0)
        with self._file:
            yield from split_records(iter(lambda: self._file.read(_PIECE), b""))

    def _note(self, path: bytes, entry: bytes, names: list[str]) -> None:
        wanted = [os.fsencode(name) for name in names]
        if self._without_own:
            others = [name for name in wanted if not name.startswith(OWN_NAMES)]
            self.own_names += len(others) < len(wanted)
            wanted = others
        text = attribute_text({name: os.getxattr(entry, name, follow_symlinks=False) for name in wanted})
        if text != NO_ATTRIBUTES:
            self._file.write(b"%b//%b\0" % (path, text.encode()))


def _leave_shared_folder() -> bool:
    """Give this thread a current folder of its own; return False where it must share that of the program."""
    if threading.current_thread() is threading.main_thread():
        return False
    import ctypes

    return bool(ctypes.CDLL(None).unshare(_OWN_FOLDER) == 0)
