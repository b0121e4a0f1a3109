"""Lines of a manifest and listing records, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.runner.verify.export_sums import format_sum
from orchestrator.verify.entry import (
    EXACT,
    ManifestEntry,
    Tolerance,
    differences,
    escape,
    format_line,
    parse_line,
    parse_listing,
    path_below,
    sort_key,
    split_records,
    unescape,
)

NAME = st.binary(min_size=1, max_size=30).map(lambda raw: raw.replace(b"\0", b"\\").replace(b"/", b"\n"))
AWKWARD = st.lists(st.sampled_from([b"\\", b"\n", b"\t", b"\r", b"n", b"t", b" ", b"\xff", b"#"]), min_size=1).map(
    b"".join
)
# `.` and `..` are no names, and a manifest that holds them is damaged.
PATH = st.lists((NAME | AWKWARD).filter(lambda name: name not in (b".", b"..")), max_size=4).map(b"/".join)
COUNT = st.integers(0, 2**63)
TIME = st.integers(-(2**62), 2**62)
FILE = ManifestEntry(b"a", "f", 5, 1_500_000_000, 0o644, 1, 2, 1, 9, b"", "xxh128:00")


@st.composite
def any_entry(draw: st.DrawFn) -> ManifestEntry:
    kind = draw(st.sampled_from("fdlpsbc"))
    return ManifestEntry(
        draw(PATH), kind, draw(COUNT) if kind == "f" else 0, draw(TIME), draw(st.integers(0, 0o7777)), draw(COUNT),
        draw(COUNT), draw(COUNT), draw(COUNT), draw(PATH) if kind == "l" else b"", "?" if kind == "f" else "-",
    )  # fmt: skip


@given(PATH)
def test_escaping_is_undone_and_stays_on_one_line(path: bytes) -> None:
    text = escape(path)
    assert unescape(text) == path
    assert not set(text) & set(b"\n\t\r")


@given(any_entry())
def test_a_line_tells_its_entry(entry: ManifestEntry) -> None:
    line = format_line(entry)
    assert line.endswith(b"\n")
    assert parse_line(line[:-1]) == entry


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"x",
        b"-\tf\t1",
        format_line(FILE)[:-1] + b"\ttoo much",
        b"\tf\t0\t1\t644\t1\t2\t1\t9\ta",
        b"\\x".join([b"-\tz"] * 9),
    ],
)
def test_a_line_that_is_none_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_line(line)


@pytest.mark.parametrize("text", [b"\\", b"a\\x", b"\\\\\\"])
def test_a_backslash_that_begins_no_escape_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="backslash"):
        unescape(text)


@given(st.lists(any_entry(), max_size=5), st.integers(1, 50))
def test_a_listing_is_parsed_in_pieces_of_any_size(wanted: list[ManifestEntry], size: int) -> None:
    raw = b"".join(_record(entry) for entry in wanted)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert [parse_listing(record) for record in split_records(pieces)] == wanted
    if raw:
        with pytest.raises(ValueError, match="breaks off"):
            list(split_records([raw[:-1]]))


def _record(entry: ManifestEntry) -> bytes:
    seconds, nanos = divmod(entry.mtime_ns, 10**9)
    size = entry.size if entry.kind == "f" else 4096
    return b"%b//%b\t%d\t%d.%09d0\t%o\t%d\t%d\t%d\t%d\t%b\0" % (
        entry.path, entry.kind.encode(), size, seconds, nanos, *entry[4:9], entry.target,
    )  # fmt: skip


@given(PATH, PATH)
def test_raw_records_sort_as_their_paths(one: bytes, two: bytes) -> None:
    first, second = sort_key(one), sort_key(two)
    assert (first == second) == (one == two)
    if one != two:
        assert (first + b"\xff" < second + b"\0") == (first < second)


@given(PATH, PATH)
def test_sums_are_one_line_each_and_tell_names_apart(path: bytes, other: bytes) -> None:
    one, two = (format_sum(each, "sha256:" + "ab" * 32) for each in (path, other))
    assert (one == two) == (path == other)
    assert (one.count(b"\n"), one[-1:]) == (1, b"\n")


def test_only_sums_that_sha256sum_knows() -> None:
    with pytest.raises(ValueError, match="xxh128"):
        format_sum(b"a", "xxh128:00")


def test_below() -> None:
    assert path_below(b"a/b", b"a") == b"b"
    assert path_below(b"a", b"a") == b""
    assert path_below(b"ab", b"a") is None
    assert path_below(b"a/b", b"") == b"a/b"


def test_every_difference_is_told_and_every_tolerance_overlooks_its_own() -> None:
    other = FILE._replace(size=6, mtime_ns=2_000_000_000, mode=0o600, uid=7)
    told = differences(FILE, other)
    assert told == (
        "size 6, expected 5",
        "mtime 1970-01-01T00:00:02Z, expected 1970-01-01T00:00:01.5Z",
        "mode 600, expected 644",
        "owner 7:2, expected 1:2",
    )
    assert differences(FILE, other._replace(size=5), Tolerance(owner=True, mode=True, mtime=True)) == ()
    assert differences(FILE, FILE._replace(mtime_ns=2_500_000_000 - 1), Tolerance(grain_ns=10**9)) == ()
    assert differences(FILE, FILE._replace(mtime_ns=2_500_000_000), Tolerance(grain_ns=10**9))
    assert differences(FILE, FILE._replace(inode=1, nlink=5), EXACT) == ()
    assert differences(FILE, FILE._replace(kind="d")) == ("a directory, expected a file",)
    link = FILE._replace(kind="l", target=b"x")
    assert differences(link, link._replace(target=b"y\n", mode=0o1)) == ("target y\\n, expected x",)
