"""Names that share a file which the source has apart are found whatever memory holds."""

import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.verify import shared_files
from orchestrator.verify.shared_files import SharedFiles

NAMES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), max_size=40)


def apart(names: list[tuple[int, int]], folder: Path) -> list[tuple[int, int]]:
    """The inodes, of the copy and of the source, of the names that are told."""
    shared, found = SharedFiles(str(folder)), []
    for number, (here, there) in enumerate(names):
        other = b"d/f%d//f\t7\t%d\t" % (number, there)
        if shared.is_apart(b"%d" % here, b"%d" % there, other):
            found.append(other)
    return sorted(names[int(other.split(b"//")[0][3:])] for other in (*found, *shared.late()))


@given(names=NAMES, most=st.integers(0, 6))
def test_one_at_least_is_told_of_each_file_that_the_source_has_apart(
    names: list[tuple[int, int]], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_files, "_MOST", most)
        told = apart(names, tmp_path_factory.getbasetemp())
    kinds = {here: {there for other, there in names if other == here} for here, _ in names}
    for here, there in kinds.items():
        # All but those that are as one of them.
        kept = [other for other in there if (here, other) not in told]
        assert len(kept) == 1
        assert sum(one == here for one, _ in told) == sum(one == here and other not in kept for one, other in names)


def test_memory_does_not_grow_with_the_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "_MOST", 1000)
    shared = SharedFiles(str(tmp_path))
    tracemalloc.start()
    try:
        for number in range(100_000):
            assert not shared.is_apart(b"%d" % number, b"%d" % number, b"f%d//" % number)
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    assert list(shared.late()) == []
