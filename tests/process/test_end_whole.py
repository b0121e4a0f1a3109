"""A program that is ended in the middle of its list, such as where memory is short, leaves no list that passes for whole."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.script_commands import separate_files_command, survey_destination_command
from orchestrator.verify.fake_super import stored_command
from orchestrator.verify.source import attributes_command, source_command


def commands(tree: Location) -> dict[str, Command]:
    return {
        "attributes": attributes_command(tree, whole=True),
        "source": source_command(SourceTree(root=tree), one_filesystem=True, attributes=True),
        "stored": stored_command(tree),
        "separate": separate_files_command(tree, whole=True),
        "destination": survey_destination_command(tree),
    }


LISTS = [
    (name, program)
    for name, programs in {
        "attributes": "find getfattr", "source": "find getfattr", "stored": "find getfattr", "separate": "find", "destination": "find",
    }.items()
    for program in programs.split()
]  # fmt: skip


def run(command: Command, programs: Path) -> subprocess.CompletedProcess[bytes]:
    path = f"{programs}:{os.environ['PATH']}"
    return subprocess.run(command.argv, capture_output=True, check=False, stdin=subprocess.DEVNULL, env={"PATH": path})


@pytest.mark.parametrize(("name", "program"), LISTS)
def test_what_was_ended_in_the_middle_is_no_list(name: str, program: str, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("x")
    command = commands(Location(path=str(tree)))[name]
    assert (well := run(command, tmp_path)).returncode == 0, well
    (tmp_path / program).write_text(f'#!/bin/sh\n"$(command -pv {program})" "$@"\nkill -9 $$\n')
    (tmp_path / program).chmod(0o755)
    assert (cut := run(command, tmp_path)).returncode != 0, cut


def test_a_destination_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "find").write_text('#!/bin/sh\necho "find: ‘$1’: Permission denied" >&2\nexit 1\n')
    (tmp_path / "find").chmod(0o755)
    seen = run(survey_destination_command(Location(path=str(tmp_path))), tmp_path)
    assert (seen.returncode != 0, b"Permission denied" in seen.stderr) == (True, True), seen
