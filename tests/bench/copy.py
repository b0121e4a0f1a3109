"""(a) nothing changed and (b) first copies, against the bare rsync."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.bench.ferry import Ferry, ferry
from tests.bench.rows import Row, call, pairs, ratios, timed
from tests.bench.trees import Trees, warm

_WARM = "caches warm"
_FIRST = "source warm, target empty"


def nothing_changed(trees: Trees, rounds: int) -> Iterator[Row]:
    """(a) A run that finds nothing to do, against the rsync that it issues itself, and against a bare `find` of very many."""
    yield _nothing_next_to_rsync(trees, rounds)
    yield _nothing_next_to_find(trees, rounds)


def _nothing_next_to_find(trees: Trees, rounds: int) -> Row:
    source = trees.many()
    trees.need(trees.entries * 2048)
    with ferry(trees.folder) as house:
        house.job(source)
        house.run("done")
        house.run("nothing-to-do")
        listing = ("find", str(source), "-printf", "%p %s %T@ %C@ %i\\n")
        took = pairs(lambda: house.run("nothing-to-do"), lambda: call(listing), rounds=rounds, before=lambda: None)
    return ratios(
        "a", f"`run`, nothing changed in {trees.entries:,} files, to `find` over the source", took, most=3.0, note=_WARM
    )


def _nothing_next_to_rsync(trees: Trees, rounds: int) -> Row:
    source = trees.small()
    trees.need(trees.files * 8192)
    with ferry(trees.folder) as house:
        house.job(source, whole_look=1)
        house.run("done")
        command = house.look_command()
        call(command)
        house.job(source)
        house.run("nothing-to-do")
        took = pairs(lambda: house.run("nothing-to-do"), lambda: call(command), rounds=3 * rounds, before=lambda: None)
        what = f"`run`, nothing changed in {trees.files:,} small files, to its rsync that compares everything"
        return ratios("a", what, took, most=0.5, note=_WARM)


def first_copies(trees: Trees, rounds: int) -> Iterator[Row]:
    """(b) Two lanes against `rsync -a`, as it is and until its copy is on the disk, as ours is when it is reported."""
    trees.need(trees.files * 8192)
    yield from _first_copy(trees.small(), f"first copy of {trees.files:,} small files, parallel = 2", trees, rounds)
    one, _ = trees.halves()
    trees.need(trees.large // 2)
    yield from _first_copy(one, f"first copy of {trees.large >> 21} MiB in large files, parallel = 2", trees, rounds)


def _first_copy(source: Path, what: str, trees: Trees, rounds: int) -> Iterator[Row]:
    with ferry(trees.folder) as house:
        house.job(source, parallel=2)
        bare = house.folder / "bare"
        warm(source)
        ours: list[float] = []
        unsynced: list[float] = []
        synced: list[float] = []
        for number in range(rounds):
            for which in (0, 1) if number % 2 == 0 else (1, 0):
                if which == 0:
                    ours.append(_ours(house))
                else:
                    written, on_disk = _bare(source, bare)
                    unsynced.append(written)
                    synced.append(on_disk)
        yield ratios(
            "b",
            f"{what}, to `rsync -a`",
            (ours, unsynced),
            most=1.0,
            note=f"{_FIRST}; ours ends on the disk, the other in memory",
        )
        yield ratios(
            "b",
            f"{what}, to `rsync -a` and `sync -f`",
            (ours, synced),
            most=1.0,
            note=f"{_FIRST}; both end on the disk",
        )


def _ours(house: Ferry) -> float:
    house.empty_target()
    took = timed(lambda: house.run("done"))
    house.empty_target()
    return took


def _bare(source: Path, target: Path) -> tuple[float, float]:
    shutil.rmtree(target, ignore_errors=True)
    os.sync()
    written = timed(lambda: call(("rsync", "-a", f"{source}/", f"{target}/")))
    on_disk = written + timed(lambda: call(("sync", "-f", str(target))))
    shutil.rmtree(target)
    os.sync()
    return written, on_disk
