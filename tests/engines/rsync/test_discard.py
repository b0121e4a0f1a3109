"""A file is discarded by its name; a folder in its place only where nobody else puts one."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.rsync.model import WORK
from orchestrator.engines.rsync.script_commands import discard_command


@pytest.mark.parametrize(("tree", "stays"), [(WORK, False), ("mirror", True)])
def test_a_folder_in_the_place_of_a_file_goes_from_a_work_tree_alone(tmp_path: Path, tree: str, stays: bool) -> None:
    root = tmp_path / tree
    (root / "hers/odd/below").mkdir(parents=True)
    (root / "hers/file").write_text("x")
    command = discard_command(Location(path=str(root)), (b"hers/file", b"hers/odd"))
    ended = subprocess.run(command.argv, cwd=tmp_path, capture_output=True, check=False)
    assert ((root / "hers/odd/below").exists(), ended.returncode != 0) == (stays, stays), ended
    assert not (root / "hers/file").exists(), ended
