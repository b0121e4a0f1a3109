"""A file that shares the blocks of another one until one of the two is written, made with descriptors alone."""

import contextlib
import os

from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.large_copies import share_blocks


def clone_file(old: Folder, new: Folder, path: bytes, *, partial: str) -> bool:
    """Clone a file of `old` into the folder `partial` beside its place in `new`; return False where that cannot be.

    It is a new file of ours that nobody else may open, without the old one's time and attributes; where a remainder lies, that stays.
    Raises: ClonesRefused · OSError.
    """
    above, _, name = path.rpartition(b"/")
    with contextlib.ExitStack() as opened:
        try:
            folder = opened.enter_context(new.enter(above))
            file = opened.enter_context(open(old.open_file(path), "rb"))
        except (Untrusted, FileNotFoundError, NotADirectoryError):
            return False
        room = opened.enter_context(folder.make_folder(partial))
        try:
            return _clone(file.fileno(), room, name)
        except FileExistsError:
            return False
        finally:
            with contextlib.suppress(OSError):  # it is not empty
                os.rmdir(partial, dir_fd=folder.fd)


def _clone(file: int, room: Folder, name: bytes) -> bool:
    made = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=room.fd)
    shared = False
    try:
        shared = share_blocks(file, made)
        return shared
    finally:
        os.close(made)
        if not shared:
            os.unlink(name, dir_fd=room.fd)
