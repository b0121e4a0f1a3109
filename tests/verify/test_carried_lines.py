"""Lines of an older manifest hold for a new copy, but none of an entry that differs in anything, or that a sum cannot tell."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from orchestrator.verify.carried_lines import CarriedLines, ListedEntries, NotCarried
from orchestrator.verify.entry import ManifestEntry, format_line, line_of


@dataclass(frozen=True)
class Listed:
    """A file as find lists it, and as a manifest has it."""

    path: bytes = b"d/file"
    size: int = 7
    mtime: bytes = b"1700000000.1234567890"
    mode: int = 0o644
    uid: int = 5
    gid: int = 6
    inode: int = 99
    digest: str = "xxh128:00ff"
    attributes: str = "-"
    kind: str = field(default="f")

    @property
    def record(self) -> bytes:
        told = (self.path, self.kind.encode(), self.size, self.mtime, self.mode, self.uid, self.gid, self.inode)
        return b"%b//%b\t%d\t%b\t%o\t%d\t%d\t2\t%d\t\t1800000000.0000000000" % told

    @property
    def line(self) -> bytes:
        mtime = int(self.mtime[:-11]) * 10**9 + int(self.mtime[-10:-1])
        entry = ManifestEntry(
            self.path, self.kind, self.size, mtime, self.mode, self.uid, self.gid, 1, self.inode, b"", self.digest,
            self.attributes,
        )  # fmt: skip
        return format_line(entry)[:-1]


def copied(*files: Listed) -> ListedEntries:
    found = ListedEntries(())
    found.add_copy([each.record for each in files])
    return found


def carried(*files: Listed, attributes: Any = lambda _: "-") -> CarriedLines:
    lines = CarriedLines((), "xxh128", attributes)
    lines.read(each.line for each in files)
    return lines


OTHER = Listed(path=b"e", inode=3)


@pytest.mark.parametrize("mtime", [b"1700000000.1234567890", b"-2.5000000000", b"0.0000000010", b"5.0000000000"])
@pytest.mark.parametrize("path", [b"a b", b"\xff", b"#;+"])
def test_lines_are_of_the_same_files_in_any_order(path: bytes, mtime: bytes) -> None:
    one = Listed(path=path, mtime=mtime)
    assert copied(OTHER, one).lines == carried(one, OTHER).sum


@pytest.mark.parametrize("change", ["size", "mode", "uid", "gid", "inode"])
def test_a_sum_shows_each_difference(change: str) -> None:
    ones: dict[str, Any] = {change: 1}
    one, other = Listed(), replace(Listed(), **ones)
    assert copied(one).lines != carried(other).sum
    source = ListedEntries(())
    source.add_source([one.record])
    assert (source.content == copied(other).content) == (change == "inode"), "each side has inodes of its own"


def test_a_sum_shows_another_time_and_another_path() -> None:
    for other in (Listed(mtime=b"1700000000.1234567880"), Listed(path=b"d/other")):
        assert copied(Listed()).lines != carried(other).sum


@pytest.mark.parametrize("path", [b"a\\b", b"new\nline", b"tab\t", b"r\r"])
def test_names_that_are_written_with_escapes_are_compared_one_by_one(path: bytes) -> None:
    odd = Listed(path=path)
    found, lines = copied(odd, OTHER), carried(odd, OTHER)
    assert list(found.held) == [path]
    assert found.lines == lines.sum
    assert list(lines.rows) == [path]


def test_what_was_named_and_what_is_no_file_is_held() -> None:
    found = ListedEntries({b"e"})
    folder = Listed(path=b"d", kind="d")
    found.add_source([Listed().record, OTHER.record, folder.record])
    assert set(found.held) == {b"e", b"d"}
    before = found.content
    found.hold(b"d/file", Listed().record)
    found.hold(b"d/file", Listed().record)
    assert (before != 0, found.content) == (True, 0)


@pytest.mark.parametrize(
    ("line", "copy"),
    [("-", None), ("", "-"), ("u00", "-"), ("u00", "u01")],
    ids=["not asked for", "not read", "gone", "changed"],
)
def test_a_line_whose_attributes_are_not_the_copys_ends_it(line: str, copy: str | None) -> None:
    with pytest.raises(NotCarried):
        carried(Listed(attributes=line), attributes=None if copy is None else lambda _: copy)


def test_attributes_are_carried_where_the_copy_has_them() -> None:
    assert carried(Listed(attributes="u00"), attributes=lambda _: "u00").files == 1
    assert carried(Listed(attributes=""), attributes=None).files == 1


def test_lines_and_new_entries_are_merged_in_order() -> None:
    names = [b"a", b"b", b"c!", b"c", b"d"]
    lines = carried(*(Listed(path=name, digest="sha256:1" if name == b"b" else "xxh128:1") for name in names))
    assert list(lines.rows) == [b"b"], "its digest is of another kind"
    new = [line_of(ManifestEntry(name, "d", 0, 1, 0o755, 0, 0, 1, 1)) for name in (b"", b"aa", b"b", b"z")]
    older = [Listed(path=name).line for name in names]
    merged = b"".join(lines.with_others(older, new))
    assert [line.split(b"\t")[9] for line in merged.splitlines()] == [b"", b"a", b"aa", b"b", b"c!", b"c", b"d", b"z"]
    totals = lines.totals(new)
    assert (totals.entries, totals.files, totals.bytes) == (8, 4, 28)


def test_lines_out_of_order_are_refused() -> None:
    lines = carried(Listed(path=b"b"), Listed(path=b"a"))
    with pytest.raises(ValueError, match="out of order"):
        list(lines.with_others([Listed(path=b"b").line, Listed(path=b"a").line], []))
    with pytest.raises(ValueError, match="twice"):
        list(lines.with_others([Listed(path=b"b").line], [line_of(ManifestEntry(b"b", "d", 0, 1, 1, 0, 0, 1, 1))]))
