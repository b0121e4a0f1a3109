"""Lines of an older manifest hold for a new copy, but none of an entry that differs in anything, or that a sum cannot tell."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from orchestrator.verify.carried_lines import CarriedLines, ListedEntries, NotCarried
from orchestrator.verify.entry import ManifestEntry, escape, format_line, line_of, sort_key
from orchestrator.verify.manifest import ManifestTotals


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
    names: int = 2
    digest: str = "xxh128:00ff"
    attributes: str = "-"
    kind: str = field(default="f")
    changed: int = 1800000000
    target: bytes = b""

    @property
    def record(self) -> bytes:
        told = (self.path, self.kind.encode(), self.size, self.mtime, self.mode, self.uid, self.gid)
        names = (self.names, self.inode, self.target, self.changed)
        return b"%b//%b\t%d\t%b\t%o\t%d\t%d" % told + b"\t%d\t%d\t%b\t%d.0000000000" % names

    @property
    def line(self) -> bytes:
        mtime = int(self.mtime[:-11]) * 10**9 + int(self.mtime[-10:-1])
        entry = ManifestEntry(
            self.path, self.kind, self.size, mtime, self.mode, self.uid, self.gid, 1, self.inode, b"", self.digest,
            self.attributes,
        )  # fmt: skip
        return format_line(entry)[:-1]


def listed(*files: Listed, apart: Iterable[bytes] = ()) -> ListedEntries:
    found = ListedEntries(frozenset(apart))
    found.add([each.record for each in files])
    return found


def texts(*files: Listed, at_once: int = 2) -> Iterator[bytes]:
    """The lines as they are read, so many at once."""
    lines = [each.line for each in sorted(files, key=lambda each: sort_key(each.path))]
    return (b"\n".join(lines[at : at + at_once]) for at in range(0, len(lines), at_once))


def carried(*files: Listed, apart: Iterable[bytes] = (), at_once: int = 2) -> CarriedLines:
    lines = CarriedLines(frozenset(apart), "xxh128")
    lines.read(texts(*files, at_once=at_once))
    return lines


OTHER = Listed(path=b"e", inode=3)


@pytest.mark.parametrize("path", [b"a b", b"\xff", b"#;+", b"a\\b", b"new\nline", b"tab\t", b"r\r"])
def test_the_same_files_have_one_sum_in_any_order_whatever_names_they_have_besides(path: bytes) -> None:
    before, now = Listed(path=path), Listed(path=path, names=3, changed=1900000000)
    assert listed(OTHER, before).sum == listed(now, OTHER).sum


@pytest.mark.parametrize("change", ["size", "mode", "uid", "gid", "inode", "path", "mtime"])
def test_a_sum_shows_each_difference(change: str) -> None:
    values: dict[str, Any] = {"path": b"d/other", "mtime": b"1700000000.1234567880"}
    other = replace(Listed(), **{change: values.get(change, 1)})
    assert listed(Listed()).sum != listed(other).sum


def test_a_file_more_or_twice_is_counted() -> None:
    assert (listed().count, listed(Listed()).count, listed(Listed(), OTHER, Listed()).count) == (0, 1, 3)


def test_what_was_named_and_what_is_no_file_is_held() -> None:
    folder, link = Listed(path=b"d", kind="d"), Listed(path=b"l\t", kind="l", target=b"a//f\tb\t")
    found = listed(Listed(), OTHER, folder, link, apart=[b"e"])
    assert set(found.held) == {b"e", b"d", b"l\t"}
    assert found.held[b"e"] == OTHER.record
    assert (found.sum, found.count) == (listed(Listed()).sum, 1)


@pytest.mark.parametrize("digest", ["!", "sha256:1", "-"])
def test_a_file_without_such_a_digest_ends_it_unless_it_was_named(digest: str) -> None:
    with pytest.raises(NotCarried):
        carried(replace(OTHER, digest=digest), Listed())
    assert list(carried(replace(OTHER, digest=digest), Listed(), apart=[b"e"]).rows) == [b"e"]


NAMES = [b"a", b"a\nb", b"b", b"b/c", b"c!", b"c", b"d", b"e\\", b"f"]


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 20])
@pytest.mark.parametrize("apart", [[], NAMES, [b"a"], [b"f"], [b"c!", b"e\\", b"no", b"zz"], [b"a\nb", b"c"]])
def test_lines_and_new_entries_are_merged_in_order(apart: list[bytes], at_once: int) -> None:
    files = [Listed(path=name) for name in NAMES]
    lines = carried(*files, apart=apart, at_once=at_once)
    there = [name for name in apart if name in NAMES]
    assert sorted(lines.rows) == sorted(there)
    new = sorted(line_of(ManifestEntry(name, "f", 5, 1, 0o644, 0, 0, 1, 1)) for name in (b"", b"aa", b"zz", *there[1:]))
    merged = b"".join(lines.with_others(texts(*files, at_once=at_once), new))
    names = sorted({*NAMES, b"", b"aa", b"zz"} - {*there[:1]}, key=sort_key)
    assert [line.split(b"\t")[9] for line in merged.splitlines()] == [escape(name) for name in names]
    kept = [line for line in merged.splitlines() if line.split(b"\t")[2] == b"7"]
    assert len(kept) == len(NAMES) - len(there)
    older = ManifestTotals(entries=len(NAMES), files=len(NAMES), bytes=7 * len(NAMES))
    totals = lines.totals(older, new)
    sizes = [int(line.split(b"\t")[2]) for line in merged.splitlines()]
    assert (totals.entries, totals.files, totals.bytes) == (len(sizes), len(sizes), sum(sizes))


def test_lines_out_of_order_are_refused() -> None:
    lines = carried(OTHER, apart=[b"e"])
    with pytest.raises(ValueError, match="out of order"):
        list(lines.with_others([Listed(path=b"b").line, Listed(path=b"a").line], []))
