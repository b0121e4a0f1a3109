"""A tree of hard links to another one: all kinds of entries, nothing that is left out, no link followed, no descriptor left open."""

import errno
import itertools
import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from orchestrator.trees import linked_tree
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.linked_tree import LinkedTree, find_names_of

ODD = b"odd \xff\n\t\\name"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A tree with entries of several kinds, and a folder beside it that must not be entered."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_bytes(b"secret")
    old = tmp_path / "old"
    for folder in ("a/b", "c", "empty"):
        (old / folder).mkdir(parents=True)
    for name in ("top", "a/one", "a/b/two", "c/three"):
        (old / name).write_text(name)
    (old / "c" / os.fsdecode(ODD)).write_bytes(b"odd")
    (old / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(old / "a/pipe")
    (old / "a/b").chmod(0o750)
    os.utime(old / "a/b", ns=(5, 7_000_000_001))
    (tmp_path / "new").mkdir()
    return old


def made(old: Path, *left_out: str, **more: object) -> tuple[Path, int]:
    """Return the new tree, and how many entries were linked."""
    tree = LinkedTree(set(left_out), **more)  # type: ignore[arg-type]
    new = old.parent / "new"
    before = len(os.listdir("/proc/self/fd"))
    try:
        with Folder(str(old)) as one, Folder(str(new)) as other:
            tree.make(one, other)
    finally:
        assert len(os.listdir("/proc/self/fd")) == before
    return new, tree.linked


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_all_is_linked_and_folders_are_new(old: Path) -> None:
    new, linked = made(old)
    assert names(new) == names(old)
    assert linked == 7
    for path in old.rglob("*"):
        one, other = path.lstat(), (new / path.relative_to(old)).lstat()
        assert (one.st_ino == other.st_ino) == (not stat.S_ISDIR(one.st_mode)), path
    seen = (new / "a/b").stat()
    assert (stat.S_IMODE(seen.st_mode), seen.st_mtime_ns) == (0o750, 7_000_000_001)


def test_what_is_left_out_is_not_there_nor_what_lies_below(old: Path) -> None:
    new, linked = made(old, "top", "a/b", "link", "c/three", "a/on", "nowhere")
    assert names(new) == names(old) - {"top", "a/b", "a/b/two", "link", "c/three"}
    assert linked == 3


def test_a_tree_that_is_not_new_stays_as_it_is(old: Path) -> None:
    (old.parent / "new/top").write_text("mine")
    with pytest.raises(Untrusted, match="not empty"):
        made(old)
    assert names(old.parent / "new") == {"top"}
    assert (old.parent / "new/top").read_text() == "mine"


@pytest.mark.parametrize("refused", [errno.EPERM, errno.ENOENT])
def test_what_cannot_be_linked_is_left_to_the_copy(old: Path, monkeypatch: pytest.MonkeyPatch, refused: int) -> None:
    link = os.link

    def some(name: str, *rest: object, **more: object) -> None:
        if name == "two":
            raise OSError(refused, os.strerror(refused))
        link(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", some)
    new, linked = made(old)
    assert names(new) == names(old) - {"a/b/two"}
    assert linked == 6


def test_names_of_ours_are_linked_from_no_folder(old: Path) -> None:
    """An older version copied them; a point must not hold them."""
    os.mkfifo(old / "a/reserved")
    (old / "c/reserved").mkdir()
    (old / "c/reserved/in").write_text("x")
    before = names(old) - {"a/reserved", "c/reserved", "c/reserved/in"}
    new, _ = made(old, reserved=("reserved",))
    assert names(new) == before


def test_a_full_disk_ends_it_with_all_closed(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        (old / f"c/folder{number}/deep").mkdir(parents=True)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    mkdir = os.mkdir
    monkeypatch.setattr(
        os, "mkdir", lambda name, *rest, **more: full() if name == "deep" else mkdir(name, *rest, **more)
    )
    with pytest.raises(OSError, match="No space left"):
        made(old)


def test_a_request_to_stop_ends_it_early(old: Path) -> None:
    new, _ = made(old, stops=lambda: True)
    assert names(new) == {"top", "link"}


def test_each_thousand_entries_tell_how_many_are_linked(old: Path) -> None:
    """In one folder or in several; entries that are not linked count as seen, so that a tree of them is not silent either."""
    for number in range(2500):
        (old / f"c/{number}").touch()
    for folder in range(500):
        (old / f"a/{folder}").mkdir()
        (old / f"a/{folder}/in").touch()
    told = list[int]()
    _, linked = made(old, tells=told.append)
    assert (len(told), told) == (3, sorted(told)), told
    assert told[-1] <= linked == 3007
    again = list[int]()
    assert made(old, over=True, tells=again.append)[1] == 0
    assert again == [0, 0, 0]


def test_folders_too_deep_are_left_to_the_copy(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linked_tree, "_DEEPEST", 1)
    new, _ = made(old)
    assert names(new) == names(old) - {"a/b", "a/b/two"}


def test_a_folder_that_is_a_link_by_now_is_not_entered(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mkdir = os.mkdir

    def exchanged(name: str, *rest: object, **more: object) -> None:
        mkdir(name, *rest, **more)  # type: ignore[arg-type]
        if name == "a":
            os.rmdir(old.parent / "new/a")
            (old.parent / "new/a").symlink_to(old.parent / "outside")

    monkeypatch.setattr(os, "mkdir", exchanged)
    with pytest.raises(OSError, match=r"Too many levels|Not a directory"):
        made(old)
    assert names(old.parent / "outside") == {"secret"}


def test_all_names_of_a_file_are_found(old: Path) -> None:
    for name in ("a/b/again", "c/again"):
        os.link(old / "top", old / name)
    os.link(old / "c/three", old / "other")
    os.link(old / "a/one", old.parent / "outside/name")
    with Folder(str(old)) as source:
        assert find_names_of(source, ["c/again", "gone", "link/secret"]) == {"top", "a/b/again", "c/again"}
        assert find_names_of(source, []) == set()
        assert find_names_of(source, ["a/one"]) == {"a/one"}


@pytest.mark.parametrize("waits", [0, 1])
def test_helpers_link_where_the_first_thread_waits_for_a_disk(
    old: Path, monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    """A folder of 20 others, so that there is something left to do once the first ones took long."""
    for number in range(20):
        (old / f"many/{number}").mkdir(parents=True)
        (old / f"many/{number}/file").touch()
    begun: list[object] = []

    class Helper(Thread):
        def start(self) -> None:
            begun.append(self)
            super().start()

    counts = itertools.count(step=1000 * waits)
    monkeypatch.setattr(linked_tree, "_count_waits", lambda: next(counts))
    monkeypatch.setattr(linked_tree, "Thread", Helper)
    new, linked = made(old)
    assert (names(new), linked) == (names(old), 27)
    assert len(begun) == (linked_tree._HELPERS if waits else 0)
