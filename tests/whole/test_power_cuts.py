"""The power fails right after a command said that it had ended well: what it said is so when the machine is on again.

Configuration, state and copies lie on a filesystem each, so that no journal keeps them in step. A power cut is a copy of the disk as it is
at that instant, while the kernel still holds what it would write by itself some seconds later; that copy is what is mounted afterwards.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.ferry import Ended
from tests.history.records import older_history
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = [pytest.mark.root, pytest.mark.namespace]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZlcnJ5ZmVycnlmZXJyeWZlcnJ5ZmVycnlmZXJyeWZl ann@nas"
# What is locked, or made anew before it is used, need not last; a history is looked at by what it says.
PASSING = ("history.sqlite", ".lock", "/locks/", "/cache/", "/notes/", "/running/", "/lost+found")


class CutDisk:
    """A filesystem at a folder, of which a power cut keeps what it had written to its disk."""

    def __init__(self, folder: Path, images: Path) -> None:
        self.folder, self._image = folder, images / f"{folder.name}.img"
        folder.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as file:
            file.truncate(24 << 20)
        _did("mkfs.ext4", "-q", str(self._image))
        self._mount()

    def cut(self) -> None:
        left = self._image.with_suffix(".left")
        shutil.copyfile(self._image, left)
        self.close()
        left.rename(self._image)
        self._mount()

    def close(self) -> None:
        _did("umount", "-l", str(self.folder))

    def files(self) -> dict[str, str]:
        """Each file that has to last, with a digest of its content."""
        found = (path for path in sorted(self.folder.rglob("*")) if path.is_file() and not path.is_symlink())
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in found
            if not any(part in str(path) for part in PASSING)
        }

    def _mount(self) -> None:
        # What nobody synced is not written within the test.
        _did("mount", "-o", "loop,commit=300", str(self._image), str(self.folder))


class Flickering:
    """A configuration with a drawer of disks, on a machine whose power fails after each command."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.root = folder
        places = ("etc", "state", "copies", "system")
        self.disks = [CutDisk(folder / name, folder.parent) for name in places]
        for disk in self.disks:
            stack.callback(disk.close)
        self.drawer = LoopDisks(folder)
        stack.callback(self.drawer.close)

    def does(self, *command: str) -> Ended:
        """A command that ends well; then the power fails. Raises: AssertionError for files that are lost or not the same."""
        _did("sync", "-f", *(str(disk.folder) for disk in self.disks))
        ended = self.drawer.run(*command)
        assert ended.code == 0, (command, ended)
        before = self._files()
        for disk in self.disks:
            disk.cut()
        after = self._files()
        assert after == before, (command, sorted(dict(before.items() ^ after.items())))
        return ended

    def says(self, *command: str) -> dict[str, Any]:
        ended = self.drawer.run(*command, "--json")
        assert ended.code == 0, (command, ended)
        return ended.value

    def _files(self) -> dict[str, str]:
        return {path: digest for disk in self.disks for path, digest in disk.files().items()}


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Flickering]:
    if why := missing():
        pytest.skip(why)
    with ExitStack() as stack:
        yield Flickering(tmp_path / "machine", stack)


def starts(here: Flickering) -> None:
    """A first configuration, and its first copy."""
    for path in (here.root / "etc").rglob("*.toml"):
        path.unlink()
    here.does("init", str(here.drawer.source), str(here.root / "copies/source"))
    here.says("check")
    here.does("run", "source")
    assert here.says("run", "source")["outcome"] == "nothing-to-do"
    here.says("verify", "source")
    here.does("init", str(here.root / "system"), str(here.root / "copies/system"))
    assert {job["job"] for job in here.says("status")["jobs"]} == {"source", "system"}


def sets_up(here: Flickering) -> None:
    """Install units, pages and a gate, and take them away again."""
    system = here.root / "system"
    (system / "keys").touch(mode=0o600)
    here.does("setup", "systemd", "--into", f"{system}/units", "--rules-into", f"{system}/rules")
    here.does("setup", "web", "--into", f"{system}/units", "--users-into", f"{system}/users")
    here.does("setup", "gate", "nas", "--reads", str(here.drawer.source), "--key", KEY, "--into", f"{system}/keys")
    here.does("setup", "man", "--into", f"{system}/man")
    assert len((system / "keys").read_text().splitlines()) == 1
    here.does("setup", "gate", "nas", "--remove", "--into", f"{system}/keys")
    here.does("setup", "man", "--remove", "--into", f"{system}/man")
    here.does("setup", "systemd", "--remove", "--into", f"{system}/units", "--rules-into", f"{system}/rules")


def renames(here: Flickering) -> None:
    """History and configuration agree on a job's name."""
    (here.root / "etc/jobs/photos.toml").unlink()
    here.drawer.ferry.job("mail")
    (here.root / "etc/poolferry.toml").write_text(
        '[notice.admin]\nkind = "ping"\nurl = "https://example.org/{job}"\njobs = ["mail"]\n'
    )
    here.does("run", "mail")
    here.does("rename", "mail", "letters")
    assert here.says("run", "letters")["outcome"] == "nothing-to-do"
    assert len(here.says("history", "letters")["runs"]) == 2


def keeps_disks(here: Flickering) -> None:
    """A disk is the same in targets.toml, in the history and by its own marker."""
    drawer = here.drawer
    red = drawer.full("red")
    device = drawer.blank("red")
    here.does("disks", "enroll", device, "--set", "offsite", "--name", red, "--inner")
    here.does("disks", "scan")
    here.does("disks", "locate", red, "the bank")
    here.does("disks", "retire", red)
    here.does("disks", "readopt", red)
    seen = here.says("disks", "show", red)
    assert "the bank" in [one["place"] for one in seen["places"]], seen


def upgrades(here: Flickering) -> None:
    """The first command of a new version brings an older history to its format."""
    path = here.root / "state/history.sqlite"
    path.write_bytes(older_history(here.root / "older.sqlite"))
    path.chmod(0o600)
    here.does("history")
    here.says("status")


@pytest.mark.parametrize("story", [starts, sets_up, renames, keeps_disks, upgrades], ids=lambda story: story.__name__)
@pytest.mark.sample(3)
def test_what_a_command_said_is_so_after_the_power_failed(
    here: Flickering, story: Callable[[Flickering], None]
) -> None:
    story(here)


def _did(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True)
