"""Test what a new manifest knows without reading, and what it asks to be read."""

import os
from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.point import Verdict
from orchestrator.verify import build
from orchestrator.verify.build import build_manifest, draft_of, finish_manifest
from orchestrator.verify.entry import ManifestEntry, format_line, sort_key
from orchestrator.verify.manifest import Row, read_manifest
from tests.verify.trees import HEADER, found, hostile_tree, make_manifest, make_tree, read_again, records


def xxh(content: bytes) -> str:
    return f"xxh128:{xxhash.xxh3_128(content).hexdigest()}"


def digests(manifest: Path | str) -> dict[bytes, str]:
    return {entry.path: entry.digest for entry in read_manifest(str(manifest))[1]}


def link_tree(old: Path, new: Path) -> None:
    """As rsync --link-dest leaves a tree of which nothing changed."""
    for folder, _, names in os.walk(old):
        here = new / os.path.relpath(folder, old)
        here.mkdir(exist_ok=True)
        for name in names:
            os.link(os.path.join(folder, name), here / name, follow_symlinks=False)


def test_moved_names_bring_their_digests_and_the_rest_is_read(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A", "b/c": b"C", "empty": b"", "z": b"Z"})
    (tree / "link").symlink_to("a")
    manifest = tmp_path / "m.gz"
    built = make_manifest(
        tree, manifest, moved=[(b"a", xxh(b"A")), (b"gone", xxh(b"")), (b"link", xxh(b"")), (b"zz", "")]
    )
    assert (built.unknown, built.unknown_bytes) == (3, 2)
    assert (built.totals.entries, built.totals.files, built.totals.bytes) == (7, 4, 3)
    assert digests(manifest) == {
        b"": "-", b"a": xxh(b"A"), b"b": "-", b"b/c": xxh(b"C"), b"empty": xxh(b""), b"link": "-", b"z": xxh(b"Z"),
    }  # fmt: skip
    assert sorted(os.listdir(tmp_path)) == ["m.gz", "tree"]


def test_every_hostile_name_is_recorded_and_verified(tmp_path: Path) -> None:
    tree = hostile_tree(tmp_path / "tree")
    make_manifest(tree, tmp_path / "m.gz")
    reading = read_again(tree, tmp_path / "m.gz", names=True)
    assert reading.sound
    assert reading.entries == reading.files_read + 1 == len(os.listdir(os.fsencode(tree))) + 1


def test_linked_files_bring_their_digests_and_nothing_is_read(tmp_path: Path) -> None:
    first = make_tree(tmp_path / "first", {"a": b"A", "b/c": b"C", "d": b"D", "gone": b"G"})
    make_manifest(first, tmp_path / "1.gz")
    link_tree(first, tmp_path / "second")
    (tmp_path / "second/gone").unlink()
    built = make_manifest(tmp_path / "second", tmp_path / "2.gz", linked=tmp_path / "1.gz")
    assert built.unknown == 0
    assert digests(tmp_path / "2.gz")[b"b/c"] == xxh(b"C")
    assert b"gone" not in digests(tmp_path / "2.gz")


@pytest.mark.parametrize("change", ["inode", "size", "mtime", "path"])
def test_a_file_that_is_not_the_very_same_is_read(tmp_path: Path, change: str) -> None:
    first = make_tree(tmp_path / "first", {"a": b"A"})
    make_manifest(first, tmp_path / "1.gz")
    second = tmp_path / "second"
    link_tree(first, second)
    stamp = (first / "a").stat()
    if change == "inode":
        (second / "new").write_bytes(b"B")
        os.utime(second / "new", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        (second / "new").rename(second / "a")
    elif change == "size":
        (second / "a").write_bytes(b"AA")
        os.utime(second / "a", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    elif change == "mtime":
        os.utime(second / "a", ns=(0, stamp.st_mtime_ns + 1))
    else:
        (second / "a").rename(second / "b")
    assert make_manifest(second, tmp_path / "2.gz", linked=tmp_path / "1.gz").unknown == 1


def test_further_names_of_one_file_take_its_digest(tmp_path: Path) -> None:
    first = make_tree(tmp_path / "first", {"old": b"O"})
    make_manifest(first, tmp_path / "1.gz")
    link_tree(first, tmp_path / "second")
    second = make_tree(tmp_path / "second", {"m": b"M", "lonely": b"L"})
    for leader, follower in (("old", "a"), ("m", "b"), ("m", "z"), ("lonely", "lonely2")):
        os.link(second / leader, second / follower)
    built = make_manifest(second, tmp_path / "2.gz", moved=[(b"m", xxh(b"M"))], linked=tmp_path / "1.gz")
    assert (built.unknown, built.unknown_bytes) == (2, 2)
    told = digests(tmp_path / "2.gz")
    assert (told[b"a"], told[b"b"], told[b"z"], told[b"lonely2"]) == (xxh(b"O"), xxh(b"M"), xxh(b"M"), xxh(b"L"))


def test_beyond_what_memory_may_hold_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_INODES", 1)
    tree = make_tree(tmp_path / "tree", {"m": b"M", "n": b"N"})
    os.link(tree / "m", tree / "a")
    os.link(tree / "n", tree / "b")
    built = make_manifest(tree, tmp_path / "m.gz", moved=[(b"m", xxh(b"M")), (b"n", xxh(b"N"))])
    assert built.unknown == 1
    assert digests(tmp_path / "m.gz")[b"b"] == xxh(b"N")


def test_moved_again_as_something_else_is_a_finding(tmp_path: Path) -> None:
    first = make_tree(tmp_path / "first", {"a": b"A", "b": b"B"})
    make_manifest(first, tmp_path / "1.gz")
    second = make_tree(tmp_path / "second", {"a": b"X", "b": b"B"})
    for name in "ab":
        os.utime(second / name, ns=(0, (first / name).stat().st_mtime_ns))
    moved = [(b"a", xxh(b"X")), (b"b", xxh(b"B"))]
    built = make_manifest(second, tmp_path / "2.gz", moved=moved, linked=tmp_path / "1.gz")
    assert [(finding.path, finding.verdict) for finding in built.findings] == [(b"a", Verdict.ROTTEN)]
    assert xxh(b"X") in built.findings[0].detail
    assert xxh(b"A") in built.findings[0].detail


def test_a_digest_of_another_algorithm_is_checked_while_the_wanted_one_is_made(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"good": b"hello", "bad": b"hello"})
    hello, other = "md5:5d41402abc4b2a76b9719d911017c592", "md5:00000000000000000000000000000000"
    moved = [(b"bad", other), (b"good", hello)]
    build_manifest(str(tmp_path / "m.gz"), HEADER, listing=records(tree, tmp_path), moved=moved)
    told: dict[bytes, str] = {}
    reading = read_again(
        tree, draft_of(str(tmp_path / "m.gz")), mode="fill", taken=lambda _, digest, path: told.update({path: digest})
    )
    assert found(reading) == {b"bad": Verdict.ROTTEN}
    assert told == {b"good": xxh(b"hello"), b"bad": other}


def test_a_file_that_cannot_be_read_is_marked(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A", "b": b"B"})
    built = build_manifest(str(tmp_path / "m.gz"), HEADER, listing=records(tree, tmp_path))
    (tree / "a").unlink()
    (tree / "b").write_bytes(b"changed since")
    told: dict[int, str] = {}
    reading = read_again(
        tree,
        draft_of(str(tmp_path / "m.gz")),
        mode="fill",
        taken=lambda number, digest, _: told.update({number: digest}),
    )
    assert found(reading) == {b"a": Verdict.MISSING, b"b": Verdict.EDITED}
    finish_manifest(str(tmp_path / "m.gz"), built, sorted(told.items()))
    assert digests(tmp_path / "m.gz") == {b"": "-", b"a": "!", b"b": "!"}


def test_a_draft_is_finished_whole_or_not_at_all(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A", "b": b"B"})
    manifest = str(tmp_path / "m.gz")
    built = build_manifest(manifest, HEADER, listing=records(tree, tmp_path))
    for wrong in (
        [],
        [(1, "x:1")],
        [(2, "x:2")],
        [(0, "x:0"), (1, "x:1"), (2, "x:2")],
        [(1, "x:1"), (2, "x:2"), (3, "x:3")],
    ):
        with pytest.raises(ValueError, match="digest was read"):
            finish_manifest(manifest, built, wrong)
        assert not os.path.exists(manifest)
    finish_manifest(manifest, built, [(1, "x:1"), (2, "x:2")])
    assert digests(manifest) == {b"": "-", b"a": "x:1", b"b": "x:2"}


@pytest.mark.parametrize(
    ("field", "damaged"), [(0, b"xxh128:\xff"), (0, b"md5:1"), (1, b"l"), (2, b"01"), (3, b"x"), (8, b"9")]
)
def test_a_row_that_is_not_exactly_the_file_s_gives_it_no_digest(tmp_path: Path, field: int, damaged: bytes) -> None:
    """Nearly all files are compared with their rows by text; what differs in it is looked at closely, and is none in doubt."""
    row = [xxh(b"A").encode(), b"f", b"1", b"1000000002", b"644", b"0", b"0", b"1", b"7", b"a"]
    listing = [b"a//f\t1\t1.0000000020\t644\t0\t0\t5\t7\t"]
    whole = build_manifest(str(tmp_path / "m.gz"), HEADER, listing=listing, linked=[(b"a", row)])
    assert (whole.unknown, digests(draft_of(str(tmp_path / "m.gz")))) == (0, {b"a": xxh(b"A")})
    wrong = [*row[:field], damaged, *row[field + 1 :]]
    for each in (wrong, [*row, b"more"]):
        built = build_manifest(str(tmp_path / "m.gz"), HEADER, listing=listing, linked=[(b"a", each)])
        assert built.unknown == (0 if (field, damaged, each) == (2, b"01", wrong) else 1), each


NAMES = st.sampled_from([b"", b"a", b"a!", b"a/b", b"a/b/c", b"ab", b"b", b"\xff" * 255, b"\xff\xff", b"\n"])
ENTRY = st.builds(
    ManifestEntry, NAMES, st.sampled_from("ffd"), st.integers(0, 1), st.sampled_from([0, 10**9, 10**9 + 1]), st.just(0o644), st.just(0), st.just(0),
    st.just(1), st.integers(1, 2), st.just(b""), st.sampled_from(["xxh128:1", "xxh128:2", "md5:1", "!"]),
)  # fmt: skip
TREE = st.lists(ENTRY, unique_by=lambda entry: entry.path).map(
    lambda tree: [
        e if e.kind == "f" else e._replace(size=0, digest="-") for e in sorted(tree, key=lambda e: sort_key(e.path))
    ]
)


def naive(entry: ManifestEntry, moved: dict[bytes, str], linked: dict[bytes, ManifestEntry], *, itself: bool) -> str:
    """The digest that a new manifest should know, by looking up."""
    if entry.kind != "f":
        return "-"
    old = linked.get(entry.path)
    told = moved.get(entry.path)
    if old and (old[1:4], old.inode) == (entry[1:4], entry.inode) and not (told and itself):
        told = old.digest if ":" in old.digest else None
    return "?" if told is None else told if told.startswith("xxh128:") else f"?{told}"


def row_of(entry: ManifestEntry) -> Row:
    return entry.path, format_line(entry._replace(attributes=""))[:-1].split(b"\t")


@settings(deadline=None)
@given(TREE, TREE, st.lists(st.tuples(NAMES, st.sampled_from(["xxh128:3", "xxh128:4", "md5:3"]))), st.booleans())
def test_the_merge_is_what_looking_up_gives(
    tmp_path_factory: pytest.TempPathFactory,
    tree: list[ManifestEntry],
    linked: list[ManifestEntry],
    moves: list[tuple[bytes, str]],
    itself: bool,
) -> None:
    manifest = str(tmp_path_factory.getbasetemp() / "merge.gz")
    listing = [
        b"%b//%b\t%d\t%d.%09d0\t644\t0\t0\t1\t%d\t"
        % (e.path, e.kind.encode(), e.size, *divmod(e.mtime_ns, 10**9), e.inode)
        for e in tree
    ]
    moved = dict(moves)
    ordered = sorted(moves, key=lambda pair: sort_key(pair[0]))
    built = build_manifest(manifest, HEADER, listing=listing, moved=ordered, linked=map(row_of, linked), itself=itself)
    lookup = {entry.path: entry for entry in linked}
    expected = {entry.path: naive(entry, moved, lookup, itself=itself) for entry in tree}
    assert digests(draft_of(manifest)) == expected
    assert built.unknown == sum(digest.startswith("?") for digest in expected.values())
