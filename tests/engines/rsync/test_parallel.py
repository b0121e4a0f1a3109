"""Sharing out units: what is tied stays together, weights are even, a refusal names what ties."""

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import Bytes
from orchestrator.engines.rsync.parallel import ParallelCopy, PathGroup, copy_cost, plan_parallel_copies


def unit(path: str, size: int = 0, *inodes: int, entries: int = 1) -> PathGroup:
    return PathGroup(paths=(path.encode(),), size=size, entries=entries, inodes=inodes)


def paths(parallel_copies: tuple[ParallelCopy, ...] | Refusal) -> list[tuple[bytes, ...]]:
    assert not isinstance(parallel_copies, Refusal)
    return [worker.paths for worker in parallel_copies]


def refused(parallel_copies: tuple[ParallelCopy, ...] | Refusal) -> Refusal:
    assert isinstance(parallel_copies, Refusal)
    return parallel_copies


def test_the_heaviest_go_first_onto_the_lightest_lane() -> None:
    parallel_copies = plan_parallel_copies([unit("c", 4), unit("a", 7), unit("d", 3), unit("b", 5)], 2, per_file_cost=0)
    assert parallel_copies == (
        ParallelCopy(paths=(b"a", b"d"), size=Bytes(10), entries=2),
        ParallelCopy(paths=(b"b", b"c"), size=Bytes(9), entries=2),
    )


def test_many_small_files_weigh_too() -> None:
    units = [unit("big", 1000), unit("small", 10, entries=10), unit("other", 10, entries=1)]
    assert paths(plan_parallel_copies(units, 2, per_file_cost=0)) == [(b"big",), (b"other", b"small")]
    assert paths(plan_parallel_copies(units, 2, per_file_cost=1000)) == [(b"small",), (b"big", b"other")]


def test_names_of_one_inode_share_a_lane_over_several_steps() -> None:
    units = [unit("a", 9, 1), unit("b", 9), unit("c", 9, 2), unit("d", 9, 2, 1)]
    assert paths(plan_parallel_copies(units, 2)) == [(b"a", b"c", b"d"), (b"b",)]


def test_a_lane_is_written_so_that_no_name_is_taken_for_a_comment() -> None:
    assert ParallelCopy(paths=(b"#a", b"b\n/c"), size=Bytes(0), entries=2).files_from == b"./#a\0./b\n/c\0"


def test_too_little_to_share_out_is_fewer_lanes() -> None:
    assert paths(plan_parallel_copies([unit("a")], 4)) == [(b"a",)]
    assert plan_parallel_copies([], 4) == ()


def test_hard_links_that_leave_too_few_lanes_are_refused() -> None:
    units = [unit("a/x\n", 2048, 7, 8), unit("b/x", 0, 8), unit("b/y"), unit("c", 1 << 30, 9), unit("d", 0, 9)]
    refusal = refused(plan_parallel_copies(units, 4))
    assert refusal.why == "hard links tie this tree together: 3 of the 4 parallel copies could be used"
    assert refusal.evidence == ("1.0 GiB tied by inode 9: c, d", "2.0 KiB tied by inode 8: a/x\\n, b/x")
    assert "parallel = 1" in refusal.hint
    assert "hard-links = false" in refusal.hint
    assert len(paths(plan_parallel_copies(units, 3))) == 3


def test_a_refusal_shortens_long_lists() -> None:
    refusal = refused(plan_parallel_copies([unit(f"{number}", 1, 5) for number in range(12)], 2))
    assert refusal.evidence == ("12 B tied by inode 5: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",)


SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=40)


@given(SIZES, st.integers(1, 6), st.integers(0, 500))
def test_no_lane_is_heavier_than_a_fair_share_and_one_unit(sizes: list[int], parallel_copies: int, cost: int) -> None:
    units = [unit(f"{place}", size) for place, size in enumerate(sizes)]
    made = plan_parallel_copies(units, parallel_copies, per_file_cost=cost)
    assert not isinstance(made, Refusal)
    assert len(made) == min(parallel_copies, len(units))
    assert sorted(path for worker in made for path in worker.paths) == sorted(each.paths[0] for each in units)
    heaviest = max(worker.size + worker.entries * cost for worker in made)
    assert heaviest <= copy_cost(units, cost) / len(made) + max(sizes) + cost
