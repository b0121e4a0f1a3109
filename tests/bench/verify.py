"""(c) Reading a point again, against what merely reads the same files."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.ferry import ferry
from tests.bench.rows import Row, call, pairs, ratios
from tests.bench.trees import Trees, drops_all

# One loop of open, read, close: the names are found on the way, as a reading must.
LOOP = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        descriptor = os.open(folder + "/" + name, os.O_RDONLY)
        while os.read(descriptor, 1 << 16):
            pass
        os.close(descriptor)
"""


def reading(trees: Trees, rounds: int) -> Iterator[Row]:
    """(c) Large files against `cat`, small files against one loop in Python, each from a cold start."""
    trees.need(trees.large)
    whole = trees.halves()[0].parent
    what = f"`verify` of {trees.large >> 20} MiB in large files, to `cat` of the same files"
    yield _read(trees, whole, what, rounds=rounds, most=1.15, theirs=cat)
    trees.need(trees.files * 8192)
    what = f"`verify` of {trees.files:,} small files, to one Python loop of open, read, close"
    yield _read(trees, trees.small(), what, rounds=rounds, most=0.8, theirs=loop)


def cat(tree: Path) -> list[str]:
    """Reads the files one after the other."""
    return ["cat", *(str(path) for path in sorted(tree.rglob("large-*")))]


def loop(tree: Path) -> list[str]:
    """Opens, reads and closes every file."""
    return [sys.executable, "-c", LOOP, str(tree)]


def _read(
    trees: Trees, source: Path, what: str, *, rounds: int, most: float, theirs: Callable[[Path], list[str]]
) -> Row:
    with ferry(trees.folder) as house:
        house.job(source)
        house.run("done")
        house.call("verify", "bench")  # the first one of all compiles its modules
        point = house.newest()
        argv = theirs(point)
        took = pairs(
            lambda: house.call("verify", "bench"), lambda: call(argv), rounds=rounds, before=lambda: trees.chill(point)
        )
    return ratios("c", what, took, most=most, note=cold(trees))


def cold(trees: Trees) -> str:
    """Return what cold means here."""
    everything = drops_all() and not trees.gentle
    return "cold: sync and drop_caches" if everything else "cold: contents dropped by posix_fadvise, names warm"
