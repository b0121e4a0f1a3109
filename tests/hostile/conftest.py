"""A house for each test, with a folder of root's that no attack may touch, and a user who would like to."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.whole.house import House, facts
from tests.whole.loop_disks import LoopDisks

STRANGER = 65534
AS_STRANGER = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups", "--")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """An empty house of its own, whose folders every user may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and not folder.stat().st_mode & 0o001:
            folder.chmod(0o711)
    made = House(tmp_path)
    yield made
    made.close()


@pytest.fixture
def drawer(tmp_path: Path) -> Iterator[LoopDisks]:
    """An empty drawer of its own, let go of at the end."""
    made = LoopDisks(tmp_path)
    yield made
    made.close()


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of root's; after the test all in it must be as it was."""
    folder = tmp_path / "etc"
    folder.mkdir()
    (folder / "passwd").write_text("root's own\n")
    before = facts(folder)
    yield folder
    assert facts(folder) == before, "a file of root's was touched"


def tries(*argv: str | Path) -> bool:
    """Return whether the stranger can do it."""
    words: Sequence[str] = [*AS_STRANGER, *map(str, argv)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0
