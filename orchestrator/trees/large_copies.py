"""A program that copies large plain files of a source into a new copy, before rsync does the rest: TREE LEAST HOW BASE RESERVED…, in the copy.

As `source_files`, for the files of at least LEAST bytes whose paths it reads. rsync takes two and a half times the processor for each byte:
here it is read once, and hashed before it is written; where both sides are one filesystem that clones, it is cloned, and its digest read
from the clone. Until it is whole, a file lies in the first RESERVED folder beside its place, as rsync's remainders do, and is taken up
from there after a cut. HOW: words with a comma between them; "holes": longer runs of zeros become holes; "linked": a file may have several names,
as in a point, and only one of those that are told. BASE: a point on a filesystem that clones, or "-": a file that it has there at the same path is
cloned, both are compared as they are read, and only blocks that differ are written. It leaves to the copy that follows other files of several names, with
holes, on other filesystems, and what changed while it was read or just before. Where the target takes nothing more, it ends.
"""

import contextlib
import errno
import fcntl
import os
import stat
import sys
from time import clock_gettime_ns

from orchestrator.trees.plain_files import (
    ALL_ALIKE,
    DEEPEST,
    FOLDER,
    READ,
    TargetTakesNothing,
    enter_both,
    give_time,
    open_tree,
)
from orchestrator.trees.source_files import FILE_CLOCK, digest_line, is_young, report

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from typing import NoReturn

PIECE = 1 << 20  # bytes that are read at once; all that is in memory
_HOLE = bytes(64 << 10)  # rsync makes holes of shorter runs, too; each is looked for in each piece
_BLOCK = 4096  # bytes that are compared, and written where they differ; no filesystem shares less
_TOLD = 32  # pieces between two reports
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FICLONE = 0x40049409  # Source: linux/fs.h, _IOW(0x94, 9, int)
_NEVER = (errno.EOPNOTSUPP, errno.EXDEV, errno.ENOTTY, errno.ENOSYS)
_NOT_THIS = (errno.EINVAL, errno.EPERM, errno.ETXTBSY)  # such as a file without checksums on btrfs, or one to swap to


class ClonesRefused(OSError):
    """The filesystem makes no clones, or none between these two trees."""


def share_blocks(file: int, made: int) -> bool:
    """Let an empty file share the blocks of another one until one of the two is written; False: it cannot be with this one.

    Raises: ClonesRefused · OSError.
    """
    try:
        fcntl.ioctl(made, _FICLONE, file)
    except OSError as error:
        if error.errno in _NEVER:
            raise ClonesRefused(error.errno, error.strerror) from error
        if error.errno not in _NOT_THIS:
            raise
        return False
    return True


class _Changed(Exception):
    """The file is not as it was when it was opened."""


class LargeFileWriter:
    """A writer of large plain files into the same places of a copy. `partial`: the folder for what is not whole; `device`: the source's.

    `tell` takes lines as rsync writes them. `holes`: long runs of zeros become holes; `linked`: files may have several names. `base`: the
    folder of a point whose files may share blocks with new ones; -1: none.
    """

    def __init__(
        self, reserved: "Collection[str]", partial: str, tell: "Callable[[bytes], object]", device: int, *, least: int, holes: bool,
        linked: bool = False, base: int = -1,
    ) -> None:  # fmt: skip
        from xxhash import xxh3_128

        self._reserved, self._partial = frozenset((*reserved, partial, "", ".", "..")), partial
        self._report, self._device, self._digest = tell, device, xxh3_128
        self._least, self._holes, self._linked = least, holes, linked
        self._clones, self._base = True, base
        self._buffer, self._other = bytearray(PIECE), bytearray(PIECE if base >= 0 else 0)
        self._pieces = 0
        self.bytes = 0

    def write(self, path: str, old: int, new: int) -> None:
        """Write the file at a relative path below two open folders, where it is for us. Raises: TargetTakesNothing."""
        *folders, name = path.split("/")
        if len(folders) > DEEPEST or not self._reserved.isdisjoint((*folders, name)):
            return
        with contextlib.suppress(OSError), contextlib.ExitStack() as opened:  # such as what has become a link
            file = self._open(folders, name, old)
            opened.callback(os.close, file)
            found = os.fstat(file)
            if not self._is_ours(file, found):
                return
            for folder in folders:
                old, new = opened.enter_context(enter_both(folder, old, new))
            if not _is_there(name, new):
                self._write(path, file, found, new)

    def _open(self, folders: list[str], name: str, old: int) -> int:
        """Open a file, before anything is made for it in the copy. Raises: OSError."""
        with contextlib.ExitStack() as opened:
            for folder in folders:
                old = os.open(folder, FOLDER, dir_fd=old)
                opened.callback(os.close, old)
            return os.open(name, READ | os.O_NOATIME, dir_fd=old)

    def _is_ours(self, file: int, found: os.stat_result) -> bool:
        alone = found.st_nlink == 1 or self._linked
        plain = stat.S_ISREG(found.st_mode) and alone and found.st_dev == self._device
        if not plain or found.st_size < self._least or is_young(found.st_ctime_ns, clock_gettime_ns(FILE_CLOCK)):
            return False
        whole = os.lseek(file, 0, os.SEEK_HOLE) >= found.st_size
        os.lseek(file, 0, os.SEEK_SET)
        return whole

    def _write(self, path: str, file: int, found: os.stat_result, new: int) -> None:
        """Write a file into its partial folder, and name it once it is whole. Raises: TargetTakesNothing · OSError."""
        name, before = path.rpartition("/")[2], self.bytes
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._partial, 0o700, dir_fd=new)
        room = os.open(self._partial, FOLDER, dir_fd=new)
        try:
            made = os.open(name, _NEW, 0o600, dir_fd=room)
            try:
                digest = self._fill(made, file, found, path)
                os.fchown(made, found.st_uid, found.st_gid)
                os.fchmod(made, stat.S_IMODE(found.st_mode))
                self._tell(digest_line(path, found.st_size, digest))  # a file that counts for whole is reported
                give_time(made, found)
                os.rename(name, name, src_dir_fd=room, dst_dir_fd=new)
            except (OSError, _Changed) as error:
                os.unlink(name, dir_fd=room)
                self.bytes = before
                if isinstance(error, OSError) and error.errno in ALL_ALIKE:
                    raise TargetTakesNothing from error
            finally:
                os.close(made)
        finally:
            os.close(room)
            with contextlib.suppress(OSError):  # another remainder lies there
                os.rmdir(self._partial, dir_fd=new)

    def _fill(self, made: int, file: int, found: os.stat_result, path: str) -> str:
        """Give a new file the content of another one; return the digest of what it holds. `path`: in the tree. Raises: _Changed · OSError."""
        cloned = self._clone(made, file)
        _require_same(file, found)
        if not cloned and (older := self._share_older(made, path)) >= 0:
            try:
                return self._fill_over(made, file, found, older)
            finally:
                os.close(older)
        if cloned and os.fstat(made).st_size != found.st_size:
            raise _Changed
        digest, done = self._digest(), 0
        while count := os.readv(made if cloned else file, [self._buffer]):
            done += count
            if done > found.st_size:
                raise _Changed
            with memoryview(self._buffer)[:count] as piece:
                digest.update(piece)
                if not cloned:
                    self._put(made, piece)
            self._count(count, file, found)
        if not cloned:
            os.ftruncate(made, done)
        if done != found.st_size:
            raise _Changed
        _require_same(file, found)
        return digest.hexdigest()

    def _fill_over(self, made: int, file: int, found: os.stat_result, older: int) -> str:
        """Write what differs into a file that shares the blocks of an older one; return the digest of what it holds. Raises: _Changed · OSError.

        Why the older one is read: what is new has nothing in memory yet.
        """
        digest, done = self._digest(), 0
        while count := os.readv(file, [self._buffer]):
            if done + count > found.st_size:
                raise _Changed
            with memoryview(self._buffer)[:count] as piece, memoryview(self._other)[:count] as room:
                digest.update(piece)
                known = os.preadv(older, [room], done)
                for begin, end in self._differing(count, known):
                    self.bytes += _write_at(made, piece[begin:end], done + begin)
            done += count
            self._count(0, file, found)
        os.ftruncate(made, done)
        if done != found.st_size:
            raise _Changed
        _require_same(file, found)
        return digest.hexdigest()

    def _differing(self, count: int, known: int) -> "Iterator[tuple[int, int]]":
        """Yield where the first `count` bytes of both buffers differ. `known`: bytes of the other one. Raises: _Changed where holes are due."""
        if known == count and self._buffer == self._other:
            return
        begin = -1
        for at in range(0, count, _BLOCK):
            end = min(at + _BLOCK, count)
            same = end <= known and self._buffer.startswith(self._other[at:end], at)
            if not same and begin < 0:
                begin = at
            if begin >= 0 and (same or end == count):
                begin, first, last = -1, begin, at if same else end
                if self._holes and self._buffer.find(_HOLE, first, last) >= 0:
                    raise _Changed
                yield first, last

    def _share_older(self, made: int, path: str) -> int:
        """Let an empty file share the blocks of the point's one; return that, open, or -1 where it cannot be. Raises: OSError."""
        if self._base < 0:
            return -1
        *folders, name = path.split("/")
        try:
            older = self._open(folders, name, self._base)
        except OSError:  # the point has none
            return -1
        shared = False
        try:
            shared = stat.S_ISREG(os.fstat(older).st_mode) and share_blocks(older, made)
        except ClonesRefused:
            self._base = -1
        finally:
            if not shared:
                os.close(older)
        return older if shared else -1

    def _clone(self, made: int, file: int) -> bool:
        try:
            return self._clones and share_blocks(file, made)
        except ClonesRefused:
            self._clones = False
        return False

    def _put(self, made: int, piece: memoryview) -> None:
        """Write a piece that begins the buffer. Raises: OSError."""
        at = 0
        if self._holes:
            while at < len(piece):
                end = min(at + len(_HOLE), len(piece))
                if end - at == len(_HOLE) and self._buffer.startswith(_HOLE, at):
                    os.lseek(made, len(_HOLE), os.SEEK_CUR)
                else:
                    _write_all(made, piece[at:end])
                at = end
            return
        _write_all(made, piece)

    def _count(self, count: int, file: int, found: os.stat_result) -> None:
        """Count bytes, tell them now and then, and then see whether it is worth going on. Raises: _Changed · OSError."""
        self.bytes += count
        self._pieces += 1
        if not self._pieces % _TOLD:
            self._tell("")
            _require_same(file, found)

    def _tell(self, line: str) -> None:
        self._report(os.fsencode(f"{line}\n{self.bytes} 0% \n"))


def _require_same(file: int, found: os.stat_result) -> None:
    """Check that a file is as it was found. Raises: _Changed · OSError."""
    now = os.fstat(file)
    then = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_nlink)
    if (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_nlink) != then:
        raise _Changed


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _write_all(made: int, piece: memoryview) -> None:
    while piece:
        piece = piece[os.write(made, piece) :]


def _write_at(made: int, piece: memoryview, at: int) -> int:
    """Write a piece at a place; return its bytes. Raises: OSError."""
    done = 0
    while done < len(piece):
        done += os.pwrite(made, piece[done:], at + done)
    return done


def main(words: list[str]) -> None:
    """Copy what the paths on the input name. `words`: the tree, bytes, how, a point or "-", and the names that are left out."""
    tree, least, how, point, partial, *reserved = words
    paths = [os.fsdecode(each).removeprefix("./") for each in sys.stdin.buffer.read().split(b"\0") if each]
    try:
        old, new = open_tree(tree), os.open(".", FOLDER)
        base = -1 if point == "-" else open_tree(point)
    except OSError:
        return
    device = os.fstat(old).st_dev
    kept = how.split(",")
    writer = LargeFileWriter(
        reserved, partial, report, device, least=int(least), holes="holes" in kept, linked="linked" in kept, base=base
    )
    with contextlib.suppress(TargetTakesNothing):
        for path in paths:
            writer.write(path, old, new)


def program() -> "NoReturn":
    """Do what the command line says, and exit at once."""
    main(sys.argv[1:])
    os._exit(0)
