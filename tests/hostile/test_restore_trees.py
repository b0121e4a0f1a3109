"""Test what users try with a tree that root restores into a folder of theirs, while it is half there, cut, and gone on with."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.rsync.script_commands import begin_restore_command
from tests.hostile.conftest import AS_STRANGER, STRANGER, tries
from tests.whole.house import House, Ran, facts, wait_until

pytestmark = pytest.mark.root
PARTIAL = ".~poolferry-partial~"
RESTORING = ".poolferry-restoring.json"

# In place of a program: at its chosen call in the destination, or of it, it waits before or after its work, or kills poolferry there.
_STAND_IN = """#!/bin/sh
[ "$(pwd -P)" = "{to}" ] || [ "$1" = "{to}/." ] || exec {real} "$@"
echo call >> "{folder}/calls"
[ "$(wc -l < "{folder}/calls")" = {call} ] || exec {real} "$@"
act() {{
  : > "{folder}/reached"
  if [ {how} = kill ]; then kill -9 $PPID; exit 1; fi
  while [ ! -e "{folder}/go" ]; do sleep 0.01; done
}}
if [ {when} = before ]; then act; exec {real} "$@"; fi
{real} "$@" || exit
act
"""


def stand_in(house: House, to: Path, *, call: int, when: str, how: str, program: str = "rsync") -> Path:
    """A program in front of PATH; its folder tells that it was `reached`, and waits for `go`."""
    folder = house.folder / "stand-in"
    folder.mkdir()
    real = shutil.which(program)
    (folder / program).write_text(_STAND_IN.format(to=to, real=real, folder=folder, call=call, when=when, how=how))
    (folder / program).chmod(0o755)
    house.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    return folder


def alone(house: House) -> None:
    """From now on rsync is the real one."""
    house.environment["PATH"] = os.environ["PATH"]


def hers(house: House) -> str:
    """A tree of the stranger's, whose root has all that a folder can have; the name of its point."""
    for path in ("docs/passwd", "docs/deep/file", "top"):
        house.write(path, f"hers: {path}")
    for folder, names, files in os.walk(house.source):
        for name in (".", *names, *files):
            os.chown(os.path.join(folder, name), STRANGER, STRANGER)
    (house.source / "docs").chmod(0o777)
    subprocess.run(["setfacl", "-m", "u:1234:rx,d:g:4321:rx", house.source], check=True)
    os.setxattr(house.source, "user.note", b"any\0bytes")
    house.source.chmod(0o2755)
    os.utime(house.source, ns=(1, 987654321_123456789))
    ran = house.run(house.job())
    assert ran.outcome == "done", ran
    return str(ran["points"][0])


def back(house: House, to: Path, *more: str) -> Ran:
    return house.call("restore", "run", "photos", "--to", str(to), *more)


def marked(point: str) -> str:
    return json.dumps({"format": 1, "job": "photos", "point": point, "path": ""})


def give(path: Path) -> Path:
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


@pytest.mark.parametrize("there", [True, False], ids=["her folder", "absent"])
@pytest.mark.sample(1)
def test_nobody_enters_what_is_being_restored(house: House, *, there: bool) -> None:
    hers(house)
    to = house.folder / "back"
    if there:
        to.mkdir()
        give(to)
    for program in ("rsync", "find"):  # the copy, and the listing of what came back
        folder = stand_in(house, to, call=1, when="after", how="wait", program=program)
        running = house.start_call("restore", "run", "photos", "--to", str(to))
        wait_until((folder / "reached").exists)
        assert (to / "docs").stat().st_uid == STRANGER
        assert not tries("ls", to)
        assert not tries("touch", to / "docs/planted")
        assert not tries("sh", "-c", f"cd '{to}'")
        (folder / "go").touch()
        done = house.ended(running)
        assert (done.code, done.outcome) == (0, "done"), done
        assert facts(to) == facts(house.source), "its own owner, mode, time, ACL and attributes too"
        assert tries("ls", to)
        for each in (to, folder):
            shutil.rmtree(each)


def test_who_stands_in_the_folder_already_is_shut_out(house: House) -> None:
    """She opened her empty folder before root began, and goes on from there, by no path."""
    hers(house)
    to = house.folder / "back"
    to.mkdir()
    give(to)
    folder = stand_in(house, to, call=1, when="after", how="wait")
    with subprocess.Popen(
        [*AS_STRANGER, "sh", "-c", "read go; ln -s /etc docs/planted 2>&1; ls"], cwd=to, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as inside:  # fmt: skip
        running = house.start_call("restore", "run", "photos", "--to", str(to))
        wait_until((folder / "reached").exists)
        out, _ = inside.communicate("go\n")
    assert out.count("Permission denied") == 2, out
    (folder / "go").touch()
    assert house.ended(running).outcome == "done"
    assert facts(to) == facts(house.source)


@pytest.mark.parametrize("where", ["", "docs"])
@pytest.mark.parametrize("kind", ["link", "her folder"])
@pytest.mark.sample(2)
def test_what_she_laid_into_an_open_unfinished_restore_is_not_followed(
    house: House, victim: Path, where: str, kind: str
) -> None:
    """An older version left it open. rsync before 3.5 follows a link in the place of its partial folder."""
    point = hers(house)
    to = house.folder / "back"
    (to / "docs").mkdir(parents=True)
    (to / RESTORING).write_text(marked(point))
    for path in (to, to / "docs"):
        give(path)
    planted = to / where / PARTIAL
    if kind == "link":
        assert tries("ln", "-s", victim, planted)
    else:
        assert tries("mkdir", planted)
        assert tries("ln", "-s", victim / "passwd", planted / "passwd")
    done = back(house, to)
    assert (done.code, done.outcome, done["resumed"]) == (0, "done", True), done
    assert facts(to) == facts(house.source)


def test_a_marker_of_hers_makes_no_unfinished_restore(house: House) -> None:
    """She is inside, and would lead root elsewhere by her own folders when it goes on there."""
    point = hers(house)
    to = house.folder / "back"
    (to / "docs").mkdir(parents=True)
    (to / RESTORING).write_text(marked(point))
    for path in (to, to / "docs", to / RESTORING):
        give(path)
    refused = back(house, to)
    assert (refused.code, refused.outcome) == (3, "refused"), refused
    assert to.stat().st_uid == STRANGER


@pytest.mark.parametrize("name", ["docs", RESTORING, f"{RESTORING}.new"])
def test_what_comes_between_the_look_and_the_closing_ends_it(tmp_path: Path, victim: Path, name: str) -> None:
    to = tmp_path / "to"
    to.mkdir()
    give(to)
    (to / name).symlink_to(victim / "passwd")
    begin = begin_restore_command(Location(path=str(to)), aside="", marker="{}", unfinished=False)
    done = subprocess.run(begin.argv, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{name} has come into" in done.stderr
    again = begin_restore_command(Location(path=str(to)), aside="", marker="{}", unfinished=True)
    assert subprocess.run(again.argv, check=False, capture_output=True).returncode == 1


def test_a_link_of_hers_to_another_folder_is_no_destination(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    before = other.stat()
    to = tmp_path / "to"
    to.symlink_to(other)
    give(to)
    begin = begin_restore_command(Location(path=str(to)), aside="", marker="{}", unfinished=False)
    done = subprocess.run(begin.argv, check=False, capture_output=True, text=True)
    assert (done.returncode, "link of another user" in done.stderr) == (1, True), done
    assert (other.stat().st_mode, os.listdir(other)) == (before.st_mode, [])


@pytest.mark.parametrize(
    ("program", "call", "when"),
    [("rsync", 1, "before"), ("rsync", 1, "after"), ("find", 1, "after"), ("find", 2, "before")],
    ids=["before the copy", "after the copy", "before its own mode", "after its own mode"],
)
@pytest.mark.sample(2)
def test_killed_at_each_step_it_goes_on_and_ends_the_same(house: House, program: str, call: int, when: str) -> None:
    hers(house)
    to = house.folder / "back"
    folder = stand_in(house, to, call=call, when=when, how="kill", program=program)
    first = house.start_call("restore", "run", "photos", "--to", str(to))
    assert house.ended(first).code == -9
    assert (folder / "reached").exists()
    assert (to / RESTORING).exists()
    assert tries("ls", to) is (call == 2)
    alone(house)
    (to / "of an earlier one").mkdir()
    (to / "docs").mkdir(exist_ok=True)
    (to / "docs/of an earlier one").touch()
    again = back(house, to)
    assert (again.code, again.outcome, again["resumed"]) == (0, "done", True), again
    assert facts(to) == facts(house.source)
    assert back(house, to).outcome == "refused", "what is whole is no unfinished restore"


def test_a_root_that_is_not_as_promised_is_found(house: House) -> None:
    hers(house)
    house.point().chmod(0o700)
    done = back(house, house.folder / "back")
    assert (done.code, done.outcome) == (1, "failed"), done
    assert ". has other metadata (mode 700, expected 2755; another access list)" in done["why"]


def test_every_name_at_the_top_and_none(house: House) -> None:
    for name in (
        b"#hash",
        b";semi",
        b"-dash",
        b"- x",
        b"new\nline",
        b"\xff\xfe",
        b" ",
        b"*",
        b"[1]",
        b"\\#012",
        b"x" * 255,
    ):
        house.write(name, name)
        house.write(name[:240] + b" folder/in", name)
    for number in range(3000):
        house.write(f"{number}")
    house.write("empty/in/file")
    (house.source / "empty/in/file").unlink()
    house.run(house.job())
    assert back(house, house.folder / "back").outcome == "done"
    assert facts(house.folder / "back") == facts(house.source)
    assert back(house, house.folder / "none", "--path", "empty/in").outcome == "done"
    assert facts(house.folder / "none") == facts(house.source / "empty/in")


def test_who_owns_the_folder_above_leads_root_nowhere(house: House, victim: Path) -> None:
    hers(house)
    above = house.folder / "anna"
    above.mkdir()
    give(above)
    to = above / "back"
    folder = stand_in(house, to, call=1, when="before", how="wait")
    running = house.start_call("restore", "run", "photos", "--to", str(to))
    wait_until((folder / "reached").exists)
    assert tries("mv", to, above / "away")
    assert tries("ln", "-s", victim, to)
    (folder / "go").touch()
    done = house.ended(running)
    assert (done.code, done.outcome) == (1, "failed"), done
    assert (above / "away/docs/passwd").read_text() == "hers: docs/passwd"
    assert (above / "away").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("planted", ["link", "her folder", "link in a folder of root's"])
def test_a_single_file_into_her_folder_is_written_through_nothing(house: House, victim: Path, planted: str) -> None:
    hers(house)
    folder = house.folder / "anna"
    folder.mkdir()
    give(folder)
    room = folder / PARTIAL
    match planted:
        case "link":
            assert tries("ln", "-s", victim, room)
        case "her folder":
            assert tries("mkdir", room)
            assert tries("ln", "-s", victim, room / "passwd")
        case _:
            room.mkdir(mode=0o700)
            (room / "passwd").symlink_to(victim)
    done = back(house, folder, "--path", "docs/passwd")
    if planted == "her folder":
        assert (done.code, done.outcome) == (1, "failed"), done
        assert "belongs to another user" in str(done.value)
        return
    assert (done.code, done.outcome) == (0, "done"), done
    assert os.listdir(folder) == ["passwd"]
    found, expected = facts(folder)[b"/passwd"], facts(house.source)[b"/docs/passwd"]
    assert (found[:5], found[6:]) == (expected[:5], expected[6:])


def test_what_comes_at_a_single_files_name_meanwhile_stays(house: House, victim: Path) -> None:
    hers(house)
    folder = house.folder / "anna"
    folder.mkdir()
    give(folder)
    stood = stand_in(house, folder / PARTIAL / "passwd", call=1, when="before", how="wait")
    running = house.start_call("restore", "run", "photos", "--path", "docs/passwd", "--to", str(folder / "passwd"))
    wait_until((stood / "reached").exists)
    assert tries("ln", "-s", victim / "passwd", folder / "passwd")
    (stood / "go").touch()
    done = house.ended(running)
    assert (done.code, done.outcome) == (1, "failed"), done
    assert "overwrites nothing" in str(done.value)
    assert (folder / "passwd").is_symlink()
