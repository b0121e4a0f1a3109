"""A machine is lost, and another one takes over from what lies beside the copies of files; or a person does, by hand."""

import json
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from orchestrator.history.store import open_history
from tests.whole.house import House, Ran, trees_equal
from tests.whole.loop_disks import LoopDisks, missing
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path)
    made.write("a/one", "one")
    made.write("two", "two")
    made.job(rsync={"parallel": 2})
    assert made.run().outcome == "done"
    return made


def another(folder: Path) -> House:
    """A new machine: nothing of ours is on it."""
    made = House(folder / "new")
    (made.config / "jobs").rmdir()
    made.config.rmdir()
    return made


def bootstrap(house: House, place: object, *more: str) -> Ran:
    return house.call("restore", "bootstrap", str(place), *more)


def test_a_new_machine_takes_over_and_goes_on(house: House) -> None:
    (house.folder / "new").mkdir()
    new = another(house.folder)
    told = bootstrap(new, house.target, "--plan")
    assert (told.code, told["jobs"], told["runs"], told["host"]) == (0, ["photos"], 1, os.uname().nodename)
    assert not new.state.exists()
    told = bootstrap(new, house.target)
    assert told.code == 0, told
    for name in ("targets.toml", "jobs/photos.toml"):
        assert (new.config / name).read_text() == (house.config / name).read_text()
        assert (new.config / name).stat().st_mode & 0o777 == 0o600
    assert [line.split(" --")[0] for line in told["next"]] == ["poolferry check", "poolferry restore plan photos"]
    assert new.call("history")["runs"][0]["outcome"] == "done"
    with open_history(str(new.state / "history.sqlite")) as history:
        assert json.loads(history.memory("")["moved"])["from"] == os.uname().nodename
    assert new.run().outcome == "nothing-to-do"


def test_a_kit_that_its_digests_do_not_fit_is_taken_only_when_told(house: House) -> None:
    """An earlier version of poolferry writes the history and no digests."""
    (house.folder / "new").mkdir()
    new, beside = another(house.folder), house.target / ".poolferry"
    with open_history(str(beside / "history.sqlite")) as history:
        history.remember("", "later", "x")
    told = bootstrap(new, house.target, "--plan")
    assert (told.code, "history.sqlite is not as it was written" in told["error"]) == (1, True), told
    program, *words = shlex.split(told["hint"].rpartition(": ")[2].partition(" --config ")[0])
    assert (program, words[-3:]) == ("poolferry", [str(house.target), "--plan", "--damaged"])
    told = new.call(*words)
    assert (told.code, told["jobs"]) == (0, ["photos"]), told
    assert told["warnings"] == ["history.sqlite is not as it was written; taken, as --damaged says"]
    for content in (b"", b"rotten\n", b"\xff"):
        (beside / "SHA256SUMS").write_bytes(content)
        told = bootstrap(new, house.target, "--plan")
        assert (told.code, "SHA256SUMS is damaged" in str(told["warnings"])) == (0, True), told


def test_nothing_is_written_over_what_is_there(house: House) -> None:
    before = (house.config / "targets.toml").read_text()
    (house.config / "targets.toml").write_text(f"{before}# mine\n")
    refused = bootstrap(house, house.target)
    assert (refused.code, "nothing is written over it" in refused["refused"]) == (3, True)
    assert (house.config / "targets.toml").read_text() == f"{before}# mine\n"
    (house.config / "targets.toml").unlink()
    (house.config / "jobs" / "photos.toml").unlink()
    assert bootstrap(house, house.target)["evidence"] == [str(house.state / "history.sqlite")]
    (house.config / "targets.toml").write_text("# mine\n")
    told = bootstrap(house, house.target, "--aside")
    assert told.code == 0, told
    aside, history = told["aside"]
    assert (Path(aside) / "targets.toml").read_text() == "# mine\n"
    assert Path(history).stat().st_size
    assert (house.config / "targets.toml").read_text() == before


@pytest.mark.namespace
def test_the_newest_of_several_kits_is_taken_and_what_is_none_is_told(house: House) -> None:
    other = house.folder / "other"
    other.mkdir()
    house.job("other", source=str(house.source / "a"), target=str(other / "copies"))
    assert house.run("other").outcome == "done"
    (house.folder / "new").mkdir()
    told = bootstrap(another(house.folder), house.folder, "--plan")
    assert (told["folder"], told["jobs"]) == ("other/copies/.poolferry", ["other", "photos"])
    for place, why in ((house.source, "there is no kit"), ("/dev/none", "no device that is here")):
        failed = bootstrap(house, place)
        assert (failed.code, why in failed["error"]) == (1, True), failed


def test_the_configuration_is_renewed_when_it_changes(house: House) -> None:
    archive, page = house.target / ".poolferry/configuration.tar", house.target / ".poolferry/RECOVERY.md"
    assert (archive.stat().st_mode & 0o777, page.stat().st_size > 500) == (0o600, True)
    first = archive.stat().st_mtime_ns
    house.write("three", "three")
    assert house.run().outcome == "done"
    assert archive.stat().st_mtime_ns == first
    house.job(rsync={"parallel": 1})
    house.write("four", "four")
    assert house.run().outcome == "done"
    assert archive.stat().st_mtime_ns != first


@pytest.mark.parametrize("points", [True, False])
def test_the_page_brings_everything_back_by_hand(tmp_path: Path, points: bool) -> None:
    house = House(tmp_path)
    house.write("a b/one", "one")
    house.write("two", "two")
    house.job(rsync={"points": points})
    assert house.run().outcome == "done"
    page = (house.target / ".poolferry/RECOVERY.md").read_text()
    lost = house.source.rename(tmp_path / "lost")
    script = "".join(block.partition("```")[0] for block in page.split("```sh\n")[1:])
    subprocess.run(["sh", "-eu", "-c", script.replace('ls "$copy/points"', ":")], check=True, capture_output=True)
    assert trees_equal(lost, house.source)


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.namespace
def test_one_disk_and_nothing_else(drawer: LoopDisks) -> None:
    device = drawer.enrolled("red")
    assert drawer.run("run", "photos").code == 0
    before = drawer.digest("red")
    (drawer.root / "new").mkdir()
    new = another(drawer.root)
    told = bootstrap(new, device)
    assert told.code == 0, told
    assert told["jobs"] == ["photos"]
    assert not any("disks readopt" in line for line in told["next"]), "the only disk is the one that was named"
    assert drawer.digest("red") == before, "the disk is only read"
    assert drawer.full("red") in (new.config / "targets.toml").read_text()
    back = drawer.root / "back"
    ended = new.call("restore", "run", "photos", "--to", str(back))
    assert (ended.code, ended["outcome"]) == (0, "done"), ended
    assert trees_equal(drawer.source, back)
    assert new.call("disks", "show", drawer.full("red"))["history"][0]["outcome"] == "done"


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.namespace
@pytest.mark.parametrize("points", [True, False])
@pytest.mark.sample(1)
def test_the_page_on_a_disk_brings_all_back_without_poolferry(drawer: LoopDisks, points: bool) -> None:
    """As it stands: the disk is brought to its place by the page's own commands."""
    drawer.enrolled("red")
    drawer.job("photos", f"[rsync]\npoints = {str(points).lower()}\n")
    assert drawer.run("run", "photos").code == 0
    assert not drawer.mounted("red")
    with drawer.opened("red", "ro") as look:
        (page,) = (path.read_text() for path in look.rglob(".poolferry/RECOVERY.md"))
    lost = drawer.source.rename(drawer.root / "lost")
    script = "".join(block.partition("```")[0] for block in page.split("```sh\n")[1:])
    assert f"mount -o ro UUID={drawer.identity('red')} {drawer.mountpoint('red')}" in script
    try:
        done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True)
        assert done.returncode == 0, done
        assert (
            "ro"
            in subprocess.run(
                ["findmnt", "-no", "OPTIONS", drawer.mountpoint("red")], capture_output=True, text=True
            ).stdout
        )
        again = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True)
        assert again.returncode == 0, "said again"
    finally:
        subprocess.run(["umount", drawer.mountpoint("red")], check=False)
    assert trees_equal(lost, drawer.source)


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.namespace
def test_only_the_disk_that_was_named_is_accepted(drawer: LoopDisks) -> None:
    device = drawer.enrolled("red")
    drawer.enrolled("blue")
    assert drawer.run("run", "photos").code == 0
    drawer.pull("blue")
    (drawer.root / "new").mkdir()
    new = another(drawer.root)
    told = bootstrap(new, device)
    assert any("DISK  # each other disk, when it comes" in line for line in told["next"]), told
    drawer.pull("red")
    drawer.plug("blue")
    refused = new.call("restore", "run", "photos", "--to", str(drawer.root / "back"))
    assert refused.code != 0, refused
    assert f"disks readopt {drawer.full('blue')}" in str(refused), refused
    drawer.plug("red")
    ended = new.call("restore", "run", "photos", "--to", str(drawer.root / "back"))
    assert (ended.code, ended["outcome"]) == (0, "done"), "it waited until it came"


def test_from_a_copy_on_a_host(tmp_path: Path, sshd: Sshd) -> None:
    """A machine that has nothing: neither configuration nor the host's key, which somebody gives it."""
    house = House(tmp_path)
    house.write("a/one", "one")
    house.write("two", "two")
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    assert house.run().outcome == "done"
    (tmp_path / "new").mkdir()
    new = another(tmp_path)
    new.environment |= {"HOME": str(tmp_path / "new")}
    place = sshd.url(house.target)
    failed = bootstrap(new, place)
    assert failed.code == 1, failed
    told = subprocess.run(new.argv("restore", "bootstrap", place), env=new.environment, capture_output=True, text=True)
    assert (
        f"`ssh -p {sshd.port} {sshd.user}@127.0.0.1 true` must end well without a question" in told.stdout + told.stderr
    )
    words = [word for each in sshd.pipe["ssh-options"] for word in ("--ssh-option", each)]  # type: ignore[attr-defined]
    for wrong, why in ((tmp_path / "source", "there is no kit"), (tmp_path / "none", "is no folder there, and")):
        failed = bootstrap(new, sshd.url(wrong), *words)
        assert (failed.code, why in failed["error"]) == (1, True), failed
    found = bootstrap(new, place, *words, "--trust", "photos")  # its ssh options may run anything
    assert (found.code, found["jobs"], found["runs"]) == (0, ["photos"], 1), found
    lost = house.source.rename(tmp_path / "lost")
    ended = new.call("restore", "run", "photos", "--to", str(house.source))
    assert (ended.code, ended.outcome) == (0, "done"), ended
    assert trees_equal(lost, house.source)
    assert new.run().outcome == "nothing-to-do"
