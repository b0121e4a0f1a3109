"""An older point that was changed is made again what it was, where the newest holds the same: no access list, name or time is lost by that."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.whole.damage import rot
from tests.whole.house import House, facts


def fill(source: Path) -> None:
    """A tree with access lists, attributes, links, a pipe, and a file with names in two folders."""
    (source / "in/deep").mkdir(parents=True)
    for name in ("top", "in/one", "in/two", "in/deep/three"):
        (source / name).write_text(f"content of {name}")
    os.link(source / "in/deep/three", source / "in/again")
    os.symlink("nowhere", source / "in/link")
    os.mkfifo(source / "in/pipe")
    subprocess.run(["setfacl", "-m", "u:1234:rw", source / "in/one", source / "in/deep"], check=True)
    subprocess.run(["setfacl", "-d", "-m", "u:1234:rw", source / "in/deep"], check=True)
    os.setxattr(source / "in/one", "user.note", b"kept")


def _each(point: Path, change: Callable[[Path], object], *names: str) -> None:
    for name in names:
        change(point / name)


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


HARMS: dict[str, Callable[[Path], object]] = {
    "a file is gone": lambda point: (point / "in/one").unlink(),
    "a file at the top is gone": lambda point: (point / "top").unlink(),
    "a file is rotten": lambda point: rot(point / "in/one"),
    "an access list is gone": lambda point: subprocess.run(["setfacl", "-b", point / "in/one"], check=True),
    "an attribute is another": lambda point: os.setxattr(point / "in/one", "user.note", b"lost"),
    "one name of a file is gone": lambda point: (point / "in/again").unlink(),
    "links are gone": lambda point: _each(point, Path.unlink, "in/link", "in/pipe"),
    "a link in place of a file": lambda point: _replace(point / "in/two", lambda path: path.symlink_to("/etc/passwd")),
    "a file is another's name": lambda point: _replace(point / "in/two", lambda path: os.link(point / "in/one", path)),
    "a folder is gone": lambda point: shutil.rmtree(point / "in/deep"),
    "modes are others": lambda point: _each(point, lambda path: path.chmod(0o710), "", "in", "in/two"),
    "owners are others": lambda point: _each(point, lambda path: os.chown(path, 77, 77), "", "in", "in/two"),
    "times are others": lambda point: _each(
        point, lambda path: os.utime(path, ns=(0, 5)), "", "in", "in/two", "in/deep"
    ),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.sample(2)
def test_an_older_point_becomes_what_it_was(house: House, harm: str) -> None:
    fill(house.source)
    house.job()
    assert house.run().outcome == "done"
    house.write("in/new", "changes the time of its folder")
    house.write("new", "changes that of the top")
    assert house.run().outcome == "done"
    before = [facts(house.point(which)) for which in (0, 1)]
    HARMS[harm](house.point(0))
    first = house.points()[0]
    assert house.call("verify", "photos", "--point", first).code == 1
    house.write("in/newer", "another change")
    mended = house.run()
    assert (mended.outcome, mended["warnings"]) == ("done", []), mended
    assert [facts(house.point(which)) for which in (0, 1)] == before
    for point in house.points():
        assert house.call("verify", "photos", "--point", point).code == 0
    (job,) = house.call("status", "photos")["jobs"]
    assert job["state"] == "up", job


LINKED: dict[str, Callable[[Path], object]] = {
    "one name is gone": lambda point: (point / "in/again").unlink(),
    "one name is another file": lambda point: _replace(
        point / "in/again", lambda path: path.write_text("content of in/deep/three")
    ),
    "a folder with one name is gone": lambda point: shutil.rmtree(point / "in/deep"),
    "it is rotten": lambda point: rot(point / "in/again"),
}


@pytest.mark.parametrize("harm", LINKED)
@pytest.mark.sample(2)
def test_names_of_one_file_stay_such_in_the_point_after_a_damaged_one(house: House, harm: str) -> None:
    """The damaged name was copied alone, and was another file from then on, in all points, which nothing said."""
    fill(house.source)
    house.job()
    assert house.run().outcome == "done"
    before = facts(house.point())
    LINKED[harm](house.point())
    assert house.call("verify", "photos").code == 1
    mended = house.run()
    assert (mended.outcome, mended["warnings"]) == ("done", []), mended
    assert facts(house.point()) == facts(house.source)
    assert facts(house.point(0)) == before
    assert house.run().outcome == "nothing-to-do"
    assert house.call("status").code == 0


def test_a_folder_of_the_newest_point_that_was_moved_and_linked(house: House, tmp_path: Path) -> None:
    """As by somebody who makes room on its disk: each run failed, in the words of rsync, and went on to after a reading that named it."""
    fill(house.source)
    house.job(guard={"max_deleted": "100%", "max_changed": "100%"})
    assert house.run().outcome == "done"
    before = facts(house.point())
    os.rename(house.point() / "in", tmp_path / "moved")
    os.symlink(tmp_path / "moved", house.point() / "in")
    elsewhere = facts(tmp_path / "moved")
    house.write("new", "changes something")
    ran = house.run()
    if (
        ran.outcome == "done"
    ):  # as where nothing shuts rsync off from what links lead to, so it compares by their own names
        assert facts(house.point()) == facts(house.source)
        assert facts(tmp_path / "moved") == elsewhere
        return
    assert (ran.outcome, "a link lies where one of its folders was" in ran["why"]) == ("failed", True), ran
    assert house.follow(ran["hint"]).code == 1
    mended = house.run()
    assert (mended.outcome, mended["warnings"]) == ("done", []), mended
    assert facts(house.point()) == facts(house.source)
    assert (facts(house.point(0)), facts(tmp_path / "moved")) == (before, elsewhere)
    assert house.run().outcome == "nothing-to-do"
    assert house.call("status").code == 0


def test_what_was_added_to_an_older_point_stays_and_is_named(house: House) -> None:
    fill(house.source)
    house.job()
    assert house.run().outcome == "done"
    house.write("new", "a change")
    assert house.run().outcome == "done"
    (house.point(0) / "in/added").write_text("whose it is, nobody knows")
    first = house.points()[0]
    changed = house.call("verify", "photos", "--point", first)
    assert "removes nothing that was added" in changed["hint"]
    house.write("newer", "another change")
    (warning,) = house.run()["warnings"]
    assert warning.endswith("neither the source nor the newest point mends in/added"), warning
    assert (house.point(0) / "in/added").exists()
    (house.point(0) / "in/added").unlink()
    assert house.call("verify", "photos", "--point", first).code == 1, "the folder's time"
    house.write("newest", "a third")
    assert house.run()["warnings"] == []
    assert house.call("verify", "photos", "--point", first).code == 0
    assert house.call("status").code == 0
