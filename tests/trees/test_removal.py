"""The removal of a tree: however deep it is, nothing outside of it goes, and what is mounted in it stays."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.removal import count_bytes, empty_folder


def emptied(path: Path, *stops: bool) -> None:
    said = iter(stops)
    with Folder(str(path)) as folder:
        empty_folder(folder, stops=lambda: next(said, False))


def test_a_tree_that_is_deeper_than_a_process_has_descriptors(tmp_path: Path) -> None:
    trash, outside = tmp_path / "trash", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("stays")
    trash.mkdir()
    at = os.open(trash, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.symlink(outside, "out", dir_fd=at)
    os.close(at)
    os.link(outside / "file", trash / "shared")
    os.mkfifo(trash / "pipe")
    (trash / "out").symlink_to(outside)
    emptied(trash)
    assert list(trash.iterdir()) == []
    assert (outside / "file").read_text() == "stays"


def test_a_stop_leaves_the_rest_for_the_next_call(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).mkdir()
    emptied(tmp_path, False, False, True)
    assert len(list(tmp_path.iterdir())) == 3
    emptied(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.namespace
@pytest.mark.parametrize("below", ["", "deep/er"])
def test_what_is_mounted_in_it_stays(tmp_path: Path, below: str) -> None:
    trash = tmp_path / "trash"
    place = trash / "point" / below
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
    try:
        (place / "file").write_text("stays")
        with pytest.raises(Untrusted, match="is a mount"):
            emptied(trash)
        (found,) = trash.rglob("file")
        assert found.read_text() == "stays"
    finally:
        subprocess.run(["umount", "-l", str(next(trash.rglob("file")).parent)], check=True)


def test_the_bytes_of_a_tree_and_those_that_came(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for tree in (old, new):
        (tree / "deep").mkdir(parents=True)
    (old / "deep/same").write_bytes(b"12345")
    os.link(old / "deep/same", new / "deep/same")
    (old / "changed").write_bytes(b"123")
    (new / "changed").write_bytes(b"1234")
    (new / "deep/new").write_bytes(b"12")
    (new / "out").symlink_to(old)
    (old / "kind").mkdir()
    (new / "kind").write_bytes(b"1")
    with Folder(str(old)) as before, Folder(str(new)) as now:
        assert count_bytes(now, before) == (12, 7)
        assert count_bytes(before, None) == (8, 8)
