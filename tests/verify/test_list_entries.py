"""The real find, on real trees."""

import os
import shlex
import socket
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Host, Location
from orchestrator.verify.entry import (
    format_plain_line,
    line_of,
    parse_listing,
    split_records,
    with_digest,
)
from orchestrator.verify.pipelines import listing_command
from tests.verify.trees import HOSTILE, entries, hostile_tree, make_tree, records, run


def test_every_kind_and_every_hostile_name(tmp_path: Path) -> None:
    tree = hostile_tree(tmp_path / "tree")
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tree / "socket"))
    os.symlink(b"to\nanywhere\t\xff//x", os.fsencode(tree / "link"))
    (tree / "folder").mkdir(mode=0o750)
    os.utime(tree / "1", ns=(0, -1_500_000_000))
    os.utime(tree / "-rf", ns=(0, 1_234_567_891_987_654_321))
    listed = {entry.path: entry for entry in entries(tree, tmp_path)}
    assert set(listed) == {*HOSTILE, b"", b"pipe", b"socket", b"link", b"folder"}
    for path, entry in listed.items():
        real = os.lstat(os.fsencode(tree) + b"/" + path)
        told = (entry.mtime_ns, entry.mode, entry.uid, entry.gid, entry.nlink, entry.inode)
        expected = (real.st_mtime_ns, real.st_mode & 0o7777, real.st_uid, real.st_gid, real.st_nlink, real.st_ino)
        assert told == expected, path
        assert entry.size == (real.st_size if entry.kind == "f" else 0)
    kinds = [listed[name].kind for name in (b"", b"pipe", b"socket", b"link", b"folder", b"1")]
    assert kinds == ["d", "p", "s", "l", "d", "f"]
    assert listed[b"link"].target == b"to\nanywhere\t\xff//x"
    assert list(listed) == sorted(listed, key=lambda path: path + b"//")


@pytest.mark.parametrize(
    "name", [b"new\nline", b"-leading", b"quo'te\"s", b"\xff\xfe", b"a b;$(id)", b".~ours~", b"*[x]"]
)
def test_the_root_may_have_any_name_also_through_a_remote_shell(tmp_path: Path, name: bytes) -> None:
    root = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(root)
    (Path(os.fsdecode(root)) / "file").write_bytes(b"x")
    command = listing_command(Location(path=os.fsdecode(root), host=Host(name="far")), exclude=(b".~ours~",))
    assert command.host == Host(name="far")
    line = os.fsencode(shlex.join(command.argv))
    output = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True, cwd="/").stdout
    assert sorted(parse_listing(record).path for record in split_records([output])) == [b"", b"file"]


def test_names_of_ours_are_left_out_literally(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a/.~p*~/x": b"", "a/.~pq~/x": b"", "a/b": b"", "[1]/x": b"", "1/x": b""})
    command = listing_command(Location(path=str(tree)), exclude=(b".~p*~", b"[1]"))
    output = subprocess.run(command.argv, stdout=subprocess.PIPE, check=True).stdout
    paths = {parse_listing(record).path for record in split_records([output])}
    assert paths == {b"", b"1", b"1/x", b"a", b"a/b", b"a/.~pq~", b"a/.~pq~/x"}


def test_a_root_that_is_a_symlink_is_entered_and_one_that_is_not_there_fails(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b""})
    (tmp_path / "latest").symlink_to(tree)
    assert [entry.path for entry in entries(tmp_path / "latest", tmp_path)] == [b"", b"a"]
    with pytest.raises(subprocess.CalledProcessError):
        entries(tmp_path / "none", tmp_path)
    with pytest.raises(ValueError, match="absolute"):
        listing_command(Location(path="pool/data"))


def test_the_root_of_the_machine_is_a_path_as_any_other() -> None:
    assert listing_command(Location(path="/")).argv[1] == "/."


def key_of(record: bytes) -> bytes:
    return record[: record.index(b"//") + 2]


def test_an_entry_of_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind"):
        parse_listing(b"a//U\t0\t0.0000000000\t0\t0\t0\t0\t0\t")


@pytest.mark.parametrize("seconds", ["-3", "-0", "0", "00", "1", "5", "1772600767"])
@pytest.mark.parametrize("nanos", ["0", "000000001", "5", "999999999"])
def test_a_plain_line_is_the_entrys_own(seconds: str, nanos: str) -> None:
    record = f"a b/c//f\t12\t{seconds}.{nanos:0>9}0\t4755\t0\t1000\t3\t77\t".encode()
    line = format_plain_line(record, key_of(record), "xxh128:1")
    assert line in (None, line_of(with_digest(parse_listing(record), "xxh128:1")))
    assert (line is None) == (seconds[0] in "-0")


def test_what_is_no_plain_file_is_no_plain_line(tmp_path: Path) -> None:
    tree = hostile_tree(tmp_path / "tree")
    (tree / "folder").mkdir()
    (tree / "link").symlink_to("x")
    told = {}
    for record in records(tree, tmp_path):
        entry, line = parse_listing(record), format_plain_line(record, key_of(record), "xxh128:1")
        told[entry.path] = line is not None
        assert line in (None, line_of(with_digest(entry, "xxh128:1")))
    assert all(told[name] == (not set(name) & set(b"\\\n\t\r")) for name in HOSTILE)
    assert not any(told[name] for name in (b"", b"folder", b"link"))


def test_a_listing_of_names_tells_the_same_names(tmp_path: Path) -> None:
    tree = hostile_tree(tmp_path / "tree")
    make_tree(tree, {".~ours~/x": b"", "folder/.~ours~/x": b"", "folder/apart": b"", "apart/x": b""})
    told = []
    for names in (False, True):
        command = listing_command(Location(path=str(tree)), exclude=(b".~ours~",), apart=(b"apart",), names=names)
        told.append(sorted(record.partition(b"//")[0] for record in split_records([run(command)])))
    assert told[0] == told[1]
    assert set(told[0]) == {*HOSTILE, b"", b"folder", b"folder/apart"}
