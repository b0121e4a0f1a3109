"""Test what the guids of both sides say of a copy: missing, extra, written, renamed, recreated, and what is no fault."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.job import KeepRules
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import Bookmark, Dataset, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.verify.compare import GuidComparison, compare_guids
from tests.engines.zfs.sides import ASKED, COPY, SOURCE, A, B, C, dataset, job, side, world

FOREIGN = Snapshot(name="own", guid=90, createtxg=9)
D = Snapshot(name="d", guid=4, createtxg=4)


def looked(
    source: tuple[Dataset, ...], target: tuple[Dataset, ...], *, point: str | None = None, keep: KeepRules | None = None, **options: Any
) -> GuidComparison | Refusal:  # fmt: skip
    """The verdict on a copy of these."""
    requested = replace(job(**options), keep=keep or KeepRules())
    return compare_guids(PlanContext(requested, world(side(SOURCE, *source), side(COPY, *target)), ASKED), point=point)


def found(judged: GuidComparison | Refusal) -> list[tuple[str, str]]:
    assert isinstance(judged, GuidComparison), judged
    return [(each.path.decode(), each.verdict.value) for each in judged.findings]


def copy(*snapshots: Snapshot, name: str = "", **more: Any) -> Dataset:
    return dataset(name, *snapshots, **{"written": 0, **more})


def test_a_whole_copy_is_sound() -> None:
    judged = looked((dataset("", A, B, C), dataset("x", A, B)), (copy(A, B, C), copy(A, B, name="x")))
    assert isinstance(judged, GuidComparison)
    assert (judged.findings, judged.warnings, judged.point, judged.checked) == ((), (), "c", 5)
    assert [(one.dataset, one.source, one.target) for one in judged.newest] == [("", C, C), ("x", B, B)]


def test_what_was_not_copied_yet_is_no_fault() -> None:
    judged = looked((dataset("", A, B, C), dataset("new", D)), (copy(A, B),))
    assert found(judged) == []
    assert isinstance(judged, GuidComparison)
    assert judged.point == "b"
    assert judged.warnings == ("not copied yet, as nothing of it is older than the newest copy: new",)


def test_what_lies_before_the_newest_common_one_is_missing() -> None:
    assert found(looked((dataset("", A, B, C, D),), (copy(A, C),))) == [("@b", "missing")]


@pytest.mark.parametrize(
    ("keep", "options", "why"),
    [(KeepRules(daily=3), {}, "[keep]"), (None, {"catch_up": "newest"}, "catch-up"), (None, {"catch_up": "kept"}, "catch-up")],
)  # fmt: skip
def test_where_the_target_keeps_less_only_the_newest_is_promised(
    keep: KeepRules | None, options: dict[str, Any], why: str
) -> None:
    judged = looked((dataset("", A, B, C),), (copy(A, C),), keep=keep, **options)
    assert found(judged) == []
    assert isinstance(judged, GuidComparison)
    assert [why in warning for warning in judged.warnings] == [True]


def test_what_the_filter_leaves_out_is_not_promised() -> None:
    assert found(looked((dataset("", A, B, C),), (copy(A, C),), skip_snapshots=("b",))) == []
    left_out = looked((dataset("", A), dataset("x", A), dataset("x/y", A)), (copy(A),), exclude=("x",))
    assert found(left_out) == []


def test_a_dataset_that_is_behind_the_others_lacks_the_point() -> None:
    """Its run was cut, or it was refused: the point is not whole, whatever both sides hold of it by guid."""
    source = (dataset("", A, B, C), dataset("x", A, B, C), dataset("y", A, B))
    target = (copy(A, B, C), copy(A, name="x"), copy(A, B, name="y"))
    judged = looked(source, target)
    assert found(judged) == [("x@b", "missing"), ("x@c", "missing")]
    assert isinstance(judged, GuidComparison)
    assert (judged.point, judged.lacking) == ("c", ("tank/photos/x",))
    assert judged.findings[0].detail == "the target does not hold it (guid 2), and is as of @a"
    assert found(looked(source, target, keep=KeepRules(daily=3))) == [("x@c", "missing")], (
        "the newest is always promised"
    )
    never = looked((dataset("", C), dataset("x", A, C)), (copy(C),))
    assert isinstance(never, GuidComparison)
    assert never.lacking == ("tank/photos/x",)
    later = looked((dataset("", A, B), dataset("x", A, C)), (copy(A, B), copy(A, name="x")))
    assert isinstance(later, GuidComparison)
    assert (later.findings, later.lacking) == ((), ())


def test_a_dataset_that_should_be_there_is_missing() -> None:
    judged = looked((dataset("", C), dataset("x", A, B)), (copy(C),))
    assert found(judged) == [("x@b", "missing")]
    assert isinstance(judged, GuidComparison)
    assert judged.findings[0].detail == "the target holds none of the dataset's 2 snapshots"


def test_a_name_is_no_proof() -> None:
    impostor = replace(B, guid=70)
    judged = looked((dataset("", A, B, C),), (copy(A, impostor, C),))
    assert found(judged) == [("@b", "missing")]
    assert isinstance(judged, GuidComparison)
    assert "another snapshot (guid 70)" in judged.findings[0].detail


def test_a_renamed_snapshot_is_the_same() -> None:
    judged = looked((dataset("", A, replace(B, name="renamed")),), (copy(A, B),))
    assert found(judged) == []
    assert isinstance(judged, GuidComparison)
    assert judged.point == "b"
    assert judged.newest[0].source.name == "renamed"


def test_only_what_the_target_took_itself_is_extra() -> None:
    """A snapshot that is older than the newest common one came from the source, which has let it go since."""
    assert found(looked((dataset("", C),), (copy(A, B, C),))) == []
    judged = looked((dataset("", B, C, replace(D, name="own")),), (copy(A, B, FOREIGN),))
    assert found(judged) == [("@own", "extra")]
    assert isinstance(judged, GuidComparison)
    assert "another snapshot (guid 4)" in judged.findings[0].detail


def test_a_recreated_dataset_is_told_whole() -> None:
    judged = looked((dataset("", C), dataset("x", A)), (copy(C), copy(FOREIGN, name="x")))
    assert found(judged) == [("x@a", "missing"), ("x@own", "extra")]


def test_what_was_written_is_told_and_harms_no_snapshot() -> None:
    judged = looked((dataset("", A), dataset("x", A)), (copy(A, written=4096), copy(A, name="x", written=None)))
    assert found(judged) == [("", "edited"), ("x", "unproved")]
    assert isinstance(judged, GuidComparison)
    assert judged.findings[0].detail == "4.0 KiB written on the target since @a"


def test_a_placeholder_and_a_cut_first_receive_hold_nothing() -> None:
    judged = looked((dataset("", A), dataset("x")), (copy(A), copy(name="x", written=9, placeholder=True)))
    assert found(judged) == []


def test_datasets_that_the_source_has_no_more_are_left_alone() -> None:
    aside = "old_aside_2026-03-04T050607Z"
    there = (copy(A), copy(B, name="old"), copy(B, name=aside), copy(B, name=f"{aside}/kid"))
    judged = looked((dataset("", A),), there)
    assert found(judged) == []
    assert isinstance(judged, GuidComparison)
    assert judged.warnings == (
        "left alone, as the source no longer has it: old",
        f"left alone, as a run set it aside: {aside}, {aside}/kid",
    )


def test_a_bookmark_is_enough_for_the_look() -> None:
    mark = Bookmark(name="m", guid=1, createtxg=1)
    judged = looked((dataset("", B), dataset("x", C, bookmarks=(mark,))), (copy(B), copy(A, name="x")))
    assert found(judged) == []
    assert isinstance(judged, GuidComparison)
    assert judged.warnings == (
        "the source keeps only a bookmark of what the target holds newest, so contents cannot be compared: x",
    )


def test_nothing_in_common_is_refused() -> None:
    refused = looked((dataset("", A),), (copy(),))
    assert isinstance(refused, Refusal)
    assert "holds no snapshot that tank/photos has" in refused.why
    assert "poolferry run photos" in refused.hint
    absent = looked((dataset("", A),), ())
    assert isinstance(absent, Refusal)
    assert absent.why == f"there is no copy at {COPY}"
    away = world(side(SOURCE, dataset("", A)), replace(side(COPY), pool_guid=0))
    refused = compare_guids(PlanContext(job(), away, ASKED), point=None)
    assert isinstance(refused, Refusal)
    assert refused.why.endswith("is not imported")
    gone = looked((), (copy(A),))
    assert isinstance(gone, Refusal)
    assert gone.why == "the source tank/photos is not there"


def test_one_point_is_judged_by_itself() -> None:
    source = (dataset("", A, B), dataset("x", A, B), dataset("y", B), dataset("z", B))
    target = (copy(A, B, FOREIGN, written=7), copy(A, name="x"), copy(A, name="z"))
    judged = looked(source, target, point="a")
    assert isinstance(judged, GuidComparison)
    assert (found(judged), judged.point, judged.checked) == ([], "a", 2)
    assert judged.warnings == ("the source no longer has @a, so it cannot be compared: z",)
    other = looked(source, target, point="b")
    assert found(other) == [("x@b", "missing"), ("y@b", "missing"), ("z@b", "missing")]
    assert isinstance(other, GuidComparison)
    assert other.lacking == ("tank/photos/x", "tank/photos/y", "tank/photos/z")
    refused = looked(source, target, point="c")
    assert isinstance(refused, Refusal)
    assert refused.why == "no snapshot @c is on both sides"


def test_a_point_that_was_renamed_there_is_found_by_its_guid() -> None:
    judged = looked((dataset("", replace(A, name="before")),), (copy(A),), point="a")
    assert found(judged) == []
    assert isinstance(judged, GuidComparison)
    assert judged.newest[0].source.name == "before"


def test_many_names_are_cut_short() -> None:
    more = tuple(copy(A, name=f"old{number}") for number in range(8))
    judged = looked((dataset("", A),), (copy(A), *more))
    assert isinstance(judged, GuidComparison)
    assert judged.warnings[0].endswith("old0, old1, old2, old3, old4 and 3 more")
