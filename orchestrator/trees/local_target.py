"""A target on this machine by system calls: what its filesystem can hold is tried, our folder in it prepared, a point published.

Each does what the script of its name in `engines/rsync/scripts` does, and returns False wherever something is not plain: then the
script does it, waits, and says what is wrong. Why not the scripts alone: they start 38 programs, a tenth of a small first copy; and
why the scripts: a far target has nothing else, and they say what is wrong in the words that the failures are known by.
"""

import contextlib
import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterator

from orchestrator.trees.beneath import Folder

_OURS, _TRIED, _WORK, _POINTS, _LATEST = ".poolferry", "abilities", "work", "points", "latest"
_UNWRITTEN = "unwritten"  # the note of `sync-noted.sh`
_NEW = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_LONG, _CHARACTERS, _NOT_UTF8 = b"0" * 255, b"a:b?|*", b"caf\xe9"
_TIMES = (10**9, 4_294_967_999, -86_400)
_ANYBODY = 12_345
_UNDEFINED = 0xFFFFFFFF
# A version, then tag, rights and number of each entry: of the owner rw, of one user r, of the group none, the mask r, of others none.
_ACCESS_LIST = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in ((1, 6, _UNDEFINED), (2, 4, _ANYBODY), (4, 0, _UNDEFINED), (16, 4, _UNDEFINED), (32, 0, _UNDEFINED))
)
_STORED = b"104755 0,0 4294967294:4294967294"  # as long as what rsync keeps of a file with fake-super


def try_abilities(root: str, abilities: tuple[str, ...]) -> bool:
    """Return whether the target holds all that is tried; what was made for it is removed again."""
    try:
        with Folder.at_place(root, make=True) as place, _our_folder(place) as ours:
            if not _is_ours(ours):
                return False
            os.mkdir(_TRIED, 0o700, dir_fd=ours.fd)  # what a cut left there the script removes
            with ours.enter(_TRIED) as room, _emptied(room, ours):
                os.close(os.open("new", _NEW, 0o600, dir_fd=room.fd))
                return all(_TRIALS[ability](room.fd) for ability in abilities)
    except OSError:
        return False


@contextlib.contextmanager
def _our_folder(place: Folder) -> Iterator[Folder]:
    """Yield our folder, which is removed again where it stays empty."""
    with place.make_folder(_OURS) as ours:
        try:
            yield ours
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(_OURS, dir_fd=place.fd)


def prepare_target(root: str, job: str, folders: tuple[str, ...], *, stored: bool) -> bool:
    """Make the target the job's, with these folders in our own, where no receiver of an earlier run is alive.

    `stored`: its copies keep owners, modes and kinds in attributes.
    """
    try:
        with Folder.at_place(root, make=True) as place, place.make_folder(_OURS) as ours:
            if not _is_ours(ours) or os.path.lexists(f"/proc/self/fd/{ours.fd}/{_UNWRITTEN}"):
                return False
            if not _has_marker(ours):
                _write_marker(ours, job, stored=stored)
            return _is_unlocked(ours) and all(_make(ours, folder) for folder in folders)
    except OSError:
        return False


class WatchedDisk:
    """The filesystem of a target, watched for writes that fail from now on. It keeps a removable disk mounted until it is closed.

    `folder`: the target as it was opened, whoever exchanges its name.

    Why besides `sync -f`: of a write that failed each open file is told once, but of those that are opened later only the first. So after
    the sync of another program, such as of a second run to the same disk, our own would find nothing wrong.
    """

    def __init__(self, root: str) -> None:
        with Folder.at_place(root) as place:
            self._fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place.fd)
        self.folder = f"/proc/{os.getpid()}/fd/{self._fd}"

    def open_folder(self) -> Folder:
        """Open the target anew, the very folder that is watched. Raises: OSError."""
        return Folder(self.folder)

    def require_written(self) -> None:
        """Check that no write failed since then, once all was written. Raises: OSError."""
        import ctypes  # 1.5 ms that a run without changes saves

        if ctypes.CDLL(None, use_errno=True).syncfs(self._fd):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Keep a note in our folder until all is written to the disk; it stays after an error. Raises: OSError."""
        with self.open_folder() as place, place.enter(_OURS) as ours, _noted(ours):
            yield

    def close(self) -> None:
        """Let the disk go."""
        os.close(self._fd)


def publish_point(open_root: Callable[[], Folder], name: str, manifest: str, sync: Callable[[int], None]) -> bool:
    """Give manifest, tree and `latest` their names, each by one rename; what fails on the way is taken back.

    `open_root`: opens the target's folder, or raises OSError. `manifest`: below it, in our own folder. `sync`: writes the filesystem
    of an open folder to the disk, before and after, or raises; False is never returned for that. Why no system call: Linux tells a
    write error once, so the script, which would sync next, would know nothing of it, and publish what is not on the disk. Raises: what `sync` raises.
    """
    try:
        with open_root() as place, place.enter(_OURS) as ours:
            if not _is_ours(ours) or not _name_point(place, ours, name, manifest.rpartition("/")[2], sync):
                return False
            fd = os.dup(ours.fd)
    except OSError:
        return False
    try:
        sync(fd)
    finally:
        os.close(fd)
    return True


def _name_point(place: Folder, ours: Folder, name: str, manifest: str, sync: Callable[[int], None]) -> bool:
    listed = f"{name}.manifest.gz"
    with ours.enter(_WORK) as work, place.make_folder(_POINTS) as points:
        if not _is_ours(points) or _is_there(points, name) or _is_there(points, listed):
            return False
        with _noted(ours):
            sync(work.fd)
        with _moved(ours, manifest, points, listed), _moved(ours, _WORK, points, name):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_LATEST, dir_fd=ours.fd)
            os.symlink(f"{_POINTS}/{name}", _LATEST, dir_fd=ours.fd)
            os.rename(_LATEST, _LATEST, src_dir_fd=ours.fd, dst_dir_fd=place.fd)
    return True


@contextlib.contextmanager
def _noted(ours: Folder) -> Iterator[None]:
    """Keep a note until all is written to the disk; it stays after an error. Why: see `sync-noted.sh`."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_UNWRITTEN, dir_fd=ours.fd)
    with _new_file(ours.fd, _UNWRITTEN) as fd:
        os.fsync(fd)
    yield
    os.unlink(_UNWRITTEN, dir_fd=ours.fd)


@contextlib.contextmanager
def _moved(one: Folder, old: str, other: Folder, new: str) -> Iterator[None]:
    """Move an entry; after an error it is moved back."""
    os.rename(old, new, src_dir_fd=one.fd, dst_dir_fd=other.fd)
    try:
        yield
    except OSError:
        os.rename(new, old, src_dir_fd=other.fd, dst_dir_fd=one.fd)
        raise


def _is_ours(folder: Folder) -> bool:
    """Return whether a folder belongs to us. Why no more: an NFS server may give to nobody all that root makes, see the script."""
    return os.fstat(folder.fd).st_uid == os.geteuid()


def _is_there(folder: Folder, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder.fd)
    except FileNotFoundError:
        return False
    return True


def _has_marker(ours: Folder) -> bool:
    """Return whether there is a marker; one that holds nothing is none: a power cut may leave it empty, or full of zeros."""
    try:
        with open(ours.open_file("target.json"), "rb") as file:
            return bool(file.read(4096).partition(b"\n")[0].strip(b"\0\t "))
    except FileNotFoundError:
        return False


def _write_marker(ours: Folder, job: str, *, stored: bool) -> None:
    for name in ("probe", "target.json.new"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=ours.fd)
    with open(os.open("target.json.new", _NEW, 0o600, dir_fd=ours.fd), "wb") as file:
        os.utime(file.fileno(), ns=(1_123_456_789, 1_123_456_789))
        coarse = "false" if os.fstat(file.fileno()).st_mtime_ns == 1_123_456_789 else "true"
        more = ', "fake-super": true' if stored else ""
        file.write(os.fsencode(f'{{"format": 1, "job": "{job}", "coarse": {coarse}{more}}}\n'))
    os.rename("target.json.new", "target.json", src_dir_fd=ours.fd, dst_dir_fd=ours.fd)


def _is_unlocked(ours: Folder) -> bool:
    """Return whether no receiver of an earlier run is alive; where one may be, the script waits for it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    lock = os.open("lock", flags, 0o600, dir_fd=ours.fd)
    try:
        if not stat.S_ISREG(os.fstat(lock).st_mode):
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(lock)
    return True


def _make(ours: Folder, name: str) -> bool:
    with ours.make_folder(name):
        return True


@contextlib.contextmanager
def _emptied(room: Folder, above: Folder) -> Iterator[None]:
    """Remove the folder and all in it afterwards: files, and folders that are empty."""
    try:
        yield
    finally:
        for name in os.listdir(room.fd):
            remove = os.rmdir if stat.S_ISDIR(os.lstat(name, dir_fd=room.fd).st_mode) else os.unlink
            remove(name, dir_fd=room.fd)
        os.rmdir(_TRIED, dir_fd=above.fd)


@contextlib.contextmanager
def _new_file(room: int, name: str | bytes) -> Iterator[int]:
    fd = os.open(name, _NEW, 0o600, dir_fd=room)
    try:
        yield fd
    finally:
        os.close(fd)


def _kind(room: int, name: str) -> int:
    return stat.S_IFMT(os.stat(name, dir_fd=room, follow_symlinks=False).st_mode)


def _owners(room: int) -> bool:
    with _new_file(room, "owned") as fd:
        os.fchown(fd, _ANYBODY, _ANYBODY)
        seen = os.stat("owned", dir_fd=room, follow_symlinks=False)
    return (seen.st_uid, seen.st_gid) == (_ANYBODY, _ANYBODY)


def _modes(room: int) -> bool:
    os.mkdir("folder", 0o700, dir_fd=room)
    folder = os.open("folder", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=room)
    try:
        os.fchmod(folder, 0o751)
    finally:
        os.close(folder)
    with _new_file(room, "file") as fd:
        os.fchmod(fd, 0o640)
    seen = (os.stat(name, dir_fd=room, follow_symlinks=False) for name in ("folder", "file"))
    return [stat.S_IMODE(each.st_mode) for each in seen] == [0o751, 0o640]


def _hard_links(room: int) -> bool:
    os.link("new", "linked", src_dir_fd=room, dst_dir_fd=room, follow_symlinks=False)
    one, other = (os.stat(name, dir_fd=room, follow_symlinks=False) for name in ("new", "linked"))
    return os.path.samestat(one, other)


def _symlinks(room: int) -> bool:
    os.symlink("nowhere", "link", dir_fd=room)
    return _kind(room, "link") == stat.S_IFLNK


def _fifos(room: int) -> bool:
    os.mkfifo("fifo", 0o600, dir_fd=room)
    return _kind(room, "fifo") == stat.S_IFIFO


def _devices(room: int) -> bool:
    os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 3), dir_fd=room)
    return _kind(room, "device") == stat.S_IFCHR


def _has_attributes(room: int, file: str, values: tuple[tuple[str, bytes], ...]) -> bool:
    with _new_file(room, file) as fd:
        for name, value in values:
            os.setxattr(fd, name, value)
    return True


def _access_lists(room: int) -> bool:
    return _has_attributes(room, "listed", (("system.posix_acl_access", _ACCESS_LIST),))


def _attributes(room: int) -> bool:
    return _has_attributes(room, "attributed", (("user.poolferry", b"1"), ("trusted.poolferry", b"1")))


def _stored_metadata(room: int) -> bool:
    return _has_attributes(room, "stored", (("user.rsync.%stat", _STORED),))


def _names(room: int) -> bool:
    for name in (_LONG, _CHARACTERS, _NOT_UTF8):
        with _new_file(room, name):
            pass
    return not os.path.exists(f"/proc/self/fd/{room}/NEW")


def _times(room: int) -> bool:
    for number, time in enumerate(_TIMES):
        with _new_file(room, f"time{number}") as fd:
            os.utime(fd, (time, time))
    seen = (os.stat(f"time{number}", dir_fd=room, follow_symlinks=False) for number in range(len(_TIMES)))
    return [each.st_mtime_ns for each in seen] == [time * 10**9 for time in _TIMES]


_TRIALS: dict[str, Callable[[int], bool]] = {
    "owners": _owners, "modes": _modes, "hard-links": _hard_links, "symlinks": _symlinks, "fifos": _fifos, "devices": _devices,
    "acls": _access_lists, "xattrs": _attributes, "names": _names, "times": _times, "fake-super": _stored_metadata,
}  # fmt: skip
