"""The small files and folders that differ between a source and a copy that is linked to a point, by name, before rsync sees to the rest.

As `source_files`, but no program of its own: for the few files of a usual run its start would take what it saves. Both trees are entered
by descriptors alone. What is not plain, changed just now, or fails in any way is left to rsync, which does it or says why not.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterable
from types import TracebackType

from orchestrator.trees.plain_files import FOLDER, TargetTakesNothing
from orchestrator.trees.source_files import FewArePlain, SourceFileWriter

_DEEPEST = 100  # folders on a way that stay open, two descriptors each: a process has 1024
_HANDED_ON = "system.posix_acl_default"


class FolderPairs:
    """The folders of two trees at the same paths, both open while the paths that follow lie in them too. Use it in a `with`."""

    def __init__(self, old: int, new: int) -> None:
        """Take the open roots, which stay the caller's."""
        self._old, self._new = old, new
        self._way: list[tuple[bytes, int, int]] = []

    def __enter__(self) -> "FolderPairs":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(0)

    def _leave(self, keep: int) -> None:
        for _, old, new in self._way[keep:]:
            os.close(old)
            os.close(new)
        del self._way[keep:]

    def enter(self, path: bytes) -> tuple[int, int]:
        """Return the descriptors of a folder in both trees; empty: the roots. Raises: OSError, also for a link on the way."""
        parts = path.split(b"/") if path else []
        if len(parts) > _DEEPEST or b".." in parts or b"." in parts or b"" in parts:
            raise OSError(f"no way into a tree: {path!r}")
        same = 0
        while same < min(len(parts), len(self._way)) and self._way[same][0] == parts[same]:
            same += 1
        self._leave(same)
        for part in parts[same:]:
            _, old, new = self._way[-1] if self._way else (b"", self._old, self._new)
            inner = os.open(part, FOLDER, dir_fd=old)
            try:
                self._way.append((part, inner, os.open(part, FOLDER, dir_fd=new)))
            except OSError:
                os.close(inner)
                raise
        return self._way[-1][1:] if self._way else (self._old, self._new)


class _NamedFileWriter(SourceFileWriter):
    """Its writer. `unsure`: the paths that were written and have not been told, or have not got their times, yet."""

    def __init__(self, tell: Callable[[bytes], object], device: int) -> None:
        super().__init__((), tell, device)
        self.unsure: list[bytes] = []

    def write_named(self, path: bytes, old: int, new: int) -> None:
        """Write the file at a path of these folders. Raises: TargetTakesNothing · FewArePlain."""
        self.above = os.fsdecode(path[: path.rfind(b"/") + 1])
        self.look_at_clock()
        left = len(self.left.single)
        self.unsure.append(path)
        self.write_file(os.fsdecode(path.rpartition(b"/")[2]), old, new)
        if len(self.left.single) > left:
            self.unsure.remove(path)

    def _end(self) -> None:
        super()._end()
        self.unsure.clear()


def write_named_files(
    paths: Iterable[bytes], old: int, new: int, *, tell: Callable[[bytes], object], stops: Callable[[], bool]
) -> tuple[list[bytes], int]:
    """Write the small plain files among some paths of an open source into an open copy; return the paths that are left, and the bytes written.

    `tell`: takes lines as rsync writes them, before a file has its time; `stops`: is asked at each file whether to leave all others.
    A folder that the copy does not have yet is left with all that is in it. What is left is not there, or is as it was.
    """
    left, rest = list[bytes](), sorted(paths, reverse=True)
    writer = _NamedFileWriter(tell, os.fstat(old).st_dev)
    with FolderPairs(old, new) as folders:
        last, pair = None, (-1, -1)
        try:
            with writer:
                while rest and not stops():
                    path = rest[-1]
                    above = path.rpartition(b"/")[0]
                    if above != last:
                        last, pair = above, _for_files(folders, above)
                    if pair[0] < 0:
                        left.append(path)
                    else:
                        writer.write_named(path, *pair)
                    rest.pop()
        except (TargetTakesNothing, FewArePlain):
            for path in writer.unsure:  # the copy that follows would pass over them
                with contextlib.suppress(OSError):
                    os.unlink(path.rpartition(b"/")[2], dir_fd=folders.enter(path.rpartition(b"/")[0])[1])
    found = {*left, *map(os.fsencode, writer.left.single), *writer.unsure, *rest}
    return sorted(found), writer.bytes


def _for_files(folders: FolderPairs, path: bytes) -> tuple[int, int]:
    """Return both folders at a path; -1 twice where they are none, or where a file that is made there would get an access list."""
    try:
        old, new = folders.enter(path)
    except OSError:
        return -1, -1
    try:
        handed_on = _HANDED_ON in os.listxattr(new)
    except OSError:  # its filesystem has none
        handed_on = False
    return (-1, -1) if handed_on else (old, new)


def give_folder_times(paths: Collection[bytes], old: int, new: int) -> list[bytes]:
    """Give folders of an open copy the times that they have in an open source; return those that are left, as more than the time differs.

    "." is the root. What is no folder in the source is none of them.
    """
    left = list[bytes]()
    with FolderPairs(old, new) as folders:
        for path in sorted(paths):
            above, _, name = path.rpartition(b"/")
            try:
                source, there = folders.enter(above)
                if name != b".":
                    if not stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode):
                        continue
                    source, there = folders.enter(path)
                seen, made = os.fstat(source), os.fstat(there)
                if _told(seen) != _told(made) or _attributes(source) != _attributes(there):
                    left.append(path)
                elif seen.st_mtime_ns != made.st_mtime_ns:
                    os.utime(there, ns=(made.st_atime_ns, seen.st_mtime_ns))
            except OSError:
                left.append(path)
    return left


def _told(seen: os.stat_result) -> tuple[int, int, int]:
    return stat.S_IMODE(seen.st_mode), seen.st_uid, seen.st_gid


def _attributes(folder: int) -> dict[str, bytes]:
    return {name: os.getxattr(folder, name) for name in os.listxattr(folder)}
