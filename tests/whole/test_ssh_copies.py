"""Copies over ssh, to a host and from one: every step of the way of a run, with names that break lesser programs."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing

import pytest

from orchestrator.verify.manifest import read_manifest
from tests.whole.damage import fill
from tests.whole.house import House, Ran, facts, url
from tests.whole.sshd import Sshd, sshd

pytestmark = pytest.mark.slow
__all__ = ["sshd"]

ROOTS = (b"[1]", b"""-a b:\nc'd"e [1] \xe9 $(touch PWNED) `x` *?\\ ;&|<>#~!""")


def push(house: House, sshd: Sshd, **toml: object) -> str:
    """A job whose target lies on the host."""
    return house.job(target=sshd.url(house.target), pipe=sshd.pipe, **toml)


def pull(house: House, sshd: Sshd, **toml: object) -> str:
    """A job whose source lies on the host."""
    return house.job(source=sshd.url(house.source), pipe=sshd.pipe, **toml)


Way = Callable[..., str]


@pytest.mark.parametrize("way", [push, pull])
@pytest.mark.sample(1)
def test_first_nothing_changed_and_deleted(house: House, sshd: Sshd, way: Way) -> None:
    fill(house.source)
    way(house, sshd)
    first = house.run()
    assert (first.code, first.outcome) == (0, "done"), first
    assert facts(house.source) == facts(house.point())
    again = house.run()
    assert (again.code, again.outcome) == (0, "nothing-to-do"), again
    house.write("plain", "changed")
    os.unlink(house.source / "-dash")
    third = house.run()
    assert third.outcome == "done", third
    assert facts(house.source) == facts(house.point())
    old, new = house.point(0), house.point()
    assert (old / "-dash").exists()
    assert (old / "1").stat().st_ino == (new / "1").stat().st_ino
    assert (old / "plain").read_text() == "of plain"
    assert not list(house.folder.rglob("PWNED"))


def fill_for_links(house: House) -> None:
    """Entries of all kinds, of which `change_all` changes one each."""
    for name in (
        "same",
        "content",
        "mode",
        "gone",
        "file",
        "folder/kept",
        "way/inside",
        "lost/a/b",
        "d e\nf/$(touch PWNED)",
        "-rf",
    ):
        house.write(name, name)
    (house.source / "link").symlink_to("/etc")
    (house.source / "pipe").unlink(missing_ok=True)
    os.mkfifo(house.source / "pipe")
    os.utime(house.source / "folder", ns=(10**18 + 1, 10**18 + 123_456_789))
    os.setxattr(house.source / "folder", "user.kept", b"yes")


def change_all(house: House) -> None:
    source = house.source
    house.write("content", "changed")
    (source / "mode").chmod(0o600)
    (source / "gone").unlink()
    (source / "file").unlink()
    house.write("file/became/a/folder", "new")
    (source / "link").unlink()
    house.write("link/passwd", "new, where a link to /etc lay")
    shutil.rmtree(source / "way")
    (source / "way").symlink_to("/etc")
    shutil.rmtree(source / "lost")
    (source / "pipe").chmod(0o640)
    (source / "d e\nf/$(touch PWNED)").unlink()
    (source / "-rf").unlink()
    house.write("-rf", "new")


def linked(report: Ran) -> list[str]:
    return [step["action"] for step in report["steps"] if step["action"].startswith("link unchanged")]


@pytest.mark.namespace
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's copies are linked before")
@pytest.mark.parametrize("way", [push, pull])
@pytest.mark.sample(1)
def test_what_is_unchanged_is_linked_before_the_copy_and_no_point_changes(house: House, sshd: Sshd, way: Way) -> None:
    fill_for_links(house)
    way(house, sshd)
    assert house.run().outcome == "done"
    before, kept = facts(house.point()), (house.point() / "same").stat().st_ino
    change_all(house)
    second = house.run()
    assert (second.outcome, second["attempts"], len(linked(second))) == ("done", 1, 1), second
    assert facts(house.source) == facts(house.point())
    assert (house.point() / "folder").stat().st_mtime_ns == 10**18 + 123_456_789
    assert facts(house.point(0)) == before
    assert (house.point() / "same").stat().st_ino == kept
    assert house.call("verify", "photos", "--source").code == 0
    assert house.run().outcome == "nothing-to-do"
    assert os.path.exists("/etc/passwd")
    assert not list(house.folder.rglob("PWNED"))


@pytest.mark.namespace
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's copies are linked before")
def test_what_a_host_cannot_link_is_copied_by_another_attempt(house: House, sshd: Sshd) -> None:
    fill_for_links(house)
    push(house, sshd)
    assert house.run().outcome == "done"
    fixed = house.point() / "folder/kept"
    if subprocess.run(["chattr", "+i", fixed], check=False, capture_output=True).returncode:
        pytest.skip("no file can be made immutable here")
    try:
        change_all(house)
        second = house.run()
        assert (second.outcome, second["attempts"], len(linked(second))) == ("done", 2, 1), second
        assert facts(house.source) == facts(house.point())
    finally:
        subprocess.run(["chattr", "-i", fixed], check=True)


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("way", [push, pull])
@pytest.mark.sample(2)
def test_roots_with_hostile_names(house: House, sshd: Sshd, way: Way, root: bytes) -> None:
    """`[1]` is a folder of its own, and `1` beside it another."""
    house.source = house.folder / "roots" / os.fsdecode(root)
    house.target = house.folder / "targets" / os.fsdecode(root)
    house.write("file", "right")
    house.write("../1/file", "wrong")
    house.target.parent.mkdir(parents=True)
    way(
        house,
        sshd,
        **{"source": url(os.fsencode(house.source))} if way is push else {"target": url(os.fsencode(house.target))},
    )
    first = house.run()
    assert first.outcome == "done", first
    assert (house.point() / "file").read_text() == "right"
    house.write("new", "too")
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert len(os.listdir(house.target.parent)) == 1
    assert house.call("verify", "photos").code == 0
    back = house.folder / "back"
    assert house.call("restore", "run", "photos", "--to", str(back)).code == 0
    assert (back / "file").read_text() == "right"
    assert not list(house.folder.rglob("PWNED"))


def test_what_a_run_leaves_on_the_host(house: House, sshd: Sshd) -> None:
    """Manifest and history travel with the data; points, confirmation and restore come from there."""
    fill(house.source)
    push(house, sshd)
    run = house.run()
    (point,) = run["points"]
    expected = {entry.path for entry in read_manifest(f"{house.target}/points/{point}.manifest.gz")[1]}
    assert expected == {name.lstrip(b"/") for name in facts(house.source)}
    with closing(sqlite3.connect(f"file:{house.target}/.poolferry/history.sqlite?mode=ro", uri=True)) as travelled:
        assert travelled.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert travelled.execute("SELECT id, job FROM runs").fetchall() == [(run["run"], "photos")]
    shutil.rmtree(house.state)
    found = house.call("points", "--look", "photos")
    assert [each["point"] for each in found["points"]] == [point]
    proved = house.call("verify", "photos")
    assert (proved.code, proved["reading"]["counts"]) == (0, {}), proved
    back = house.folder / "back"
    assert house.call("restore", "run", "photos", "--to", str(back)).code == 0
    assert facts(back) == facts(house.source)
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.parametrize("way", [push, pull])
def test_a_first_copy_of_small_files_alone_looks_for_no_remainders(house: House, sshd: Sshd, way: Way) -> None:
    """A cut leaves little of such a file; of a larger one, and in each later copy, a remainder is gone on with."""

    def keeps_remainders() -> bool:
        told = house.call("plan", "photos")
        assert told.code == 0, told
        assert "rsync --archive" in str(told.value)
        return "--partial-dir" in str(told.value)

    house.write("small", bytes(65_535))
    way(house, sshd)
    assert not keeps_remainders()
    house.write("large", bytes(65_536))
    assert keeps_remainders()
    os.unlink(house.source / "large")
    cut = house.target / ".poolferry/work"
    house.target.mkdir(mode=0o700, exist_ok=True)
    cut.parent.mkdir(mode=0o700)
    cut.mkdir(mode=0o700)
    assert keeps_remainders()
    shutil.rmtree(cut)
    assert not keeps_remainders()
    first = house.run()
    assert (first.code, first.outcome) == (0, "done"), first
    house.write("small", "changed")
    assert keeps_remainders()
