"""Large files that share the blocks of a point's: as at the source whatever differs, nothing written that is there, the point as it was."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from xxhash import xxh3_128_hexdigest

from orchestrator.engines.rsync.parse import parse_moved, parse_progress
from orchestrator.trees import large_copies
from tests.trees.large_writer import LEAST, PARTIAL, aged, there, write
from tests.whole.house import loop_filesystem

pytestmark = [pytest.mark.root, pytest.mark.namespace]
BLOCK = 4096
SIZE = 2 * LEAST + 777


class Trees:
    """A source on one filesystem; a point and a new copy on another one that clones."""

    def __init__(self, old: Path, disk: Path) -> None:
        self.old, self.point, self.new = old, disk / "point", disk / "new"
        for folder in (self.old, self.point, self.new):
            (folder / "in").mkdir(parents=True)

    def copy(self, *, holes: bool = False) -> list[bytes]:
        aged(self.old)
        return write(self.old, self.new, "in/image", base=self.point, holes=holes)


@pytest.fixture(params=["xfs", "btrfs"])
def trees(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trees]:
    kind = request.param
    if kind not in Path("/proc/filesystems").read_text():
        pytest.skip(f"this kernel has no {kind}")
    monkeypatch.setattr(large_copies, "PIECE", 128 << 10)
    quiet = ("-f",) if kind == "xfs" else ("-q",)
    with loop_filesystem(tmp_path, f"mkfs.{kind}", *quiet, size=310 << 20) as disk:
        yield Trees(tmp_path / "old", disk)


def content(seed: int, size: int = SIZE) -> bytes:
    return random.Random(seed).randbytes(size)


def changed(before: bytes, chance: random.Random) -> bytes:
    """Return a content of another size, in which some runs differ."""
    now = bytearray(before)
    for _ in range(chance.randrange(6)):
        at = chance.choice([chance.randrange(len(now)), chance.randrange(len(now)) // BLOCK * BLOCK])
        run = chance.randbytes(chance.choice([1, 100, BLOCK, 3 * BLOCK, 200_000]))
        now[at : at + len(run)] = run
    cut = chance.choice([0, 0, 1, BLOCK, 300_000])
    return bytes(now[: len(now) - cut] + chance.randbytes(chance.choice([0, 0, 1, BLOCK + 1, 400_000])))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sample(4)
def test_whatever_differs_it_is_as_at_the_source_and_the_point_as_it_was(trees: Trees, seed: int) -> None:
    chance = random.Random(seed)
    before = content(seed)
    now = changed(before, chance)
    (trees.point / "in/image").write_bytes(before)
    (trees.old / "in/image").write_bytes(now)
    (trees.old / "in/image").chmod(0o640)
    told = b"".join(trees.copy())
    assert (trees.new / "in/image").read_bytes() == now
    assert (trees.point / "in/image").read_bytes() == before
    one, other = (tree.joinpath("in/image").stat() for tree in (trees.old, trees.new))
    assert (one.st_mtime_ns, one.st_mode, one.st_size) == (other.st_mtime_ns, other.st_mode, other.st_size)
    assert list(parse_moved(told.split(b"\n"))) == [(b"in/image", xxh3_128_hexdigest(now))]
    assert there(trees.new) == ["in/image"]


def test_what_repeats_behind_the_end_of_the_point_is_written(trees: Trees) -> None:
    """Memory still has the piece of the older file that was read before, which is nothing that the new one shares."""
    piece = content(7, 128 << 10)
    (trees.point / "in/image").write_bytes(piece * 9)
    (trees.old / "in/image").write_bytes(piece * 12 + piece[:BLOCK])
    trees.copy()
    assert (trees.new / "in/image").read_bytes() == piece * 12 + piece[:BLOCK]


def test_only_blocks_that_differ_are_written_and_count(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(1)
    now = bytearray(before)
    for at in (0, 5 * BLOCK + 7, SIZE - 1):
        now[at] ^= 1
    (trees.point / "in/image").write_bytes(before)
    (trees.old / "in/image").write_bytes(now)
    written: list[tuple[int, int]] = []
    write_at = large_copies._write_at

    def noted(made: int, piece: memoryview, at: int) -> int:
        written.append((at, len(piece)))
        return write_at(made, piece, at)

    monkeypatch.setattr(large_copies, "_write_at", noted)
    told = trees.copy()
    end = SIZE // BLOCK * BLOCK
    assert written == [(0, BLOCK), (5 * BLOCK, BLOCK), (end, SIZE - end)]
    assert parse_progress(b"".join(told)) == 2 * BLOCK + SIZE - end
    assert (trees.new / "in/image").read_bytes() == now


@pytest.mark.parametrize("what", ["a link to another", "a folder above it is a link", "a pipe", "smaller", "nothing"])
@pytest.mark.sample(2)
def test_what_the_point_has_instead_is_never_followed(trees: Trees, what: str, tmp_path: Path) -> None:
    """A file of the point that is none, or another one, shares nothing; the copy is as at the source all the same."""
    (trees.old / "in/image").write_bytes(content(2))
    secret = trees.point / "secret"
    secret.write_bytes(content(3))
    image = trees.point / "in/image"
    if what == "a link to another":
        image.symlink_to(secret)
    elif what == "a folder above it is a link":
        (trees.point / "in").rmdir()
        (trees.point / "other").mkdir()
        (trees.point / "other/image").write_bytes(content(2))
        (trees.point / "in").symlink_to("other")
    elif what == "a pipe":
        os.mkfifo(image)
    elif what == "smaller":
        image.write_bytes(content(2)[: BLOCK * 3 + 1])
    trees.copy()
    assert (trees.new / "in/image").read_bytes() == content(2)
    assert there(trees.new) == ["in/image"]


def test_new_runs_of_zeros_that_become_holes_are_left_to_the_copy(trees: Trees) -> None:
    before = content(4)
    now = before[:BLOCK] + bytes(128 << 10) + before[BLOCK + (128 << 10) :]
    (trees.point / "in/image").write_bytes(before)
    (trees.old / "in/image").write_bytes(now)
    trees.copy(holes=True)
    assert there(trees.new) == []
    trees.copy()
    assert (trees.new / "in/image").read_bytes() == now


def test_a_source_that_changes_meanwhile_leaves_nothing(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    (trees.point / "in/image").write_bytes(content(5))
    (trees.old / "in/image").write_bytes(content(5))
    preadv = os.preadv

    def meddles(file: int, room: list[memoryview], at: int) -> int:
        if at > LEAST:
            with open(trees.old / "in/image", "r+b") as image:
                image.write(b"changed")
        return preadv(file, room, at)

    monkeypatch.setattr(os, "preadv", meddles)
    trees.copy()
    assert there(trees.new) == []
    assert not (trees.new / "in" / PARTIAL).exists()
    assert (trees.point / "in/image").read_bytes() == content(5)


def test_another_filesystem_is_copied_whole(trees: Trees, tmp_path: Path) -> None:
    (trees.old / "in/image").write_bytes(content(6))
    other = tmp_path / "elsewhere"
    (other / "in").mkdir(parents=True)
    (other / "in/image").write_bytes(content(6))
    aged(trees.old)
    write(trees.old, trees.new, "in/image", base=other)
    assert (trees.new / "in/image").read_bytes() == content(6)
