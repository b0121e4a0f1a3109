"""Manifests on disk: written whole, read with standard tools, refused when cut; sorting more than memory holds."""

import gzip
import os
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.authentication import AuthenticationKey
from orchestrator.domain.errors import VerificationFailed
from orchestrator.verify import build
from orchestrator.verify.build import DigestSpool, sorted_moves, sorted_records
from orchestrator.verify.entry import ManifestEntry, sort_key
from orchestrator.verify.manifest import (
    ManifestTotals,
    read_manifest,
    read_names,
    read_tag,
    read_tagged_entries,
    write_manifest,
)
from orchestrator.verify.manifest_lines import FORMAT
from tests.verify.trees import CREATED, HEADER

MANY = [
    ManifestEntry(b"%04d\n\\" % number, "f", number, 5, 0o644, 0, 0, 1, number, b"", "xxh128:0f")
    for number in range(3000)
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "point.manifest.gz")


def test_what_is_written_is_read(path: str) -> None:
    totals = write_manifest(path, HEADER, MANY)
    assert totals == ManifestTotals(entries=3000, files=3000, bytes=sum(range(3000)))
    header, entries = read_manifest(path)
    assert header == HEADER
    assert header.created == CREATED
    assert list(entries) == MANY


def test_an_empty_manifest_is_whole(path: str) -> None:
    write_manifest(path, HEADER, [])
    header, entries = read_manifest(path)
    assert (header, list(entries)) == (HEADER, [])


def test_it_is_text_for_zcat(path: str) -> None:
    write_manifest(path, HEADER, MANY[:1])
    assert subprocess.run(["zcat", path], stdout=subprocess.PIPE, check=True).stdout.split(b"\n") == [
        b"# poolferry manifest 1", b"# job: photos", b"# source: /srv/pho\\ntos\xff", b"# point: 2020-01-02T030405Z",
        b"# digest: xxh128", b"# created: 2020-01-02T03:04:05+00:00",
        b"# columns: digest kind size mtime_ns mode uid gid nlink inode path target",
        b"xxh128:0f\tf\t0\t5\t644\t0\t0\t1\t0\t0000\\n\\\\", b"# end entries=1 files=1 bytes=0", b"",
    ]  # fmt: skip


def repacked(path: str, old: bytes, new: bytes) -> None:
    text = zlib.decompress(Path(path).read_bytes(), wbits=31)
    assert old in text
    pack = zlib.compressobj(1, wbits=31)
    Path(path).write_bytes(pack.compress(text.replace(old, new, 1)) + pack.flush())


@pytest.mark.parametrize("cut", [0, 1, 10, 500, 5000, -1, -8])
def test_a_cut_file_is_refused(path: str, cut: int) -> None:
    write_manifest(path, HEADER, MANY)
    Path(path).write_bytes(Path(path).read_bytes()[:cut])
    with pytest.raises(VerificationFailed, match=r"cut short|damaged|not a manifest"):
        list(read_manifest(path)[1])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"# end entries=3000 files=3000 bytes=4498500\n", b"", "cut short"),
        (b"entries=3000", b"entries=2999", "damaged"),
        (b"\t0007\\n", b"\t0006\\n", "twice"),
        (b"\t0007\\n", b"\t0003\\n", "out of order"),
        (b"\tf\t7\t", b"\tf\tseven\t", "damaged"),
        (b"\t0007\\n", b"\t0007\\x", "backslash"),
        (b"manifest 1", b"manifest 9", "this version"),
        (b"# job: photos\n", b"", "damaged"),
        (b"bytes=4498500\n", b"bytes=4498500\nmore\n", "damaged"),
    ],
)
def test_a_torn_text_is_refused(path: str, old: bytes, new: bytes, why: str) -> None:
    write_manifest(path, HEADER, MANY)
    repacked(path, old, new)
    with pytest.raises(VerificationFailed, match=why):
        list(read_manifest(path)[1])


@pytest.mark.parametrize("what", [b"", b"no gzip at all", zlib.compress(b"x", wbits=31)])
def test_what_is_no_manifest_is_refused(path: str, what: bytes) -> None:
    Path(path).write_bytes(what)
    with pytest.raises(VerificationFailed, match=r"not a manifest|damaged|cut short"):
        read_manifest(path)


def test_every_flipped_byte_is_noticed_or_changes_nothing(path: str) -> None:
    write_manifest(path, HEADER, MANY[:40])
    whole = Path(path).read_bytes()
    for at in range(10, len(whole), 7):
        Path(path).write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with pytest.raises(VerificationFailed):
            list(read_manifest(path)[1])


def test_something_after_it_is_noticed(path: str) -> None:
    write_manifest(path, HEADER, MANY)
    with open(path, "ab") as file:
        file.write(b"x")
    with pytest.raises(VerificationFailed, match="follows"):
        list(read_manifest(path)[1])


def test_nothing_appears_before_it_is_whole(path: str) -> None:
    write_manifest(path, HEADER, MANY[:1])
    with pytest.raises(ValueError, match="out of order"):
        write_manifest(path, HEADER, MANY[::-1])
    assert list(read_manifest(path)[1]) == MANY[:1]


def test_a_part_of_the_tree(path: str) -> None:
    paths = sorted([b"", b"a", b"a!", b"a!/x", b"a/b", b"a/b/c", b"ab"], key=sort_key)
    write_manifest(path, HEADER, [MANY[0]._replace(path=name) for name in paths])
    assert [entry.path for entry in read_manifest(path, prefix=b"a")[1]] == [b"", b"b", b"b/c"]
    assert [entry.path for entry in read_manifest(path, prefix=b"a/b/c")[1]] == [b""]
    assert list(read_manifest(path, prefix=b"none")[1]) == []
    for prefix in (b"", b"a", b"a/b/c", b"none"):
        entries = read_manifest(path, prefix=prefix)[1]
        assert list(read_names(path, prefix=prefix)) == [entry.path for entry in entries]


def test_a_part_is_found_in_a_large_manifest_without_the_rest_and_only_in_a_whole_one(path: str) -> None:
    """Lines of what lies elsewhere are counted and not taken apart, so that one file is found at once."""
    link = ManifestEntry(b"9999/link", "l", 0, 5, 0o777, 0, 0, 1, 9, b"0007\n\\", "-")
    odd = [MANY[0]._replace(path=b"0007\n\\/#%d" % number) for number in range(3)]
    entries = sorted([*MANY, link, *odd], key=lambda entry: sort_key(entry.path))
    write_manifest(path, HEADER, entries, key=AuthenticationKey(secret=b"x" * 32, made=CREATED))
    for prefix in (MANY[0].path, MANY[7].path, b"0007\n\\/#1", MANY[-1].path, b"9999", b"9999/link", b"none"):
        inside = [each for each in entries if each.path == prefix or each.path.startswith(prefix + b"/")]
        found = [
            each._replace(path=(prefix + b"/" + each.path).rstrip(b"/"))
            for each in read_manifest(path, prefix=prefix)[1]
        ]
        assert found == inside, prefix
    repacked(path, b"entries=3004", b"entries=3003")
    with pytest.raises(VerificationFailed, match="damaged"):
        list(read_manifest(path, prefix=b"9999")[1])


def test_names_alone_are_whole_in_order_or_refused(path: str) -> None:
    write_manifest(path, HEADER, MANY)
    assert list(read_names(path)) == [entry.path for entry in MANY]
    whole = Path(path).read_bytes()
    for damaged in (whole[: len(whole) // 2], whole + b"x", gzip.compress(FORMAT + b"\nno line\n")):
        Path(path).write_bytes(damaged)
        with pytest.raises(VerificationFailed):
            list(read_names(path))
    lines = gzip.decompress(whole).split(b"\n")
    Path(path).write_bytes(gzip.compress(b"\n".join([*lines[:7], lines[8], lines[7], *lines[9:]])))
    with pytest.raises(VerificationFailed, match="out of order"):
        list(read_names(path))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(max_size=6).map(lambda raw: raw.replace(b"\0", b"")), max_size=300), st.integers(1, 40))
def test_sorting_with_and_without_spills(
    tmp_path_factory: pytest.TempPathFactory, records: list[bytes], chunk: int
) -> None:
    folder = str(tmp_path_factory.getbasetemp())
    assert list(sorted_records(iter(records), chunk=chunk, folder=folder)) == sorted(records)


def test_more_spills_than_files_may_be_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_FAN", 3)
    before = len(os.listdir("/proc/self/fd"))
    numbers = [b"%06d" % (number * 7919 % 10_000) for number in range(10_000)]
    assert list(sorted_records(iter(numbers), chunk=500, folder=str(tmp_path))) == sorted(numbers)
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.listdir(tmp_path) == []


def test_of_moves_the_last_one_told_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = [(b"b", "xxh128:1"), (b"a/c", "xxh128:2"), (b"b", "xxh128:3"), (b"a", "xxh128:4"), (b"a!", "xxh128:5")]
    told = list(sorted_moves(moves, folder=str(tmp_path)))
    assert told == [(b"a!", "xxh128:5"), (b"a", "xxh128:4"), (b"a/c", "xxh128:2"), (b"b", "xxh128:3")]
    assert list(sorted_moves([], folder=str(tmp_path))) == []
    monkeypatch.setattr(build, "_IN_MEMORY", 2)
    assert list(sorted_moves(iter(moves), folder=str(tmp_path))) == told


def test_a_spool_gives_back_in_order(tmp_path: Path) -> None:
    with DigestSpool(str(tmp_path)) as spool:
        assert list(spool.numbered()) == []
        for number, path in ((12, b"b\n\t\xff"), (3, b"a")):
            spool.take(number, f"sha256:{number}", path)
        assert list(spool.numbered()) == [(3, "sha256:3"), (12, "sha256:12")]
        assert list(spool.named()) == [(b"a", "sha256:3"), (b"b\n\t\xff", "sha256:12")]


KEY, OTHER = (AuthenticationKey(each * 32, HEADER.created) for each in (b"k", b"o"))


@pytest.mark.parametrize("entries", [[], MANY[:1], MANY])
def test_a_tag_is_over_all_of_it(path: str, entries: list[ManifestEntry]) -> None:
    totals = write_manifest(path, HEADER, entries, key=KEY)
    assert totals == write_manifest(f"{path}2", HEADER, entries)
    tag = read_tag(path, KEY)
    assert (tag.job, tag.point, tag.key, tag.right) == (HEADER.job, HEADER.point, KEY.id, True)
    assert (read_tag(path, OTHER).right, read_tag(path, None).right) == (False, False)
    assert (read_tag(f"{path}2", KEY).key, read_tag(f"{path}2", KEY).right) == ("", False)
    assert list(read_manifest(path)[1]) == entries
    assert list(read_names(path)) == [entry.path for entry in entries]
    for entry in entries[:1]:
        found = read_tagged_entries(path, KEY, entry.path)
        below = [each for each in entries if each.path.startswith(entry.path + b"/")]
        assert (found.tag, found.header, len(found.entries)) == (tag, read_manifest(path)[0], 1 + len(below))
        assert found.entries[0] == entry._replace(path=b"")
        assert read_tagged_entries(path, OTHER, entry.path).tag.right is False
        assert read_tagged_entries(f"{path}2", KEY, entry.path).tag == read_tag(f"{path}2", KEY)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"# job: photos", b"# job: photon"),
        (b"\t0007\\n", b"\t0007\\t"),
        (b"xxh128:", b"xxh129:"),
        (b"# created: 2", b"# created: 1"),
    ],
)
def test_whatever_is_changed_the_tag_is_wrong(path: str, old: bytes, new: bytes) -> None:
    write_manifest(path, HEADER, MANY, key=KEY)
    repacked(path, old, new)
    assert read_tag(path, KEY).right is False
    assert read_tagged_entries(path, KEY, MANY[7].path).tag.right is False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"# authentication: blake2b", b"# authentication: md5"), (b"manifest 2", b"manifest 1"), (b"\n# authentication", b"\n"),
        (b"# end", b"# and"),
    ],
)  # fmt: skip
def test_a_torn_tag_is_damage(path: str, old: bytes, new: bytes) -> None:
    write_manifest(path, HEADER, MANY[:3], key=KEY)
    repacked(path, old, new)
    with pytest.raises(VerificationFailed, match=r"damaged|cut short"):
        list(read_manifest(path)[1])


def test_uses_of_a_key_have_tags_of_their_own_and_the_secret_is_never_shown() -> None:
    assert "k" * 8 not in repr(KEY)
    assert (b"k" * 32).hex() not in repr(KEY)
    assert len({KEY.id, OTHER.id, KEY.manifest_hash().hexdigest(), OTHER.manifest_hash().hexdigest()}) == 4
    with pytest.raises(ValueError, match="32 bytes"):
        AuthenticationKey(b"short", HEADER.created)
