"""Commands that write several files: killed before any change and said again, they go on; nothing stays half."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.whole.house import House

ROOT = Path(__file__).parents[2]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZlcnJ5ZmVycnlmZXJyeWZlcnJ5ZmVycnlmZXJyeWZl ann@nas"
RSNAPSHOT = "config_version\t1.2\nsnapshot_root\t/backup/\nretain\tdaily\t7\nbackup\t/srv/photos/\tlocal/\nbackup\t/etc/\tlocal/\n"
OURS = ["--config", "config", "--state", "state"]


def cut_everywhere(folder: Path, *command: str) -> list[tuple[int, int, list[str], str]]:
    """List how the command ended that was killed before each of its changes and said again; without those that ended as if nothing was."""
    asked = json.dumps({"folder": str(folder), "command": [*OURS, *command]})
    ended = subprocess.run(
        [sys.executable, "-m", "tests.whole.cut_writes"], input=asked, capture_output=True, text=True, cwd=ROOT
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert len(told) > 5, "it was hardly killed anywhere"
    return [cut for cut in told if cut[1] or cut[2]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def test_an_import_goes_on(folder: Path) -> None:
    (folder / "rsnapshot.conf").write_text(RSNAPSHOT)
    found = cut_everywhere(folder, "import", "rsnapshot", "rsnapshot.conf", "--to", "config")
    assert [cut for cut in found if cut[2]] == []
    assert len(found) <= 1, "said again, it names what is there where all of it is"


def test_a_first_configuration_goes_on(folder: Path) -> None:
    found = cut_everywhere(folder, "init", "/srv/photos", "/backup")
    assert [cut for cut in found if cut[2]] == []
    assert len(found) <= 1, "said again, it names the job where all of it is there"


def test_a_gate_is_set_up(folder: Path) -> None:
    (folder / "keys").write_text("ssh-ed25519 AAAAB other\n")
    (folder / "keys").chmod(0o600)
    assert cut_everywhere(folder, "setup", "gate", "nas", "--reads", "/srv", "--key", KEY, "--into", "keys") == []


def test_a_takeover_goes_on(tmp_path: Path, folder: Path) -> None:
    house = House(tmp_path / "lost")
    house.write("a", "a")
    house.job()
    assert house.run().outcome == "done"
    assert cut_everywhere(folder, "restore", "bootstrap", str(house.target)) == []
