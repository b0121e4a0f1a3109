"""The proof that a copy has the names of its source: what one side alone has is named, and what changes in the middle is not."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.plan import CopiedEntries
from orchestrator.verify import shared_files
from orchestrator.verify.attributes import NO_ATTRIBUTES
from orchestrator.verify.completeness import IncompleteCopy, NameComparison, select_records
from orchestrator.verify.entry import Tolerance
from orchestrator.verify.source import SourceComparison

OLD, BEGAN, NEW = 100.0, 200.0, 300.0
SOURCE = {
    b"": b"d",
    b"a": b"d",
    b"a/.dot": b"f",
    b"a/-b": b"l",
    b"a/c": b"d",
    b"a/c/d": b"f",
    b"a b": b"p",
    b"z\xff\n": b"f",
}
ALL = CopiedEntries(never=frozenset(), reserved=frozenset((b".ours",)), above=frozenset((b"",)), selected=None)


def prove(
    source: Mapping[bytes, bytes],
    copy: Mapping[bytes, bytes],
    folder: Path,
    *,
    new: tuple[bytes, ...] = (),
    skipped: tuple[bytes, ...] = (),
    copied: CopiedEntries = ALL,
) -> IncompleteCopy | None:
    """Merge the listings of two trees, as a manifest is built of them. `new`: what the source changed since the look."""
    names = NameComparison(BytesIO(), copied, skipped=skipped, elapsed=lambda: NEW - BEGAN)
    merge = SourceComparison(
        Tolerance(), elapsed=lambda: 0, skipped=frozenset(), mirror=False, links=True, parts="", folder=str(folder), names=names
    )  # fmt: skip
    theirs = (
        b"%b//%b\t0\t1.0000000000\t755\t0\t0\t1\t7\t\t%d" % (path, kind, NEW if path in new else OLD)
        for path, kind in source.items()
    )
    ours = (b"%b//%b\t0\t1.0000000000\t755\t0\t0\t1\t7\t" % each for each in copy.items())
    entries = sorted(merge.begin(iter((b"%d" % NEW, *theirs))))
    assert len(list(merge.join(sorted(ours), entries, ()))) == len(copy)
    return names.result()


def without(tree: Mapping[bytes, bytes], *gone: bytes) -> dict[bytes, bytes]:
    return {
        path: kind
        for path, kind in tree.items()
        if not any(path == each or path.startswith(each + b"/") for each in gone)
    }


def test_equal_names_are_a_whole_copy(tmp_path: Path) -> None:
    assert prove(SOURCE, SOURCE, tmp_path) is None
    assert prove({b"": b"d"}, {b"": b"d"}, tmp_path) is None


@pytest.mark.parametrize("path", [path for path in SOURCE if path])
def test_what_one_side_alone_has_is_named(tmp_path: Path, path: bytes) -> None:
    names = tuple(sorted((each for each in SOURCE if each not in without(SOURCE, path)), key=lambda each: each + b"//"))
    lacking = prove(SOURCE, without(SOURCE, path), tmp_path)
    assert lacking == IncompleteCopy(missing=len(names), surplus=0, missing_names=names, surplus_names=())
    more = prove(without(SOURCE, path), SOURCE, tmp_path)
    assert more == IncompleteCopy(missing=0, surplus=len(names), missing_names=(), surplus_names=names)


def test_only_a_few_names_are_shown_and_all_counted(tmp_path: Path) -> None:
    many = SOURCE | {b"m%03d" % number: b"f" for number in range(300)}
    lacking = prove(many, SOURCE, tmp_path)
    assert lacking is not None
    assert (lacking.missing, lacking.missing_names) == (300, tuple(b"m%03d" % number for number in range(5)))


def test_what_the_source_changes_in_the_middle_is_no_lack(tmp_path: Path) -> None:
    assert prove(SOURCE, without(SOURCE, b"z\xff\n"), tmp_path, new=(b"", b"z\xff\n")) is None, "a file that came"
    assert prove(SOURCE, without(SOURCE, b"a"), tmp_path, new=(b"", b"a")) is None, "a folder that came with all in it"
    assert prove(without(SOURCE, b"a"), SOURCE, tmp_path, new=(b"",)) is None, "a folder that went with all in it"
    assert prove(without(SOURCE, b"a/c/d"), SOURCE, tmp_path, new=(b"a/c",)) is None, "a file that went"
    assert prove(SOURCE, without(SOURCE, b"a/c/d"), tmp_path, new=(b"a", b"a/c")) is not None, (
        "a busy folder excuses none"
    )
    assert prove(without(SOURCE, b"a/c/d"), SOURCE, tmp_path, new=(b"", b"a")) is not None, "nor does one above it"


def test_what_no_copy_has_is_no_lack(tmp_path: Path) -> None:
    ours = SOURCE | {b"a/.ours": b"d", b"a/.ours/half": b"f"}
    assert prove(ours, SOURCE, tmp_path) is None
    assert prove(SOURCE, without(SOURCE, b"a/c"), tmp_path, skipped=(b"a/c",)) is None
    plain = CopiedEntries(never=frozenset((b"p",)), reserved=frozenset(), above=frozenset((b"", b"srv")), selected=None)
    assert prove(SOURCE, without(SOURCE, b"a b"), tmp_path, copied=plain) is None
    parts = {b"srv/www": b"d", b"srv/www/file": b"f"}
    above = {b"": b"d", b"srv": b"d"}
    assert prove(parts, above | parts, tmp_path, copied=plain) is None
    beside = prove(parts, above | parts | {b"srv/else": b"f"}, tmp_path, copied=plain)
    assert beside is not None
    assert beside.surplus_names == (b"srv/else",)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_entry_that_is_left_out_is_found(tmp_path: Path, data: st.DataObject) -> None:
    name = st.binary(min_size=1, max_size=2).filter(
        lambda each: not set(each) & set(b"/\0") and each not in (b".", b"..")
    )
    files = data.draw(st.sets(st.lists(name, min_size=1, max_size=3).map(b"/".join), min_size=1, max_size=12))
    folders = {
        b"/".join(parts[:depth]) for each in files for parts in (each.split(b"/"),) for depth in range(len(parts))
    }
    tree = {path: b"d" if path in folders else b"f" for path in sorted(files | folders | {b""})}
    chosen = data.draw(st.sampled_from([path for path in tree if path]))
    lacking, more = prove(tree, without(tree, chosen), tmp_path), prove(without(tree, chosen), tree, tmp_path)
    assert lacking is not None
    assert more is not None
    assert lacking.missing == more.surplus == len(tree) - len(without(tree, chosen))
    assert lacking.surplus == more.missing == 0


def test_selected_names_alone_are_left_and_the_root() -> None:
    records = [b"//d", b"a b//f", b"a//d", b"a/b//f", b"b//f"]
    assert list(select_records(sorted(records), sorted([b"a//", b"a/b//", b"c//"]))) == [b"//d", b"a//d", b"a/b//f"]


def test_an_attribute_that_went_from_the_source_after_the_copy_is_asked_of_the_copy(tmp_path: Path) -> None:
    """The manifest says what the copy holds; without it the point would be called damaged."""
    merge = SourceComparison(
        Tolerance(), elapsed=lambda: 0, skipped=frozenset(), mirror=False, links=True, parts="auo", folder=str(tmp_path)
    )
    began = 1_700_000_000
    lines = {b"gone": began + 1, b"old": began - 1}
    record = b"%b//f\t0\t1.0000000000\t644\t0\t0\t1\t7\t"
    theirs = [(record + b"\t%d.0000000000") % each for each in lines.items()]
    entries = sorted(merge.begin(iter((b"%d.000000000" % began, *theirs, b""))))
    assert list(merge.read_attributes(iter(()))) == []
    assert [told for _, told in merge.join([record % name for name in lines], entries, ())] == [NO_ATTRIBUTES] * 2
    assert list(merge.asked_names()) == [b"gone"]
    assert merge.join_attributes(iter((b"gone//u00",))) == {b"gone": "u00"}
    assert merge.differences == [], "the next run copies it"


@pytest.mark.parametrize("most", [0, 200_000])
def test_both_names_of_a_file_are_asked_where_the_source_has_them_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Rsync gives one file the attributes of each of its names, one after the other: the first name then has those of the other one."""
    monkeypatch.setattr(shared_files, "_MOST", most)
    merge = SourceComparison(
        Tolerance(), elapsed=lambda: 0, skipped=frozenset(), mirror=True, links=True, parts="auo", folder=str(tmp_path)
    )
    began = 1_700_000_000
    copied, there = (
        b"%b//f\t0\t1.0000000000\t644\t0\t0\t2\t7\t",
        b"%b//f\t0\t1.0000000000\t644\t0\t0\t1\t%d\t\t%d.0000000000",
    )
    theirs = [there % (name, inode, began - 1) for name, inode in ((b"bare", 8), (b"other", 9))]
    entries = sorted(merge.begin(iter((b"%d.000000000" % began, *theirs, b""))))
    assert list(merge.read_attributes(iter(()))) == []
    list(merge.join([copied % b"bare", copied % b"other"], entries, ()))
    assert [each.path for each in merge.differences] == [b"other"]
    assert list(merge.asked_names()) == [b"bare", b"other"]
    assert merge.join_attributes(iter((b"bare//u00", b"other//u00"))) == {b"bare": "u00", b"other": "u00"}
    assert b"bare" in [each.path for each in merge.differences], "it is copied again, as a new file"


def test_many_entries_are_asked_while_the_answers_are_compared(tmp_path: Path) -> None:
    merge = SourceComparison(
        Tolerance(), elapsed=lambda: 0, skipped=frozenset(), mirror=False, links=True, parts="auo", folder=str(tmp_path)
    )
    names = [b"%06d" % number for number in range(30_000)]
    theirs = [b"%b//f\t0\t1.0000000000\t644\t0\t0\t1\t7\t\t1700000001.0000000000" % name for name in names]
    entries = merge.begin(iter((b"1700000000.0", *theirs, b"")))
    list(merge.read_attributes(iter(())))
    copied = [b"%b//f\t0\t1.0000000000\t644\t0\t0\t1\t7\t" % name for name in names]
    assert len(list(merge.join(copied, list(entries), ()))) == len(names)
    found = merge.join_attributes(name + b"//u00" for name in merge.asked_names())
    assert len(found) == len(names)
