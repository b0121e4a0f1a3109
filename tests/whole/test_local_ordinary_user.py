"""A user who is not root: folders of others are named as missing, read-only folders are no hindrance."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.whole.house import CHECKOUT, House, Ran, facts

NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")

pytestmark = pytest.mark.root


@pytest.fixture
def house() -> Iterator[House]:
    """A house in which somebody else lives."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    home = House(folder)
    home.environment |= {"HOME": str(folder), "TMPDIR": str(folder)}
    home.python = _python(home)
    try:
        if not home.python:
            pytest.skip("no Python that other users may run has what it needs")
        yield home
    finally:
        shutil.rmtree(folder)


def _python(home: House) -> str:
    """A Python that the other user may run, with copies of all that we import; nothing when there is none.

    Why an environment of its own: a Python below /root is out of reach, and our workers start without PYTHONPATH. Why
    copies: the checkout may lie in a folder that is closed to other users.
    """
    ours = home.folder / "ours"
    leave_out = shutil.ignore_patterns("__pycache__", "mypy*", "ruff*", "pip*", "hypothesis*", "*.dist-info")
    caches = shutil.ignore_patterns("__pycache__")
    shutil.copytree(sysconfig.get_path("purelib"), ours, ignore=leave_out)
    shutil.copytree(CHECKOUT / "orchestrator", ours / "orchestrator", ignore=caches, dirs_exist_ok=True)
    home.environment |= {"PYTHONPATH": str(ours)}
    probe = "import os, sys, xxhash, orchestrator.cli; sys.exit(not os.access(sys.executable, os.X_OK))"
    for base in (sys.executable, "/usr/bin/python3"):
        made = home.folder / "venv"
        subprocess.run([base, "-m", "venv", "--clear", "--without-pip", str(made)], check=True)
        (packages,) = made.glob("lib/python*/site-packages")
        (packages / "ours.pth").write_text(f"{ours}\n")
        argv = [*AS_NOBODY, str(made / "bin/python"), "-c", probe]
        if not subprocess.run(argv, cwd="/", env=home.environment, capture_output=True).returncode:
            return str(made / "bin/python")
    return ""


def give(house: House, to: int = NOBODY) -> None:
    """Everything so far is the user's own."""
    for path in (house.folder, *house.folder.rglob("*")):
        os.chown(path, to, to, follow_symlinks=False)


def theirs(house: House, *arguments: str) -> Ran:
    """A command of that user."""
    return house.call(*arguments, before=AS_NOBODY)


def test_what_belongs_to_others_is_named(house: House) -> None:
    house.write("own/file", "x")
    house.job()
    give(house)
    house.write("closed/inside", "y")
    (house.source / "closed").chmod(0o700)
    house.write("own/secret", "z").chmod(0o600)
    ran = theirs(house, "run", "photos")
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    assert any("closed" in warning for warning in ran["warnings"])
    assert any("own/secret" in warning for warning in ran["warnings"])
    assert (house.point() / "own/file").read_text() == "x"
    verified = theirs(house, "verify", "photos")
    assert (verified.code, verified["reading"]["sound"]) == (0, True), verified
    assert verified["reading"]["counts"]["unproved"] >= 1


def test_a_folder_that_became_unreadable_loses_nothing_in_older_points(house: House) -> None:
    for number in range(10):
        house.write(f"open/{number}", "x")
    house.write("closed/file", "y")
    house.job()
    give(house)
    assert theirs(house, "run", "photos").outcome == "done"
    os.chown(house.source / "closed", 0, 0)
    (house.source / "closed").chmod(0o700)
    house.write("open/1", "changed")
    ran = theirs(house, "run", "photos")
    assert ran.outcome == "incomplete", ran
    assert any("closed" in warning for warning in ran["warnings"])
    assert (house.point(0) / "closed/file").read_text() == "y"
    for name in house.points():
        assert theirs(house, "verify", "photos", "--point", name).code == 0


def test_read_only_folders_are_copied_pruned_and_brought_back(house: House) -> None:
    house.write("read only/deep/file", "x")
    house.job(keep={"daily": 1})
    give(house)
    for folder in (house.source / "read only/deep", house.source / "read only", house.source):
        folder.chmod(0o555)
    ran = theirs(house, "run", "photos")
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    assert facts(house.point()) == facts(house.source)
    house.redate(house.points()[0], "2001-01-01T000000Z")
    (house.source / "read only/deep/file").write_text("changed")
    ran = theirs(house, "run", "photos")
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    assert len(house.points()) == 1, "the older point is removed"
    assert not (house.target / ".poolferry/trash").exists()
    back = house.folder / "back"
    assert theirs(house, "restore", "run", "photos", "--to", str(back)).outcome == "done"
    assert facts(back) == facts(house.source)


def test_device_nodes_that_only_root_makes_are_listed_and_all_else_comes_back(house: House) -> None:
    house.write("folder/file", "x")
    os.mknod(house.source / "null", 0o20666, os.makedev(1, 3))
    os.mkfifo(house.source / "fifo")
    assert house.run(house.job()).outcome == "done"
    give(house)
    to = house.folder / "back"
    ran = theirs(house, "restore", "run", "photos", "--to", str(to))
    assert (ran.code, ran.outcome, ran["evidence"]) == (5, "incomplete", ["null"]), ran
    assert sorted(os.listdir(to)) == ["fifo", "folder"], "whole, and without a marker"
    give(house, to=0)
    hinted = house.call("restore", "run", "photos", "--to", str(house.folder / "whole"))
    assert (hinted.code, ran["hint"]) == (0, "restore as root, where they are needed")
    assert (house.folder / "whole/null").is_char_device()
