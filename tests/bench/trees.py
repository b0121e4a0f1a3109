"""Trees to copy: made once, kept in the bench's folder, and how they are driven out of memory."""

import json
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_IN_FOLDER = 100
_FOLDERS_ABOVE = 20
_MIB = 1 << 20
_DROP = "/proc/sys/vm/drop_caches"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trees:
    """Folders of the measured trees. `files`, `entries`: how many; `large`: bytes; `gentle`: only these files leave memory."""

    folder: Path
    files: int
    entries: int
    large: int
    gentle: bool

    def small(self) -> Path:
        """Files of 200 to 8000 bytes, a hundred in a folder."""
        return _made(self.folder / "small", {"files": self.files}, lambda at: make_small(at, self.files))

    def halves(self) -> tuple[Path, Path]:
        """Two folders of large files, each half of what was asked for."""
        whole = _made(self.folder / "large", {"bytes": self.large}, lambda at: make_large(at, self.large))
        return whole / "one", whole / "other"

    def many(self) -> Path:
        """Files of 0 to 20 bytes."""
        return _made(self.folder / "many", {"entries": self.entries}, lambda at: make_many(at, self.entries))

    def chill(self, *trees: Path) -> None:
        """Writes everything out and empties memory of it."""
        os.sync()
        if not self.gentle and drops_all():
            Path(_DROP).write_text("3")
            return
        for tree in trees:
            forget(tree)

    def need(self, size: int) -> None:
        """Raises: RuntimeError when so much room is not there, twice over."""
        free = shutil.disk_usage(self.folder).free
        if free < 2 * size:
            raise RuntimeError(f"needs {2 * size >> 20} MiB below {self.folder}, {free >> 20} MiB are free")


def _made(tree: Path, told: dict[str, int], make: Callable[[Path], None]) -> Path:
    """The tree as it was made before, or made now: what lies beside it says whether it is whole, and of what size."""
    stamp = tree.with_suffix(".json")
    if stamp.exists() and json.loads(stamp.read_text()) == told:
        return tree
    stamp.unlink(missing_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    make(tree)
    os.sync()
    stamp.write_text(json.dumps(told))
    return tree


def make_small(root: Path, count: int) -> None:
    """Small files of random bytes."""
    chance = random.Random(1)
    for number in range(count):
        if number % _IN_FOLDER == 0:
            here = root / f"above-{number // _IN_FOLDER % _FOLDERS_ABOVE:02d}" / f"folder-{number // _IN_FOLDER:05d}"
            here.mkdir(parents=True)
        (here / f"file-{number:07d}").write_bytes(chance.randbytes(chance.randint(200, 8000)))


def make_large(root: Path, size: int) -> None:
    """Eight files of random bytes in each of two folders."""
    chance = random.Random(2)
    for half in ("one", "other"):
        (root / half).mkdir(parents=True)
        for number in range(8):
            with (root / half / f"large-{number}").open("wb") as file:
                left = size // 16
                while left:
                    left -= file.write(chance.randbytes(min(_MIB, left)))


def make_many(root: Path, count: int) -> None:
    """Tiny files, a thousand in a folder."""
    for number in range(count):
        if number % 1000 == 0:
            here = root / f"a folder of the many {number // 1000:04d}"
            here.mkdir(parents=True)
        with (here / f"a tiny file of middling name {number:07d}").open("wb", buffering=0) as file:
            file.write(b"x" * (number % 21))


def change(tree: Path, turn: int) -> int:
    """Writes every hundredth file anew, with other content; how many. `turn`: another one each time."""
    files = sorted(path for path in tree.rglob("file-*"))
    for path in files[turn % 100 :: 100]:
        path.write_bytes(random.Random(turn).randbytes(path.stat().st_size + 1))
    return len(files[turn % 100 :: 100])


def warm(tree: Path) -> None:
    """Reads everything once, so that it lies in memory as far as there is room."""
    for folder, _, names in os.walk(tree):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                while file.read(_MIB):
                    pass


def forget(tree: Path) -> None:
    """Drops the contents of these files from memory; names and inodes stay in it."""
    for folder, _, names in os.walk(tree):
        for name in names:
            descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


def drops_all() -> bool:
    """Return whether we may empty the whole page cache."""
    return os.geteuid() == 0 and os.access(_DROP, os.W_OK)
