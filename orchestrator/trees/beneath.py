"""Folders opened by descriptor, and operations below them that never follow a link.

Why no path: between the check of a path and the action, its owner can replace a part of it by a symlink. A descriptor always
refers to the same file. Each component is opened relative to its parent with O_NOFOLLOW, so a link on the way is an error.

Why not openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS): Python has no call for it, ctypes costs each start 5 ms, and opening
component by component guarantees the same: `..` and absolute names are refused before anything is opened.
"""

import contextlib
import errno
import os
import shlex
import stat
import struct
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import BinaryIO

from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.names import show_name

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PASSED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC  # who may not list a folder may yet pass through it
# A pipe or a device in place of a file must neither block nor cause an effect.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


_MOST_LINKS = 40  # as Linux follows in one path
_ACL_WRITE, _ACL_USER, _ACL_GROUP, _ACL_MASK = 2, 0x02, 0x08, 0x10


class Untrusted(OSError):
    """An entry that poolferry would not have made: a link, a pipe, a file that is too large, a path that leads outside."""


class Folder:
    """One open folder. Names are bytes or text, relative, without `..`; nothing below it is reached through a link.

    The folder's own path comes from the administrator: links in it are followed once, when it is opened.
    """

    def __init__(self, path: str | bytes) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._shown = os.fsdecode(path)

    @classmethod
    def at_place(cls, path: str, *, make: bool = False) -> "Folder":
        """Open a folder that a person named, where others may own what lies above: of the links on the way only root's and our own
        are followed, and these only where nobody else can exchange them between two looks. `make`: folders that lack are made.

        Raises: Untrusted for a link of another user, else OSError.
        """
        folder, parts, links = cls._of(os.open("/", _PASSED), "/"), os.path.abspath(path).split("/"), 0
        while parts:
            part = parts.pop(0)
            with folder:
                if part in ("", ".", ".."):
                    folder = cls._of(os.open(part or ".", _PASSED, dir_fd=folder.fd), folder._shown)
                elif target := folder._own_link(part):
                    links += 1
                    if links > _MOST_LINKS:
                        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                    parts = [*target.split("/"), *parts]
                    absolute = target.startswith("/")
                    folder = cls._of(
                        os.open("/" if absolute else ".", _PASSED, dir_fd=folder.fd), "/" if absolute else folder._shown
                    )
                else:
                    folder = folder._pass_or_make(part) if make else folder._pass(part)
        with folder:
            return cls._of(os.open(".", _FOLDER, dir_fd=folder.fd), folder._shown)

    @classmethod
    def ours_at(cls, path: str) -> "Folder":
        """Open a folder that poolferry made below such a place. Raises: Untrusted also for a folder of another user, else OSError."""
        folder = cls.at_place(path)
        try:
            if folder.is_ours():
                return folder
            raise Untrusted(errno.EPERM, "belongs to another user, and should be a folder that poolferry made", path)
        except OSError:
            folder.close()
            raise

    def is_ours(self) -> bool:
        """Return whether it belongs to us, or as all that we make there to nobody: so an NFS server may have it. Raises: OSError."""
        owner = os.fstat(self.fd).st_uid
        if owner == os.geteuid():
            return True
        name = b".%s.new" % os.urandom(8).hex().encode()
        fd = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.fd)
        try:
            return os.fstat(fd).st_uid == owner
        finally:
            os.close(fd)
            os.unlink(name, dir_fd=self.fd)

    @property
    def held(self) -> str:
        """Return a path that leads to this very folder while it is open, whoever exchanges its name; for programs of ours, too."""
        return f"/proc/{os.getpid()}/fd/{self.fd}"

    def _pass(self, name: str) -> "Folder":
        """Open a folder in this one, which need not be readable. Raises: Untrusted, OSError."""
        shown = f"{self._shown.rstrip('/')}/{name}"
        try:
            return self._of(os.open(name, _PASSED, dir_fd=self.fd), shown)
        except OSError as error:
            raise _untrusted(error, shown, "a folder") from error

    def _pass_or_make(self, name: str) -> "Folder":
        """Do the same, with the usual mode where it is made."""
        try:
            return self._pass(name)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.fd)
            return self._pass(name)

    def _own_link(self, name: str) -> str:
        """Return where a link of root's or ours in this folder leads; empty: it is no link. Raises: Untrusted for another's."""
        try:
            target, owner = os.readlink(name, dir_fd=self.fd), self.status(name).st_uid
        except OSError:
            return ""
        if owner not in (0, os.geteuid()) or not self._is_ours():
            raise Untrusted(
                errno.ELOOP,
                "is a link of another user, who could lead it elsewhere",
                f"{self._shown.rstrip('/')}/{name}",
            )
        return target

    def _is_ours(self) -> bool:
        """Return whether only root and we can exchange names in this folder; with the sticky bit all rename only their own."""
        seen = os.fstat(self.fd)
        loose = seen.st_mode & (stat.S_IWOTH if seen.st_gid in (0, os.getegid()) else stat.S_IWGRP | stat.S_IWOTH)
        return seen.st_uid in (0, os.geteuid()) and (not loose or bool(seen.st_mode & stat.S_ISVTX))

    @property
    def shown(self) -> str:
        """Return the path by which it was opened."""
        return self._shown

    @classmethod
    def _of(cls, fd: int, shown: str) -> "Folder":
        made = cls.__new__(cls)
        made.fd, made._shown = fd, shown
        return made

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)

    def enter(self, path: str | bytes) -> "Folder":
        """Open a folder below, component by component. Raises: Untrusted for a link or `..`, else OSError."""
        parts = self._parts(path)
        fd = os.dup(self.fd)
        shown = self._shown
        for part in parts:
            shown = f"{shown.rstrip('/')}/{os.fsdecode(part)}"
            try:
                inner = os.open(part, _FOLDER, dir_fd=fd)
            except OSError as error:
                raise _untrusted(error, shown, "a folder") from error
            finally:
                os.close(fd)
            fd = inner
        return self._of(fd, shown)

    def open_file(self, name: str | bytes, *, change: bool = False) -> int:
        """Return a descriptor of a regular file below, open for reading, or to `change` it too. Raises: Untrusted, OSError."""
        with self._parent(name) as parent:
            last = self._parts(name)[-1]
            shown = f"{parent._shown.rstrip('/')}/{os.fsdecode(last)}"
            try:
                fd = os.open(last, _FILE | (os.O_RDWR if change else os.O_RDONLY), dir_fd=parent.fd)
            except OSError as error:
                raise _untrusted(error, shown, "a file") from error
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise Untrusted(errno.EINVAL, "is no regular file", shown)
        return fd

    def read_file(self, name: str | bytes, *, limit: int) -> bytes:
        """Return the content of a regular file below. `limit`: bytes; a larger file is refused. Raises: Untrusted, OSError."""
        with open(self.open_file(name), "rb") as file:
            content = file.read(limit + 1)
        if len(content) > limit:
            raise Untrusted(errno.EFBIG, f"is larger than {limit} bytes", f"{self._shown}/{os.fsdecode(name)}")
        return content

    def write_file(self, name: str | bytes, content: bytes, *, mode: int = 0o600) -> None:
        """Write a file in this folder, completely or not at all: a new file that is synced and then gets the name.

        A link or a pipe of that name is replaced, never written through. Raises: Untrusted, OSError.
        """
        with self.new_file(name, mode=mode) as file:
            file.write(content)

    @contextlib.contextmanager
    def new_file(
        self, name: str | bytes, *, mode: int = 0o600, lasting: bool = True, through: str = ""
    ) -> Iterator[BinaryIO]:
        """Yield a new file in this folder, which is synced and gets the name at the end; after a failure it is removed.

        A link or a pipe of that name is replaced, never written through. `lasting` False: after a power cut there may be the file
        from before, whole. `through`: its name until then, where nobody else writes; what a cut left there is removed. Raises: Untrusted,
        OSError.
        """
        (last,) = self._one(name)
        new = through.encode() or b".%s.%s.new" % (last[:200], os.urandom(8).hex().encode())
        with self._named(last):
            if through:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(new, dir_fd=self.fd)
            fd = os.open(
                new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self.fd
            )
        try:
            with open(fd, "wb") as file:
                yield file
                os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
            with self._named(last):
                os.rename(new, last, src_dir_fd=self.fd, dst_dir_fd=self.fd)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new, dir_fd=self.fd)
            raise
        if lasting:
            os.fsync(self.fd)

    def create_file(self, name: str, content: bytes, *, mode: int = 0o600) -> None:
        """Write a new file, completely or not at all. Raises: FileExistsError, OSError.

        Why a link: a file that is opened with O_EXCL has the name before it has its content.
        """
        (last,) = self._one(name)
        new = b".%s.%s.new" % (last[:200], os.urandom(8).hex().encode())
        self.write_file(new, content, mode=mode)
        try:
            with self._named(last):
                os.link(new, last, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
        finally:
            os.unlink(new, dir_fd=self.fd)
        os.fsync(self.fd)

    def make_folder(self, name: str | bytes, *, mode: int = 0o700) -> "Folder":
        """Return the folder of that name in this one; create it if missing. Raises: Untrusted, OSError."""
        (last,) = self._one(name)
        with contextlib.suppress(FileExistsError), self._named(last):
            os.mkdir(last, mode, dir_fd=self.fd)
        return self.enter(last)

    def make_private(self) -> bool:
        """Restrict this folder to its owner; return whether it was open to others. Raises: Untrusted when it is not ours."""
        seen = os.fstat(self.fd)
        if seen.st_uid != os.geteuid():
            raise Untrusted(errno.EPERM, f"belongs to the user {seen.st_uid}, not to us", self._shown)
        if not stat.S_IMODE(seen.st_mode) & 0o077:
            return False
        os.fchmod(self.fd, stat.S_IMODE(seen.st_mode) & 0o700)
        return True

    def status(self, name: str | bytes) -> os.stat_result:
        """Return the status of the entry of that name below; of a link, its own. Raises: Untrusted, OSError."""
        with self._parent(name) as parent, parent._named(self._parts(name)[-1]):
            return os.stat(self._parts(name)[-1], dir_fd=parent.fd, follow_symlinks=False)

    def remove_file(self, name: str | bytes) -> None:
        """Remove the entry of that name below, unless it is a folder. A link is removed, not its target. Raises: OSError."""
        with self._parent(name) as parent, parent._named(self._parts(name)[-1]):
            os.unlink(self._parts(name)[-1], dir_fd=parent.fd)

    def rename(self, old: str | bytes, new: str | bytes) -> None:
        """Rename within this folder's tree; links on the way are refused. Raises: Untrusted, OSError."""
        with self._parent(old) as one, self._parent(new) as other, one._named(self._parts(old)[-1]):
            os.rename(self._parts(old)[-1], self._parts(new)[-1], src_dir_fd=one.fd, dst_dir_fd=other.fd)

    @contextlib.contextmanager
    def _named(self, last: bytes) -> Iterator[None]:
        """Give an error of the system the whole path of the entry, in place of its last part."""
        try:
            yield
        except OSError as error:
            error.filename = f"{self._shown.rstrip('/')}/{os.fsdecode(last)}"
            raise

    def _parent(self, name: str | bytes) -> "Folder":
        return self.enter(b"/".join(self._parts(name)[:-1]))

    def _one(self, name: str | bytes) -> list[bytes]:
        parts = self._parts(name)
        if len(parts) != 1:
            raise Untrusted(errno.EINVAL, "is no single name", os.fsdecode(name))
        return parts

    def _parts(self, path: str | bytes) -> list[bytes]:
        whole = os.fsencode(path)
        if whole.startswith(b"/") or b"\0" in whole:
            raise Untrusted(errno.EXDEV, "leads outside of its folder", os.fsdecode(path))
        parts = [part for part in whole.split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            raise Untrusted(errno.EXDEV, "leads outside of its folder", os.fsdecode(path))
        return parts


def _untrusted(error: OSError, shown: str, expected: str) -> OSError:
    """Return the error for a failed opening: Untrusted for a link on the way, else the error itself."""
    if error.errno == errno.ELOOP:
        return Untrusted(errno.ELOOP, f"is a symbolic link in place of {expected}", shown)
    if error.errno == errno.ENOTDIR:
        return Untrusted(errno.ENOTDIR, f"is not {expected}", shown)
    error.filename = shown
    return error


@contextlib.contextmanager
def new_file_at(path: str, *, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Yield a new file, which gets its path at the end, whole. A person named the path; the folder may be another user's.

    Raises: Untrusted, OSError.
    """
    whole = os.path.abspath(path)
    with Folder.at_place(os.path.dirname(whole)) as folder, folder.new_file(os.path.basename(whole), mode=mode) as file:
        yield file


def open_to_others(seen: os.stat_result, owners: tuple[int, ...]) -> str:
    """Return how others than these owners could read or write a file that is to be secret; empty: they cannot."""
    if seen.st_uid not in owners:
        return f"belongs to the user {seen.st_uid}"
    return f"is open to others (mode {stat.S_IMODE(seen.st_mode):04o})" if stat.S_IMODE(seen.st_mode) & 0o077 else ""


def writable_by_others(paths: Iterable[str], seen: dict[str, bool] | None = None) -> Iterator[ConfigMistake]:
    """Yield a mistake for each of these files, and each folder above them, that another user may change.

    Each link on the way counts, and the real path behind them. A missing file is no mistake here. `seen`: paths that were looked at
    before, and whether a link is in them.
    """
    known = {} if seen is None else seen
    for path in paths:
        written = os.path.abspath(path)
        yield from _look_upwards(written, known)
        if known[written]:
            for way in _ways(path):
                yield from _look_upwards(way, known)


def _look_upwards(path: str, known: dict[str, bool]) -> Iterator[ConfigMistake]:
    """Yield the mistakes of a path and of the folders above it, the lowest first."""
    fresh, each = [], path
    while each not in known:
        fresh.append(each)
        known[each] = False
        each = os.path.dirname(each)
    linked = known[each]
    mistakes: list[ConfigMistake] = []
    for each in reversed(fresh):
        found = _status(each)
        known[each] = linked = linked or (found is not None and stat.S_ISLNK(found.st_mode))
        if found is not None:
            mistakes += _judge(each, found, above=each != path)
    yield from reversed(mistakes)


def _ways(path: str) -> Iterator[str]:
    """Yield each link by which the path leads to its file, and the file's real path. A circle of links leads to no file."""
    done, parts, links = "/", os.path.abspath(path).split("/"), 0
    while parts and links < _MOST_LINKS:
        part = parts.pop(0)
        here = os.path.dirname(done) if part == ".." else os.path.join(done, part) if part not in ("", ".") else done
        try:
            target = os.readlink(here)
        except OSError:
            done = here
            continue
        yield here
        links += 1
        done = "/" if target.startswith("/") else done
        parts = [*target.split("/"), *parts]
    yield done


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _judge(path: str, found: os.stat_result, *, above: bool) -> Iterator[ConfigMistake]:
    user = os.geteuid()
    if stat.S_ISLNK(found.st_mode):
        if found.st_uid not in (0, user):
            yield _mistake(path, f"is a link of {_owner(found.st_uid)}", f"chown -h {_name(user)}", user)
        return
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (0, user):
        yield _mistake(path, f"belongs to {_owner(found.st_uid)}", f"chown {_name(user)}", user)
        return
    # In a folder with the sticky bit, such as /tmp, users can replace only their own files.
    if above and mode & stat.S_ISVTX:
        return
    groups = (0,) if user == 0 else (0, os.getegid())  # a user's own group, as Debian makes one for each user
    loose = [word for word, bit in (("g", stat.S_IWGRP), ("o", stat.S_IWOTH)) if mode & bit]
    if loose == ["g"] and found.st_gid in groups:
        yield from _judge_group(path, found.st_gid, user)
    elif loose:
        yield _mistake(path, f"others may write it (mode {mode:04o})", f"chmod {''.join(loose)}-w", user)


def _judge_group(path: str, group: int, user: int) -> Iterator[ConfigMistake]:
    """Judge what its own group may write: others may belong to that, and with an access list its bits are those of all in it."""
    import grp

    try:
        members = [name for name in grp.getgrgid(group).gr_mem if name not in ("root", _name(user))]
    except KeyError:
        members = []
    if members:
        yield _mistake(path, f"{', '.join(members)} may write it (members of the group {group})", "chmod g-w", user)
    elif _listed_writers(path, user):
        yield _mistake(path, "its access list lets others write it", "setfacl -b", user)


def _listed_writers(path: str, user: int) -> bool:
    """Return True when the access list of a file names another user or group that may write it.

    Source: Linux, include/uapi/linux/posix_acl_xattr.h: a version, then tag, permissions and number of each entry.
    """
    try:
        text = os.getxattr(path, "system.posix_acl_access", follow_symlinks=False)
    except OSError:
        return False  # there is none, or this filesystem has none
    entries = list(struct.iter_unpack("<HHI", text[4:])) if len(text) % 8 == 4 else []
    mask = next((rights for tag, rights, _ in entries if tag == _ACL_MASK), _ACL_WRITE)
    own = {_ACL_USER: (0, user), _ACL_GROUP: (0,)}
    return any(tag in own and rights & mask & _ACL_WRITE and number not in own[tag] for tag, rights, number in entries)


def _mistake(path: str, what: str, command: str, user: int) -> ConfigMistake:
    expected = f"{_name(user)} alone to write it: {command} {shlex.quote(show_name(path))}"
    return ConfigMistake(file=show_name(path), line=None, key="", what=what, expected=expected)


def _owner(number: int) -> str:
    return f"the user {_name(number)}"


def _name(number: int) -> str:
    if number == 0:
        return "root"
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
