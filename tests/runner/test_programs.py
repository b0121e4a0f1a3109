"""Programs that the owner names: where they are searched, and why one cannot be run."""

import os
from pathlib import Path

import pytest

from orchestrator.runner.hooks import explain_unusable, find_program


def test_the_owners_own_hook_is_meant_even_when_it_cannot_run(tmp_path: Path) -> None:
    own, shipped = tmp_path / "own", tmp_path / "shipped"
    for folder in (own, shipped):
        folder.mkdir()
        (folder / "mail").write_text("#!/bin/sh\n")
    (shipped / "mail").chmod(0o755)
    folders = (str(own), str(shipped))
    assert find_program("mail", folders) == str(own / "mail")
    assert explain_unusable(str(own / "mail"))[1].endswith(f"chmod +x {own}/mail")
    (own / "mail").unlink()
    assert find_program("mail", folders) == str(shipped / "mail")
    assert explain_unusable(str(shipped / "mail")) == ("", "")
    assert find_program("sh", folders) == "sh"
    assert find_program("/bin/sh", folders) == "/bin/sh"


@pytest.mark.parametrize("what", ["missing", "link", "folder", "pipe", "unknown", "fine"])
def test_each_reason_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "hook"
    if what == "link":
        path.symlink_to("nothing")
    elif what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    word, words = {
        "missing": (str(path), "does not exist"),
        "link": (str(path), "is a link to a file that does not exist"),
        "folder": (str(path), "is not a file"),
        "pipe": (str(path), "is not a file"),
        "unknown": ("poolferry-no-such-program", "there is no program poolferry-no-such-program"),
        "fine": ("sh", ""),
    }[what]
    problem, expected = explain_unusable(word)
    assert words in problem
    assert bool(problem) == bool(expected) == (what != "fine")
