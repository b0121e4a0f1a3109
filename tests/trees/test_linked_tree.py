"""A tree of hard links to another one: all kinds of entries, nothing that is left out, no link followed, no descriptor left open."""

import errno
import os
import signal
import stat
import threading
from pathlib import Path

import pytest

from orchestrator.process.forks import Answer, ForkedHelpers
from orchestrator.trees import linked_tree
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.linked_tree import LinkedTree, find_names_of

# Python 3.12 and later warn of any other thread, such as other tests have left.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
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
    asked = iter((False, True))
    new, _ = made(old, stops=lambda: next(asked))
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


def many_folders(old: Path) -> None:
    """Make more entries than one process links alone, in folders of several depths, one of them large."""
    for number in range(60):
        (old / f"many/{number}/deep").mkdir(parents=True)
        for name in ("one", "two", os.fsdecode(ODD)):
            (old / f"many/{number}/{name}").touch()
            (old / f"many/{number}/deep/{name}").touch()
        os.utime(old / f"many/{number}/deep", ns=(5, number))
        os.utime(old / f"many/{number}", ns=(5, 1000 + number))
    (old / "many/large").mkdir()
    for number in range(1500):
        (old / f"many/large/{number}").touch()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> list[ForkedHelpers]:
    """Have helpers begin after a few entries; return those that were started."""
    begun: list[ForkedHelpers] = []
    start = ForkedHelpers.start

    def noted(answer: Answer) -> ForkedHelpers | None:
        found = start(answer)
        begun.extend([found] if found else [])
        return found

    monkeypatch.setattr(ForkedHelpers, "start", noted)
    monkeypatch.setattr(linked_tree, "_MANY", 3)
    monkeypatch.setattr(
        threading, "active_count", lambda: 1
    )  # others are left by other tests, and hold nothing that a helper needs
    return begun


@pytest.mark.parametrize("over", [False, True])
def test_helpers_link_the_same_as_one_process(old: Path, soon: list[ForkedHelpers], *, over: bool) -> None:
    many_folders(old)
    told = list[int]()
    if over:
        (old.parent / "new/many/7").mkdir(parents=True)
        os.utime(old.parent / "new/many/7", ns=(5, 70))
    new, linked = made(old, over=over, tells=told.append, start=ForkedHelpers.start)
    assert len(soon) == 1
    assert names(new) == names(old)
    assert linked == 7 + 60 * 6 + 1500
    for path in old.rglob("*"):
        one, other = path.lstat(), (new / path.relative_to(old)).lstat()
        folder = stat.S_ISDIR(one.st_mode)
        assert (one.st_ino == other.st_ino) != folder, path
        if folder and not (over and path.name in ("7", "many")):
            assert (one.st_mtime_ns, one.st_mode) == (other.st_mtime_ns, other.st_mode), path
    if over:
        assert (new / "many/7").stat().st_mtime_ns == 70, "what was there keeps its time"
    assert told == sorted(told)
    assert told


def test_helpers_leave_out_what_one_process_does(old: Path, soon: list[ForkedHelpers]) -> None:
    many_folders(old)
    left = {"many/3", "many/5/deep/one", "many/large/7", "a/b/two", "c/three"}
    new, _ = made(old, *left, reserved=("two",), start=ForkedHelpers.start)
    expected = {
        name for name in names(old) if name not in left and not name.startswith("many/3/") and not name.endswith("/two")
    }
    assert (len(soon), names(new)) == (1, expected)


def test_the_error_of_a_helper_ends_it_and_no_process_stays(
    old: Path, soon: list[ForkedHelpers], monkeypatch: pytest.MonkeyPatch
) -> None:
    many_folders(old)
    mkdir, fork, helpers = os.mkdir, os.fork, list[int]()

    def noted() -> int:
        helpers.append(fork())
        return helpers[-1]

    monkeypatch.setattr(os, "fork", noted)

    def full(name: str, *rest: object, **more: object) -> None:
        if name == "deep":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)
        mkdir(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", full)
    with pytest.raises(OSError, match="No space left") as caught:
        made(old, start=ForkedHelpers.start)
    assert (len(soon), caught.value.errno, caught.value.filename) == (1, errno.ENOSPC, "deep")
    assert helpers
    for helper in helpers:
        with pytest.raises(ChildProcessError):
            os.waitpid(helper, os.WNOHANG)


def test_a_request_to_stop_ends_helpers_in_the_midst_of_a_folder(
    old: Path, soon: list[ForkedHelpers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A helper that hangs, as on a disk that does not answer, is not waited for."""
    many_folders(old)
    link, ours = os.link, os.getpid()

    def hangs(name: str, *rest: object, **more: object) -> None:
        if os.getpid() != ours:
            signal.pause()
        link(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", hangs)
    new, _ = made(old, start=ForkedHelpers.start, stops=lambda: bool(soon) and soon[0].busy)
    assert (len(soon), names(new) < names(old)) == (1, True)


def test_another_thread_keeps_it_to_one_process(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork takes no other thread along, but what that holds."""
    many_folders(old)
    monkeypatch.setattr(linked_tree, "_MANY", 3)
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    try:
        began: list[ForkedHelpers | None] = []
        new, _ = made(old, start=lambda answer: began.append(ForkedHelpers.start(answer)))
    finally:
        ended.set()
        other.join()
    assert (began, names(new)) == ([None], names(old))
