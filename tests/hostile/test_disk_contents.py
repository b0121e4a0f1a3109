"""A disk of the set that somebody had meanwhile: whatever lies in it, nothing of this machine is written, and no visit hangs."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.whole.house import facts
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=missing() or "none"), pytest.mark.timeout(300)]


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Something else in the place of a file or a folder of ours, or where one will be."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)


PLANTS = (
    ".poolferry/work", ".poolferry/target.json", ".poolferry/target.json.new", ".poolferry/lock", ".poolferry/trash",
    ".poolferry/RECOVERY.md", ".poolferry/RECOVERY.md.new", ".poolferry/configuration.tar.new", ".poolferry/history.sqlite",
    ".poolferry/history.sqlite.new", ".poolferry/latest", ".poolferry/partial", ".poolferry", "points", "latest",
)  # fmt: skip


# What is read or written by its name: a device, or a file without an end, in its place.
FILES = (".poolferry/target.json", ".poolferry/lock", ".poolferry/RECOVERY.md", ".poolferry/history.sqlite", "latest")


def endless(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 40)


NAMES = ("link to a folder", "link to a file", "fifo")


@pytest.mark.parametrize(
    "kind",
    ["one after the other", *(pytest.param(name, marks=pytest.mark.long) for name in NAMES), "device", "endless file"],
)
@pytest.mark.sample(1)
def test_what_is_planted_on_a_disk_leads_nowhere(drawer: LoopDisks, tmp_path: Path, kind: str) -> None:
    victim = tmp_path / "theirs"
    victim.mkdir()
    for name in ("passwd", "RECOVERY.md", "a.txt", "target.json"):
        (victim / name).write_text("root's own\n")
    before = facts(victim)
    drawer.enrolled("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    behind = tmp_path / "behind"
    behind.mkdir(exist_ok=True)
    for number, plant in enumerate(FILES if kind in ("device", "endless file") else PLANTS):
        subprocess.run(["mount", drawer.loops["red"], str(behind)], check=True)
        (root,) = {path.parent for path in behind.rglob(".poolferry")} or {behind / "photos"}
        saved = tmp_path / f"saved-{number}"
        subprocess.run(["cp", "-a", str(root), str(saved)], check=True)
        make: dict[str, Callable[[Path], object]] = {
            "link to a folder": lambda path: path.symlink_to(victim),
            "link to a file": lambda path: path.symlink_to(victim / "passwd"),
            "fifo": os.mkfifo,
            "device": lambda path: os.mknod(path, 0o020666, os.makedev(1, 5)),  # zeros without an end
            "endless file": endless,
        }
        replace(root / plant, make[kind] if kind in make else make[NAMES[number % len(NAMES)]])
        subprocess.run(["umount", str(behind)], check=True)
        (drawer.source / "a.txt").write_text(f"other words {number}\n")
        drawer.pull("red")
        drawer.plug("red")
        scanned = drawer.scan()
        assert "red" in scanned["visits"], (plant, scanned)
        visit = scanned["visits"]["red"]
        if visit["ending"] == "busy":  # somebody still held the disk; it must be as the hint says, and end that way
            assert "poolferry disks eject" in visit["hint"], visit
            assert drawer.run("disks", "eject", drawer.full("red")).code == 0, visit
        else:
            assert visit["ending"] in ("done", "incomplete", "refused", "failed"), (plant, visit)
        assert facts(victim) == before, (plant, visit)
        assert not drawer.mounted("red"), plant
        subprocess.run(["mount", drawer.loops["red"], str(behind)], check=True)
        shutil.rmtree(root)
        subprocess.run(["cp", "-a", str(saved), str(root)], check=True)
        subprocess.run(["umount", str(behind)], check=True)
