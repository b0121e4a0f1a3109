"""Clones where the filesystem makes none, and of what is no file: nothing is left behind."""

import tempfile
from pathlib import Path

import pytest

from orchestrator.trees.beneath import Folder
from orchestrator.trees.file_clone import clone_file
from orchestrator.trees.large_copies import ClonesRefused


def test_what_cannot_be_cloned_leaves_nothing_behind() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        root = Path(memory)
        for place in ("old/in", "old/other", "new/in"):
            (root / place).mkdir(parents=True)
        for name in ("in/file", "other/file"):
            (root / "old" / name).write_bytes(b"content")
        (root / "old/in/link").symlink_to("file")
        with Folder(str(root / "old")) as old, Folder(str(root / "new")) as new:
            with pytest.raises(ClonesRefused):
                clone_file(old, new, b"in/file", partial="part")
            for path in (b"in/link", b"in/gone", b"other/file"):
                assert clone_file(old, new, path, partial="part") is False
        assert list((root / "new").rglob("*")) == [root / "new/in"]
