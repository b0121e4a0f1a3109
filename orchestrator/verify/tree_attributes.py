"""Access lists and attributes of a tree on this machine, read as its listing comes: one call for each entry that has none."""

import errno
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from typing import IO, Self

from orchestrator.domain.hashes import blake2b
from orchestrator.verify.attributes import NO_ATTRIBUTES, OWN_NAMES, attribute_text
from orchestrator.verify.digest import OpenTree
from orchestrator.verify.entry import split_records

_PIECE = 1 << 18
_OWN_FOLDER = 0x200  # CLONE_FS, for unshare(2)
_FOLDER = b"d"
_BATCH = 1024  # records that a bare listing has one digest of


class TreeAttributes:
    """The attributes of a tree's entries: `read` notes those of the records that pass through it, in a file.

    `without_own`: attributes by rsync's own names are left out; `own_names` then counts the entries that have some. `changed`: entries
    without any that changed since `since_ns`, whatever the listing says: it was made a little before. `bare`: what a `BareTree` found in
    the same listing earlier: what is still listed so has none, and is not read again.
    """

    def __init__(
        self, root: str, file: IO[bytes], *, without_own: bool, since_ns: int, bare: Iterable[bytes] = ()
    ) -> None:
        self._root, self._file, self._without_own, self._since_ns = root, file, without_own, since_ns
        self._bare = iter(bare)
        self.own_names = 0
        self.changed: set[bytes] = set()

    def read(self, records: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the records of a listing, each once its entry's attributes are noted: path, `//` and text. Raises: OSError.

        What cannot be read, or has just gone, has none: the copy itself has told of it.
        """
        listing = iter(records)
        batch = list(islice(listing, _BATCH))
        if not batch:  # a source that is not there is the listing's to tell
            return
        with _EntryFolders(self._root) as folders:
            while batch:
                if next(self._bare, b"") != _digest(batch):
                    self._take(batch, folders)
                yield from batch
                batch = list(islice(listing, _BATCH))

    def _take(self, batch: list[bytes], folders: "_EntryFolders") -> None:
        listed, look, since, place = os.listxattr, os.lstat, self._since_ns, folders.place
        for record in batch:
            path = record[: record.index(b"//")]
            try:
                entry = place(path)
                names = listed(entry, follow_symlinks=False)
                if names:
                    self._note(path, entry, names)
                elif look(entry).st_ctime_ns >= since:
                    self.changed.add(path)
            except OSError:
                folders.forget()
                self.changed.add(path)

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


class BareTree:
    """The look, beside a listing of a tree, whether any of its entries has access lists or attributes. Use it in a `with`.

    `young_ns`: what changed since then may change once more without another time of change. `batch`: so many records it takes at once.
    """

    batch = _BATCH

    def __init__(self, root: str, young_ns: int) -> None:
        self._young = b"%d." % (young_ns // 10**9)
        self._folders = _EntryFolders(root)
        self._digests: list[bytes] | None = []
        self._entered: bytes | None = None
        self._way: list[tuple[bytes, bytes]] = []  # from the root to the folder that is listed: path and inode of each

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folders.close()

    def take(self, entries: list[tuple[bytes, bytes, bytes, bytes, bytes]]) -> None:
        """Look at the next entries: the record of each as a copy's review lists it, its path, kind, inode and time of change."""
        if self._digests is None:
            return
        folders, listed = self._folders, os.listxattr
        try:
            for _, path, kind, inode, _ in entries:
                folder, _, name = path.rpartition(b"/")
                if folder and folder == self._entered == folders.folder:  # most entries: beside the last one
                    name = folders.front + name
                else:
                    name = folders.place(path)
                    if folders.folder is not self._entered and path:
                        self._require_listed_folder()
                if listed(name, follow_symlinks=False):
                    self._digests = None
                    return
                if kind == _FOLDER:
                    self._way.append((path, inode))
        except OSError:
            self._digests = None
            return
        changed = max(at for *_, at in entries) >= self._young
        self._digests.append(b"" if changed else _digest([record for record, *_ in entries]))

    def _require_listed_folder(self) -> None:
        """Require that the folder that was entered is the one of its listing, as its owner may exchange it. Raises: OSError."""
        self._entered = self._folders.folder
        while self._way and self._way[-1][0] != self._entered:
            self._way.pop()
        if not self._way or int(self._way[-1][1]) != self._folders.inode:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), self._entered)

    @property
    def digests(self) -> tuple[bytes, ...] | None:
        """Return a digest for each batch that was taken, empty for one with a young entry; None: some entry has attributes."""
        return None if self._digests is None else tuple(self._digests)


def _digest(records: list[bytes]) -> bytes:
    return blake2b(b"\0".join(records), digest_size=32).digest()


class _EntryFolders:
    """The folders of a tree, each entered without following a link. Use it in a `with`, in one thread.

    Why a current folder: no call reads attributes below a descriptor, and a path by /proc takes three times as long.
    """

    def __init__(self, root: str) -> None:
        self._stack = ExitStack()
        self._tree: OpenTree | None = None
        self._root = root
        self._enters = False
        self.folder: bytes | None = None  # that was entered last
        self.inode = 0  # its
        self.front = b""  # before the name of each of its entries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def place(self, path: bytes) -> bytes:
        """Return the name by which an entry is reached now. Raises: OSError."""
        folder, _, name = path.rpartition(b"/")
        if folder != self.folder or not path:
            if self._tree is None:
                self._enters = _leave_shared_folder()
                self._tree = self._stack.enter_context(OpenTree(os.fsencode(self._root)))
            name, fd = self._tree.place(path)
            self.inode = os.fstat(fd).st_ino
            self.folder = folder if path else None
            if self._enters:
                os.fchdir(fd)
            else:
                self.front = b"/proc/self/fd/%d/" % fd
        return self.front + name

    def forget(self) -> None:
        """Enter the next entry's folder anew."""
        self.folder = None


def _leave_shared_folder() -> bool:
    """Give this thread a current folder of its own; return False where it must share that of the program."""
    if threading.current_thread() is threading.main_thread():
        return False
    if hasattr(os, "unshare"):  # since Python 3.12
        try:
            os.unshare(_OWN_FOLDER)
        except OSError:
            return False
        return True
    import ctypes

    return bool(ctypes.CDLL(None).unshare(_OWN_FOLDER) == 0)
