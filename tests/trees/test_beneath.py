"""The door into others' folders: nothing follows a link, waits for a pipe, or leaves the folder."""

import os
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.trees.beneath import Folder, Untrusted


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with what an enemy puts in it, beside a file that must stay as it is."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "real").mkdir()
    (inside / "real" / "file").write_bytes(b"ours")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_bytes(b"theirs")
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "file-link").symlink_to(tmp_path / "outside" / "file")
    os.mkfifo(inside / "pipe")
    return inside


def test_what_is_real_is_read(tree: Path) -> None:
    with Folder(str(tree)) as folder, folder.enter("real") as real:
        assert real.read_file("file", limit=10) == b"ours"
        assert folder.read_file(b"real/file", limit=4) == b"ours"
        assert folder.status("real/file").st_size == 4


@pytest.mark.parametrize(
    "name", ["link/file", "file-link", "../outside/file", "real/../../outside/file", "/etc/passwd", "pipe"]
)
def test_what_leads_outside_is_refused(tree: Path, name: str) -> None:
    with Folder(str(tree)) as folder, pytest.raises(Untrusted):
        folder.read_file(name, limit=10)


def test_the_folders_own_path_may_hold_a_link(tree: Path) -> None:
    with Folder(str(tree / "link")) as folder:
        assert folder.read_file("file", limit=10) == b"theirs"


def test_a_pipe_is_not_waited_for(tree: Path) -> None:
    ended = threading.Event()

    def read() -> None:
        with Folder(str(tree)) as folder, pytest.raises(Untrusted):
            folder.read_file("pipe", limit=10)
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    assert ended.wait(10)


def test_what_is_too_large_is_refused(tree: Path) -> None:
    with Folder(str(tree)) as folder, pytest.raises(Untrusted, match="larger than 3 bytes"):
        folder.read_file("real/file", limit=3)


def test_a_link_is_replaced_and_never_written_through(tree: Path) -> None:
    with Folder(str(tree)) as folder:
        folder.write_file("file-link", b"new")
        folder.write_file("pipe", b"new")
    assert (tree.parent / "outside" / "file").read_bytes() == b"theirs"
    assert not (tree / "file-link").is_symlink()
    assert (tree / "pipe").read_bytes() == b"new"
    assert stat.S_IMODE((tree / "pipe").stat().st_mode) == 0o600
    assert not list(tree.glob(".*.new"))


def test_a_write_that_fails_leaves_nothing(tree: Path) -> None:
    with Folder(str(tree)) as folder, pytest.raises(OSError, match="real"):
        folder.write_file("real", b"a folder stands there")
    assert not list(tree.glob(".*.new"))


def test_names_are_single_where_something_is_made(tree: Path) -> None:
    with Folder(str(tree)) as folder:
        for act in (lambda: folder.write_file("real/new", b""), lambda: folder.make_folder("real/new")):
            with pytest.raises(Untrusted):
                act()


def test_a_folder_is_made_private_once(tree: Path) -> None:
    (tree / "real").chmod(0o755)
    with Folder(str(tree)) as folder, folder.make_folder("real") as real:
        assert real.make_private()
        assert not real.make_private()
    assert stat.S_IMODE((tree / "real").stat().st_mode) == 0o700
    with Folder(str(tree)) as folder, pytest.raises(Untrusted):
        folder.make_folder("link")


@pytest.mark.root
def test_a_folder_of_another_user_is_not_ours(tree: Path) -> None:
    os.chown(tree / "real", 65534, 65534)
    with Folder(str(tree)) as folder, folder.enter("real") as real, pytest.raises(Untrusted, match="65534"):
        real.make_private()


def test_renames_and_removals_stay_inside(tree: Path) -> None:
    with Folder(str(tree)) as folder:
        folder.rename("real/file", "real/other")
        with pytest.raises(Untrusted):
            folder.rename("real/other", "link/other")
        with pytest.raises(Untrusted):
            folder.remove_file("link/file")
        folder.remove_file("file-link")
    assert (tree / "real" / "other").exists()
    assert (tree.parent / "outside" / "file").exists()


def test_a_folder_that_is_swapped_for_a_link_is_never_followed(tree: Path) -> None:
    """A thread swaps `real` with a link as fast as it can; each read is ours or refused, never theirs."""
    swapping = threading.Event()

    def swap() -> None:
        away, link = tree / "away", tree / "real"
        while not swapping.is_set():
            link.rename(away)
            link.symlink_to(tree.parent / "outside")
            link.unlink()
            away.rename(link)

    thread = threading.Thread(target=swap)
    thread.start()
    found = set()
    with Folder(str(tree)) as folder:
        for _ in range(3000):
            try:
                found.add(folder.read_file("real/file", limit=10))
            except OSError:
                found.add(b"")
        swapping.set()
        thread.join()
        # Whoever was not lucky once meanwhile reads it now.
        assert folder.read_file("real/file", limit=10) == b"ours"
    assert found <= {b"ours", b""}


def test_an_error_names_the_whole_path(tmp_path: Path) -> None:
    """The system knows the last part alone, where a folder is open; a person needs to know in which one."""
    (tmp_path / "gone").mkdir()
    with Folder.at_place(str(tmp_path / "gone")) as folder:
        (tmp_path / "gone").rmdir()
        deeds: list[Callable[[], object]] = [
            lambda: folder.write_file("unit", b""), lambda: folder.create_file("unit", b""), lambda: folder.make_folder("unit"),
            lambda: folder.status("unit"), lambda: folder.remove_file("unit"), lambda: folder.rename("unit", "other"),
            lambda: folder.read_file("unit", limit=1), lambda: folder.enter("unit"),
        ]  # fmt: skip
        for deed in deeds:
            with pytest.raises(FileNotFoundError) as told:
                deed()
            assert str(told.value.filename).startswith(f"{tmp_path}/gone/"), told.value


@pytest.mark.root
def test_what_is_written_by_an_open_folder_lies_in_that_very_folder(tmp_path: Path) -> None:
    """The owner of a folder above exchanges ours after the look; a program that we start writes by the same path."""
    hers, away = tmp_path / "hers", tmp_path / "away"
    for folder in (hers, tmp_path / "decoy"):
        (folder / ".poolferry").mkdir(parents=True)
    with Folder.ours_at(str(hers / ".poolferry")) as ours:
        hers.rename(away)
        hers.symlink_to(tmp_path / "decoy")
        Path(ours.held, "manifest.gz").write_text("ours")
        subprocess.run(["touch", f"{ours.held}/other"], check=True)
        ours.rename("other", "third")
    assert {path.name for path in (away / ".poolferry").iterdir()} == {"manifest.gz", "third"}
    assert list((tmp_path / "decoy/.poolferry").iterdir()) == []
    os.chown(away / ".poolferry", 12345, 12345)
    with pytest.raises(Untrusted, match="belongs to another user"):
        Folder.ours_at(str(away / ".poolferry"))
    assert len(list((away / ".poolferry").iterdir())) == 2
