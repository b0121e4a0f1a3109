"""Reading of files past the page cache, with their digests.

Before a file is read its cached pages are dropped, so that the data comes from the disk and not from memory; after the reading
they are dropped again, so that a verification leaves the cache to other programs. Pages not yet written stay: sync the tree
first.
"""

import contextlib
import errno
import os
from collections.abc import Callable
from typing import Any, Protocol

from orchestrator.verify.attributes import read_attributes

_OF_LIBRARY = ("sha256", "sha1", "md5")
ALGORITHMS = ("xxh128", "blake3", *_OF_LIBRARY)  # that a manifest may name
BUFFER = 1 << 20
_BEHIND = 8 << 20
_FLAGS = (
    os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
)  # do not wait when a pipe is in place of a file
_DEEPEST = 200  # folders above an entry that may stay open: a process has 1024 descriptors
_NO_ENTRIES = (b"", b"..")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Hash(Protocol):
    """Interface of all hash objects."""

    def update(self, data: Any, /) -> object: ...

    def hexdigest(self) -> str: ...


Makers = tuple[Callable[..., Hash], ...]


def hash_maker(algorithm: str) -> Callable[..., Hash]:
    """Return a maker of hashes of one algorithm, empty or with the first bytes. Raises: ValueError when it is unknown here."""
    if algorithm == "xxh128":
        import xxhash

        return xxhash.xxh3_128
    if algorithm == "blake3":
        import blake3

        return blake3.blake3
    if algorithm in _OF_LIBRARY:
        import hashlib

        return lambda data=b"": hashlib.new(algorithm, data, usedforsecurity=False)
    raise ValueError(f"no such digest here: {algorithm}")


class OpenTree:
    """A tree whose entries are opened by their path below the root; the root may also be a single file.

    Each folder on the way is opened without following links, and stays open while the next entries lie in it too: names come
    from a manifest or a listing, and other users may own the entries there. They are closed at the end of `with`: an open one
    keeps a removable disk from being unmounted. Raises: OSError when the root does not exist: that must not look like a tree of
    missing files.
    """

    def __init__(self, root: bytes) -> None:
        real = os.path.realpath(root, strict=True)
        whole = os.path.isdir(real)
        self._self = b"." if whole else os.path.basename(real)
        self._root = os.open(real if whole else os.path.dirname(real), _FOLDER)
        self._way: list[tuple[bytes, int]] = []
        self._deep = -1
        self._last: tuple[bytes, int] | None = None  # the folder of the entry before, and its descriptor
        self._noatime = os.O_NOATIME

    def __enter__(self) -> "OpenTree":
        return self

    def __exit__(self, *_: object) -> None:
        for fd in (self._root, self._deep, *(fd for _, fd in self._way)):
            if fd >= 0:
                os.close(fd)

    def open(self, path: bytes) -> int:
        """Open an entry for reading, without following a symlink, and without a new access time where permitted."""
        name, folder = self.place(path)
        try:
            return os.open(name, _FLAGS | self._noatime, dir_fd=folder)
        except PermissionError:
            fd = os.open(name, _FLAGS, dir_fd=folder)
            self._noatime = 0  # only the owner may suppress a new access time
            return fd

    def stat(self, path: bytes) -> os.stat_result:
        """Return the status of the entry itself, without following a symlink."""
        name, folder = self.place(path)
        return os.stat(name, dir_fd=folder, follow_symlinks=False)

    def target(self, path: bytes) -> bytes:
        """Return the target of a symlink."""
        name, folder = self.place(path)
        return os.readlink(name, dir_fd=folder)

    def attributes(self, path: bytes) -> str:
        """Return the text of an entry's access lists and attributes. Why by /proc: no call reads them below a descriptor."""
        name, folder = self.place(path)
        return read_attributes(b"/proc/self/fd/%d/%b" % (folder, name))

    def place(self, path: bytes) -> tuple[bytes, int]:
        """Return the entry's last name and the descriptor of its folder. Raises: OSError, also for a path to the outside."""
        above, _, name = path.rpartition(b"/")
        last = self._last
        if last is not None and last[0] == above and name not in _NO_ENTRIES and path[:1] != b"/":
            return name, last[1]
        self._last = None
        name, folder = self._enter(path, above, name)
        self._last = (above, folder)
        return name, folder

    def _enter(self, path: bytes, above: bytes, name: bytes) -> tuple[bytes, int]:
        """Open the folders above an entry that are not open yet."""
        parts = above.split(b"/") if above else []
        if name == b".." or b".." in parts or path.startswith(b"/"):
            raise OSError(errno.EXDEV, "leads outside of the tree", path)
        same = 0
        for part, (known, _) in zip(parts, self._way, strict=False):
            if part != known:
                break
            same += 1
        for _, fd in self._way[same:]:
            os.close(fd)
        del self._way[same:]
        if len(parts) > _DEEPEST:
            return name, self._descend(parts)
        for part in parts[same:]:
            fd = os.open(part, _FOLDER, dir_fd=self._way[-1][1] if self._way else self._root)
            self._way.append((part, fd))
        return name or self._self, self._way[-1][1] if self._way else self._root

    def _descend(self, parts: list[bytes]) -> int:
        """Return the descriptor of a folder too deep to keep all folders above it open; it stays open until the next one."""
        if self._deep >= 0:
            os.close(self._deep)
            self._deep = -1
        fd = os.dup(self._root)
        for part in parts:
            try:
                inner = os.open(part, _FOLDER, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        self._deep = fd
        return fd


class FileHasher:
    """Reader of open files with one buffer, which returns their digests in order. `told` is called with the bytes read."""

    def __init__(self, told: Callable[[int], None], *, drop: bool = True) -> None:
        self._buffer = bytearray(BUFFER)
        self._view = memoryview(self._buffer)
        self._into = (self._view,)
        self._told = told
        self._drop = drop

    def digest(self, fd: int, size: int, makers: Makers) -> tuple[str, ...]:
        """Read to the actual end of the file; return its digests. `size`: by the inode. Raises: OSError."""
        if self._drop:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if size >= BUFFER:
            return self._long(fd, makers)
        count = got = os.readv(fd, self._into)
        part = self._view[:got]
        hashes = [make(part) for make in makers]
        while count != size and got:  # shorter or longer than the inode's size a moment ago
            got = os.readv(fd, self._into)
            for one in hashes:
                one.update(self._view[:got])
            count += got
        if self._drop:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self._told(count)
        return tuple([one.hexdigest() for one in hashes])

    def _long(self, fd: int, makers: Makers) -> tuple[str, ...]:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        hashes = [make() for make in makers]
        count = dropped = 0
        while got := os.readv(fd, (self._view,)):
            part = self._view[:got]
            for one in hashes:
                one.update(part)
            count += got
            if count - dropped >= _BEHIND:
                self._told(count - dropped)
                if self._drop:
                    os.posix_fadvise(fd, dropped, count - dropped, os.POSIX_FADV_DONTNEED)
                dropped = count
        self._told(count - dropped)
        if self._drop:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return tuple([one.hexdigest() for one in hashes])

    def again(self, fd: int, makers: Makers) -> tuple[str, ...]:
        """Read the file once more, always from the disk."""
        with contextlib.suppress(OSError):  # some filesystems refuse it for reading
            os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(fd, 0, os.SEEK_SET)
        return self._long(fd, makers)
