"""Test when a drill is due, and which files it takes."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.drill import DrillResult
from orchestrator.domain.job import DrillRules
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.planners.drill import PastDrill, SampleFile, choose_sample, decide_drill, estimate_whole

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DAY = 86400
BOTH = DrillRules(every=Seconds(7 * DAY), whole_every=Seconds(90 * DAY))
WELL = DrillResult(
    place="disk", point="p", outcome=Outcome.DONE, why="", whole=False, self_test=False, seed=1, files=10, bytes=1000,
    of_files=100, of_bytes=50_000, restore_s=2.0,
)  # fmt: skip


def past(days: float, **more: object) -> PastDrill:
    return PastDrill(at=NOW - timedelta(days=days), drilled=replace(WELL, **more))  # type: ignore[arg-type]


FAILED, REFUSED = {"outcome": Outcome.FAILED}, {"outcome": Outcome.REFUSED}
CUT = {"outcome": Outcome.INTERRUPTED}


@pytest.mark.parametrize(
    ("rules", "drills", "due"),
    [
        (DrillRules(), [], ""),
        (DrillRules(), [past(1, **FAILED)], ""),
        (BOTH, [], "whole"),
        (BOTH, [past(1, whole=True)], ""),
        (BOTH, [past(8, whole=True)], "sample"),
        (BOTH, [past(1), past(8, whole=True)], ""),
        (BOTH, [past(1), past(91, whole=True)], "whole"),
        (DrillRules(every=Seconds(7 * DAY)), [past(6.9)], ""),
        (DrillRules(every=Seconds(7 * DAY)), [past(7.1)], "sample"),
        (DrillRules(every=Seconds(0)), [past(0.01)], "sample"),
        (DrillRules(every=Seconds(7 * DAY)), [past(0.1, **FAILED), past(1)], "sample"),
        (BOTH, [past(0.1, **FAILED, whole=True), past(1, whole=True)], "whole"),
        (DrillRules(every=Seconds(7 * DAY)), [past(0.1, **REFUSED), past(1)], "sample"),
        (DrillRules(every=Seconds(7 * DAY)), [past(0.1, **CUT), past(1)], ""),
        (DrillRules(every=Seconds(7 * DAY)), [past(0.1, self_test=True)], "sample"),
        (DrillRules(every=Seconds(7 * DAY)), [past(0.1, self_test=True, **FAILED), past(1)], ""),
        (DrillRules(every=Seconds(7 * DAY)), [past(-400)], "sample"),
    ],
)
def test_when_a_drill_is_due(rules: DrillRules, drills: list[PastDrill], due: str) -> None:
    assert decide_drill(rules, drills, NOW) == due


def pieces(*folders: int, size: int = 10) -> list[SampleFile]:
    """So many files in each folder."""
    named = enumerate(folders)
    return [SampleFile(path=b"%d/%d" % (folder, file), size=size) for folder, many in named for file in range(many)]


def folders(taken: tuple[SampleFile, ...]) -> Counter[bytes]:
    return Counter(piece.path.partition(b"/")[0] for piece in taken)


def test_a_large_folder_hides_no_small_one() -> None:
    taken = choose_sample(pieces(5000, 1, 1, 1), files=10, size=1 << 20, seed=1)
    assert folders(taken) == {b"0": 7, b"1": 1, b"2": 1, b"3": 1}
    assert len(set(taken)) == 10


@pytest.mark.parametrize("many", [1, 9, 100, 1000])
def test_as_many_are_taken_as_are_asked_for(many: int) -> None:
    assert len(choose_sample(pieces(1000), files=many, size=1 << 20, seed=5)) == many
    assert len(choose_sample(pieces(3, 2), files=many, size=1 << 20, seed=5)) == min(many, 5)


def test_the_seed_alone_decides() -> None:
    one, other = pieces(50, 50), pieces(50, 50)[::-1]
    taken = choose_sample(one, files=10, size=1 << 20, seed=7)
    assert set(taken) == set(choose_sample(other, files=10, size=1 << 20, seed=7))
    assert set(taken) != set(choose_sample(one, files=10, size=1 << 20, seed=8))


def test_every_file_is_taken_some_day() -> None:
    seen = {piece for seed in range(200) for piece in choose_sample(pieces(20, 3), files=4, size=1 << 20, seed=seed)}
    assert seen == set(pieces(20, 3))


def test_bytes_are_a_limit_and_large_files_are_passed_over() -> None:
    mixed = [*pieces(20), SampleFile(path=b"0/large", size=1000)]
    for seed in range(20):
        taken = choose_sample(mixed, files=100, size=105, seed=seed)
        assert len(taken) == 10
        assert sum(piece.size for piece in taken) <= 105


def test_where_all_are_too_large_the_smallest_is_taken() -> None:
    large = [SampleFile(path=b"a", size=300), SampleFile(path=b"b", size=200)]
    assert choose_sample(large, files=5, size=Bytes(100), seed=1) == (large[1],)
    assert choose_sample([], files=5, size=100, seed=1) == ()


def test_how_long_all_of_it_would_take() -> None:
    assert estimate_whole(WELL) == 100.0  # fifty times the bytes
    assert estimate_whole(replace(WELL, bytes=50_000)) == 2.0
    assert estimate_whole(replace(WELL, of_bytes=2000)) == 20.0  # ten times the files
    assert estimate_whole(replace(WELL, restore_s=0.1)) is None
    assert estimate_whole(replace(WELL, restore_s=None)) is None
