"""Two listings of one snapshot, entry by entry: what differs, what cannot be read, and on which side."""

import pytest

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.point import Finding
from orchestrator.verify.compare_sides import SortedListing, compare_sides

ROOT = b"//d\t2\t1.0000000000\t755\t0\t0\t2\t1\t"
END = b"//~"
ONE, TWO = b"=xxh128:1", b"=xxh128:2"


def entry(
    path: bytes, *, kind: bytes = b"f", size: int = 5, time: bytes = b"1.5000000000", mode: bytes = b"644"
) -> bytes:
    return b"%b//%b\t%d\t%b\t%b\t0\t0\t1\t7\t" % (path, kind, size, time, mode)


def side(*records: bytes) -> SortedListing:
    return SortedListing(sorted((ROOT, END, *records)))


def found(source: SortedListing, target: SortedListing) -> list[tuple[bytes, str, bool]]:
    return [(each.path, each.verdict.value, at_source) for each, at_source in compare_sides(source, target)]


def only(source: SortedListing, target: SortedListing) -> Finding:
    ((finding, _),) = compare_sides(source, target)
    return finding


def test_the_same_on_both_sides() -> None:
    records = (entry(b"a"), b"a//" + ONE, entry(b"a/b"), b"a/b//" + TWO, entry(b"l", kind=b"l"))
    target = side(*records)
    assert found(side(*records), target) == []
    assert (target.entries, target.files, target.bytes) == (4, 2, 10)


@pytest.mark.parametrize(
    ("here", "digest", "verdict"),
    [
        (entry(b"a"), TWO, "rotten"),
        (entry(b"a", mode=b"600"), TWO, "rotten"),
        (entry(b"a", size=6), TWO, "edited"),
        (entry(b"a", time=b"2.0000000000"), TWO, "edited"),
        (entry(b"a", time=b"2.0000000000"), ONE, "metadata"),
        (entry(b"a", mode=b"600"), ONE, "metadata"),
        (entry(b"a", kind=b"d"), b"", "edited"),
    ],
)
def test_the_table(here: bytes, digest: bytes, verdict: str) -> None:
    told = (b"a//" + digest,) if digest else ()
    assert found(side(entry(b"a"), b"a//" + ONE), side(here, *told)) == [(b"a", verdict, False)]


def test_names_of_one_side() -> None:
    one = (entry(b"a"), b"a//" + ONE)
    assert found(side(*one), side()) == [(b"a", "missing", False)]
    assert found(side(), side(*one)) == [(b"a", "extra", False)]


def test_a_file_that_cannot_be_read_is_told_with_the_reason_and_the_side() -> None:
    whole = (entry(b"a b"), b"a b//" + ONE)
    cut = (entry(b"a b"), b"//!sha256sum: './a b': Input/output error")
    assert found(side(*whole), side(*cut)) == [(b"a b", "unreadable", False)]
    assert only(side(*whole), side(*cut)).detail == "it cannot be read on the target (Input/output error)"
    assert found(side(*cut), side(*whole)) == [(b"a b", "unreadable", True), (b"a b", "unproved", False)]
    assert found(side(*cut), side(*cut)) == [(b"a b", "unreadable", True), (b"a b", "unreadable", False)]
    unnamed = side(entry(b"a b"), b"//!Error: a failure occurred reading the input file.")
    assert "a failure occurred" in only(side(*whole), unnamed).detail


def test_what_lies_in_a_folder_that_cannot_be_read_is_neither_missing_nor_extra() -> None:
    whole = (entry(b"a", kind=b"d"), entry(b"a/b"), b"a/b//" + ONE)
    cut = (entry(b"a", kind=b"d"), b"//!find: './a': Input/output error")
    assert found(side(*whole), side(*cut)) == [(b"a", "unreadable", False), (b"a/b", "unreadable", False)]
    assert found(side(*cut), side(*whole)) == [(b"a", "unreadable", True), (b"a/b", "unproved", False)]


def test_a_volume_is_like_a_tree_of_one_file() -> None:
    lies = b"//f\t10485760\t0.0000000000\t0\t0\t0\t1\t0\t"

    def volume(digest: bytes) -> SortedListing:
        return SortedListing(sorted((lies, b"//" + digest, END)))

    assert found(volume(ONE), volume(ONE)) == []
    assert found(volume(ONE), volume(TWO)) == [(b"", "rotten", False)]
    broken = volume(b"!sha256sum: -: Input/output error")
    assert only(volume(ONE), broken).detail == "it cannot be read on the target (sha256sum: -: Input/output error)"


@pytest.mark.parametrize("records", [(), (ROOT,), (ROOT, entry(b"a"))])
def test_a_listing_that_broke_off_proves_nothing(records: tuple[bytes, ...]) -> None:
    for one, other in ((SortedListing(records), side()), (side(), SortedListing(records))):
        with pytest.raises(VerificationFailed):
            found(one, other)


def test_what_is_no_listing_is_refused() -> None:
    with pytest.raises(ValueError, match="not listed"):
        found(side(b"ghost//" + ONE), side())
