"""A program that writes the small plain files of a tree into a new one, before rsync does the rest: TREE WHICH OF LEFT RESERVED…, in the new tree.

Nobody else enters the tree that it is started in, and nobody changes TREE. It reads paths below both trees from its input, with "/"
before and NUL after each; a folder stands for all below it. Of so many such programs side by side each takes other files, by their
inodes, so that all names of one file are met by the same. It leaves to the copy that follows: what folders are like, files with
attributes, large ones, links, files of several names in TREE, and what it could not do, with the words for why not. It writes the paths
of what it leaves in the same form, so that rsync is told them and walks through no tree again: to LEFT-single those that stand for
themselves alone, to LEFT-whole those with all below them, which are all that it was told until it has come to its end.
A file gets its time last, so a copy takes none for whole that is not. It prints as rsync does how many bytes are written so far.
Why: of small files in memory rsync takes 45 microseconds of processor for each, this takes 20.
"""

import contextlib
import errno
import os
import stat
import sys
from array import array
from itertools import islice, pairwise

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from typing import NoReturn

LARGEST = 64 << 10  # bytes; in larger files rsync's work for each byte weighs more
_HOLE = bytes(4096)
_HOLEY = 8 << 10  # bytes; so much less space than its size is no filesystem's way to pack a file
DEEPEST = 100  # folders on a way that stay open, two descriptors each: a process has 1024
_NEIGHBOURS = 7  # bits: so many files that were made one after the other, mostly in one folder, go to one program
_SORTED = 10_000  # entries that are sorted at once
_TOLD = 512  # entries between two reports
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP, errno.ENOENT)  # what is named is something else, or has gone
# What another file would only meet again.
ALL_ALIKE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EPERM, errno.ENOTSUP)


class TargetTakesNothing(Exception):
    """The filesystem takes nothing more, or no file as it is; the copy that follows does what it can, and says so."""


class LeftPaths:
    """The paths that are left to the copy that follows: `single`: by themselves; `whole`: with all that lies below them."""

    def __init__(self) -> None:
        self.single, self.whole = list[str](), list[str]()

    def write(self, to: str, front: str) -> None:
        """Write both lists to files that begin with `to`, with `front` before each path. Raises: OSError.

        Each is whole at once, the second one last: without the first, it stands for everything.
        """
        for kind, paths in (("single", self.single), ("whole", self.whole)):
            with open(f"{to}-{kind}.new", "wb") as file:
                file.write(b"".join(os.fsencode(f"{front}{path}") + b"\0" for path in paths))
            os.replace(f"{to}-{kind}.new", f"{to}-{kind}")


class PlainFileWriter:
    """A writer of plain files of folders into their counterparts. `reserved`: names that are left out, in any folder.

    `tell` is called with the bytes so far, now and then. `share`: its number, and how many share the files.
    """

    def __init__(
        self, reserved: "Collection[str]", tell: "Callable[[int], object]", share: tuple[int, int] = (0, 1)
    ) -> None:
        self._reserved, self._tell = frozenset((*reserved, "", ".", "..")), tell
        self._which, self._of = share
        self._seen = 0
        self._met = array("Q")  # inodes of files that may have more names
        self._again = frozenset[int]()  # those that were met by more than one
        self._entered = set[str]()  # folders above the paths that were told
        self.left = LeftPaths()
        self.above = ""  # the path of the folder whose files are written
        self.bytes = 0

    def write(self, path: str, old: int, new: int, above: str = "") -> None:
        """Write what lies at a relative path below two open folders, itself or all below it. Raises: TargetTakesNothing.

        `above`: the path of those folders in the tree, with "/" at its end.
        """
        name, _, rest = path.partition("/")
        if name in self._reserved:
            return
        if above.count("/") > DEEPEST:
            self.left.whole.append(above + path)
            return
        try:
            if rest or stat.S_ISDIR((found := os.stat(name, dir_fd=old, follow_symlinks=False)).st_mode):
                with enter_both(name, old, new) as pair:
                    inside = f"{above}{name}/"
                    if (
                        rest not in ("", ".") and inside not in self._entered
                    ):  # rsync brings what is above a path only with the path
                        self._entered.add(inside)
                        self.left.single.append(above + name)
                    for inner in (rest,) if rest else self.write_files(*pair, inside):
                        self.write(inner, *pair, inside)
            elif self._takes(found.st_ino):
                self.above = above
                self.write_file(name, old, new)
        except OSError as error:
            left = self.left.single if error.errno in _NO_FOLDER else self.left.whole
            left.append(above + path.removesuffix("/."))

    def write_files(self, old: int, new: int, above: str) -> list[str]:
        """Write the files of a folder; return the names of its folders. Raises: TargetTakesNothing · OSError."""
        folders, self.above = [], above
        if self._names_folder():
            self._leave(above[:-1])
        with os.scandir(old) as entries:
            for entry in _in_order(entries):
                if entry.name in self._reserved:  # rsync passes over it, too
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif not self._takes(entry.inode()):
                    continue
                elif entry.is_file(follow_symlinks=False):
                    self.write_file(entry.name, old, new)
                else:
                    entry.stat(
                        follow_symlinks=False
                    )  # rsync names what cannot be looked at only in a folder that it walks through
                    self._leave(above + entry.name)
        return folders

    def _takes(self, inode: int, /) -> bool:
        return (inode >> _NEIGHBOURS) % self._of == self._which

    def _names_folder(self) -> bool:
        return not self._which

    def _leave(self, path: str) -> None:
        self.left.single.append(path)

    def write_file(self, name: str, old: int, new: int) -> None:
        """Write one file, where it is for us. Raises: TargetTakesNothing."""
        self.count()
        try:
            found, content = _read_plain(name, old)
            if content is None:
                self._leave(self.above + name)
                return
            if found.st_nlink > 1:
                self._met.append(found.st_ino)
            made = make_file(name, new, found, content)
        except OSError:  # what cannot be read, or is there already
            self._leave(self.above + name)
            return
        try:
            give_time(made, found)
        except OSError as error:
            os.unlink(name, dir_fd=new)
            raise TargetTakesNothing from error
        finally:
            os.close(made)
        self.bytes += len(content)

    def end(self) -> None:
        """Find the files that were met by several names, see `name_again`. Why so late: a million inodes take a tenth of the memory so."""
        met = sorted(self._met)
        self._again = frozenset(one for one, next_one in pairwise(met) if one == next_one)

    def name_again(self, path: str, old: int, above: str = "") -> None:
        """Leave to the copy, of what lies at a path, all names of the files that were met by several: rsync links them. Raises: OSError."""
        if not self._again:
            return
        name, _, rest = path.partition("/")
        if name in self._reserved or above.count("/") > DEEPEST:
            return
        if not rest and not stat.S_ISDIR((found := os.stat(name, dir_fd=old, follow_symlinks=False)).st_mode):
            if found.st_ino in self._again:
                self.left.single.append(above + name)
            return
        inner = os.open(name, FOLDER, dir_fd=old)
        try:
            for each in (rest,) if rest else self._names_again(inner, f"{above}{name}/"):
                self.name_again(each, inner, f"{above}{name}/")
        finally:
            os.close(inner)

    def _names_again(self, folder: int, above: str) -> list[str]:
        folders = []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.inode() in self._again:
                    self.left.single.append(above + entry.name)
        return folders

    def count(self) -> None:
        """Count one more file, and tell now and then."""
        self._seen += 1
        if not self._seen % _TOLD:
            self._tell(self.bytes)


def _in_order(entries: "Iterable[os.DirEntry[str]]") -> "Iterator[os.DirEntry[str]]":
    """Yield entries many at once in the order of their inodes, so that a disk that turns reads them in the order in which they lie."""
    entries = iter(entries)
    while some := sorted(islice(entries, _SORTED), key=os.DirEntry.inode):
        yield from some


def _read_plain(name: str, old: int) -> "tuple[os.stat_result, bytes | None]":
    """Return status and content of a file; no content: it is none for us. Raises: OSError."""
    file = os.open(name, READ, dir_fd=old)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST or os.listxattr(file):
            return found, None
        content = os.read(file, LARGEST + 1)
        return found, content if len(content) == found.st_size else None
    finally:
        os.close(file)


def make_file(name: str, new: int, found: os.stat_result, content: bytes) -> int:
    """Make a file with content, owner and mode, and not its time yet; return its descriptor.

    Raises: TargetTakesNothing · OSError, such as where it is there already.
    """
    made = os.open(name, _NEW, 0o600, dir_fd=new)
    try:
        if found.st_blocks * 512 + _HOLEY <= len(content) and _HOLE in content:
            _write_with_holes(made, content)
        elif content:
            _write_all(made, content)
        os.fchown(
            made, found.st_uid, found.st_gid
        )  # also root's: a folder may give its own group to what is made in it
        os.fchmod(made, stat.S_IMODE(found.st_mode))
    except OSError as error:
        os.close(made)
        os.unlink(name, dir_fd=new)
        if error.errno in ALL_ALIKE:
            raise TargetTakesNothing from error
        raise
    return made


def _write_all(made: int, content: bytes) -> None:
    if os.write(made, content) != len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _write_with_holes(made: int, content: bytes) -> None:
    """Write content to a new file; blocks of zeros become holes. Raises: OSError."""
    for at in range(0, len(content), len(_HOLE)):
        if (block := content[at : at + len(_HOLE)]).strip(b"\0"):
            os.lseek(made, at, os.SEEK_SET)
            _write_all(made, block)
    os.ftruncate(made, len(content))


def give_time(made: int, found: os.stat_result) -> None:
    """Give a file its time, after which the copy takes it for whole. Raises: OSError."""
    os.utime(made, ns=(os.fstat(made).st_atime_ns, found.st_mtime_ns))
    # A filesystem that keeps whole seconds would have rsync copy each file once more.
    if os.fstat(made).st_mtime_ns != found.st_mtime_ns:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


@contextlib.contextmanager
def enter_both(name: str, old: int, new: int) -> "Iterator[tuple[int, int]]":
    """Open a folder and its counterpart, which is made where it lacks. Raises: OSError."""
    inner = os.open(name, FOLDER, dir_fd=old)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=new)
        made = os.open(name, FOLDER, dir_fd=new)
        try:
            yield inner, made
        finally:
            os.close(made)
    finally:
        os.close(inner)


def open_copy() -> int:
    """Open the folder that the program was started in. Raises: TargetTakesNothing where it hands access lists on · OSError."""
    folder = os.open(".", FOLDER)
    try:
        handed_on = os.listxattr(folder)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return folder
    if "system.posix_acl_default" in handed_on:
        raise TargetTakesNothing
    return folder


def open_tree(path: str) -> int:
    """Open a folder by its path, in which no part is a link. Raises: OSError."""
    folder = os.open("/", FOLDER)
    for part in filter(None, path.split("/")):
        try:
            inner = os.open(part, FOLDER, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    return folder


def _tell(count: int) -> None:
    sys.stdout.write(f"\n{count} 0% \n")
    sys.stdout.flush()


def main(words: list[str]) -> None:
    """Write ahead what the paths on the input name. `words`: the tree, where what is left is told, and the names that are left out.

    Raises: OSError where that cannot be told.
    """
    tree, which, many, told, *reserved = words
    writer, everything = PlainFileWriter(reserved, _tell, (int(which), int(many))), LeftPaths()
    paths = [os.fsdecode(each).removeprefix("/") for each in sys.stdin.buffer.read().split(b"\0") if each]
    everything.whole = paths
    everything.write(told, "/")
    with contextlib.suppress(TargetTakesNothing, OSError):
        old, new = open_tree(tree), open_copy()
        for path in paths:
            writer.write(path, old, new)
        writer.end()
        for path in paths:
            writer.name_again(path, old)
        everything = writer.left
    everything.write(told, "/")
    _tell(writer.bytes)


def program() -> "NoReturn":
    """Do what the command line says, and exit at once."""
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)
