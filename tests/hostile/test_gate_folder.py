"""A key that only adds restore points to one folder: copies go as without it, and whoever holds the key harms no older point."""

import os
from pathlib import Path

import pytest

from orchestrator.history.arrivals import read_arrivals
from tests.whole.damage import fill
from tests.whole.house import House, facts, trees_equal
from tests.whole.sshd import Sshd, link, sshd

pytestmark = pytest.mark.slow
__all__ = ["link", "sshd"]


def gate(house: House, sshd: Sshd) -> Path:
    """Let the client's key add points to a folder, and do nothing else with it; return the folder."""
    folder = house.folder / "far"
    key, keys = (sshd.folder / "user_key.pub").read_text(), sshd.folder / "authorized_keys"
    keys.unlink()
    done = house.call("setup", "gate", "laptop", "--adds", str(folder), "--key", key, "--into", str(keys))
    assert done.code == 0, done
    assert folder.stat().st_mode & 0o777 == 0o700
    return folder


@pytest.mark.parametrize(
    "keys", [{}, {"parallel": 3}, {"checksum": True}, {"excludes": ["*.tmp", "left-out"]}], ids=["plain", "parallel", "checksum", "excludes"]
)  # fmt: skip
def test_points_are_added_through_a_gate_as_without_it(house: House, sshd: Sshd, keys: dict[str, object]) -> None:
    fill(house.source)
    house.write("many/a", "one file")
    os.link(house.source / "many/a", house.source / "many/b")
    folder = gate(house, sshd)
    house.job(target=sshd.url(folder), pipe=sshd.pipe, rsync=keys)
    assert (first := house.run()).outcome == "done", first
    assert house.run().outcome == "nothing-to-do"
    house.target = folder
    before = facts(house.point())
    house.write("plain", "changed")
    house.write("left-out", "now")
    house.write("new/deep/file", "new")
    os.unlink(house.source / "-dash")
    os.link(house.source / "many/a", house.source / "many/c")
    os.chmod(house.source / "many", 0o750)
    assert (third := house.run()).outcome == "done", third
    assert facts(house.point(0)) == before
    if "excludes" in keys:
        (house.source / "left-out").unlink()
        os.utime(house.source, ns=(0, house.point().stat().st_mtime_ns))
    assert trees_equal(house.source, house.point())
    assert len({(house.point() / "many" / name).stat().st_ino for name in "abc"}) == 1
    if "excludes" in keys:
        house.job(target=sshd.url(folder), pipe=sshd.pipe, rsync={"excludes": ["many"]})
        assert (fourth := house.run()).outcome == "done", fourth
        assert not (house.point() / "many").exists(), "the gate linked what is excluded by now"
        assert (house.point(-2) / "many/a").exists()
    for words in (("verify", "photos", "--source"), ("drill", "photos")):
        assert (told := house.call(*words)).code == 0, told
    checked = house.call("check", "--system")
    assert checked.code == 0, checked
    assert "append-only: tried to remove a point, and the gate laptop refused" in str(checked.value), checked
    came = {name for series, name in read_arrivals(str(house.state)) if series == str(folder)}
    assert came == {path.name for path in (folder / "points").iterdir() if path.is_dir() and not path.is_symlink()}


def test_several_folders_are_added_through_a_gate(house: House, sshd: Sshd) -> None:
    folders = [house.folder / name for name in ("etc", "srv/www")]
    for folder in folders:
        fill(folder)
    house.target = gate(house, sshd)
    house.job(sources=[str(folder) for folder in folders], source=None, target=sshd.url(house.target), pipe=sshd.pipe)
    assert (first := house.run()).outcome == "done", first
    assert house.run().outcome == "nothing-to-do"
    house.write(folders[0] / "plain", "changed")
    (folders[1] / "-dash").unlink()
    assert (third := house.run()).outcome == "done", third
    copies = [house.point() / str(folder)[1:] for folder in folders]
    assert [facts(copy) for copy in copies] == [facts(folder) for folder in folders]
    house.job(sources=[str(folders[0])], source=None, target=sshd.url(house.target), pipe=sshd.pipe)
    assert (fewer := house.run()).outcome == "done", fewer
    assert not (house.point() / str(folders[1])[1:]).exists(), "the gate linked a folder that the job names no more"
    work = house.target / ".poolferry/work" / str(folders[1])[1:]  # as a run leaves it that was cut before
    work.mkdir(parents=True)
    house.write(folders[0] / "plain", "again")
    assert (cut := house.run()).outcome == "done", cut
    assert not (house.point() / str(folders[1])[1:]).exists()
