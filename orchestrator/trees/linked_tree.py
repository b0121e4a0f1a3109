"""A second tree made of hard links to a first one, folder by folder, with descriptors alone, by several processes side by side.

Why no program: `cp -al` names each entry by its path, links what was to be left out too, and stops at what cannot be linked. Why no
threads: links take system calls alone, of four microseconds each, so three threads wait for one another, and take two and a half times
the processor.
"""

import contextlib
import errno
import json
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from orchestrator.trees.beneath import Folder, Untrusted

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MANY = 2_000  # entries after which helpers take over: they gain more than their start takes
_TOGETHER = 32  # folders of a request, at the most
_TOLD_AFTER = 1000  # entries; as link-tree.sh has it
_DEEPEST = 100  # folders on a way; what lies deeper is a matter of the copy
_PATIENCE = 0.2  # seconds until it is asked again whether to end
# What cannot be linked is left to the caller: forbidden, gone, a mount, or of a kind without links. Where a file can have no more
# names, none of its names may be linked, so that they stay names of one file: that ends it.
_UNLINKED = (errno.EPERM, errno.EACCES, errno.ENOENT, errno.EXDEV, errno.EOPNOTSUPP)
_Times = tuple[int, int]


class Helpers(Protocol):
    """Processes that answer requests, each one at a time; see `process.forks.ForkedHelpers`."""

    @property
    def idle(self) -> int: ...

    @property
    def busy(self) -> bool: ...

    def ask(self, request: bytes) -> None: ...

    def heard(self, patience: float) -> tuple[bool, bytes] | None: ...


StartHelpers = Callable[[Callable[[bytes, Callable[[bytes], None]], bytes]], "AbstractContextManager[Helpers] | None"]


class _LinkedFolder(NamedTuple):
    """A folder in which all is linked. `inside`: the names of its folders; `times`: it was there already, and keeps them."""

    path: str
    inside: list[str]
    times: _Times | None


class LinkedTree:
    """A maker of links from one tree into another, which is empty. Each folder gets the metadata of its counterpart, the root, too.

    `left_out`: paths below the root that are not linked, nor anything below them; a folder that lies too deep is left out too.
    `reserved`: names that are left out in every folder. `stops`: is asked at each folder whether to end early. `over`: the other tree
    has something already, which stays as it is, with its times; then nothing else is left out, and what cannot be linked is an error.
    `tells`: is called at about each 1,000 entries with how many are linked so far. `start`: starts helpers once there is much to link.
    """

    def __init__(
        self,
        left_out: Collection[str],
        *,
        reserved: Collection[str] = (),
        stops: Callable[[], bool] = lambda: False,
        over: bool = False,
        tells: Callable[[int], None] = lambda _: None,
        start: StartHelpers = lambda _: None,
    ) -> None:
        self._left_out, self._reserved, self._stops, self._over, self._tells = left_out, reserved, stops, over, tells
        self._start = start
        self._old = self._new = -1
        self._looked = 0  # entries
        self.linked = 0
        self._count: Callable[[int, int], None] = self._add

    def make(self, old: Folder, new: Folder) -> None:
        """Make the links. Raises: OSError, such as for a full disk; what was made until then stays."""
        if not self._over and os.listdir(new.fd):
            raise Untrusted(errno.ENOTEMPTY, "is not empty, and should be new", os.readlink(f"/proc/self/fd/{new.fd}"))
        self._old, self._new = old.fd, new.fd
        waiting, above = [""], list[_LinkedFolder]()
        with contextlib.ExitStack() as ended:
            helpers: Helpers | None = None
            started = False
            while waiting or (helpers is not None and helpers.busy):
                if self._stops():
                    return
                if not started and self.linked >= _MANY and len(waiting) > 1:
                    started, begun = True, self._start(self._answer)
                    helpers = None if begun is None else ended.enter_context(begun)
                for folder in (self._fill(waiting.pop()),) if helpers is None else self._helped(helpers, waiting):
                    if folder.inside:
                        above.append(folder)
                        waiting += [f"{folder.path}/{name}" if folder.path else name for name in folder.inside]
        for folder in reversed(above):
            self._finish(folder)

    def _helped(self, helpers: Helpers, waiting: list[str]) -> Iterator[_LinkedFolder]:
        """Hand out folders, the newest first: few wait. Yield those that are done, if any. Raises: OSError."""
        while waiting and helpers.idle:
            count = min(_TOGETHER, -(-len(waiting) // (2 * helpers.idle)))
            helpers.ask(os.fsencode("\0".join(waiting[-count:])))
            del waiting[-count:]
        if (heard := helpers.heard(_PATIENCE)) is None:
            return
        is_answer, message = heard
        looked, linked, *folders = json.loads(message)
        self._add(looked, linked)
        if is_answer:
            yield from (_LinkedFolder(path, inside, times) for path, inside, times in folders)

    def _answer(self, request: bytes, tell: Callable[[bytes], None]) -> bytes:
        """Link the folders of a request; return what is to be known of them. In a helper. Raises: OSError."""
        counted = [0, 0]

        def count(looked: int, linked: int) -> None:
            counted[:] = counted[0] + looked, counted[1] + linked
            if counted[0] >= _TOLD_AFTER:
                tell(json.dumps(counted).encode())
                counted[:] = 0, 0

        self._count = count
        folders = [self._fill(path) for path in os.fsdecode(request).split("\0")]
        return json.dumps([*counted, *folders]).encode()

    def _fill(self, path: str) -> _LinkedFolder:
        """Make a folder, and link into it; it is finished, unless others lie in it. Raises: OSError."""
        old = _open(self._old, path)
        try:
            opened = self._open_new(path)
            if opened is None:
                return _LinkedFolder(path, [], None)
            new, times = opened
            try:
                inside = self._link_entries(old, new, f"{path}/" if path else "")
                folder = _LinkedFolder(path, inside, times)
                if not inside:
                    _give_metadata(folder, old, new)
            finally:
                os.close(new)
        finally:
            os.close(old)
        return folder

    def _open_new(self, path: str) -> tuple[int, _Times | None] | None:
        """Open a folder of the other tree, made where it lacks, and tell the times of one that was there; None where something else is."""
        if not path:
            new = os.dup(self._new)
            return new, _times(new) if self._over else None
        above, _, name = path.rpartition("/")
        folder = _open(self._new, above)
        try:
            there = not _make_folder(name, folder, over=self._over)
            new = os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            if self._over and error.errno in (errno.ENOTDIR, errno.ELOOP):  # something else is there by now
                return None
            raise
        finally:
            os.close(folder)
        return new, _times(new) if there else None

    def _link_entries(self, old: int, new: int, above: str) -> list[str]:
        """Link what lies in a folder; return the names of its folders. `above`: its path, with "/" behind it. Raises: OSError."""
        looked, linked, folders = 0, 0, list[str]()
        with os.scandir(old) as entries:
            for entry in entries:
                name, looked = entry.name, looked + 1
                if looked == _TOLD_AFTER:
                    self._count(looked, linked)
                    looked, linked = 0, 0
                if name in self._reserved or above + name in self._left_out:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    linked += _link(name, old, new, over=self._over)
        self._count(looked, linked)
        if folders and above.count("/") >= _DEEPEST:
            if self._over:
                raise OSError(errno.ENAMETOOLONG, "lies too deep to be linked", above + folders[0])
            return []
        return folders

    def _add(self, looked: int, linked: int) -> None:
        before, self._looked = self._looked, self._looked + looked
        self.linked += linked
        if before // _TOLD_AFTER < self._looked // _TOLD_AFTER:
            self._tells(self.linked)

    def _finish(self, folder: _LinkedFolder) -> None:
        """Give a folder its metadata, once all is made that lies in it. Raises: OSError."""
        old, new = _open(self._old, folder.path), _open(self._new, folder.path)
        try:
            _give_metadata(folder, old, new)
        finally:
            os.close(old)
            os.close(new)


def _open(root: int, path: str) -> int:
    """Open a folder below another one, step by step. Raises: OSError, also for a link on the way."""
    folder = os.dup(root)
    for name in path.split("/") if path else ():
        above = folder
        try:
            folder = os.open(name, _FOLDER, dir_fd=above)
        finally:
            os.close(above)
    return folder


def _make_folder(name: str, above: int, *, over: bool) -> bool:
    """Make a folder; return False where one of that name is there, and may be."""
    try:
        os.mkdir(name, 0o700, dir_fd=above)
    except FileExistsError:
        if not over:
            raise
        return False
    return True


def _times(folder: int) -> _Times:
    seen = os.fstat(folder)
    return seen.st_atime_ns, seen.st_mtime_ns


def _link(name: str, old: int, new: int, *, over: bool) -> int:
    """Link one entry, a symlink itself; return how many were linked."""
    try:
        os.link(name, name, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)
    except OSError as error:
        if not (error.errno == errno.EEXIST if over else error.errno in _UNLINKED):
            raise
        return 0
    return 1


def _give_metadata(folder: _LinkedFolder, old: int, new: int) -> None:
    """Give a folder that was there its times, and a new one the metadata of the old one. Raises: OSError."""
    if folder.times is None:
        _copy_metadata(old, new)
    else:
        accessed, changed = folder.times  # a list, where a helper told it
        os.utime(new, ns=(accessed, changed))


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
