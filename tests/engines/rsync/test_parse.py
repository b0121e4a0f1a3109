r"""Reading rsync's output, as rsync 3.5.0 really wrote it: names that hide bars, newlines and \#ooo, accounts, versions."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.point import FolderChanges
from orchestrator.engines.rsync import parse
from orchestrator.engines.rsync.model import MOST_DIFFERING, MOST_JOINED
from orchestrator.engines.rsync.parse import (
    DryRunReader,
    RsyncStats,
    format_moved_line,
    parse_moved,
    parse_name,
    parse_progress,
    parse_stats,
    parse_sums,
)
from tests.engines.rsync.builders import ACCOUNT

LOOK = rb"""pf:*deleting  |0|gonedir/1
pf:*deleting  |0|gonedir/
pf:*deleting  |0|gone
pf:.d..t......|4096|./
pf:>f.st......|2|100% x
pf:>f.st......|3|changed
pf:>f+++++++++|0|created
pf:cD+++++++++|0|dev
pf:.S..t......|0|fifo
pf:hf+++++++++|2|h3
pf:cLc.t......|5|link
pf:>f.st......|2|lit\#134#012
pf:>f.st......|2|new\#012line
pf:cL+++++++++|1|newlink
pf:.D..t......|0|null
pf:>f.st......|2|per%cent
pf:>f..tp.....|2|perms
pf:.f...p.....|2|perms-only
pf:>f.st......|2|pi|pe
pf:>f.st......|2|raw\#377
pf:.d..t......|4096|dir/
pf:>f+++++++++|2|dir/2
pf:<f.st......|2|dir/sent
pf:.d..t......|4096|dirt/
pf:cd+++++++++|4096|newdir/
pf:>f+++++++++|0|newdir/1
"""
KEPT = (
    rb"""pf:*deleting  |0|0|                                |gone.f
pf:.d..t......|4096|0|                                |./
"""
    b"\r              2   5%    0.00kB/s    0:00:00 (xfr#1, to-chk=23/25)\n"
    rb"""pf:>f.st......|2|45|be573118fb47cf582ef3a1a12238c2e5|100% x
pf:cD+++++++++|0|0|                                |dev
pf:.S..t......|0|0|                                |fifo
pf:hf+++++++++|2|0|                                |h3
pf:cLc.t......|5|0|                                |link
pf:>f.st......|2|45|be573118fb47cf582ef3a1a12238c2e5|lit\#134#012
pf:cf...p.....|2|0|                                |linked from the older point
pf:.f...p.....|2|0|                                |rights only
"""
    b"\r             11  28%    8.79kB/s    0:00:00 (xfr#6, to-chk=10/25)pf:<f.st......|2|45|00ff|a|pf:>f|b\n"
    b"pf:>f cut in the mid"
)


def escaped(name: bytes) -> bytes:
    """Return what rsync writes in a locale without letters beyond ASCII: the model to undo."""
    shown = b""
    for place, byte in enumerate(name):
        literal = byte == 92 and name[place + 1 : place + 2] == b"#" and name[place + 2 : place + 5].isdigit()
        control = byte < 32 and byte != 9
        shown += b"\\#%03o" % byte if literal or control or byte > 126 else bytes((byte,))
    return shown


@given(st.lists(st.sampled_from([b"\\#012", b"\\", b"#", b"\n", b"\r", b"\t", b"\xff", b"0", b"|", b"%", b"a"])))
def test_a_name_comes_back_whatever_was_escaped(parts: list[bytes]) -> None:
    name = b"".join(parts)
    assert parse_name(escaped(name)) == name


HOSTILE = (
    b"new\nline", b"cr\rlf", b"tab\t", b"lit\\#012", b"\\#1", b"\\\\#134", b"a|b|c", b"100% 5 x", b"%n", b"raw\xff\xfe",
    "ünï".encode(), b"\x7f", b"\xc2\x85", b" lead", b"trail ", b"-rf", b"pf:>f|1|2|3|4", b"\x1b[31m", b"x" * 255,
)  # fmt: skip


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_hostile_names_come_back_from_rsync_itself(tmp_path: Path, locale: str) -> None:
    root = os.fsencode(tmp_path)
    os.mkdir(root + b"/s")
    for name in HOSTILE:
        with open(root + b"/s/" + name, "wb") as file:
            file.write(name)
    argv = ["rsync", "-a", "--info=progress2", "--checksum-choice=xxh128", "--out-format=pf:%i|%l|%b|%C|%n", "s/", "t/"]
    done = subprocess.run(argv, cwd=root, capture_output=True, env={**os.environ, "LC_ALL": locale}, check=True)
    moved = dict(parse_moved(done.stdout.split(b"\n")))
    assert set(moved) == set(HOSTILE)
    assert all(len(digest) == 32 for digest in moved.values())


def test_only_files_that_were_made_are_told_with_their_digest() -> None:
    assert list(parse_moved(KEPT.splitlines(keepends=True))) == [
        (b"100% x", "be573118fb47cf582ef3a1a12238c2e5"),
        (b"h3", ""),
        (b"lit\\#012", "be573118fb47cf582ef3a1a12238c2e5"),
        (b"linked from the older point", ""),
        (b"a|pf:>f|b", "00ff"),
    ]


@given(st.binary(min_size=1))
def test_a_note_of_ours_reads_as_a_file_without_digest(path: bytes) -> None:
    assert format_moved_line(path).count(b"\n") == 1
    assert list(parse_moved([format_moved_line(path)])) == [(path, "")]


def test_sums_are_read_back_from_sha256sum_itself(tmp_path: Path) -> None:
    names = [b"plain", b"new\nline", b"back\\slash", b"cr\r", b"two  blanks", b"raw\xff"]
    for name in names:
        with open(os.fsencode(tmp_path) + b"/" + name, "wb"):
            pass
    argv = [b"sha256sum", b"--", *(b"./" + name for name in names)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=True)
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert list(parse_sums(done.stdout.splitlines(keepends=True))) == [(name, empty) for name in names]


def look(text: bytes) -> DryRunReader:
    reader = DryRunReader()
    for line in text.split(b"\n"):
        reader.feed(line)
    return reader


def test_a_look_counts_what_is_gone_changed_and_new() -> None:
    seen = look(LOOK + ACCOUNT).changes()
    assert seen is not None
    assert (look(LOOK + ACCOUNT).moving(), look(LOOK).moving()) == (21, None)
    assert (seen.deleted, seen.changed, seen.created, seen.other) == (3, 9, 7, 4)
    assert (seen.entries_now, seen.entries_before) == (24, 24 - 7 + 3)
    assert seen.files_before == 16 - 4 + 2  # created, h3, dir/2 and newdir/1 are new files; gonedir/1 and gone are gone
    assert seen.moving == 21  # summed here: rsync's own sum overflows
    assert seen.deleted_examples == (b"gonedir/1", b"gonedir/", b"gone")
    assert seen.changed_examples[:4] == (b"100% x", b"changed", b"lit\\#012", b"new\nline")
    assert seen.changed_examples[-2:] == (b"raw\xff", b"dir/sent")
    assert seen.folders == {
        b"gonedir": FolderChanges(before=None, deleted=2, changed=0),
        b"dir": FolderChanges(before=None, deleted=0, changed=1),
    }
    assert not seen.none


@pytest.mark.parametrize(
    ("line", "none"),
    [
        (b"pf:.d..t......|4096|./", True),  # a root's or a folder's time follows from what lies in it
        (b"pf:cd+++++++++|4096|./", True),
        (b"pf:.d..t......|4096|dir/", True),
        (b"pf:.d...p.....|4096|./", False),
        (b"pf:.d..tp.....|4096|dir/", False),
        (b"pf:.f....o....|1|file", False),
        (b"pf:.L..t......|1|link", False),
        (b"pf:*deleting  |0|x", False),
        (b"pf:cL+++++++++|1|link", False),
        (b"skipping non-regular file \"socket\"", True),
    ],
)  # fmt: skip
def test_what_counts_as_a_difference(line: bytes, none: bool) -> None:
    seen = look(line + b"\n" + ACCOUNT).changes()
    assert seen is not None
    assert seen.none is none


def test_a_look_without_an_account_tells_nothing() -> None:
    assert look(LOOK).changes() is None


def test_examples_and_memory_stay_few_and_the_account_is_found_behind_any_talk() -> None:
    talk = b'skipping non-regular file "socket"\n' * 1000
    seen = look(b"pf:*deleting  |0|x\n" * 50 + talk + ACCOUNT).changes()
    assert seen is not None
    assert (seen.deleted, len(seen.deleted_examples)) == (50, 20)


def test_reserved_names_that_rsync_left_out_are_named_and_its_talk_of_filters_is_not_read() -> None:
    line = b"[sender] hiding file a\\#012b/.~poolferry-partial~ because of pattern .~poolferry-partial~\n"
    seen = look(line * 30 + b"[sender] showing file x because of pattern y\n[generator] protecting z\n" + ACCOUNT)
    assert seen.reserved == [b"a\nb/.~poolferry-partial~"] * 20
    assert seen.changes() is not None


def test_reserved_names_of_a_far_source_are_named_and_counted_nowhere() -> None:
    lines = (
        b"pf:>f+++++++++|9|a\\#012b/.~poolferry-partial~\npf:cd+++++++++|4096|c/.poolferry-restoring.json/\n"
        b"pf:hf+++++++++|9|.~poolferry-partial~\n"
    )
    seen, plain = look(lines + ACCOUNT), look(ACCOUNT).changes()
    assert seen.reserved == [b"a\nb/.~poolferry-partial~", b"c/.poolferry-restoring.json", b".~poolferry-partial~"]
    found = seen.changes()
    assert found is not None
    assert plain is not None
    assert (found.created, found.files_new, found.entries_now, found.files_now, found.moving) == (
        plain.created, plain.files_new, (plain.entries_now or 0) - 3, (plain.files_now or 0) - 2, plain.moving,
    )  # fmt: skip


def test_a_dry_run_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parse, "_MOST_OTHERS", 5)
    monkeypatch.setattr(parse, "_MOST_FOLDERS", 5)
    with pytest.raises(ValueError, match="lines without end"):
        look(b"talk\n" * 9)
    with pytest.raises(ValueError, match="more folders at the top"):
        look(b"".join(b"pf:*deleting  |0|%d/x\n" % number for number in range(9)))


def test_an_account_is_read_whole() -> None:
    assert parse_stats(LOOK + ACCOUNT) == RsyncStats(files=25, regular=16, transferred_size=19, literal=18)


OLDER = b"""Number of files: 3
Number of files transferred: 1
Total file size: 6 bytes
Total transferred file size: 6 bytes
Literal data: 6 bytes
Matched data: 0 bytes
"""
NO_FILE = b"""Number of files: 1 (dir: 1)
Number of regular files transferred: 0
Total file size: 0 bytes
Total transferred file size: 0 bytes
Literal data: 0 bytes
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", None),
        (LOOK, None),  # killed: no account
        (ACCOUNT[: ACCOUNT.index(b"Total transferred")], None),
        (ACCOUNT[: ACCOUNT.index(b"Literal")], None),
        (ACCOUNT[ACCOUNT.index(b"Total file") :], None),
        (OLDER, None),  # before 3.1: it does not tell how many of the entries are files
        (b"Number of files: 0\nLiteral data: 0 bytes\n", None),  # the source could not be entered
        (NO_FILE, RsyncStats(files=1, regular=0, transferred_size=0, literal=0)),
    ],
)
def test_accounts_that_are_cut_old_or_empty(text: bytes, expected: RsyncStats | None) -> None:
    assert parse_stats(text) == expected


PROGRESS = b"\r         32,768   0%    0.00kB/s    0:00:00  \r      328007680  61%  299.03MB/s    0:00:00 (xfr#1, to-chk=0/2)\n"


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (PROGRESS, 328007680),
        (PROGRESS[: PROGRESS.index(b"61%")], None),
        (PROGRESS[: PROGRESS.index(b"%  299")], None),
        (b"\r  5  1% 1.00kB/s    0:00:00 \r    328", 5),  # a number that is cut is not half a number
        (b"007680  61%  299.03MB/s    0:00:00", None),
        (b"pf:>f.st......|2|45|be57|\\#012 77 100% x\n", None),
        (b"pf:>f.st......|2|45|be57|a 77 100% x\n", None),
        (b"\npf:>f.st......|2|45|be57|100% x\n", None),
        (b"\r  9  1% 1B/s" + b"x" * 4096, None),  # only the newest matter
        (b"", None),
    ],
)
def test_progress_is_read_from_whole_records_only(chunk: bytes, expected: int | None) -> None:
    assert parse_progress(chunk) == expected


@given(st.integers(0, len(PROGRESS)), st.integers(0, len(PROGRESS)))
def test_progress_cut_anywhere_never_tells_a_wrong_number(begin: int, end: int) -> None:
    assert parse_progress(PROGRESS[begin:end]) in (None, 328007680)


def test_a_look_names_every_path_that_differs_but_no_folder_that_is_on_both_sides() -> None:
    lines = [
        b"pf:.d..t......|60|./", b"pf:.d...p.....|60|kept/", b"pf:cd+++++++++|60|new/", b"pf:>f+++++++++|2|new/file",
        b"pf:>f.st......|2|kept/changed", b"pf:.f...p.....|2|mode", b"pf:.L...o.....|1|link", b"pf:*deleting  |0|gone/sub/",
        b"pf:*deleting  |0|gone/", b"pf:cL+++++++++|1|was-folder", b"pf:hf         |2|joined", b"pf:hf+++++++++|2|line\\#012end",
        b"pf:.S...p.....|0|pipe", b"pf:cD+++++++++|0|device",
    ]  # fmt: skip
    found = look(b"\n".join(lines)).differing()
    assert found is not None
    assert found.paths == (
        b"new", b"new/file", b"kept/changed", b"mode", b"link", b"gone/sub", b"gone", b"was-folder", b"joined", b"line\nend",
        b"pipe", b"device",
    )  # fmt: skip
    assert found.joined == (b"joined", b"line\nend")


@pytest.mark.parametrize(
    ("item", "most"),
    [(b">f.st......", MOST_DIFFERING), (b".d..t......", MOST_DIFFERING), (b"hf         ", MOST_JOINED)],
)
def test_a_look_names_none_where_too_many_differ(item: bytes, most: int) -> None:
    reader = DryRunReader()
    for number in range(most):
        reader.feed(b"pf:%b|1|f%d" % (item, number))
    assert reader.differing() is not None
    for _ in range(2):
        reader.feed(b"pf:%b|1|one more" % item)
        assert reader.differing() is None
