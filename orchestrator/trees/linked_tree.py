"""A second tree made of hard links to a first one, several folders at once, with descriptors alone.

Why no program: `cp -al` names each entry by its path, links what was to be left out too, and stops at what cannot be linked.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable
from resource import RUSAGE_THREAD, getrusage
from threading import Condition, Thread

from orchestrator.trees.beneath import Folder, Untrusted

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HELPERS = 2  # more gain nothing: links of one folder are made one after the other
_WAITED = 400  # links for each wait for a disk, at the most, where helpers gain something
_TOLD_AFTER = 1000  # entries; as link-tree.sh has it
_DEEPEST = 100  # folders on a way that stay open, each twice for each worker: a process has 1024 descriptors
# What cannot be linked is left to the caller: forbidden, gone, a mount, or of a kind without links. Where a file can have no more
# names, none of its names may be linked, so that they stay names of one file: that ends it.
_UNLINKED = (errno.EPERM, errno.EACCES, errno.ENOENT, errno.EXDEV, errno.EOPNOTSUPP)


class _FolderPair:
    """A folder and its new counterpart; both stay open until all below them is done, then the new one gets its metadata."""

    def __init__(self, old: int, new: int, path: str, above: "_FolderPair | None") -> None:
        self.old, self.new, self.path, self.above = old, new, path, above
        self.times: tuple[int, int] | None = None  # of a new folder that was there already, and keeps its metadata
        self.depth: int = above.depth + 1 if above else 0
        self.open = 1  # itself, and its folders that are not done


class LinkedTree:
    """A maker of links from one tree into another, which is empty. Each folder gets the metadata of its counterpart, the root, too.

    `left_out`: paths below the root that are not linked, nor anything below them; a folder that lies too deep is left out too.
    `reserved`: names that are left out in every folder. `stops`: is asked at each folder whether to end early. `over`: the other tree
    has something already, which stays as it is, with its times; then nothing else is left out, and what cannot be linked is an error.
    `tells`: is called at about each 1,000 entries, by one thread at a time, with how many are linked so far.
    """

    def __init__(
        self,
        left_out: Collection[str],
        *,
        reserved: Collection[str] = (),
        stops: Callable[[], bool] = lambda: False,
        over: bool = False,
        tells: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._left_out, self._reserved, self._stops, self._over, self._tells = left_out, reserved, stops, over, tells
        self._waiting: list[tuple[_FolderPair, str]] = []
        self._change = Condition()
        self._busy = 0
        self._pairs: set[_FolderPair] = set()
        self._errors: list[BaseException] = []
        self._helpers: list[Thread] = []
        self._looked = 0  # entries
        self.linked = 0

    def make(self, old: Folder, new: Folder) -> None:
        """Make the links. Raises: OSError, such as for a full disk; what was made until then stays."""
        if not self._over and os.listdir(new.fd):
            raise Untrusted(errno.ENOTEMPTY, "is not empty, and should be new", os.readlink(f"/proc/self/fd/{new.fd}"))
        root = self._pair(os.dup(old.fd), os.dup(new.fd), "", None)
        root.times = _times(root.new) if self._over else None
        try:
            before = _count_waits()
            self._fill(root)
            self._work(lambda: self._perhaps_get_help(before))
            for helper in self._helpers:
                helper.join()
            if root.times is not None:
                os.utime(root.new, ns=root.times)
            elif not self._errors:
                _copy_metadata(root.old, root.new)
        finally:
            for pair in tuple(self._pairs):  # the root, and after an early end what was not done
                self._close(pair)
        if self._errors:
            raise self._errors[0]

    def _perhaps_get_help(self, before: int) -> None:
        """Start the helpers once this thread waits for a disk: they wait for it at once.

        Why not before: links in memory take two and a half times the processor by three threads, which then wait for one another.
        """
        if not self._helpers and (_count_waits() - before) * _WAITED > self.linked + 10 * _WAITED:
            with contextlib.suppress(RuntimeError):  # there is no room for one more thread: then this one does it all
                for _ in range(_HELPERS):
                    helper = Thread(target=self._work)
                    helper.start()
                    self._helpers.append(helper)

    def _work(self, after: Callable[[], object] = lambda: None) -> None:
        """Enter folders until all are done. `after`: is called after each of them."""
        while (job := self._next()) is not None:
            try:
                self._enter(*job)
                after()
            except BaseException as error:  # noqa: BLE001  # raised again by `make`
                with self._change:
                    self._errors.append(error)
            finally:
                with self._change:
                    self._busy -= 1
                    self._change.notify_all()

    def _next(self) -> tuple[_FolderPair, str] | None:
        """Return the next folder; None when all are done, or none should follow. The newest first: few stay open."""
        with self._change:
            while not self._waiting and self._busy and not self._errors:
                self._change.wait()
            if not self._waiting or self._errors or self._stops():
                return None
            self._busy += 1
            return self._waiting.pop()

    def _enter(self, above: _FolderPair, name: str) -> None:
        old = os.open(name, _FOLDER, dir_fd=above.old)
        try:
            there = not _make_folder(name, above.new, over=self._over)
            new = os.open(name, _FOLDER, dir_fd=above.new)
        except OSError as error:
            os.close(old)
            if self._over and error.errno in (errno.ENOTDIR, errno.ELOOP):  # something else is there by now
                self._done(_FolderPair(-1, -1, "", above))
                return
            raise
        pair = self._pair(old, new, f"{above.path}{name}/", above)
        pair.times = _times(new) if there else None
        self._fill(pair)
        self._done(pair)

    def _pair(self, old: int, new: int, path: str, above: _FolderPair | None) -> _FolderPair:
        pair = _FolderPair(old, new, path, above)
        with self._change:
            self._pairs.add(pair)
        return pair

    def _close(self, pair: _FolderPair) -> None:
        with self._change:
            self._pairs.discard(pair)
        os.close(pair.old)
        os.close(pair.new)

    def _fill(self, pair: _FolderPair) -> None:
        looked, linked, folders = 0, 0, []
        with os.scandir(pair.old) as entries:
            for entry in entries:
                name, looked = entry.name, looked + 1
                if looked == _TOLD_AFTER:
                    self._count(looked, linked)
                    looked, linked = 0, 0
                if name in self._reserved or pair.path + name in self._left_out:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    linked += _link(name, pair, over=self._over)
        if pair.depth >= _DEEPEST:
            if self._over and folders:
                raise OSError(errno.ENAMETOOLONG, "lies too deep to be linked", pair.path + folders[0])
            folders = []
        self._count(looked, linked)
        with self._change:
            pair.open += len(folders)
            self._waiting += [(pair, name) for name in folders]
            self._change.notify_all()

    def _count(self, looked: int, linked: int) -> None:
        with self._change:
            before, self._looked = self._looked, self._looked + looked
            self.linked += linked
            if before // _TOLD_AFTER < self._looked // _TOLD_AFTER:
                self._tells(self.linked)

    def _done(self, pair: _FolderPair) -> None:
        """Count a folder as done, and close it once all below it is done; then perhaps the one above it."""
        each: _FolderPair | None = pair
        while each is not None and each.above is not None:
            with self._change:
                each.open -= 1
                if each.open:
                    return
            if each.times is not None:
                os.utime(each.new, ns=each.times)
            elif each.new >= 0:
                _copy_metadata(each.old, each.new)
            if each.new >= 0:
                self._close(each)
            each = each.above


def _count_waits() -> int:
    """Return how often this thread has waited by itself, as for a disk; to be given no processor is no such wait."""
    return getrusage(RUSAGE_THREAD).ru_nvcsw


def _make_folder(name: str, above: int, *, over: bool) -> bool:
    """Make a folder; return False where one of that name is there, and may be."""
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        if not over:
            raise
        return False
    return True


def _times(folder: int) -> tuple[int, int]:
    seen = os.fstat(folder)
    return seen.st_atime_ns, seen.st_mtime_ns


def _link(name: str, pair: _FolderPair, *, over: bool) -> int:
    """Link one entry, a symlink itself; return how many were linked."""
    try:
        os.link(name, name, src_dir_fd=pair.old, dst_dir_fd=pair.new, follow_symlinks=False)
    except OSError as error:
        if not (error.errno == errno.EEXIST if over else error.errno in _UNLINKED):
            raise
        return 0
    return 1


def _copy_metadata(old: int, new: int) -> None:
    """Give a new folder owner, mode, attributes and time of the old one, as far as this user may: the copy sets them anyway."""
    seen = os.fstat(old)
    with contextlib.suppress(OSError):
        os.fchown(new, seen.st_uid, seen.st_gid)
    for name in _attribute_names(old):
        with contextlib.suppress(OSError):
            os.setxattr(new, name, os.getxattr(old, name))
    with contextlib.suppress(OSError):
        os.fchmod(new, stat.S_IMODE(seen.st_mode))
        os.utime(new, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _attribute_names(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError:
        return []


def find_names_of(source: Folder, paths: Iterable[str], *, below: Collection[str] = ()) -> set[str]:
    """Return all names below `source` of the files at these paths, themselves included. Raises: OSError.

    `below`: looks only in these folders, each a path below `source`; empty: in all of it.
    """
    wanted = {(seen.st_dev, seen.st_ino) for path in paths if (seen := _status(source, path)) is not None}
    found: set[str] = set()
    waiting = ([f"{folder}/" for folder in below] or [""]) if wanted else []
    while waiting:
        path = waiting.pop()
        try:
            folder = source.enter(path)
        except OSError:  # it is gone, or no folder any more; what cannot be read is in no copy
            continue
        with folder, os.scandir(folder.fd) as entries:
            for entry in entries:
                inner = f"{path}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(inner + "/")
                elif _is_one_of(entry, wanted):
                    found.add(inner)
    return found


def _status(source: Folder, path: str) -> os.stat_result | None:
    try:
        return source.status(path)
    except OSError:
        return None


def _is_one_of(entry: "os.DirEntry[str]", wanted: set[tuple[int, int]]) -> bool:
    try:
        seen = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return seen.st_nlink > 1 and (seen.st_dev, seen.st_ino) in wanted
