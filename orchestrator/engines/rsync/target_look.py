"""The look at a target on this machine by system calls, with the answer of `look-at-target.sh`, which starts five programs.

Why the script, too: a far target has nothing else, it says what is wrong, and it follows those links on the way that may be followed. And
a program that hangs on a dead disk can be left behind, which this process cannot: so a run that copies looks first by it, and what
lists the points for a page or a check always. A verification, a restore and a drill look here.
"""

import os
import stat
from collections.abc import Iterator

from orchestrator.engines.rsync.model import MANIFEST, MARKER, OURS

_ABOVE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MARKER_BYTES = 4096
_TRASH = "trash"
_LETTERS = {
    stat.S_IFREG: b"f", stat.S_IFDIR: b"d", stat.S_IFLNK: b"l", stat.S_IFIFO: b"p", stat.S_IFSOCK: b"s", stat.S_IFBLK: b"b",
    stat.S_IFCHR: b"c",
}  # fmt: skip


def look_here(root: str) -> bytes | None:
    """Return the records of a target that is a folder; None where it is none, lies behind a link, or cannot be read: then the script says it."""
    try:
        with _OpenFolders() as folders:
            return b"\0".join(_look(root, folders)) + b"\0"
    except (OSError, KeyError, ValueError):
        return None


class _OpenFolders:
    """Folders that are open as long as the look takes."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def __enter__(self) -> "_OpenFolders":
        return self

    def __exit__(self, *_: object) -> None:
        for fd in self._open:
            os.close(fd)

    def enter(self, name: str, above: int | None, how: int = _FOLDER) -> int:
        """Return the descriptor of a folder in another one. Raises: OSError, also for a link."""
        self._open.append(os.open(name, how, dir_fd=above))
        return self._open[-1]

    def enter_if_there(self, name: str, above: int) -> int | None:
        """Return the descriptor of a folder; None where there is none, or a link or anything else."""
        try:
            is_folder = stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return None
        return self.enter(name, above) if is_folder else None


def _look(root: str, folders: _OpenFolders) -> Iterator[bytes]:
    parts = root.split("/")[1:]
    if not root.startswith("/") or not all(parts) or {".", ".."} & set(parts):
        raise NotADirectoryError(root)
    above = [folders.enter("/", None, _ABOVE)]
    for part in parts[:-1]:
        above.append(folders.enter(part, above[-1], _ABOVE))
    here = folders.enter(parts[-1], above[-1])
    points, ours = (folders.enter_if_there(name, here) for name in ("points", OURS))
    space = os.fstatvfs(here)
    yield b"d"
    yield b"%d %d %d %d %d\n" % (space.f_bavail, space.f_frsize, space.f_files, space.f_ffree, space.f_blocks)
    yield b"" if ours is None else _read_marker(ours)
    yield b"i plain %d" % os.getuid()
    yield b"u d %d" % os.fstat(above[-1]).st_dev
    for each in reversed(above):
        yield b"b %s" % _mode_and_owner(each)
    yield b"h d %d" % os.fstat(here).st_dev
    yield b"g %s" % _mode_and_owner(here)
    yield from _entries(b"r", here)
    if "latest" in os.listdir(here) and stat.S_ISLNK(os.lstat("latest", dir_fd=here).st_mode):
        yield b"l l %s" % os.fsencode(os.readlink("latest", dir_fd=here))
    for room, name, which in ((points, "points", b"p"), (ours, OURS, b"o")):
        if room is not None:
            yield b"k %o %s" % (stat.S_IMODE(os.fstat(room).st_mode), name.encode())
            yield from _entries(which, room)
    if ours is not None:
        yield from _look_in_ours(ours, folders)


def _look_in_ours(ours: int, folders: _OpenFolders) -> Iterator[bytes]:
    yield b"v d %d" % os.fstat(ours).st_uid
    trash = folders.enter_if_there(_TRASH, ours)
    if trash is not None:
        yield from _entries(b"o", trash, f"{_TRASH}/")
    name = MANIFEST.removeprefix(f"{OURS}/")
    if name in os.listdir(ours):
        seen = os.stat(name, dir_fd=ours, follow_symlinks=False)
        if not stat.S_ISREG(seen.st_mode):
            raise FileExistsError(name)
        yield b"m f %d.%09d0" % divmod(seen.st_mtime_ns, 10**9)


def _read_marker(ours: int) -> bytes:
    """Return the first line of the marker; a disk may have been elsewhere, so only the beginning of the file is read.

    Raises: OSError · ValueError for a line that no text is.
    """
    try:
        fd = os.open(MARKER.removeprefix(f"{OURS}/"), _FILE, dir_fd=ours)
    except FileNotFoundError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileExistsError(MARKER)
        line = os.read(fd, _MARKER_BYTES).split(b"\n", 1)[0]
        if b"\0" in line:  # what follows would be a record of its own
            raise ValueError(MARKER)
        return line
    finally:
        os.close(fd)


def _mode_and_owner(folder: int) -> bytes:
    seen = os.fstat(folder)
    return b"%o %d" % (stat.S_IMODE(seen.st_mode), seen.st_uid)


def _entries(which: bytes, folder: int, front: str = "") -> Iterator[bytes]:
    """Yield kind and name of each entry of a folder; what vanishes meanwhile is not there. Raises: KeyError for an unknown kind."""
    for name in os.listdir(folder):
        try:
            kind = _LETTERS[stat.S_IFMT(os.lstat(name, dir_fd=folder).st_mode)]
        except FileNotFoundError:
            continue
        yield b"%s %s %s" % (which, kind, os.fsencode(front + name))
