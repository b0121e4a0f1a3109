"""The removal of a whole tree by descriptors alone, and the count of its bytes. Nothing in it is followed, however deep it lies.

Why not shutil.rmtree: it holds a descriptor for each folder on the way, and calls itself for each; who sends a tree can make it deeper
than that. Here a folder is emptied where it stands, and each folder in it moves to the top first.
"""

import errno
import os
import stat
from collections.abc import Callable

from orchestrator.trees.beneath import Folder, Untrusted

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty_folder(folder: Folder, *, stops: Callable[[], bool]) -> None:
    """Remove all that is in a folder of ours; what is left when `stops` says so, the next call removes.

    Raises: Untrusted where another filesystem is mounted in it, which stays · OSError.
    """
    device, count = os.fstat(folder.fd).st_dev, 0
    while names := os.listdir(folder.fd):
        for name in names:
            if stops():
                return
            if not stat.S_ISDIR(os.lstat(name, dir_fd=folder.fd).st_mode):
                os.unlink(name, dir_fd=folder.fd)
                continue
            inner = os.open(name, _FOLDER, dir_fd=folder.fd)
            try:
                if os.fstat(inner).st_dev != device:
                    raise _mounted(f"{folder.shown}/{name}")
                count = _empty_one(inner, folder, count)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=folder.fd)


def _empty_one(inner: int, above: Folder, count: int) -> int:
    """Remove the files of a folder, and move its folders up; return how many were moved so far."""
    with os.scandir(inner) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.name, dir_fd=inner)
                continue
            count += 1
            try:
                os.rename(
                    entry.name, f"{os.getpid()}.{count}.{os.urandom(4).hex()}", src_dir_fd=inner, dst_dir_fd=above.fd
                )
            except OSError as error:
                if error.errno in (errno.EBUSY, errno.EXDEV):
                    raise _mounted(f"{above.shown}/…/{os.fsdecode(entry.name)}") from error
                raise
    return count


def _mounted(path: str) -> Untrusted:
    return Untrusted(errno.EBUSY, "is a mount in what is to be removed: unmount it", path)


def count_bytes(tree: Folder, before: Folder | None, *, stops: Callable[[], bool] = lambda: False) -> tuple[int, int]:
    """Return the bytes of a tree's files, and of those among them that are not one file with that of their path in the tree before.

    What changes or vanishes meanwhile is not counted: points do not. Raises: OSError.
    """
    holds = brought = 0
    waiting = [""]
    while waiting and not stops():
        path = waiting.pop()
        with tree.enter(path) as here:
            old = _numbers(before, path)
            with os.scandir(here.fd) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{path}/{entry.name}" if path else entry.name)
                    elif entry.is_file(follow_symlinks=False):
                        size = entry.stat(follow_symlinks=False).st_size
                        holds += size
                        brought += 0 if old.get(entry.name) == entry.inode() else size
    return holds, brought


def _numbers(tree: Folder | None, path: str) -> dict[str, int]:
    """Return the inodes of what lies in a folder of the tree, by name; empty where there is none."""
    if tree is None:
        return {}
    try:
        with tree.enter(path) as folder, os.scandir(folder.fd) as entries:
            return {entry.name: entry.inode() for entry in entries}
    except OSError:
        return {}
