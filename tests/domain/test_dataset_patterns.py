"""Patterns of datasets and snapshots that fit no name are named, each with one that does."""

from fnmatch import fnmatchcase

import pytest

from orchestrator.domain.dataset_patterns import find_dataset_mistakes, find_snapshot_mistakes


@pytest.mark.parametrize(
    ("pattern", "what", "expected"),
    [
        ("tank/photos/scratch", "datasets are named below tank/photos here", '"scratch"; "[t]ank/photos/scratch" for tank/photos/tank/photos/scratch'),
        ("tank/photos", "is the source itself", 'names below it; "[t]ank/photos" for tank/photos/tank/photos'),
        ("/scratch", 'begins or ends with "/"', '"scratch"'),
        ("scratch/", 'begins or ends with "/"', '"scratch"'),
        ("vm//a", 'two side by side', '"vm/a"'),
        ("/", 'begins or ends with "/"', "a name"),
        ("a@b", 'no dataset has "@" in its name', "a name below the source"),
        ("a[b", 'no dataset has "[" in its name', "a name below the source"),
        ("{a,b}", 'no dataset has "{" in its name', "a name below the source"),
        ("~a", 'no dataset has "~" in its name', "a name below the source"),
    ],
)  # fmt: skip
def test_a_pattern_that_fits_no_dataset_is_named(pattern: str, what: str, expected: str) -> None:
    [(_, told, wanted)] = find_dataset_mistakes([pattern], "tank/photos")
    assert (what in told, expected in wanted) == (True, True), (told, wanted)


@pytest.mark.parametrize(
    "pattern", ["scratch", "vm/*-tmp", "*", "*/cache", "[a-c]?", "[!a]*", "a b", "tank", "[t]ank/photos/x", "[]a]"]
)
def test_other_patterns_are_no_mistakes(pattern: str) -> None:
    assert list(find_dataset_mistakes([pattern], "tank/photos")) == []


def test_the_pattern_that_is_meant_by_a_set_fits() -> None:
    assert fnmatchcase("tank/photos/scratch", "[t]ank/photos/scratch")


@pytest.mark.parametrize(
    ("pattern", "what", "expected"),
    [
        ("@autosnap_*", 'it is for what stands behind the "@"', '"autosnap_*"'),
        ("tank@daily", 'it is for what stands behind the "@"', '"daily"'),
        ("a@", 'it is for what stands behind the "@"', "a name"),
        ("a/b", 'no snapshot has "/" in its name', "a name"),
        ("a[b", 'no snapshot has "[" in its name', "a name"),
    ],
)
def test_a_pattern_that_fits_no_snapshot_is_named(pattern: str, what: str, expected: str) -> None:
    [(_, told, wanted)] = find_snapshot_mistakes([pattern])
    assert (what in told, expected in wanted) == (True, True), (told, wanted)
    assert list(find_snapshot_mistakes(["*", "autosnap_*_daily", "a-[0-9]?", "zrepl 1"])) == []
