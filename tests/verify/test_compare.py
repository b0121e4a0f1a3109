"""Names, metadata and digests of two sides, against looking everything up."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.point import Finding, Verdict
from orchestrator.verify.compare import RowComparison, compare, compare_entry, find_extras, join_sorted
from orchestrator.verify.entry import EXACT, ManifestEntry, Tolerance, format_line, parse_line, sort_key
from orchestrator.verify.manifest import Row

FILE = ManifestEntry(b"a", "f", 5, 1_500_000_000, 0o644, 1, 2, 1, 9, b"", "xxh128:1")
OTHER = "xxh128:2"

TABLE: list[tuple[str, ManifestEntry, str, Verdict | None]] = [
    ("as expected", FILE, FILE.digest, None),
    ("not read, as promised", FILE, "", None),
    ("owner", FILE._replace(uid=8), FILE.digest, Verdict.METADATA),
    ("touched", FILE._replace(mtime_ns=1), FILE.digest, Verdict.METADATA),
    ("time differs, not read", FILE._replace(mtime_ns=1), "", Verdict.METADATA),
    ("size differs, not read", FILE._replace(size=1), "", Verdict.EDITED),
    ("edited", FILE._replace(mtime_ns=1), OTHER, Verdict.EDITED),
    ("cut, time put back", FILE._replace(size=1), OTHER, Verdict.EDITED),
    ("rotten", FILE, OTHER, Verdict.ROTTEN),
    ("rotten, mode too", FILE._replace(mode=0o600), OTHER, Verdict.ROTTEN),
    ("another inode, rotten", FILE._replace(inode=77), OTHER, Verdict.ROTTEN),
    ("now a folder", FILE._replace(kind="d", size=0), "", Verdict.EDITED),
]


@pytest.mark.parametrize(("here", "digest", "verdict"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table(here: ManifestEntry, digest: str, verdict: Verdict | None) -> None:
    finding = compare_entry(FILE, here, digest)
    assert (finding.verdict if finding else None) == verdict
    if digest == OTHER:
        assert finding
        assert finding.detail.startswith("xxh128:2, expected xxh128:1")


def test_what_was_never_read_is_unproved() -> None:
    finding = compare_entry(FILE._replace(digest="!"), FILE, OTHER)
    assert finding
    assert finding.verdict is Verdict.UNPROVED


def test_tolerance_decides_between_an_edit_and_rot() -> None:
    late = FILE._replace(mtime_ns=FILE.mtime_ns + 999_999_999)
    for tolerance, verdict in ((Tolerance(), Verdict.EDITED), (Tolerance(grain_ns=10**9), Verdict.ROTTEN)):
        finding = compare_entry(FILE, late, OTHER, tolerance)
        assert finding
        assert finding.verdict is verdict


def test_a_file_without_a_digest_where_all_should_have_one_was_not_read() -> None:
    told = list(compare([FILE], [FILE], digests=[(b"A", "xxh128:1"), (b"b", "xxh128:1")]))
    assert [(finding.path, finding.verdict) for finding in told] == [(b"a", Verdict.UNREADABLE)]


NAMES = st.sampled_from([b"", b"a", b"a!", b"a/b", b"ab", b"\xff" * 255, b"\xff\xff/\xff", b"\n", b"b"])
ENTRY = st.builds(
    ManifestEntry, NAMES, st.just("f"), st.integers(0, 1), st.integers(0, 1), st.sampled_from([0o644, 0o600]), st.just(0),
    st.just(0), st.just(1), st.just(1), st.just(b""), st.sampled_from(["xxh128:1", "xxh128:2", "!"]),
)  # fmt: skip
TREE = st.lists(ENTRY, unique_by=lambda entry: entry.path).map(
    lambda tree: sorted(tree, key=lambda e: sort_key(e.path))
)


@given(TREE, TREE, st.dictionaries(NAMES, st.sampled_from(["xxh128:1", "xxh128:2"])))
def test_the_merge_is_what_looking_up_gives(
    expected: list[ManifestEntry], found: list[ManifestEntry], digests: dict[bytes, str]
) -> None:
    promises, heres = ({entry.path: entry for entry in side} for side in (expected, found))
    findings: list[Finding] = []
    for path in sorted({*promises, *heres}, key=sort_key):
        if path not in heres:
            findings.append(Finding(path=path, verdict=Verdict.MISSING, detail="not there"))
        elif path not in promises:
            findings.append(Finding(path=path, verdict=Verdict.EXTRA, detail="not in the manifest"))
        else:
            if path not in digests and promises[path].digest != "!":
                findings.append(Finding(path=path, verdict=Verdict.UNREADABLE, detail="it was not read"))
            findings += filter(None, [compare_entry(promises[path], heres[path], digests.get(path, ""))])
    ordered = sorted(digests.items(), key=lambda pair: sort_key(pair[0]))
    assert list(compare(expected, found, digests=ordered)) == findings
    names = ([entry.path for entry in side] for side in (expected, found))
    assert list(find_extras(*names)) == [finding for finding in findings if finding.verdict is Verdict.EXTRA]
    assert [(one or two) for one, two in join_sorted(expected, found)] == [
        promises.get(p) or heres[p] for p in sorted({*promises, *heres}, key=sort_key)
    ]


def record_of(entry: ManifestEntry) -> bytes:
    """Return what find prints of an entry: a time before 1970 as the second before it, and what is to be added to that."""
    seconds, nanos = divmod(entry.mtime_ns, 10**9)
    size = 4096 if entry.kind == "d" else entry.size
    told = (entry.kind, size, seconds, nanos, entry.mode, entry.uid, entry.gid, entry.nlink, entry.inode)
    return b"%b//" % entry.path + "{}\t{}\t{}.{:09}0\t{:o}\t{}\t{}\t{}\t{}\t".format(*told).encode() + entry.target


def row_of(entry: ManifestEntry) -> Row:
    """Return the row of an entry."""
    return entry.path, format_line(entry)[:-1].split(b"\t")


def entry_of(row: Row) -> ManifestEntry:
    """Return the entry of a row."""
    return parse_line(b"\t".join(row[1]))


def by_rows(
    expected: list[ManifestEntry], found: list[ManifestEntry], digests: list[tuple[bytes, str]], tolerance: Tolerance
) -> tuple[list[Finding], RowComparison]:
    """Compare as text, all sides as programs and files tell them."""
    comparison = RowComparison(entry_of, tolerance)
    listed = [(record_of(entry), entry.attributes) for entry in found]
    return list(comparison.findings(map(row_of, expected), listed, iter(digests))), comparison


TIMES = st.sampled_from([0, 1, 500_000_000, 1_500_000_000, -4_500_000_000, -5_500_000_000, -5_000_000_000])
ODD_ENTRY = st.builds(
    lambda kind, **fields: ManifestEntry(
        kind=kind, **{**fields, **({} if kind == "f" else {"size": 0, "digest": "-"}), "target": b"t" if kind == "l" else b""}
    ),
    kind=st.sampled_from("fffdl"), path=NAMES, size=st.integers(0, 1), mtime_ns=TIMES, mode=st.sampled_from([0o644, 0o600]), uid=st.integers(0, 1),
    gid=st.integers(0, 1), nlink=st.integers(1, 2), inode=st.integers(1, 2), digest=st.sampled_from(["xxh128:1", "xxh128:2", "!", "?xxh128:1"]),
    attributes=st.sampled_from(["", "-", "a00"]),
)  # fmt: skip
ODD_TREE = st.lists(ODD_ENTRY, unique_by=lambda entry: entry.path).map(
    lambda tree: sorted(tree, key=lambda e: sort_key(e.path))
)
VALUES: dict[str, st.SearchStrategy[object]] = {
    "size": st.integers(0, 1), "mtime_ns": TIMES, "mode": st.sampled_from([0o644, 0o600]), "uid": st.integers(0, 1), "gid": st.integers(0, 1),
    "inode": st.integers(1, 2), "attributes": st.sampled_from(["", "-", "a00"]),
}  # fmt: skip
CHANGE = st.sampled_from(sorted(VALUES)).flatmap(lambda name: VALUES[name].map(lambda value: {name: value}))
CHANGES = st.dictionaries(NAMES, st.one_of(CHANGE, ODD_ENTRY.map(lambda entry: entry._asdict())), max_size=2)


def _changed(entry: ManifestEntry, values: dict[str, Any]) -> ManifestEntry:
    """Return the entry with other values, of which a folder or a link has no size."""
    other = entry._replace(**{**values, "path": entry.path})
    return other if other.kind == "f" else other._replace(size=0)


@given(ODD_TREE, CHANGES, st.dictionaries(NAMES, st.sampled_from(["xxh128:1", "xxh128:2"])), st.booleans())
def test_a_comparison_as_text_finds_what_one_of_entries_finds(
    expected: list[ManifestEntry], changes: dict[bytes, dict[str, object]], digests: dict[bytes, str], read: bool
) -> None:
    """Trees of which most is as expected: else no entry would take the short way."""
    found = [_changed(entry, changes.get(entry.path, {})) for entry in expected]
    if read:
        digests |= {entry.path: entry.digest for entry in expected if entry.kind == "f" and entry.digest[0] == "x"}
    told = sorted(digests.items(), key=lambda pair: sort_key(pair[0]))
    for tolerance in (EXACT, Tolerance(owner=True, mode=True, grain_ns=2 * 10**9, attributes="a")):
        findings, comparison = by_rows(expected, found, told, tolerance)
        assert findings == list(compare(expected, found, digests=told, tolerance=tolerance))
        files = [entry for entry in found if entry.kind == "f"]
        assert (comparison.entries, comparison.files) == (len(found), len(files))
        assert comparison.bytes == sum(entry.size for entry in files)


@given(TREE, TREE, st.dictionaries(NAMES, st.sampled_from(["xxh128:1", "xxh128:2"])))
def test_a_comparison_as_text_of_other_trees_finds_the_same(
    expected: list[ManifestEntry], found: list[ManifestEntry], digests: dict[bytes, str]
) -> None:
    ordered = sorted(digests.items(), key=lambda pair: sort_key(pair[0]))
    expected, found = ([entry._replace(attributes="") for entry in side] for side in (expected, found))
    assert by_rows(expected, found, ordered, EXACT)[0] == list(compare(expected, found, digests=ordered))


OTHERS: dict[str, Any] = {"kind": "p", "size": 6, "mtime_ns": 1, "mode": 0o600, "uid": 8, "gid": 8, "attributes": "a00"}


@pytest.mark.parametrize("name", OTHERS)
def test_a_comparison_as_text_sees_each_field(name: str) -> None:
    promised = FILE._replace(attributes="-")
    here = promised._replace(**{name: OTHERS[name]})
    here = here._replace(size=0) if name == "kind" else here
    findings, _ = by_rows([promised], [here], [(b"a", FILE.digest)], EXACT)
    assert len(findings) == 1
    assert findings == list(compare([promised], [here], digests=[(b"a", FILE.digest)]))


def test_a_time_before_1970_that_reads_alike_is_another() -> None:
    """find's -5.5 is 4.5 seconds before 1970, and a manifest's -5500000000 is 5.5."""
    promised, here = (FILE._replace(mtime_ns=time) for time in (-5_500_000_000, -4_500_000_000))
    findings, _ = by_rows([promised], [here], [(b"a", FILE.digest)], EXACT)
    assert [finding.verdict for finding in findings] == [Verdict.METADATA]
