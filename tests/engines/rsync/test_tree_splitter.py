"""Cutting a tree: every entry in one lane, links together, against a naive model of random trees and a real copy."""

import gc
import os
import random
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.plan import Refusal
from orchestrator.engines.rsync import parallel
from orchestrator.engines.rsync.parallel import (
    ParallelCopies,
    ParallelCopy,
    PathGroup,
    TreeSplitter,
    plan_parallel_copies,
)

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    path: bytes
    kind: bytes = b"f"
    size: int = 0
    inode: int = 0
    nlink: int = 1


def file(path: str, size: int = 0) -> Entry:
    return Entry(path=path.encode(), size=size)


def link(path: str, inode: int, size: int = 0, nlink: int = 2) -> Entry:
    return Entry(path=path.encode(), size=size, inode=inode, nlink=nlink)


def folder(path: str) -> Entry:
    return Entry(path=path.encode(), kind=b"d", size=4096)


def collected(entries: Iterable[Entry]) -> TreeSplitter:
    aggregator = TreeSplitter()
    for each in entries:
        aggregator.add(each.path, each.kind, each.size, each.inode, each.nlink)
    return aggregator


def lanes(entries: Iterable[Entry], number: int, *, cost: int = 65536) -> ParallelCopies:
    made = collected(entries).parallel_copies(number, per_file_cost=cost)
    assert isinstance(made, ParallelCopies)
    return made


def paths(made: ParallelCopies) -> list[tuple[bytes, ...]]:
    return [worker.paths for worker in made.parallel_copies]


def test_folders_stay_whole_where_they_are_light() -> None:
    entries = [file(f"{name}/{number}", MIB) for name in "abcdefgh" for number in range(4)]
    made = lanes(entries, 2)
    assert sorted(path for worker in paths(made) for path in worker) == [name.encode() for name in "abcdefgh"]
    assert [worker.size for worker in made.parallel_copies] == [16 * MIB, 16 * MIB]
    assert [worker.entries for worker in made.parallel_copies] == [20, 20]


def test_a_heavy_folder_is_shared() -> None:
    entries = [file("small", 1), *(file(f"heavy/deep/{number}", MIB) for number in range(4)), folder("heavy/none")]
    made = lanes(entries, 4, cost=1)
    assert [worker.size // MIB for worker in made.parallel_copies] == [1, 1, 1, 1]
    assert {path for worker in paths(made) for path in worker} == {
        b"small", b"heavy/none", *(b"heavy/deep/%d" % number for number in range(4)),
    }  # fmt: skip


@pytest.mark.parametrize(
    "entries",
    [[], [folder(".")], [folder("")], [file("huge", 1 << 40)], [folder("a"), folder("a/b"), file("a/b/huge", 1 << 40)]],
)
def test_what_cannot_be_shared_out_is_one_lane(entries: list[Entry]) -> None:
    made = lanes(entries, 4)
    assert paths(made) == [(b".",)]
    assert made.parallel_copies[0].size == sum(each.size for each in entries if each.kind == b"f")


def test_one_huge_file_leaves_the_rest_to_the_other_lanes() -> None:
    made = lanes([file("huge", 1 << 40), file("a/1", 1), file("a/2", 1), file("a/3", 1)], 3)
    assert paths(made)[0] == (b"huge",)
    assert sorted(path for worker in paths(made)[1:] for path in worker) == [b"a/1", b"a/2", b"a/3"]


def test_very_many_loose_files_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counting(units: Sequence[PathGroup], number: int, *, per_file_cost: int) -> tuple[ParallelCopy, ...] | Refusal:
        seen.append(len(units))
        return plan_parallel_copies(units, number, per_file_cost=per_file_cost)

    monkeypatch.setattr(parallel, "plan_parallel_copies", counting)
    made = lanes([file(f"flat/{number:05d}", number) for number in range(10_001)], 3)
    assert seen == [12]
    assert sum(len(worker) for worker in paths(made)) == 10_001
    assert (
        max(worker.size for worker in made.parallel_copies) - min(worker.size for worker in made.parallel_copies)
        < 10_001
    )


def test_groups_of_loose_files_are_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LOOSE_AT_MOST", 2)
    assert sorted(paths(lanes([file(name) for name in "abc"], 5))) == [(b"a",), (b"b",), (b"c",)]


def test_linked_copies_of_a_tree_are_cut_until_they_can_be_shared_out() -> None:
    """Twenty light folders, all tied together by hard links: whole they would fill one lane."""
    entries = [link(f"{copy}/{number}", number, MIB, 20) for copy in range(20) for number in range(8)]
    made = lanes(entries, 4)
    assert [worker.size for worker in made.parallel_copies] == [2 * MIB] * 4
    assert paths(made)[0][:2] == (b"0/0", b"0/4")


def test_a_heavy_tie_is_cut_though_there_is_enough_else() -> None:
    entries = [link(f"{copy}/{number}", number, MIB) for copy in "ab" for number in range(8)]
    made = lanes([*entries, *(file(f"c/{number}", 1) for number in range(9))], 2, cost=1)
    assert [worker.size // MIB for worker in made.parallel_copies] == [4, 4]


def test_links_whose_other_names_lie_elsewhere_tie_nothing() -> None:
    assert len(lanes([link("a", 1, MIB), link("b", 2, MIB)], 2).parallel_copies) == 2


def test_one_inode_with_many_names_is_refused() -> None:
    refusal = collected([link(f"{name}/x", 5, MIB, 3) for name in "abc"]).parallel_copies(2)
    assert isinstance(refusal, Refusal)
    assert refusal.evidence == ("1.0 MiB tied by inode 5: a/x, b/x, c/x",)


def test_a_deep_tree_may_come_from_below() -> None:
    deep = "/".join(["d"] * 1900)
    assert paths(lanes([file(f"{deep}/x", 1), file(f"{deep}/y", 1)], 2)) == [
        (f"{deep}/x".encode(),),
        (f"{deep}/y".encode(),),
    ]


def test_all_of_a_listing_is_free_once_nobody_needs_it() -> None:
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        splitter = TreeSplitter()
        for number in range(1000):
            splitter.add(b"d%d/e/f%d" % (number % 10, number), b"f", 5, number, 1 + number % 2)
        assert isinstance(splitter.parallel_copies(2), ParallelCopies)
        assert len(gc.get_objects()) > before + 500
        del splitter
        assert len(gc.get_objects()) < before + 50
    finally:
        gc.enable()


def test_asking_again_answers_the_same() -> None:
    aggregator = collected([file("a/1", 5), link("a/2", 1), link("b/2", 1), file("c")])
    assert aggregator.parallel_copies(2) == aggregator.parallel_copies(2)
    entries = [file(f"{name}/{number}") for name in range(50) for number in range(5)]
    assert len({collected(entries).parallel_copies(7) for _ in range(9)}) == 1


NAMES = st.lists(st.sampled_from([b"a", b"b", b"a-b", b"a.b", b"\xff\n"]), min_size=1, max_size=4).map(b"/".join)


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """A tree, some of its directories told and some only met on the way to a file, in any order."""
    dataset_request = draw(st.lists(NAMES, unique=True, max_size=25))
    folders = {
        b"/".join(path.split(b"/")[:depth]) for path in dataset_request for depth in range(1, path.count(b"/") + 1)
    }
    entries = [Entry(path=path, kind=b"d", size=4096, nlink=3) for path in sorted(folders) if draw(st.booleans())]
    entries += draw(st.sampled_from([[], [folder(".")], [folder("")]]))
    sizes: defaultdict[int, int] = defaultdict(lambda: draw(st.integers(0, 50) | st.integers(0, 5000)))
    for path in [path for path in dataset_request if path not in folders]:
        kind, inode = draw(st.sampled_from([b"f", b"f", b"L", b"d", b"link"])), draw(st.integers(1, 5))
        if kind == b"link":
            entries.append(Entry(path=path, size=sizes[inode], inode=inode, nlink=draw(st.integers(2, 4))))
        else:
            entries.append(Entry(path=path, kind=kind, size=draw(st.integers(0, 5000))))
    return draw(st.permutations(entries))


def whole_tree(entries: list[Entry]) -> set[bytes]:
    """Every path of the tree, its directories included, without the root."""
    every = {each.path for each in entries} - {b"", b"."}
    return every | {b"/".join(path.split(b"/")[:depth]) for path in every for depth in range(1, path.count(b"/") + 1)}


def subtree(path: bytes, tree: set[bytes]) -> list[bytes]:
    return [each for each in tree if path == b"." or each == path or each.startswith(path + b"/")]


def atoms(entries: list[Entry], cost: int) -> tuple[int, list[int]]:
    """Return how many entries no cutting can divide, and the weight of each group of them that links tie."""
    tree = whole_tree(entries)
    leaves = [each for each in tree if not any(other.startswith(each + b"/") for other in tree)]
    by_path = {each.path: each for each in entries}
    groups: defaultdict[object, list[Entry]] = defaultdict(list)
    for path in leaves:
        linked = by_path[path].kind == b"f" and by_path[path].nlink > 1
        groups[by_path[path].inode if linked else path].append(by_path[path])
    sizes = [0 if group[0].kind == b"d" else group[0].size for group in groups.values()]
    return len(leaves), [size + cost * len(group) for size, group in zip(sizes, groups.values(), strict=True)]


@given(trees(), st.integers(1, 5), st.sampled_from([0, 1, 1000]), st.sampled_from([2, 10_000]))
def test_random_trees_are_shared_out_as_the_naive_model_says(
    entries: list[Entry], number: int, cost: int, loose: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(parallel, "LOOSE_AT_MOST", loose)
        made = collected(entries).parallel_copies(number, per_file_cost=cost)
    leaves, groups = atoms(entries, cost)
    if len(groups) < min(number, leaves):
        assert isinstance(made, Refusal)
        return
    assert isinstance(made, ParallelCopies)
    assert len(made.parallel_copies) == max(1, min(number, len(groups)))
    covers_exactly(made, entries)
    keeps_links_together(made, entries)
    total = sum(worker.size + worker.entries * cost for worker in made.parallel_copies)
    assert sum(worker.size for worker in made.parallel_copies) == sum(groups) - cost * leaves
    directories = cost * (len(whole_tree(entries)) + 1)
    unit = max([(total + directories) / (4 * number), *groups])
    if loose == 10_000:
        assert (
            max(worker.size + worker.entries * cost for worker in made.parallel_copies)
            <= total / len(made.parallel_copies) + unit
        )


def covers_exactly(made: ParallelCopies, entries: list[Entry]) -> None:
    tree = whole_tree(entries)
    covered = Counter(each for worker in paths(made) for path in worker for each in subtree(path, tree))
    above = {folder for worker in paths(made) for path in worker for folder in folders_above(path)}
    covered.update(above)  # those are made by each lane that needs them, and named by none
    assert covered == Counter(tree)


def folders_above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def keeps_links_together(made: ParallelCopies, entries: list[Entry]) -> None:
    tree = whole_tree(entries)
    holds = [{each for path in worker for each in subtree(path, tree)} for worker in paths(made)]
    inodes = defaultdict(set)
    for each in entries:
        if each.kind == b"f" and each.nlink > 1:
            inodes[each.inode].add(each.path)
    assert all(any(names <= held for held in holds) for names in inodes.values())


def test_real_copies_side_by_side_make_the_same_tree(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    build(source)
    target.mkdir()  # as the step before the lanes does
    made = collected(listed(os.fsencode(source))).parallel_copies(3)
    assert isinstance(made, ParallelCopies)
    assert len(made.parallel_copies) == 3
    copies = [start_copy(worker, source, target) for worker in made.parallel_copies]
    assert [copy.wait() for copy in copies] == [0, 0, 0]
    told = subprocess.run(
        ["rsync", "-aHniO", "--delete", "--checksum", f"{source}/", f"{target}/"], check=True, capture_output=True
    )
    assert told.stdout == b""


def build(source: Path) -> None:
    chance = random.Random(7)
    for name in ("a", "a/b", "a/b/c", "d", "empty", "a/empty", "#hash", "odd\nname"):
        (source / name).mkdir(parents=True)
        if "empty" not in name:
            for number in range(6):
                (source / name / f";{number}").write_bytes(chance.randbytes(chance.randrange(200_000)))
    for number in range(6):
        os.link(source / "a/b/c" / f";{number}", source / "d" / f"twin {number}")
    os.symlink("nowhere", source / "d/link")
    os.mkfifo(source / "a/pipe")


def listed(root: bytes) -> Iterable[Entry]:
    for above, folders, names in os.walk(root):
        for name in [b"", *names, *folders]:
            path = os.path.join(above, name).rstrip(b"/")
            found = os.lstat(path)
            yield Entry(
                path=os.path.relpath(path, root),
                kind=b"d" if os.path.isdir(path) and not os.path.islink(path) else b"f",
                size=found.st_size,
                inode=found.st_ino,
                nlink=found.st_nlink,
            )


def start_copy(worker: ParallelCopy, source: Path, target: Path) -> "subprocess.Popen[bytes]":
    argv = ["rsync", "-aH", "-r", "--from0", "--files-from=-", f"{source}/", f"{target}/"]
    copy = subprocess.Popen(argv, stdin=subprocess.PIPE)
    assert copy.stdin
    copy.stdin.write(worker.files_from)
    copy.stdin.close()
    return copy
