"""Names, metadata and digests of two sides, against looking everything up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.point import Finding, Verdict
from orchestrator.verify.compare import compare, compare_entry, find_extras, join_sorted
from orchestrator.verify.entry import ManifestEntry, Tolerance, sort_key

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
