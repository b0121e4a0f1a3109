"""The limit of holes: whose files are left out, which count, and what the plan says of the rest."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Plan
from orchestrator.engines.rsync import hole_limit
from orchestrator.engines.rsync.hole_limit import choose_left_out, limit_holes
from orchestrator.engines.rsync.large_files import LargeFiles
from orchestrator.engines.rsync.model import RsyncSurvey, SparseFile
from orchestrator.engines.rsync.plan import plan
from orchestrator.engines.rsync.source_summary import survey_tree
from orchestrator.process.executor import Reader
from tests.engines.rsync.builders import ASKED, CHANGED, FIRST, USED, job, world

_MIB = 1 << 20
LARGE = replace(FIRST, moving=1 << 60)


def holes(owner: int, *sizes: int) -> list[SparseFile]:
    """Files of one owner's, of so many MiB."""
    return [SparseFile(paths=(b"%d-%d" % (owner, size),), size=size, hole=size, owner=owner) for size in sizes]


def left(seen: RsyncSurvey) -> list[bytes]:
    """Return the names that are left out."""
    return sorted(path for each in seen.sparse for path in each.paths)


def make(folder: Path, *names: str, size: int = 60 * _MIB) -> None:
    """Make files that are one hole each."""
    for name in names:
        (folder / name).touch()
        os.truncate(folder / name, size)


@pytest.mark.parametrize("other", [0, 1001])
def test_one_owners_holes_never_keep_out_a_file_of_somebody_else(other: int) -> None:
    mine, others = holes(1000, 150), holes(other, 200)
    assert choose_left_out([*mine, *others], 300) == ()
    assert choose_left_out([*holes(1000, 10, 20, 290), *others], 300) == tuple(holes(1000, 290))


def test_only_what_is_copied_counts(tmp_path: Path) -> None:
    """Nothing that a pattern leaves out, or that the newest point has, is counted or named."""
    make(tmp_path, "a", "b", "c", "d")
    seen = world(changes=replace(CHANGED, created=2, files_new=2, entries_now=9, moving=120 * _MIB))
    here = job(source=Location(path=str(tmp_path)), most_holes=100 * _MIB)
    told = limit_holes(here, seen, LargeFiles(copied=frozenset((b"a", b"b")), new=frozenset((b"b",))), Reader())
    assert left(told) == [b"b"]
    assert told.changes == replace(CHANGED, created=1, files_new=1, entries_now=8, moving=60 * _MIB)


def test_each_name_counts_where_names_do_not_stay_names_of_one_file(tmp_path: Path) -> None:
    make(tmp_path, "a")
    os.link(tmp_path / "a", tmp_path / "b")
    here = job(source=Location(path=str(tmp_path)), most_holes=100 * _MIB)
    assert left(limit_holes(here, world(changes=LARGE), None, Reader())) == []
    apart = job(source=Location(path=str(tmp_path)), most_holes=100 * _MIB, hard_links=False)
    assert left(limit_holes(apart, world(changes=LARGE), None, Reader())) == [b"a", b"b"]


def test_a_name_that_the_newest_point_has_stays_where_each_name_is_a_file(tmp_path: Path) -> None:
    """Else the rule for it would take it out of the new point."""
    make(tmp_path, "old", "big")
    os.link(tmp_path / "old", tmp_path / "new")
    apart = job(source=Location(path=str(tmp_path)), most_holes=20 * _MIB, hard_links=False)
    copied = LargeFiles(copied=frozenset((b"new", b"big")), new=frozenset((b"new", b"big")))
    assert left(limit_holes(apart, world(changes=LARGE), copied, Reader())) == [b"big", b"new"]


def test_so_many_files_are_left_out_and_those_with_the_largest_holes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hole_limit, "MOST_LEFT_OUT", 2)
    make(tmp_path, "a", "b", "c")
    make(tmp_path, "d", "e", size=200 * _MIB)
    here = job(source=Location(path=str(tmp_path)), most_holes=_MIB)
    assert left(limit_holes(here, world(changes=LARGE), None, Reader())) == [b"d", b"e"]


def test_a_share_of_a_parallel_copy_holds_nothing_that_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a", "b", "c")
    here = job(source=Location(path=str(tmp_path)))
    listed, _, _ = survey_tree(here, Reader(), left_out=frozenset((b"a",)))
    assert listed.totals()[1] == 120 * _MIB


def test_a_file_that_grows_while_it_is_copied_has_the_room_of_the_target() -> None:
    """The limit of holes may be small: content is no hole."""
    planned = plan(job(most_holes=_MIB), world(replace(USED, whole_bytes=1 << 40)), ASKED)
    assert isinstance(planned, Plan)
    assert {step.most for step in planned.steps if step.copies} == {2048 + (1 << 40)}
