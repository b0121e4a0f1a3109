"""Test what owners of a source, and users of the machine that holds the copies, try with rsync's half-copied files and our names."""

import os
import shutil
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.place import Host, Location
from orchestrator.engines.rsync.commands import copy_command
from tests.engines.rsync.builders import EMPTY, job, mirror, world
from tests.hostile.conftest import STRANGER, tries
from tests.hostile.forgery import manifest_of, rewrite, text_of, untag
from tests.processes import strays
from tests.turns import turns
from tests.whole.house import House, facts, wait_until
from tests.whole.kills import MIB, half_copied, strike
from tests.whole.sshd import Sshd, sshd

pytestmark = pytest.mark.root
__all__ = ["sshd"]
PARTIAL = ".~poolferry-partial~"
RESTORING = ".poolferry-restoring.json"


def cut(house: House, **more: object) -> None:
    """Begins a run that takes long for the last file, and kills all of it."""
    house.write("zz/large", os.urandom(6 * MIB))
    house.job(pipe={"rate_limit": "3M"}, **more)
    process = house.start()
    wait_until(lambda: any(path.stat().st_size > MIB for path in house.target.rglob("*large*") if path.is_file()))
    strike(process, "all")
    house.ended(process)
    wait_until(lambda: not strays(house.folder))
    (house.source / "zz/large").unlink()


def bait(folder: Path, victim: Path) -> None:
    """Make a file that looks like rsync's temporary one of passwd, and a link in place of rsync's folder for half-copied files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".passwd.ABCDEF").write_text("evil::0:0::/:/bin/sh\n")
    (folder / PARTIAL).symlink_to(victim)


@pytest.mark.parametrize("points", [True, False])
def test_an_owner_leads_root_elsewhere_after_a_cut(house: House, victim: Path, *, points: bool) -> None:
    bait(house.source / "w", victim)
    cut(house, rsync={"points": points})
    shutil.rmtree(house.source / "w")
    house.write("w/passwd", "evil::0:0::/:/bin/sh\n" * 2)
    house.job(rsync={"points": points})
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    copy = house.point() if points else house.target
    assert (copy / "w/passwd").read_bytes() == (house.source / "w/passwd").read_bytes()
    assert not os.path.lexists(copy / "w" / PARTIAL)


def test_a_source_host_that_keeps_to_no_rule_leads_root_nowhere(house: House, victim: Path) -> None:
    """Not even a cut is needed where the copy's check fails: what it sent lies in the work tree as it wanted."""
    house.write("first", "x")
    house.run(house.job())
    bait(house.target / ".poolferry/work/w", victim)
    house.write("w/passwd", "evil::0:0::/:/bin/sh\n" * 2)
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert facts(house.point()) == facts(house.source)
    assert house.call("verify", "photos").code == 0


def test_a_remainder_that_is_an_older_points_file_is_not_written_into(house: House) -> None:
    """rsync links unchanged files to the point before: an orphan by name that is one of those is an owner's file."""
    house.write("w/.passwd.ABCDEF", "an owner's file")
    house.run(house.job())
    before = facts(house.point(0))
    work = house.target / ".poolferry/work/w"
    work.mkdir(parents=True)
    os.link(house.point(0) / "w/.passwd.ABCDEF", work / ".passwd.ABCDEF")
    (house.source / "w/.passwd.ABCDEF").unlink()
    house.write("w/passwd", "an owner's file, and more")
    assert house.run().outcome == "done"
    assert {path: told[:5] + told[6:] for path, told in facts(house.point(0)).items()} == {
        path: told[:5] + told[6:] for path, told in before.items()
    }


_BETWEEN = """#!{python}
import os, subprocess, sys
server = subprocess.Popen(sys.argv[sys.argv.index("rsync"):], stdin=subprocess.PIPE)
while told := os.read(0, 65536):
    server.stdin.write(told.replace(b"{name}", b"{other}"))
    server.stdin.flush()
server.stdin.close()
sys.exit(server.wait())
"""


@pytest.mark.parametrize("points", [True, False])
def test_rsync_takes_no_name_of_ours_from_a_host_that_does_not_hear_our_rules(
    house: House, victim: Path, *, points: bool
) -> None:
    """A sender that was taken over: here one to whom the rules come garbled."""
    (house.source / "w").mkdir()
    (house.source / "w" / PARTIAL).symlink_to(victim)
    between = house.folder / "between"
    between.write_text(_BETWEEN.format(python=sys.executable, name=PARTIAL, other=PARTIAL.replace("t", "x")))
    between.chmod(0o755)
    source = Location(path=str(house.source), host=Host(name="box"))
    told = replace(job(source=source) if points else mirror(delete=True), source=source)
    into = Location(path=str(house.target))
    for folder in ("partial", "temporary"):
        (house.target / ".poolferry" / folder).mkdir(parents=True, exist_ok=True)
    argv = list(copy_command(told, into, world(replace(EMPTY, exists=True)), base=None).argv)
    argv[argv.index("-e") + 1] = str(between)
    done = subprocess.run(argv, check=False, capture_output=True, timeout=30)
    assert b"rejecting excluded file-list name" in done.stderr
    assert not os.path.lexists(house.target / "w" / PARTIAL)


def test_no_user_enters_what_a_run_is_making(house: House) -> None:
    house.write("open/file", "x")
    (house.source / "open").chmod(0o777)
    house.source.chmod(0o755)
    house.write("zz/large", os.urandom(6 * MIB))
    house.job(pipe={"rate_limit": "3M"})
    process = house.start()
    wait_until(lambda: half_copied(house) > MIB)
    assert tries("ls", house.target)
    assert not tries("ls", house.target / ".poolferry")
    assert not tries("ls", house.target / ".poolferry/work")
    assert not tries("touch", house.target / ".poolferry/work/open/planted")
    assert house.ended(process).outcome == "done"


def test_an_owner_changes_no_point_and_nobody_reads_what_is_promised(house: House) -> None:
    theirs = house.write("folder/theirs", "as it was")
    (house.source / "folder").chmod(0o777)
    for path in (theirs, house.source / "folder"):
        os.chown(path, STRANGER, STRANGER)
    house.write("private/name", "x")
    (house.source / "private").chmod(0o700)
    house.run(house.job())
    point = house.point()
    assert not tries("sh", "-c", f"echo changed >> '{point}/folder/theirs'")
    assert not tries("rm", point / "folder/theirs")
    assert not tries("ls", house.target / "points")
    for file in (
        house.target / f"points/{point.name}.manifest.gz",
        house.target / ".poolferry/history.sqlite",
        house.target / ".poolferry/RECOVERY.md",
        house.state / "history.sqlite",
    ):
        assert not tries("cat", file), file
        assert file.stat().st_mode & 0o777 == 0o600, file
    assert house.state.stat().st_mode & 0o777 == 0o700


def test_what_an_older_version_left_open_is_closed_and_said_once(house: House, victim: Path) -> None:
    house.write("first", "x")
    house.run(house.job())
    for folder in (house.target / ".poolferry", house.target / "points", house.state):
        folder.chmod(0o755)
    (house.state / "history.sqlite").chmod(0o644)
    for name in ("running", "drill", "arrivals"):  # which a run that takes a while, a drill and a gate make
        (house.state / name).mkdir(mode=0o755, exist_ok=True)
    (house.state / "gate-nas.places").touch(0o644)
    bait(house.target / ".poolferry/work/w", victim)
    ran = house.run()
    assert ran.outcome == "nothing-to-do", ran
    assert len(ran["warnings"]) == 1
    assert "other users" in ran["warnings"][0]
    assert not (house.target / ".poolferry/work").exists(), "others may hold a way into it"
    for folder in (house.target / ".poolferry", house.target / "points", house.state):
        assert folder.stat().st_mode & 0o777 == 0o700, folder
    assert (house.state / "history.sqlite").stat().st_mode & 0o777 == 0o600
    assert (house.state / "gate-nas.places").stat().st_mode & 0o777 == 0o600
    assert (house.state / "drill").stat().st_mode & 0o777 == 0o700
    assert house.run()["warnings"] == []


def test_a_state_directory_that_holds_other_things_is_not_closed(house: House) -> None:
    house.state.mkdir(mode=0o755)
    (house.state / "somebody's").touch()
    house.write("x")
    house.run(house.job())
    assert house.state.stat().st_mode & 0o777 == 0o755
    assert (house.state / "history.sqlite").stat().st_mode & 0o777 == 0o600


WAYS: dict[str, dict[str, object]] = {
    "points": {},
    "mirror": {"points": False, "delete": True},
    "lanes": {"parallel": 2},
}
KINDS = ("file", "folder", "link", "fifo")


@pytest.mark.parametrize(("way", "kind"), turns(tuple(WAYS), KINDS))
@pytest.mark.sample(2)
def test_our_names_are_in_no_copy_whatever_they_are(house: House, victim: Path, way: str, kind: str) -> None:
    how = WAYS[way]
    for folder in ("", "deep/er"):
        for name in (PARTIAL, RESTORING):
            path = house.source / folder / name
            house.write(path.with_name("beside"), "x")
            match kind:
                case "file":
                    path.write_text("x")
                case "folder":
                    (path / "with").mkdir(parents=True)
                    (path / "with/file").write_text("x")
                case "link":
                    path.symlink_to(victim)
                case "fifo":
                    os.mkfifo(path)
    ran = house.run(house.job(rsync=how))
    assert (ran.code, ran.outcome) == (0, "done"), ran
    (said,) = ran["warnings"]
    assert f"deep/er/{PARTIAL}" in said
    copy = house.target if how.get("points") is False else house.point()
    assert [path for path in copy.rglob("*") if path.name in (PARTIAL, RESTORING)] == []
    assert (copy / "deep/er/beside").read_text() == "x"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0
    house.write("deep/more", "changed")
    assert house.run().outcome == "done"
    back = house.folder / "back"
    assert house.call("restore", "run", "photos", "--to", str(back)).code == 0
    assert sorted(path.name for path in back.rglob("*") if path.name.startswith(".~")) == []


MIRROR: dict[str, object] = {"points": False, "delete": True}


@pytest.mark.parametrize(
    ("way", "how"),
    [
        *(("here", how) for how in ({}, MIRROR, {"excludes": ["*.tmp"]})),
        *(("pull", how) for how in ({}, MIRROR, {"excludes": ["*.tmp"]})),
        ("push", {}),
    ],
    ids=["here", "mirror", "exclude", "pull", "pull-mirror", "pull-exclude", "push"],
)
@pytest.mark.sample(2)
def test_a_name_of_ours_that_comes_later_is_named_too(
    house: House, sshd: Sshd, way: str, how: dict[str, object]
) -> None:
    """Else its owner's data were in no copy, and nobody said so."""
    places = {"here": {}, "pull": {"source": sshd.url(house.source)}, "push": {"target": sshd.url(house.target)}}
    house.write("w\n1/file", "x")
    house.write("w\n1/a.tmp", "x")
    ran = house.run(house.job(rsync=how, pipe=sshd.pipe, **places[way]))
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    house.write(f"w\n1/{PARTIAL}", "what she keeps")
    house.write(f"z/{RESTORING}/a/b/c", "and this")
    house.write("changed", "x")
    ran = house.run()
    assert ran.outcome == "done"
    named = f"w\\n1/{PARTIAL}, z/{RESTORING}"
    assert ran["warnings"] == [f"never copied, as poolferry uses these names itself: {named}"], ran
    copy = house.target if how is MIRROR else house.point()
    assert [path for path in copy.rglob("*") if path.name in (PARTIAL, RESTORING)] == []
    assert house.run().outcome == "nothing-to-do"


def test_a_point_of_an_older_version_that_holds_our_names_comes_back(house: House) -> None:
    """An older version copied them. A restore brings back all else, and what lies at our mark's name is no damage."""
    stand_ins = {".poolferry-restoring.jsoX": RESTORING, ".~poolferry-partialX": PARTIAL}
    for name in stand_ins:
        os.mkfifo(house.source / name)
        house.write(f"w/{name}/in", "x")
    house.write("file", "x")
    house.run(house.job())
    text = text_of(manifest_of(house))
    for name, real in stand_ins.items():
        for folder in (house.source, house.point()):
            for where in (folder, folder / "w"):
                seen = where.stat()
                (where / name).rename(where / real)
                os.utime(where, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        text = text.replace(name.encode(), real.encode())
    rewrite(manifest_of(house), text)
    untag(manifest_of(house), 1)
    shutil.rmtree(house.state)  # with the key that such a version did not have
    house.write("new", "x")
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert house.call("verify", "photos", "--point", house.points()[0]).code == 0
    back = house.folder / "back"
    ran = house.call("restore", "run", "photos", "--point", house.points()[0], "--to", str(back))
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert sorted(path.name for path in back.rglob("*")) == ["file", "w"], ran
    drilled = house.call("drill", "photos", "--whole")
    assert (drilled.code, drilled.outcome) == (0, "done"), drilled


def users_folder(house: House) -> Path:
    """A folder of the mirror that belongs to the stranger."""
    house.write("w/passwd", "the first")
    os.chown(house.source / "w", STRANGER, STRANGER)
    return house.target / "w"


@pytest.mark.parametrize("consent", [True, False])
def test_a_user_leads_root_elsewhere_by_her_folder_of_a_mirror(house: House, victim: Path, *, consent: bool) -> None:
    """All that the mirror itself needs of her folder is rsync's; no script of ours takes up what lies there."""
    theirs = users_folder(house)
    job: dict[str, object] = {"points": False, "delete": consent}
    house.run(house.job(rsync=job))
    cut(house, rsync=job)
    assert tries("ln", "-s", victim, theirs / PARTIAL)
    assert tries("sh", "-c", f"echo evil > '{theirs}/.passwd.ABCDEF'")
    house.write("w/passwd", "the second, longer")
    house.job(rsync=job, guard={"max_deleted": "100%"})
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert (theirs / "passwd").read_text() == "the second, longer"
    assert not os.path.lexists(theirs / PARTIAL)
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.parametrize(
    ("more", "name"),
    [({}, "passwd"), ({}, "pass\nwd"), ({"checksum": True}, "passwd"), ({"in_place": True, "sparse": False}, "passwd")],
    ids=["metadata", "line-end", "checksum", "in-place"],
)
@pytest.mark.sample(2)
def test_a_user_gives_a_file_of_roots_a_name_in_her_folder_of_a_mirror(
    house: House, victim: Path, more: dict[str, object], name: str
) -> None:
    """rsync changes a file that is there in place, with all its names: its owner and mode, in-place its bytes too.

    Linux lets her where fs.protected_hardlinks is 0, and elsewhere with files that she may write; here root does it for her.
    """
    users_folder(house)
    theirs = house.write(f"w/{name}", "the first")
    house.write("w/twice", "x" * 99)
    os.link(house.source / "w/twice", house.source / "w/again")
    house.run(house.job(rsync={"points": False, "delete": True, **more}))
    kept = (house.target / "w/twice").stat()
    roots, copy = victim / "passwd", house.target / f"w/{name}"
    copy.unlink()
    os.link(roots, copy)
    theirs.write_text("evil" if "in_place" in more else "root's own\n")
    os.utime(theirs, ns=(roots.stat().st_atime_ns, roots.stat().st_mtime_ns))
    for path in (theirs, house.source / "w/twice"):
        os.chown(path, STRANGER, STRANGER)
        path.chmod(0o666)
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert copy.stat().st_ino != roots.stat().st_ino
    assert (copy.read_text(), copy.stat().st_uid) == (theirs.read_text(), STRANGER)
    assert (house.target / "w/twice").stat().st_ino == kept.st_ino == (house.target / "w/again").stat().st_ino
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.parametrize("swap", ["link", "folder"])
def test_an_owner_of_a_mirrors_root_exchanges_our_folder(house: House, victim: Path, swap: str) -> None:
    house.write("a", "x")
    os.chown(house.source, STRANGER, STRANGER)
    house.source.chmod(0o755)
    house.run(house.job(rsync={"points": False}))
    ours = house.target / ".poolferry"
    assert tries("mv", ours, house.target / "aside")
    if swap == "link":
        assert tries("ln", "-s", victim, ours)
    else:
        assert tries("mkdir", ours)
        assert tries("ln", "-s", victim / "passwd", ours / "target.json.new")
    house.write("a", "changed")
    ran = house.run("photos", "--allow", "target-new", "--allow", "target-in-use")
    assert ran.outcome in ("refused", "failed"), ran
    assert "link" in str(ran.value) or "another user" in str(ran.value) or "something else" in str(ran.value)


def test_a_fifo_in_place_of_a_mark_holds_no_restore_up(house: House) -> None:
    house.write("a", "x")
    house.run(house.job())
    to = house.folder / "to"
    to.mkdir()
    os.mkfifo(to / RESTORING)
    ran = house.call("restore", "run", "photos", "--to", str(to))
    assert ran.code == 3, ran


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.sample(1)
def test_an_owner_writes_attributes_that_rsync_keeps_for_itself(house: House, sshd: Sshd, *, far: bool) -> None:
    """They are an owner's bytes, as any other: they come back as they were, stop no run, and make no file another's."""
    forged = {
        "user.rsync.%stat": b"104755 1,3 0:0",
        "user.rsync.%aacl": b"junk",
        "user.rsync.security.capability": b"junk",
    }
    for name, value in forged.items():
        os.setxattr(house.write("hers", "content"), name, value)
    os.chown(house.source / "hers", STRANGER, STRANGER)
    ran = house.run(house.job(**({"target": sshd.url(house.target), "pipe": sshd.pipe} if far else {})))
    assert ran.outcome == "done", ran
    assert house.run().outcome == "nothing-to-do"
    os.setxattr(house.source / "hers", "user.rsync.%stat", b"104755 1,3 1:1")
    assert house.run().outcome == "done"
    assert house.call("verify", "photos", "--source").code == 0
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).code == 0
    assert facts(house.folder / "back") == facts(house.source)


def test_an_owner_writes_an_access_list_in_an_order_of_her_own(house: House) -> None:
    """The kernel takes it, and rsync writes it in another: that is the same list, and stops no run."""
    nobody = 0xFFFFFFFF
    entries = (
        (1, 6, nobody),
        (2, 4, 9),
        (2, 6, 3),
        (4, 4, nobody),
        (8, 4, 70),
        (8, 2, 7),
        (16, 6, nobody),
        (32, 4, nobody),
    )
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    os.setxattr(house.write("hers", "content"), "system.posix_acl_access", value)
    assert os.getxattr(house.source / "hers", "system.posix_acl_access") == value
    assert house.run(house.job()).outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos", "--source").code == 0
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).code == 0
