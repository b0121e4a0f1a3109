"""Small files of a source, written ahead of a first copy: nothing of what just changes, nothing through a link, nothing half."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.trees import source_files
from orchestrator.trees.plain_files import LARGEST, LeftPaths, TargetTakesNothing
from orchestrator.trees.source_files import FewArePlain, SourceFileWriter, main


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old / "in/deep", new):
        folder.mkdir(parents=True)
    return old, new


def write(old: Path, new: Path, *paths: str, share: tuple[int, int] = (0, 1), stays: bool = False) -> LeftPaths:
    """Write ahead; return what is left."""
    one, other = (os.open(each, os.O_RDONLY | os.O_DIRECTORY) for each in (old, new))
    try:
        with SourceFileWriter(("ours",), lambda _: None, os.fstat(one).st_dev, share, stays=stays) as writer:
            for path in paths:
                writer.write(path, one, other)
    finally:
        os.close(one)
        os.close(other)
    return writer.left


def aged(folder: Path) -> None:
    """Wait until no file was changed just now."""
    last = max((each.stat().st_ctime_ns for each in folder.rglob("*") if each.is_file()), default=0)
    while time.time_ns() < last + 200_000_000:
        os.sched_yield()


def there(new: Path) -> list[str]:
    return sorted(str(each.relative_to(new)) for each in new.rglob("*") if each.is_file())


@pytest.mark.parametrize(
    "meddle",
    [
        lambda file: file.write_bytes(b"CONTENT"),
        lambda file: file.write_bytes(b"longer content"),
        lambda file: file.write_bytes(b""),
        lambda file: file.chmod(0o640),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_left(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, meddle: Callable[[Path], object]
) -> None:
    old, new = trees
    (old / "in/file").write_bytes(b"content")
    (old / "in/quiet").write_bytes(b"quiet")
    aged(old)
    read = os.read

    def reading(file: int, count: int) -> bytes:
        if (content := read(file, count)) == b"content":
            meddle(old / "in/file")
        return content

    monkeypatch.setattr(os, "read", reading)
    write(old, new, ".")
    assert there(new) == ["in/quiet"]


def test_a_file_that_changed_just_before_is_left(trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = trees
    (old / "in/file").write_bytes(b"content")
    changed = (old / "in/file").stat().st_ctime_ns
    for now, coarse, written in (
        (changed + 50_000_000, False, False),
        (changed + 150_000_000, False, True),
        (changed + 2_900_000_000, True, False),
        (changed + 3_100_000_000, True, True),
    ):
        monkeypatch.setattr(source_files, "clock_gettime_ns", lambda _, now=now: now)
        # A time of change that is a whole number of such seconds.
        monkeypatch.setattr(source_files, "_SECOND", changed if coarse else 10**9)
        write(old, new, ".")
        assert there(new) == (["in/file"] if written else []), (now - changed, coarse)
        if written:
            (new / "in/file").unlink()


def test_what_is_reported_has_its_time_later(trees: tuple[Path, Path]) -> None:
    """A kill between the two leaves a file that is copied anew, and never one that counts and is in no note."""
    old, new = trees
    (old / "in/file").write_bytes(b"content")
    os.utime(old / "in/file", ns=(0, 1_000_000_007))
    aged(old)
    times = list[int]()
    one, other = (os.open(each, os.O_RDONLY | os.O_DIRECTORY) for each in (old, new))
    with SourceFileWriter(
        (), lambda _: times.append((new / "in/file").stat().st_mtime_ns), os.fstat(one).st_dev
    ) as writer:
        writer.write(".", one, other)
        assert times == []
    assert times[0] != 1_000_000_007
    assert (new / "in/file").stat().st_mtime_ns == 1_000_000_007
    os.close(one)
    os.close(other)


def test_only_folders_are_meant_and_nothing_is_written_through_a_link(trees: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = trees
    (tmp_path / "away").mkdir()
    for name in ("in/file", "in/deep/file", "loose"):
        (old / name).write_bytes(b"new")
    (old / "led").symlink_to(tmp_path / "old/in")
    (old / "in/link").symlink_to("file")
    (old / "ours").mkdir()
    (old / "ours/file").touch()
    (old / "in/large").write_bytes(bytes(range(256)) * (LARGEST // 256 + 1))
    aged(old)
    (new / "in").mkdir()
    (new / "in/deep").symlink_to(tmp_path / "away")
    left = write(old, new, "in/.", "loose/.", "led/.", "gone/.", "ours/.", "../old/in/.")
    assert there(new) == ["in/file"]
    # A folder that is a link in the copy is nothing that anybody could have put there; rsync is told it all the same.
    assert sorted(left.single) == ["gone", "in", "in/deep", "in/large", "in/link", "led", "loose"]
    assert left.whole == []
    assert os.listdir(tmp_path / "away") == []


def test_several_share_the_folders(trees: tuple[Path, Path]) -> None:
    old, new = trees
    for number in range(20):
        (old / f"{number}").mkdir()
        (old / f"{number}/file").touch()
    aged(old)
    (old / "loose link").symlink_to("in")
    one = write(old, new, ".", share=(0, 2))
    some = there(new)
    assert 0 < len(some) < 20
    other = write(old, new, ".", share=(1, 2))
    assert len(there(new)) == 20
    assert sorted((*one.single, *other.single)) == sorted([*map(str, range(20)), "in", "in/deep", "loose link"])
    assert one.whole == other.whole == []


def test_it_ends_where_few_files_are_plain(trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = trees
    monkeypatch.setattr(source_files, "_MOST_LEFT", 3)
    for number in range(5):
        (old / f"in/{number}").write_bytes(bytes(LARGEST + 1))
    with pytest.raises(FewArePlain):
        write(old, new, ".")


@pytest.mark.root
def test_what_nobody_may_change_there_is_left(trees: tuple[Path, Path]) -> None:
    """In the way are a file, and a folder in which nothing can be written."""
    old, new = trees
    for name in ("in/file", "in/other", "in/deep/file"):
        (old / name).write_bytes(b"new")
    aged(old)
    (new / "in/deep").mkdir(parents=True)
    (new / "in/file").write_bytes(b"stands")
    places = [str(new / "in/file"), str(new / "in/deep")]
    subprocess.run(["chattr", "+i", *places], check=True)
    try:
        write(old, new, "in/.")
    finally:
        subprocess.run(["chattr", "-i", *places], check=True)
    assert there(new) == ["in/file", "in/other"]
    assert (new / "in/file").read_bytes() == b"stands"


@pytest.mark.root
def test_another_filesystem_is_left_and_a_full_disk_leaves_no_half_file(trees: tuple[Path, Path]) -> None:
    old, new = trees
    for number in range(20):
        (old / f"in/{number}").write_bytes(b"x" * 60_000)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(new)], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(old / "in/deep")], check=True)
    try:
        (old / "in/deep/file").touch()
        aged(old)
        assert write(old, new, "in/deep/.").whole == ["in/deep"]
        left = write(old, new, "in/deep/.", stays=True)
        assert (left.single, left.whole) == (["in", "in/deep"], [])
        assert os.listdir(new / "in/deep") == []
        with pytest.raises(TargetTakesNothing):
            write(old, new, ".")
        sizes = {each.stat().st_size for each in (new / "in").iterdir() if each.is_file()}
        assert sizes == {60_000}
        assert all((new / each).stat().st_mtime_ns == (old / each).stat().st_mtime_ns for each in there(new))
    finally:
        subprocess.run(["umount", str(new), str(old / "in/deep")], check=True)


@pytest.mark.parametrize("most", [0, 3])
def test_the_program_tells_what_it_left(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    """All that it was told where it gives up; and the root where nothing is left, for no other path would bring it."""
    old, new = trees
    (old / "in/deep").rmdir()
    (old / "in").rmdir()
    (old / "one").write_bytes(b"1")
    os.setxattr(old / "one", "user.own", b"1")
    (old / "two").write_bytes(b"2")
    aged(old)
    monkeypatch.chdir(new)
    monkeypatch.setattr(source_files, "_MOST_LEFT", most)

    def program() -> tuple[bytes, bytes]:
        (tmp_path / "names").write_bytes(b"./.\0")
        with (tmp_path / "names").open() as names:
            monkeypatch.setattr("sys.stdin", names)
            main([str(old.resolve()), "0", "1", "all", str(tmp_path / "left"), "ours"])
        return (tmp_path / "left-single").read_bytes(), (tmp_path / "left-whole").read_bytes()

    monkeypatch.setattr(source_files, "report", lambda _: None)
    assert program() == ((b"./one\0", b"") if most else (b"", b"./.\0"))
    os.removexattr(old / "one", "user.own")
    (new / "two").unlink(missing_ok=True)
    aged(old)
    assert program() == (b"./.\0", b"")
