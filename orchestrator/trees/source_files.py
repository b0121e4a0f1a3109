"""A program that writes the small plain files of a source into a new copy, before rsync does the rest: TREE WHICH OF HOW LEFT RESERVED…, in the copy.

As `plain_files`, but other people work in the tree meanwhile, and the digest of each file is told as rsync tells it. It reads paths below
both trees from its input, with "./" before and NUL after each; only folders are meant, and "./." is all. Of so many such programs side by
side each takes the files of other folders. It leaves to the copy that follows, besides what `plain_files` leaves: files of several names,
on other filesystems or with long runs of zeros, and what changed while it was read or just before, as one more change might not show in
its times. HOW: "one": folders on other filesystems are left by themselves alone. Where much of a tree is not for it, it ends, and leaves all.

What it wrote counts only because both sides are listed and compared at the end: names, kinds, sizes, times and the rest.
"""

import contextlib
import os
import stat
import sys
from time import clock_gettime_ns
from zlib import crc32

from orchestrator.trees.plain_files import (
    LARGEST,
    READ,
    LeftPaths,
    PlainFileWriter,
    TargetTakesNothing,
    make_file,
    open_copy,
    open_tree,
)

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import NoReturn

_TOGETHER = 64  # files that get their time at once, after one report of them
_MOST_LEFT = 1_000  # files that are left to the copy, beyond those that are written
_HOLE = bytes(4096)  # rsync may make a hole of them
_SECOND = 10**9
_TICK = _SECOND // 10  # several of the clock by which a filesystem tells times
_COARSE = 3 * _SECOND  # and of one that keeps whole seconds, or two of them
FILE_CLOCK = 5  # CLOCK_REALTIME_COARSE, by which filesystems tell times. Source: linux/time.h
_READ = READ | os.O_NOATIME
_Waiting = tuple[int, int, str]  # descriptor, time, report


class FewArePlain(Exception):
    """So few files are for us that to look at them takes more than it saves."""


class SourceFileWriter(PlainFileWriter):
    """A writer of the plain files of a source. `device`: the number of its filesystem; `tell`: takes lines as rsync writes them.

    `share`: its number, and how many share the folders. `stays`: a copy does not cross to other filesystems.
    Use it in a `with`: at its end all that was written has its time.
    """

    def __init__(
        self,
        reserved: "Collection[str]",
        tell: "Callable[[bytes], object]",
        device: int,
        share: tuple[int, int] = (0, 1),
        *,
        stays: bool = False,
    ) -> None:
        from xxhash import xxh3_128_hexdigest

        super().__init__(reserved, lambda _: None, share)
        self._report, self._device, self._digest = tell, device, xxh3_128_hexdigest
        self._stays = stays
        self._ours = True
        self._now = self._coarse = 0
        self._left = 0
        self._waiting: list[_Waiting] = []

    def __enter__(self) -> "SourceFileWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def write(self, path: str, old: int, new: int, above: str = "") -> None:
        """Write what lies at a relative path; "." at its end is all in that folder. Raises: TargetTakesNothing · FewArePlain · OSError."""
        if path != ".":
            super().write(path, old, new, above)
            return
        for inner in self.write_files(old, new, above):
            super().write(inner, old, new, above)

    def write_files(self, old: int, new: int, above: str) -> list[str]:
        """Write the files of a folder; return the names of its folders. Raises: TargetTakesNothing · FewArePlain · OSError."""
        self._ours = crc32(os.fsencode(above)) % self._of == self._which
        if os.fstat(old).st_dev != self._device:
            if self._ours:
                (self.left.single if self._stays else self.left.whole).append(above[:-1])
            return []
        self.look_at_clock()
        return super().write_files(old, new, above)

    def look_at_clock(self) -> None:
        """Take the time before which a file must have changed to be for us."""
        self._now = clock_gettime_ns(FILE_CLOCK)
        self._coarse = self._now - _COARSE

    def write_file(self, name: str, old: int, new: int) -> None:
        """Write one file, where it is for us. Raises: TargetTakesNothing · FewArePlain."""
        try:
            found, content = self._read(name, old)
            made = None if content is None else make_file(name, new, found, content)
        except OSError:  # what cannot be read, or is there already
            made = content = None
        if made is None or content is None:
            self._leave(self.above + name)
            self._left += 1
            if self._left > _MOST_LEFT:
                raise FewArePlain
            return
        self._left -= 1
        self.bytes += len(content)
        line = digest_line(self.above + name, len(content), self._digest(content))
        self._waiting.append((made, found.st_mtime_ns, line))
        if len(self._waiting) >= _TOGETHER:
            self._end()

    def _takes(self, _: int, /) -> bool:
        return self._ours

    def _names_folder(self) -> bool:
        return self._ours

    def _leave(self, path: str) -> None:
        if path and self._ours:  # the root comes with any path in it
            super()._leave(path)

    def _read(self, name: str, old: int) -> "tuple[os.stat_result, bytes | None]":
        """Return status and content of a file; no content: it is none for us, or is just being changed. Raises: OSError."""
        file = os.open(name, _READ, dir_fd=old)
        try:
            found = os.fstat(file)
            size, changed = found.st_size, found.st_ctime_ns
            plain = stat.S_ISREG(found.st_mode) and size <= LARGEST and found.st_nlink == 1
            if (
                not plain
                or found.st_dev != self._device
                or (changed > self._coarse and is_young(changed, self._now))
                or os.listxattr(file)
            ):
                return found, None
            content = os.read(file, LARGEST + 1) if size else b""
            then = os.fstat(file)
            same = (
                size == len(content) == then.st_size
                and changed == then.st_ctime_ns
                and found.st_mtime_ns == then.st_mtime_ns
            )
            return found, None if not same or _HOLE in content else content
        finally:
            os.close(file)

    def _end(self) -> None:
        """Report the files that wait, and then give them their times: what the copy takes for whole is reported.

        Raises: TargetTakesNothing, also where the first of them keeps another time: the copy would copy each once more.
        """
        waiting, self._waiting = self._waiting, []
        try:
            if waiting:
                self._report(os.fsencode(f"{''.join(line for _, _, line in waiting)}\n{self.bytes} 0% \n"))
            for number, (made, time, _) in enumerate(waiting):
                os.utime(made, ns=(self._now, time))
                if not number and os.fstat(made).st_mtime_ns != time:
                    raise TargetTakesNothing
        except OSError as error:  # the copy finds their times wrong, and copies them
            raise TargetTakesNothing from error
        finally:
            for made, _, _ in waiting:
                os.close(made)


def is_young(changed: int, now: int) -> bool:
    """Return whether a file changed so short a time ago that one more change might leave its times as they are."""
    return changed > now - _TICK or (changed > now - _COARSE and changed % _SECOND == 0)


def digest_line(path: str, size: int, digest: str) -> str:
    """Return the line of a copied file, as rsync writes it."""
    shown = path if path.isprintable() and "\\#" not in path else _escaped(path)
    return f"pf:>f+++++++++|{size}|0|{digest}|{shown}\n"


def _escaped(path: str) -> str:
    """Return a path as rsync writes it."""
    name = os.fsencode(path).replace(b"\\#", b"\\#134#")
    return os.fsdecode(b"".join(b"\\#%03o" % byte if byte < 32 or byte == 127 else bytes((byte,)) for byte in name))


def main(words: list[str]) -> None:
    """Write ahead what the paths on the input name. `words`: as the module tells them. Raises: OSError where what is left cannot be told."""
    tree, which, many, how, told, *reserved = words
    paths = [os.fsdecode(each).removeprefix("./") for each in sys.stdin.buffer.read().split(b"\0") if each]
    left, share = LeftPaths(), (int(which), int(many))
    left.whole = paths
    left.write(told, "./")
    with contextlib.suppress(TargetTakesNothing, FewArePlain, OSError):
        old, new = open_tree(tree), open_copy()
        with SourceFileWriter(reserved, report, os.fstat(old).st_dev, share, stays=how == "one") as writer:
            for path in paths:
                writer.write(path if path == "." else f"{path}/.", old, new)
        left = writer.left
        left.single = left.single or ["."]  # or nothing would bring what the root itself is like
    left.write(told, "./")


def report(lines: bytes) -> None:
    """Write lines to the output at once."""
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def program() -> "NoReturn":
    """Do what the command line says, and exit at once."""
    main(sys.argv[1:])
    os._exit(0)
