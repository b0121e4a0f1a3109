"""Data comes back: all of it, a folder or one file, to a place of its own, proved; and nothing is ever overwritten."""

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.processes import family, strays
from tests.turns import turns
from tests.whole.damage import fill, rot
from tests.whole.house import House, Ran, facts, kill, wait_until
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]

MARKER = ".poolferry-restoring.json"
SLOW = "48M"  # bytes a second: on whatever machine, a restore is not over before it is cut


def copied(house: House, **toml: object) -> str:
    """The name of the first point, of a tree with every hostile name."""
    fill(house.source)
    house.job(**toml)
    run = house.run()
    assert run.outcome == "done", run
    return str(run["points"][0])


def back(house: House, *arguments: str, to: Path | None = None) -> Ran:
    """Restores to a folder that is named like the test's."""
    return house.call("restore", "run", "photos", "--to", str(to or house.folder / "back"), *arguments)


@pytest.mark.parametrize("there", ["absent", "deeply absent", "empty"])
@pytest.mark.sample(1)
def test_a_whole_point(house: House, there: str) -> None:
    copied(house)
    to = house.folder / "deeply" / "absent" / "back" if there == "deeply absent" else house.folder / "back"
    if there == "empty":
        to.mkdir()
    done = back(house, to=to)
    assert (done.code, done.outcome) == (0, "done"), done
    assert facts(to) == facts(house.source)
    assert any(step["action"].startswith("read") and step["confirmed"] for step in done["steps"])
    (copying,) = [
        step for step in house.call("show", "last")["attempt"][0]["steps"] if step["action"].startswith("copy")
    ]
    size = sum(path.lstat().st_size for path in house.source.rglob("*") if path.is_file() and not path.is_symlink())
    assert copying["expected_bytes"] == size, "how long it still takes can be said"


def test_one_folder(house: House) -> None:
    copied(house)
    done = back(house, "--path", "/in//new\nline/")
    assert (done.code, done.outcome) == (0, "done"), done
    assert facts(house.folder / "back") == facts(house.source / "in" / "new\nline")


@pytest.mark.slow
def test_one_file_of_every_name(house: House) -> None:
    """Each name is told as it is, byte for byte; the file takes the destination's name, or its own in a folder."""
    copied(house)
    folder = house.folder / "folder"
    folder.mkdir()
    (folder / "other").write_text("stays")
    for name in (b"new\nline", b"latin-\xe9", b"[1]", b"-dash", b"back\\slash", b"\\#012", b"trailing ", b"x" * 255):
        done = back(house, "--path", os.fsdecode(name), to=folder)
        assert (done.code, done.outcome) == (0, "done"), (name, done)
        assert facts(folder)[b"/" + name] == facts(house.source)[b"/" + name]
    done = back(house, "--path", "in/1/file", to=house.folder / "another name")
    assert done.outcome == "done", done
    assert (house.folder / "another name").read_bytes() == b"of 1"
    done = back(house, "--path", "links/1", to=house.folder / "a link")
    assert done.outcome == "done", done
    assert os.readlink(house.folder / "a link") == "1"
    assert (folder / "other").read_text() == "stays"


def test_nothing_is_overwritten(house: House) -> None:
    copied(house)
    (house.folder / "back").mkdir()
    (house.folder / "back" / "mine\n").write_text("stays")
    refused = back(house)
    assert (refused.code, refused.outcome) == (3, "refused"), refused
    assert refused["evidence"] == ["mine\\n"]
    assert "--aside" in refused["hint"]
    assert os.listdir(house.folder / "back") == ["mine\n"]
    file = back(house, "--path", "plain", to=house.folder / "back" / "mine\n")
    assert (file.code, file.outcome) == (3, "refused"), file

    aside = back(house, "--aside")
    assert (aside.code, aside.outcome) == (0, "done"), aside
    assert facts(house.folder / "back") == facts(house.source)
    (kept,) = house.folder.glob("back.aside-*")
    assert (kept / "mine\n").read_text() == "stays"


def test_the_source_itself_comes_back_with_aside(house: House) -> None:
    copied(house)
    before = facts(house.source)
    (house.source / "plain").write_text("a bad edit")
    assert back(house, to=house.source).outcome == "refused"
    assert back(house, "--aside", to=house.source).outcome == "done"
    assert facts(house.source) == before


def test_a_plan_changes_nothing(house: House) -> None:
    point = copied(house)
    before = facts(house.folder / "target")
    planned = house.call("restore", "plan", "photos", "--to", str(house.folder / "back"))
    assert planned.code == 0, planned
    assert point in planned["summary"]
    assert not (house.folder / "back").exists()
    assert facts(house.folder / "target") == before
    (house.folder / "back").mkdir()
    (house.folder / "back" / "mine").write_text("stays")
    refused = house.call("restore", "plan", "photos", "--to", str(house.folder / "back"))
    assert refused.code == 3
    assert house.call("history", "photos")["runs"][0]["asked"] != "restore"


@pytest.mark.slow
def test_which_point(house: House) -> None:
    copied(house)
    house.write("plain", "second")
    assert house.run().outcome == "done"
    old, new = house.points()
    house.redate(old, "2020-01-02T030405Z")
    house.redate(new, "2021-02-03T040506Z")

    def plain(name: str, *which: str) -> str:
        done = back(house, "--path", "plain", *which, to=house.folder / name)
        assert done.code == 0, done
        return (house.folder / name).read_text()

    assert plain("newest") == "second"
    assert plain("latest", "--point", "latest") == "second"
    assert plain("named", "--point", "2020-01-02T030405Z") == "of plain"
    assert plain("begun", "--point", "2020") == "of plain"
    assert plain("at", "--at", "2021-02-03T04:05:05Z") == "of plain"
    assert plain("exactly", "--at", "2021-02-03T04:05:06Z") == "second"
    early = back(house, "--at", "2019-01-01T00:00:00Z")
    assert (early.code, early["evidence"][0]) == (3, "2020-01-02T030405Z"), early
    unclear = back(house, "--point", "202")
    assert (unclear.code, len(unclear["evidence"])) == (3, 2), unclear
    nothing = back(house, "--path", "no/such")
    assert (nothing.code, "holds no no/such" in nothing["why"]) == (3, True), nothing
    misplaced = back(house, "--path", "some folder/plain")
    words = shlex.split(misplaced["hint"].split("`")[1])
    assert (words[0], "plain" in str(house.call(*words[1:]).value)) == ("poolferry", True), misplaced
    assert back(house, "--path", "../..").code == 2
    assert not (house.folder / "back").exists()


@pytest.mark.slow
@pytest.mark.root
def test_owners_acls_times_and_links_come_back(house: House) -> None:
    house.write("owned", "by somebody")
    os.chown(house.source / "owned", 12345, 54321)
    os.link(house.source / "owned", house.source / "linked")
    house.write("in/acl", "with a list")
    subprocess.run(["setfacl", "-m", "u:1234:rw", house.source / "in" / "acl"], check=True)
    subprocess.run(["setfacl", "-d", "-m", "g:4321:rx", house.source / "in"], check=True)
    os.setxattr(house.source / "in" / "acl", "user.note", b"any\0bytes")
    os.mkfifo(house.source / "fifo")
    os.utime(house.source / "owned", ns=(1, 987654321_123456789))
    os.chmod(house.source / "in", 0o2750)
    house.job()
    assert house.run().outcome == "done"
    done = back(house)
    assert done.outcome == "done", done
    assert facts(house.folder / "back") == facts(house.source)
    assert (house.folder / "back" / "linked").stat().st_nlink == 2
    assert "system.posix_acl_access" in os.listxattr(house.folder / "back" / "in" / "acl")


def test_what_came_back_wrong_is_named(house: House) -> None:
    """The copy went bad after it was proved: what comes back is read again, and is not as expected."""
    copied(house)
    rot(house.point() / "plain")
    done = back(house)
    assert (done.code, done.outcome) == (1, "failed"), done
    assert "plain is rotten" in done["why"]
    one = back(house, "--path", "star*", to=house.folder / "one")
    assert one.outcome == "done", one
    bad = back(house, "--path", "plain", to=house.folder / "two")
    assert (bad.code, bad.outcome) == (1, "failed"), bad


def test_killed_in_the_middle_it_goes_on(house: House) -> None:
    size, number = 4 << 20, 40
    for each in range(number):
        house.write(f"file {each:02}", os.urandom(size))
    house.job()
    assert house.run().outcome == "done"
    house.job(pipe={"rate-limit": SLOW})
    to = house.folder / "back"
    argv = house.argv("restore", "run", "photos", "--to", str(to))
    first = subprocess.Popen(
        argv, env=house.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_until(lambda: to.exists() and len(list(to.glob("file *"))) > 5, going=first)
    kill(first.pid, signal.SIGKILL)
    first.wait()
    there = len(list(to.glob("file *")))
    assert there < number, "it was over before it was killed"
    assert (to / MARKER).exists()
    house.job()
    second = back(house)
    assert (second.outcome, second["resumed"]) == ("done", True), second
    assert second["moved_bytes"] <= (number - 5) * size
    assert facts(to) == facts(house.source)
    assert back(house).outcome == "refused", "what is whole is no unfinished restore"


def test_zeros_are_searched_for_only_where_files_have_holes(house: House) -> None:
    """The search takes most of the processor time of a restore of large files."""
    house.write("plain/large", os.urandom(200 << 10))
    with house.write("sparse/large").open("wb") as file:
        file.truncate(8 << 20)
    house.job()
    assert house.run().outcome == "done"
    for part, searched in (
        ("plain", False),
        ("plain/large", False),
        ("sparse", True),
        ("sparse/large", True),
        ("", True),
    ):
        to = house.folder / f"back-{part.replace('/', '-')}"
        done = back(house, "--verbose", *(("--path", part) if part else ()), to=to)
        assert done.outcome == "done", done
        copies = [line for line in done.errors.splitlines() if "--partial-dir=" in line]
        assert [" --sparse " in line for line in copies] == [searched], part
    assert facts(house.folder / "back-") == facts(house.source)
    assert (house.folder / "back-sparse-large").stat().st_blocks * 512 < 1 << 20


@pytest.mark.root
@pytest.mark.parametrize(("signals", "far"), turns(([signal.SIGKILL], [signal.SIGTERM]), (False, True)))
@pytest.mark.sample(2)
def test_a_large_file_that_was_cut_goes_on(
    house: House, sshd: Sshd, signals: list[signal.Signals], *, far: bool
) -> None:
    """Its holes stay holes, and nobody else's file of such a name is taken for what rsync left."""
    large = house.write("folder/large", os.urandom(96 << 20))
    with large.open("r+b") as file:
        file.seek(100 << 20)
        file.write(b"end")
    os.chown(large, 1000, 1000)
    os.chown(large.parent, 1000, 1000)
    told: dict[str, Any] = {"target": sshd.url(house.target), "pipe": sshd.pipe} if far else {"pipe": {}}
    house.job(**told)
    assert house.run().outcome == "done"
    house.job(**{**told, "pipe": {**told["pipe"], "rate-limit": SLOW}})
    to = house.folder / "back"
    first = house.start_call("restore", "run", "photos", "--to", str(to))
    wait_until(lambda: _written(to) > 8 << 20, pause=0.0005)
    assert _written(to) < 96 << 20, "it was over before it was cut"
    everybody = [first.pid, *(pid for pid, _ in family(first.pid))] if signals == [signal.SIGKILL] else [first.pid]
    for pid in everybody:
        kill(pid, signals[0])
    house.ended(first)
    wait_until(lambda: not strays(to))
    foreign = to / "folder/.large.AbC123"
    if not (to / "folder/large").exists():
        foreign.write_bytes(b"x" * 100)
        os.chown(foreign, 1000, 1000)
    house.job(**told)
    second = back(house)
    assert (second.outcome, second["resumed"]) == ("done", True), second
    assert second["moved_bytes"] <= (92 << 20), second
    assert facts(to) == facts(house.source)
    assert (to / "folder/large").stat().st_blocks * 512 < (98 << 20)


@pytest.mark.root
@pytest.mark.parametrize("sides", ["here", "from a host", "to a host"])
@pytest.mark.sample(1)
def test_a_single_file_that_was_cut_goes_on_under_its_new_name(house: House, sshd: Sshd, sides: str) -> None:
    """It is taken up by the same command alone; a restore of another point, or of another file, to that name is not."""
    large = house.write("folder/large", os.urandom(96 << 20))
    house.write("folder/other", os.urandom(1 << 20))
    os.chown(large, 1000, 1000)
    target = {"target": sshd.url(house.target)} if sides == "from a host" else {}
    pipe: dict[str, Any] = {} if sides == "here" else sshd.pipe
    house.job(**target, pipe=pipe)
    assert house.run().outcome == "done"
    house.job(**target, pipe={**pipe, "rate-limit": SLOW})
    to = house.folder / "back" / "new large"
    to.parent.mkdir()
    told = ["--to", sshd.url(to) if sides == "to a host" else str(to)]
    first = house.start_call("restore", "run", "photos", "--path", "folder/large", *told)
    wait_until(lambda: _written(to.parent) > 8 << 20, pause=0.0005)
    assert _written(to.parent) < 96 << 20, "it was over before it was cut"
    for pid in [first.pid, *(pid for pid, _ in family(first.pid))]:
        kill(pid, signal.SIGKILL)
    house.ended(first)
    wait_until(lambda: not strays(to.parent))
    house.job(**target, pipe=pipe)
    there = _written(to.parent)
    planned = house.call("restore", "plan", "photos", "--path", "folder/other", *told, "--json")
    assert (planned.code, "go on with" in str(planned.value)) == (0, False), planned
    second = house.call("restore", "run", "photos", "--path", "folder/large", *told, "--json")
    assert (second.outcome, second["resumed"]) == ("done", True), second
    assert second["moved_bytes"] <= (96 << 20) - there + (1 << 20), second
    assert to.read_bytes() == large.read_bytes()
    assert (to.stat().st_uid, to.stat().st_mtime_ns) == (1000, large.stat().st_mtime_ns)
    assert [path.name for path in to.parent.iterdir()] == [to.name], "nothing of ours stays"


def _written(folder: Path) -> int:
    """Return how much of the largest file is there."""
    return max((path.stat().st_size for path in folder.rglob("*large*") if path.is_file()), default=0)


def test_another_restore_does_not_go_on_with_it(house: House) -> None:
    point = copied(house)
    to = house.folder / "back"
    to.mkdir()
    (to / MARKER).write_text('{"format": 1, "job": "photos", "point": "2020-01-02T030405Z", "path": ""}')
    other = back(house)
    assert (other.code, other.outcome) == (3, "refused"), other
    assert "2020-01-02T030405Z" in str(other.value)
    (to / MARKER).write_text(f'{{"format": 1, "job": "photos", "point": "{point}", "path": "in"}}')
    part = back(house)
    assert part.outcome == "refused", "a folder of the point, begun there, is not the whole point"


def test_without_state(house: House) -> None:
    copied(house)
    shutil.rmtree(house.state)
    assert back(house).outcome == "done"
    assert facts(house.folder / "back") == facts(house.source)


def test_without_configuration(house: House) -> None:
    copied(house)
    shutil.rmtree(house.state)
    shutil.rmtree(house.config)
    to = str(house.folder / "back")
    done = house.call("restore", "run", "--from", str(house.target), "--to", to, "--path", "in")
    assert (done.code, done.outcome, done["job"]) == (0, "done", "photos"), done
    assert facts(house.folder / "back") == facts(house.source / "in")
    nowhere = house.call("restore", "run", "--from", str(house.source), "--to", to)
    assert nowhere.code == 1
    assert "holds copies" in nowhere["error"]


@pytest.mark.slow
def test_without_configuration_from_a_host(house: House, sshd: Sshd) -> None:
    """Only the user's own ssh settings are left; here a program in front of PATH stands for them."""
    copied(house)
    shutil.rmtree(house.state)
    shutil.rmtree(house.config)
    programs = house.folder / "programs"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {sshd.folder}/client "$@"\n')
    (programs / "ssh").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{house.environment['PATH']}"
    done = house.call("restore", "run", "--from", sshd.url(house.target), "--to", str(house.folder / "back"))
    assert (done.code, done.outcome) == (0, "done"), done
    assert facts(house.folder / "back") == facts(house.source)


@pytest.mark.slow
def test_to_a_host(house: House, sshd: Sshd) -> None:
    copied(house, pipe=sshd.pipe)
    to = house.folder / "a b\n[1]"
    done = house.call("restore", "run", "photos", "--to", sshd.url(to))
    assert (done.code, done.outcome) == (0, "done"), done
    assert facts(to) == facts(house.source)
    assert house.call("restore", "run", "photos", "--to", sshd.url(to)).outcome == "refused"
    one = house.call("restore", "run", "photos", "--path", "plain", "--to", sshd.url(to / "again"), "--aside")
    assert one.outcome == "done", one
    assert (to / "again").read_text() == "of plain"


@pytest.mark.slow
def test_between_two_hosts_is_refused_in_words(house: House, sshd: Sshd) -> None:
    copied(house, target=sshd.url(house.target), pipe=sshd.pipe)
    done = house.call("restore", "run", "photos", "--to", sshd.url(house.folder / "back"))
    assert (done.code, done.outcome) == (3, "refused"), done
    assert done["hint"]
