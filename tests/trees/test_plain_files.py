"""Small files that are written ahead of a copy: as they are, only where they are plain, and nothing through a link."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.trees.plain_files import LARGEST, PlainFileWriter, TargetTakesNothing, main


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old / "in/deep", new):
        folder.mkdir(parents=True)
    return old, new


def write(old: Path, new: Path, *paths: str) -> PlainFileWriter:
    writer = PlainFileWriter(("ours",), lambda _: None)
    one, other = (os.open(each, os.O_RDONLY | os.O_DIRECTORY) for each in (old, new))
    try:
        for path in paths:
            writer.write(path, one, other)
    finally:
        os.close(one)
        os.close(other)
    return writer


def test_plain_files_are_written_as_they_are_and_all_else_is_left(trees: tuple[Path, Path]) -> None:
    old, new = trees
    (old / "in/deep/file").write_bytes(b"content")
    (old / "in/deep/file").chmod(0o4751)
    if os.geteuid() == 0:
        os.chown(old / "in/deep/file", 1234, 4321)
        (old / "in/deep/file").chmod(0o4751)
    os.utime(old / "in/deep/file", ns=(0, 1_000_000_007))
    (old / "in/empty").touch()
    (old / "in/large").write_bytes(bytes(LARGEST + 1))
    (old / "in/attributed").write_bytes(b"content")
    os.setxattr(old / "in/attributed", "user.own", b"1")
    (old / "in/link").symlink_to("deep")
    os.mkfifo(old / "in/pipe")
    for name in ("ours", "in/ours"):
        (old / name).mkdir()
        (old / name / "file").touch()
    (old / "other").touch()
    assert write(old, new, "in", "ours", "../old/other", ".", "gone", "gone/too").bytes == len(b"content")
    assert sorted(str(each.relative_to(new)) for each in new.rglob("*")) == [
        "in",
        "in/deep",
        "in/deep/file",
        "in/empty",
    ]
    made, found = (new / "in/deep/file").stat(), (old / "in/deep/file").stat()
    assert (new / "in/deep/file").read_bytes() == b"content"
    for field in ("st_mode", "st_uid", "st_gid", "st_mtime_ns"):
        assert getattr(made, field) == getattr(found, field)
    assert (new / "in").stat().st_mode & 0o777 == 0o700


def test_nothing_goes_through_a_link_and_nothing_that_is_there_changes(
    trees: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = trees
    (tmp_path / "away").mkdir()
    for name in ("in/file", "in/deep/file", "there"):
        (old / name).write_bytes(b"new")
    (old / "led").symlink_to(tmp_path / "old/in")
    (new / "in").symlink_to(tmp_path / "away")
    (new / "there").write_bytes(b"first")
    write(old, new, "in", "in/deep/file", "led/file", "there")
    assert os.listdir(tmp_path / "away") == []
    assert sorted(os.listdir(new)) == ["in", "there"]
    assert (new / "there").read_bytes() == b"first"


@pytest.mark.root
def test_a_full_disk_ends_it_and_leaves_no_half_file(trees: tuple[Path, Path]) -> None:
    old, new = trees
    for number in range(20):
        (old / f"in/{number}").write_bytes(bytes(60_000))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(new)], check=True)
    try:
        with pytest.raises(TargetTakesNothing):
            write(old, new, "in")
        sizes = {each.stat().st_size for each in (new / "in").iterdir() if each.is_file()}
        assert sizes == {60_000}
    finally:
        subprocess.run(["umount", str(new)], check=True)


def test_a_filesystem_that_keeps_another_time_gets_no_file(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = trees
    (old / "in/file").write_bytes(b"content")
    utime = os.utime
    monkeypatch.setattr(os, "utime", lambda file, ns: utime(file, ns=(ns[0], ns[1] // 1_000_000_000 * 1_000_000_000)))
    os.utime(old / "in/file", ns=(0, 0))
    utime(old / "in/file", ns=(0, 1_500_000_000))
    with pytest.raises(TargetTakesNothing) as told:
        write(old, new, "in")
    assert isinstance(told.value.__cause__, OSError)
    assert told.value.__cause__.errno == errno.ENOTSUP
    assert os.listdir(new / "in") == []


def test_the_program_reads_paths_and_says_how_much_it_wrote(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from orchestrator.engines.rsync.parse import parse_progress

    old, new = trees
    (old / "in/file").write_bytes(b"content")
    (old / "#odd\n").write_bytes(b"too")
    monkeypatch.chdir(new)
    for tree, written in ((tmp_path / "led", None), (old.resolve(), 10)):
        (tmp_path / "names").write_bytes(b"/in\0/#odd\n\0")
        if not tree.exists():
            tree.symlink_to("old")
        with (tmp_path / "names").open() as names:
            monkeypatch.setattr("sys.stdin", names)
            main([str(tree), "ours"])
        assert parse_progress(capsys.readouterr().out.encode()) == written
    assert (new / "#odd\n").read_bytes() == b"too"
