"""Small files that are written ahead of a copy: as they are, only where they are plain, and nothing through a link."""

import errno
import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.trees import plain_files
from orchestrator.trees.plain_files import LARGEST, PlainFileWriter, TargetTakesNothing, main


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old / "in/deep", new):
        folder.mkdir(parents=True)
    return old, new


def write(old: Path, new: Path, *paths: str, share: tuple[int, int] = (0, 1)) -> PlainFileWriter:
    writer = PlainFileWriter(("ours",), lambda _: None, share)
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
    os.link(old / "other", old / "in/second")
    (old / "in/third").write_bytes(b"three")
    os.link(old / "in/third", old / "in/deep/fourth")
    writer = write(old, new, "in", "ours", "../old/other", ".", "gone", "gone/too")
    assert writer.bytes == len(b"contentthreethree")
    for name in ("in/second", "in/third", "in/deep/fourth"):
        (new / name).unlink()
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
    assert writer.left.whole == []
    left = ["gone", "gone/too", "in", "in/attributed", "in/deep", "in/large", "in/link", "in/pipe"]
    assert sorted(writer.left.single) == left
    writer.end()
    folder = os.open(old, os.O_RDONLY | os.O_DIRECTORY)
    for path in ("in", "ours"):
        writer.name_again(path, folder)
    os.close(folder)
    assert sorted(writer.left.single) == sorted([*left, "in/deep/fourth", "in/third"])


def test_holes_stay_holes(trees: tuple[Path, Path]) -> None:
    """Of a file whose zeros take space they are written: it may be somebody's room for later."""
    old, new = trees
    for name, at in (("end", 0), ("middle", 20_000), ("begin", 60_000), ("empty", None)):
        with open(old / "in" / name, "wb") as file:
            if at is not None:
                file.seek(at)
                file.write(os.urandom(5000))
            file.truncate(LARGEST - 100)
    (old / "in/zeros").write_bytes(bytes(LARGEST))
    write(old, new, "in")
    for one in (old / "in").iterdir():
        if one.is_file():
            made = new / "in" / one.name
            assert made.read_bytes() == one.read_bytes()
            assert made.stat().st_blocks == one.stat().st_blocks, one.name


def test_folders_above_a_path_are_left_with_it(trees: tuple[Path, Path]) -> None:
    """A folder whose files are shared out among copies is in no list itself: it kept the mode and the time of its making."""
    old, new = trees
    for name in ("one", "two"):
        (old / "in/deep" / name).write_bytes(b"x")
    writer = write(old, new, "in/deep/one", "in/deep/two")
    assert (writer.left.single, writer.left.whole) == (["in", "in/deep"], [])


def test_what_lies_too_deep_or_cannot_be_entered_is_left_whole(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = trees
    (old / "in/deep/er").mkdir()
    (new / "in").mkdir()
    monkeypatch.setattr(plain_files, "DEEPEST", 1)
    writer = write(old, new, "in")
    assert (writer.left.single, writer.left.whole) == (["in", "in/deep"], ["in/deep/er"])
    monkeypatch.setattr(plain_files, "DEEPEST", 100)
    mkdir = os.mkdir

    def refuse(name: str, *words: int, dir_fd: int) -> None:
        if name == "er":
            raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
        mkdir(name, *words, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", refuse)
    writer = write(old, new, "in")
    assert (writer.left.single, writer.left.whole) == (["in", "in/deep"], ["in/deep/er"])


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


def test_the_program_reads_paths_and_says_how_much_it_wrote_and_what_it_left(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from orchestrator.engines.rsync.parse import parse_progress

    old, new = trees
    (old / "in/file").write_bytes(b"content")
    (old / "#odd\n").write_bytes(b"too")
    (old / "in/large\n").write_bytes(bytes(LARGEST + 1))
    monkeypatch.chdir(new)
    given, left = b"/in\0/#odd\n\0", tmp_path / "left"
    # A tree that is named through a link is not entered, so all is left as it was told.
    for tree, written, single, whole in (
        (tmp_path / "led", 0, b"", given),
        (old.resolve(), 10, b"/in\0/in/large\n\0/in/deep\0", b""),
    ):
        (tmp_path / "names").write_bytes(given)
        if not tree.exists():
            tree.symlink_to("old")
        with (tmp_path / "names").open() as names:
            monkeypatch.setattr("sys.stdin", names)
            main([str(tree), "0", "1", str(left), "ours"])
        assert parse_progress(capsys.readouterr().out.encode()) == written
        assert left.with_name("left-whole").read_bytes() == whole
        assert left.with_name("left-single").read_bytes() == single
    assert (new / "#odd\n").read_bytes() == b"too"


def test_several_share_the_files_and_each_meets_all_names_of_one(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = trees
    monkeypatch.setattr(plain_files, "_NEIGHBOURS", 0)
    for number in range(20):
        (old / f"in/{number}").write_bytes(b"x")
    os.link(old / "in/7", old / "in/deep/7")
    one, other = (write(old, new, "in", share=(which, 2)) for which in (0, 1))
    made = [each for each in new.rglob("*") if each.is_file()]
    assert len(made) == 21
    one.end()
    other.end()
    assert one.left.single == ["in", "in/deep"]
    assert other.left.single == []
    assert sorted((len(one._again), len(other._again))) == [0, 1]


def test_until_its_end_all_counts_as_left(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where the target is full, or the program is killed: what is told to rsync then is all that it was told itself."""
    old, new = trees
    (old / "in/file").write_bytes(b"content")
    monkeypatch.chdir(new)
    seen = list[bytes]()

    def meet(*_: object) -> None:
        seen.append((tmp_path / "left-whole").read_bytes())
        raise TargetTakesNothing

    monkeypatch.setattr(PlainFileWriter, "write_file", meet)
    (tmp_path / "names").write_bytes(b"/in\0")
    with (tmp_path / "names").open() as names:
        monkeypatch.setattr("sys.stdin", names)
        main([str(old.resolve()), "0", "1", str(tmp_path / "left")])
    assert seen == [b"/in\0"]
    assert ((tmp_path / "left-whole").read_bytes(), (tmp_path / "left-single").read_bytes()) == (b"/in\0", b"")
