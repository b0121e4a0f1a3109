"""(k) A disk image of which little changes, on filesystems that clone, next to an `rsync` that changes a mirror of it in place."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.ferry import Ferry, ferry
from tests.bench.rows import Row, both_clocks, call, left_out, twice
from tests.bench.trees import Trees, warm

_RUN = 64 << 10
_LEAST = 300 << 20  # bytes of a filesystem
_FILESYSTEMS = ("xfs", "btrfs")
_NOTE = "source warm, changed in runs of 64 KiB; both end on the disk"
_MOST_STORED = 3.0


def images(trees: Trees, rounds: int) -> Iterator[Row]:
    """(k) A disk image, 1 % changed: the time to an rsync in place, and what a new point stores."""
    size = trees.large // 4
    trees.need(4 * size)
    for kind in _FILESYSTEMS:
        what = f"a disk image of {size >> 20} MiB, 1 % changed, points on {kind}"
        if kind not in Path("/proc/filesystems").read_text() or not shutil.which(f"mkfs.{kind}") or os.geteuid():
            yield left_out("k", what, f"needs root, mkfs.{kind}, and a kernel with {kind}")
            continue
        with ferry(trees.folder) as house, _filesystem(house.folder, kind, 4 * size + _LEAST) as disk:
            yield from _measure(house, disk, what, size, rounds)


def _measure(house: Ferry, disk: Path, what: str, size: int, rounds: int) -> Iterator[Row]:
    source, mirror = house.folder / "machines", disk / "mirror"
    house.target = disk / "target"
    source.mkdir()
    image = source / "disk.img"
    chance = random.Random(2)
    with image.open("wb") as file:
        for _ in range(0, size, 1 << 20):
            file.write(chance.randbytes(1 << 20))
    house.job(source, parallel=None)
    house.run("done")
    in_place = ("rsync", "-aHAX", "--inplace", "--no-whole-file", f"{source}/.", f"{mirror}/")
    call(in_place)
    took: tuple[list[tuple[float, float]], list[tuple[float, float]]] = ([], [])
    stored = list[float]()

    def theirs() -> None:
        call(in_place)
        call(("sync", "-f", str(mirror)))

    for turn in range(rounds):
        changed = _change(image, size, chance)
        warm(source)
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            before = _free(disk)
            took[which].append(both_clocks((lambda: house.run("done"), theirs)[which]))
            if which == 0:
                stored.append((before - _free(disk)) / changed)
    yield from twice("k", f"{what}, to an in-place `rsync`", took, most=1.0, note=_NOTE)
    yield Row(part="k", what=f"{what}: stores, to what changed", values=tuple(stored), most=_MOST_STORED, note=_NOTE)


def _change(image: Path, size: int, chance: random.Random) -> int:
    """Write 1 % anew; return how many bytes."""
    places = chance.sample(range(size // _RUN), max(1, size // _RUN // 100))
    with image.open("r+b") as file:
        for place in places:
            file.seek(place * _RUN)
            file.write(chance.randbytes(_RUN))
    return len(places) * _RUN


def _free(disk: Path) -> int:
    call(("sync", "-f", str(disk)))
    seen = os.statvfs(disk)
    return seen.f_bfree * seen.f_frsize


@contextmanager
def _filesystem(folder: Path, kind: str, size: int) -> Iterator[Path]:
    """Yield a new filesystem in an image."""
    image, place = folder / "disk", folder / "mounted"
    with image.open("wb") as file:
        file.truncate(size)
    place.mkdir()
    subprocess.run([f"mkfs.{kind}", "-q", str(image)], check=True, capture_output=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
