"""Versions over points are folded where nothing changed; a change names its parts."""

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.point_contents import EntryChange, PointEntry
from orchestrator.planners.entry_versions import VersionCollector, changed_parts, is_same_version

FILE = PointEntry(path=b"a", kind="file", size=3, mtime_ns=5, mode=0o644, uid=0, gid=0, digest="xxh128:1")
FOLDER = replace(FILE, kind="directory", digest="")
LINK = replace(FILE, kind="symlink", target=b"x", digest="")


def collected(*points: tuple[str, tuple[PointEntry, ...]]) -> list[tuple[bytes, list[tuple[str, str, int]]]]:
    collector = VersionCollector()
    for name, entries in points:
        assert [*collector.add(name, entries)][-1:] == [len(collector)][: len(entries)]
    return [(each.path, [(v.first, v.last, v.points) for v in each.versions]) for each in collector.files()]


def test_equal_versions_in_a_row_are_one_range() -> None:
    other = replace(FILE, size=4)
    assert collected(("1", (FILE,)), ("2", (FILE,)), ("3", (other,)), ("4", (FILE,))) == [
        (b"a", [("1", "2", 2), ("3", "3", 1), ("4", "4", 1)])
    ]


def test_a_gap_ends_a_range() -> None:
    assert collected(("1", (FILE,)), ("2", ()), ("3", (FILE,))) == [(b"a", [("1", "1", 1), ("3", "3", 1)])]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (replace(FILE, mode=0o600, uid=7), True),
        (replace(FILE, digest=""), True),
        (replace(FILE, digest="sha256:9"), True),
        (replace(FILE, digest="xxh128:2"), False),
        (replace(FILE, mtime_ns=6), False),
    ],
)
def test_a_version_is_its_contents_and_time(other: PointEntry, *, same: bool) -> None:
    assert is_same_version(FILE, other) is same


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        (None, FILE, ()),
        (FILE, None, ()),
        (FILE, FILE, ()),
        (FILE, FOLDER, ("type",)),
        (FILE, replace(FILE, size=4, digest="xxh128:2", mtime_ns=6), ("size", "time")),
        (FILE, replace(FILE, digest="xxh128:2"), ("contents",)),
        (FILE, replace(FILE, mode=0o600, gid=1), ("mode", "owner")),
        (replace(FILE, attributes="a"), replace(FILE, attributes="b"), ("attributes",)),
        (FILE, replace(FILE, attributes="b"), ()),
        (FOLDER, replace(FOLDER, mtime_ns=6), ()),
        (LINK, replace(LINK, target=b"y", mode=0o777), ("target",)),
    ],
)
def test_a_change_names_its_parts(before: PointEntry | None, after: PointEntry | None, parts: tuple[str, ...]) -> None:
    change = EntryChange(before=before, after=after)
    assert changed_parts(change) == parts
    assert change.entry == (after or before)


def test_a_change_has_a_side() -> None:
    with pytest.raises(ValueError, match="one side"):
        _ = EntryChange(before=None, after=None).entry
