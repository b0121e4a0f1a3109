"""Small files and times of folders by name: nothing through a link, nothing half, nothing that would be other than at the source."""

import errno
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from orchestrator.trees.named_entries import FolderPairs, give_folder_times, write_named_files
from orchestrator.trees.plain_files import LARGEST

T = TypeVar("T")
MTIME = 1_700_000_000_123_456_789


class Pair:
    """A source and a copy that lacks what differs."""

    def __init__(self, folder: Path) -> None:
        self.old, self.new = folder / "old", folder / "new"
        self.told: list[bytes] = []
        for each in (self.old, self.new):
            (each / "in/deep").mkdir(parents=True)

    def write(self, path: str, content: bytes = b"content") -> Path:
        file = self.old / path
        file.write_bytes(content)
        os.utime(file, ns=(MTIME, MTIME))
        return file

    def copy(self, *paths: bytes, stops: Callable[[], bool] = lambda: False) -> tuple[list[bytes], int]:
        """Copy once no file was changed just now."""
        last = max((each.lstat().st_ctime_ns for each in self.old.rglob("*")), default=0)
        while time.time_ns() < last + 200_000_000:
            os.sched_yield()
        return self._opened(lambda old, new: write_named_files(paths, old, new, tell=self.told.append, stops=stops))

    def times(self, *paths: bytes) -> list[bytes]:
        return self._opened(lambda old, new: give_folder_times(paths, old, new))

    def _opened(self, act: Callable[[int, int], T]) -> T:
        one, other = (os.open(each, os.O_RDONLY | os.O_DIRECTORY) for each in (self.old, self.new))
        before = set(os.listdir("/proc/self/fd"))
        try:
            found = act(one, other)
            assert set(os.listdir("/proc/self/fd")) == before, "descriptors are left open"
            return found
        finally:
            os.close(one)
            os.close(other)

    def there(self) -> list[str]:
        return sorted(str(each.relative_to(self.new)) for each in self.new.rglob("*") if not each.is_dir())


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def test_files_come_with_content_owner_mode_and_time_and_are_told_as_rsync_tells_them(pair: Pair) -> None:
    names = ["a", "in/b\nc", "in/deep/#;+", "in/\\#012"]
    for number, name in enumerate(names):
        file = pair.write(name, bytes([number]) * number)
        file.chmod(0o640 + number)
        if os.geteuid() == 0:
            os.chown(file, 1000 + number, 2000)
    left, count = pair.copy(*map(os.fsencode, reversed(names)))
    assert (left, count) == ([], sum(range(len(names))))
    for name in names:
        old, new = (pair.old / name).stat(), (pair.new / name).stat()
        told = ("st_mode", "st_uid", "st_gid", "st_size", "st_mtime_ns")
        assert [getattr(old, each) for each in told] == [getattr(new, each) for each in told]
        assert (pair.new / name).read_bytes() == (pair.old / name).read_bytes()
    lines = b"".join(pair.told)
    assert [line.rpartition(b"|")[2] for line in lines.splitlines() if line.startswith(b"pf:>f")] == [
        b"a", rb"in/\#134#012", rb"in/b\#012c", b"in/deep/#;+",
    ]  # fmt: skip


def _fifo(pair: Pair) -> None:
    (pair.old / "in/it").unlink()
    os.mkfifo(pair.old / "in/it")


def _link(pair: Pair) -> None:
    (pair.old / "in/it").unlink()
    (pair.old / "in/it").symlink_to("../secret")


def _link_above(pair: Pair) -> None:
    (pair.old / "in").rename(pair.old / "out")
    (pair.old / "in").symlink_to("out")


def _link_above_in_the_copy(pair: Pair) -> None:
    (pair.new / "in/deep").rmdir()
    (pair.new / "in").rmdir()
    (pair.new.parent / "elsewhere").mkdir()
    (pair.new / "in").symlink_to("../elsewhere")


def _no_folder(pair: Pair) -> None:
    (pair.new / "in/deep").rmdir()
    (pair.new / "in").rmdir()


def _there_already(pair: Pair) -> None:
    (pair.new / "in/it").write_text("of a point")


def _attribute(pair: Pair) -> None:
    os.setxattr(pair.old / "in/it", "user.a", b"b")


def _default_list(pair: Pair) -> None:
    subprocess.run(["setfacl", "-d", "-m", "u:77:rwx", str(pair.new / "in")], check=True)


OTHERS: dict[str, Callable[[Pair], object]] = {
    "gone": lambda pair: (pair.old / "in/it").unlink(), "a pipe": _fifo, "a link": _link, "a link above": _link_above,
    "a link above in the copy": _link_above_in_the_copy, "a new folder": _no_folder, "there already": _there_already,
    "of two names": lambda pair: os.link(pair.old / "in/it", pair.old / "other"), "with an attribute": _attribute,
    "large": lambda pair: pair.write("in/it", bytes(LARGEST + 1)), "with a hole": lambda pair: pair.write("in/it", bytes(5000)),
    "in a folder that hands a list on": _default_list,
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_not_plain_is_left_as_it_is(pair: Pair, name: str) -> None:
    (pair.old / "secret").write_text("of root")
    pair.write("in/it")
    pair.write("plain")
    OTHERS[name](pair)
    before = {path: path.read_bytes() for path in pair.new.rglob("*") if path.is_file()}
    left, _ = pair.copy(b"in/it", b"plain")
    assert left == [b"in/it"]
    after = {
        path: path.read_bytes()
        for path in pair.new.parent.rglob("*")
        if path.is_file() and pair.old not in path.parents
    }
    assert after == {**before, pair.new / "plain": b"content"}


def test_what_changed_just_now_is_left(pair: Pair) -> None:
    pair.write("old")
    pair.copy()
    (pair.old / "new").write_text("just now")
    left, _ = pair._opened(
        lambda old, new: write_named_files([b"old", b"new"], old, new, tell=print, stops=lambda: False)
    )
    assert (left, pair.there()) == ([b"new"], ["old"])


@pytest.mark.parametrize("path", [b"../outside", b"in/../../outside", b"/etc/hostname", b"in//x", b"./x"])
def test_no_path_leads_out(pair: Pair, path: bytes) -> None:
    (pair.old.parent / "outside").write_text("not of the tree")
    left, _ = pair.copy(path)
    assert (left, pair.there()) == ([path], [])


def test_a_stop_leaves_the_rest(pair: Pair) -> None:
    for number in range(5):
        pair.write(f"{number}")
    asked = itertools.count(1)
    left, _ = pair.copy(*(b"%d" % number for number in range(5)), stops=lambda: next(asked) > 2)
    assert (left, pair.there()) == ([b"2", b"3", b"4"], ["0", "1"])


def test_what_cannot_be_told_is_not_there_and_left(pair: Pair) -> None:
    """The copy that follows passes over what is there, so a file without its time would stay so."""
    names = [f"in/{number:03}" for number in range(100)]
    for name in names:
        pair.write(name)
    told = itertools.count()

    def full(_: bytes) -> None:
        if next(told):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    pair.copy()
    left, _ = pair._opened(
        lambda old, new: write_named_files(map(os.fsencode, names), old, new, tell=full, stops=lambda: False)
    )
    assert left == [os.fsencode(name) for name in names[64:]]
    assert pair.there() == names[:64]
    assert {(pair.new / name).stat().st_mtime_ns for name in names[:64]} == {MTIME}


@pytest.mark.root
def test_a_full_copy_leaves_the_rest_and_no_half_file(pair: Pair) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=50", "none", str(pair.new)], check=True)
    try:
        for number in range(30):
            pair.write(f"{number:02}", os.urandom(4000))
        left, _ = pair.copy(*(b"%02d" % number for number in range(30)))
        assert left
        assert sorted([*pair.there(), *map(os.fsdecode, left)]) == [f"{number:02}" for number in range(30)]
        for name in pair.there():
            assert (pair.new / name).read_bytes() == (pair.old / name).read_bytes()
            assert (pair.new / name).stat().st_mtime_ns == MTIME
    finally:
        subprocess.run(["umount", str(pair.new)], check=True)


def _timed(folders: Iterable[Path]) -> None:
    for folder in folders:
        os.utime(folder, ns=(MTIME, MTIME))


def test_folders_get_their_times_and_files_none(pair: Pair) -> None:
    pair.write("file")
    (pair.new / "file").write_text("its own time")
    _timed((pair.old / "in/deep", pair.old / "in", pair.old))
    before = (pair.new / "file").stat().st_mtime_ns
    assert pair.times(b".", b"in", b"in/deep", b"file") == []
    for path in (pair.new, pair.new / "in", pair.new / "in/deep"):
        assert path.stat().st_mtime_ns == MTIME
    assert (pair.new / "file").stat().st_mtime_ns == before


FOLDERS: dict[str, Callable[[Pair], object]] = {
    "mode": lambda pair: (pair.old / "in/deep").chmod(0o701),
    "attribute": lambda pair: os.setxattr(pair.old / "in/deep", "user.a", b"b"),
    "attribute of the copy": lambda pair: os.setxattr(pair.new / "in/deep", "user.a", b"b"),
    "list": lambda pair: subprocess.run(["setfacl", "-m", "u:77:rwx", str(pair.old / "in/deep")], check=True),
    "lacks": lambda pair: (pair.new / "in/deep").rmdir(),
    "gone": lambda pair: (pair.old / "in/deep").rmdir(),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_of_which_more_differs_are_left(pair: Pair, name: str) -> None:
    FOLDERS[name](pair)
    _timed((pair.old / "in",))
    assert pair.times(b"in/deep", b"in") == [b"in/deep"]
    assert (pair.new / "in").stat().st_mtime_ns == MTIME


def test_no_time_is_given_through_a_link(pair: Pair) -> None:
    elsewhere = pair.new.parent / "elsewhere"
    elsewhere.mkdir()
    (pair.new / "in/deep").rmdir()
    (pair.new / "in/deep").symlink_to(elsewhere)
    before = elsewhere.stat().st_mtime_ns
    _timed((pair.old / "in/deep",))
    assert pair.times(b"in/deep") == [b"in/deep"]
    assert elsewhere.stat().st_mtime_ns == before


def test_a_deep_way_is_left(pair: Pair) -> None:
    with FolderPairs(-1, -1) as folders, pytest.raises(OSError, match="no way"):
        folders.enter(b"/".join([b"a"] * 101))
