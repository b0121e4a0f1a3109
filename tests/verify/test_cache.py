"""Rot below the page cache: the block device changes while memory still holds the right bytes."""

import ctypes
import mmap
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.point import Verdict
from orchestrator.verify.pipelines import settle_pipeline
from tests.verify.trees import detail, found, make_manifest, make_tree, read_again

pytestmark = [pytest.mark.root, pytest.mark.slow]
MARK = b"-this block is looked for on the device-"


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(32 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    loop = subprocess.run(
        ["losetup", "-f", "--show", image], stdout=subprocess.PIPE, check=True, text=True
    ).stdout.strip()
    (tmp_path / "disk").mkdir()
    subprocess.run(["mount", loop, tmp_path / "disk"], check=True)
    yield loop
    subprocess.run(["umount", tmp_path / "disk"], check=True)
    subprocess.run(["losetup", "-d", loop], check=True)


def rot(device: str, old: bytes, new: bytes) -> None:
    """Writes other bytes over the place on the device, past the filesystem."""
    fd = os.open(device, os.O_RDWR)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    at = os.pread(fd, 32 << 20, 0).index(old)
    os.pwrite(fd, new, at)
    os.fsync(fd)
    os.close(fd)


@pytest.mark.parametrize("size", [5000, 3 << 20])
def test_rot_under_the_page_cache_is_found(tmp_path: Path, device: str, size: int) -> None:
    content = os.urandom(size // 2) + MARK + os.urandom(size // 2)
    tree = make_tree(tmp_path / "disk/tree", {"good": b"good", "rotten": content})
    make_manifest(tree, tmp_path / "m.gz")
    subprocess.run(settle_pipeline(Location(path=str(tree))).stages[0].argv, check=True)
    assert read_again(tree, tmp_path / "m.gz").sound
    assert (tree / "rotten").read_bytes() == content
    rot(device, MARK, MARK.swapcase())
    assert (tree / "rotten").read_bytes() == content, "memory should hide it, or this test shows nothing"
    reading = read_again(tree, tmp_path / "m.gz")
    assert found(reading) == {b"rotten": Verdict.ROTTEN}
    assert "rotted" in detail(reading, b"rotten")


def test_behind_the_reading_nothing_stays_in_memory(tmp_path: Path, device: str) -> None:
    tree = make_tree(tmp_path / "disk/tree", {"large": os.urandom(17 << 20), "small": b"x" * 5000})
    make_manifest(tree, tmp_path / "m.gz")
    os.sync()
    (tree / "large").read_bytes()
    assert cached(tree / "large")
    read_again(tree, tmp_path / "m.gz")
    assert not cached(tree / "large")
    assert not cached(tree / "small")


def cached(path: Path) -> bool:
    """Return whether any page of the file is in memory. Why not by reading with RWF_NOWAIT: Linux then reads ahead what it does not have."""
    size = path.stat().st_size
    there = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, flags=mmap.MAP_PRIVATE) as pages:
        start = ctypes.c_char.from_buffer(pages)
        try:
            assert libc.mincore(ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size), there) == 0
        finally:
            del start  # what points into a mapping keeps it from being closed
    return any(each & 1 for each in there)
