"""Room that is kept beside a history while a run goes on, so that its end can be recorded though something else filled the filesystem."""

import os

_LARGEST = 2 << 20  # bytes
_SHARE = 8  # of what is free, so much at most
_STEP = 256 << 10  # bytes that are given up at once
_LEAST = 192 << 10  # bytes that a transaction may need
_KEPT_BLOCKS = 4096  # that ext4 keeps from root, too, or a fiftieth of all; it counts them as free


class Reserve:
    """A file without a name in a folder. Why shortened, not closed: a fork of ours may hold it, too."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: int | None = None
        self._size = 0

    def keep(self) -> None:
        """Take the room, where there is some and none is kept yet."""
        if self._file is not None or not hasattr(os, "O_TMPFILE"):
            return
        try:
            size = min(_LARGEST, _free(self._folder) // _SHARE // _STEP * _STEP)
            file = os.open(self._folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600) if size else None
        except OSError:
            return
        if file is None:
            return
        try:
            os.posix_fallocate(file, 0, size)
        except OSError:
            os.close(file)
            return
        self._file, self._size = file, size

    def make_room(self) -> None:
        """Give up a part of it where little else is free."""
        if self._file is None or not self._size:
            return
        try:
            if _free(self._folder) < _LEAST:
                self._size -= _STEP
                os.ftruncate(self._file, self._size)
        except OSError:
            self.give_up()

    def give_up(self) -> None:
        """Let go of all of it."""
        if self._file is not None:
            os.close(self._file)
            self._file, self._size = None, 0


def _free(folder: str) -> int:
    """Return the bytes that this user may surely fill. Raises: OSError."""
    seen = os.statvfs(folder)
    blocks = seen.f_bavail if os.geteuid() else seen.f_bfree - min(seen.f_blocks // 50, _KEPT_BLOCKS)
    return max(0, blocks) * seen.f_frsize
