"""(j) Restores and copies next to the programs that merely copy: `rsync -aHAX`, and `cp -a` for large files."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench.ferry import Ferry, ferry
from tests.bench.rows import Deed, Row, both_clocks, call, timed, twice
from tests.bench.trees import Trees, warm

_MOST_FILE_MS = 150.0
_NOTE = "source warm, default settings; both end on the disk"


def back(trees: Trees, rounds: int) -> Iterator[Row]:
    """(j) First copy and restore of small and of large files, and of one file alone."""
    small, (large, _) = trees.small(), trees.halves()
    trees.need(4 * max(trees.files * 8192, trees.large // 2))
    told = f"{trees.files:,} small files, to `rsync -aHAX`"
    yield from _there_and_back(trees, rounds, small, told, ("rsync", "-aHAX"), most=(1.0, 1.0))
    told = f"{trees.large >> 21} MiB in large files, to `cp -a`"
    yield from _there_and_back(trees, rounds, large, told, ("cp", "-a"), most=(1.0, 1.2))
    yield _one_file(trees, rounds, small)


def _there_and_back(
    trees: Trees, rounds: int, source: Path, told: str, program: tuple[str, ...], *, most: tuple[float, float]
) -> Iterator[Row]:
    took: tuple[list[list[tuple[float, float]]], ...] = ([[], []], [[], []])
    with ferry(trees.folder) as house:
        house.job(source, parallel=None)
        copied, to = house.folder / "copied", house.folder / "back"
        for turn in range(rounds):
            warm(source)
            _in_turns(took[0], (lambda: house.run("done"), lambda: _bare(program, source, copied)), turn)
            shutil.rmtree(copied)
            _in_turns(took[1], (lambda: _restore(house, to), lambda: _bare(program, house.newest(), copied)), turn)
            for each in (copied, to):
                shutil.rmtree(each)
            house.empty_target()
    for what, (ours, theirs), limit in zip(("first copy", "restore"), took, most, strict=True):
        yield from twice("j", f"{what} of {told}", (ours, theirs), most=limit, note=_NOTE)


def _in_turns(took: list[list[tuple[float, float]]], deeds: tuple[Deed, Deed], turn: int) -> None:
    for which in (0, 1) if turn % 2 == 0 else (1, 0):
        os.sync()
        took[which].append(both_clocks(deeds[which]))


def _bare(program: tuple[str, ...], source: Path, to: Path) -> None:
    to.mkdir()
    call((*program, f"{source}/.", f"{to}/"))
    call(("sync", "-f", str(to)))


def _restore(house: Ferry, to: Path) -> None:
    house.call("restore", "run", "bench", "--to", str(to))


def _one_file(trees: Trees, rounds: int, source: Path) -> Row:
    """Return how long one file out of many takes."""
    wanted = min(source.rglob("file-*"))
    with ferry(trees.folder) as house:
        house.job(source, parallel=None)
        house.run("done")
        to, took = house.folder / "one", list[float]()
        for _ in range(5 * rounds):
            words = ("restore", "run", "bench", "--path", str(wanted.relative_to(source)), "--to", str(to))
            took.append(timed(lambda: house.call(*words)) * 1000)  # noqa: B023
            shutil.rmtree(to) if to.is_dir() else to.unlink()
    what = f"restore of one file out of a point of {trees.files:,}"
    return Row(part="j", what=what, values=tuple(took), most=_MOST_FILE_MS, unit="ms", note="caches warm")
