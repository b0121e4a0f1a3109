"""Test what users try with the folders that lead to a target, a source, a destination, a scratch folder or the state."""

import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.conftest import STRANGER, tries
from tests.processes import strays
from tests.whole.house import House, Ran, facts, wait_until
from tests.whole.kills import MIB, strike
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]
pytestmark = [pytest.mark.root, pytest.mark.slow]
REAL = shutil.which("rsync")

# In place of rsync: before the first copy it waits, so that everything can be exchanged meanwhile.
_WAITS = """#!/bin/sh
case "$*" in
  *--server* | *--dry-run* | *--version*) exec {real} "$@" ;;
esac
# From 3.5 on rsync follows no link of another user in a path; those of Debian 12 and 13 do, and so does this one.
! {real} --help | grep -q -e --insecure-links || set -- --insecure-links "$@"
: > "{folder}/reached"
while [ ! -e "{folder}/go" ]; do sleep 0.01; done
exec {real} "$@"
"""


def give(path: Path) -> Path:
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
    return path


@pytest.fixture
def hers(house: House) -> Path:
    """A folder of the stranger's."""
    folder = house.folder / "anna"
    folder.mkdir()
    return give(folder)


def run_meanwhile(house: House, *acts: tuple[str | Path, ...], arguments: tuple[str, ...] = ("run", "photos")) -> Ran:
    """Runs a command; the stranger tries these once it is about to copy."""
    folder = house.folder / "stand-in"
    folder.mkdir()
    (folder / "rsync").write_text(_WAITS.format(real=REAL, folder=folder))
    (folder / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    running = house.start_call(*arguments)
    wait_until(lambda: (folder / "reached").exists() or running.poll() is not None)
    for act in acts:
        tries(*act)
    (folder / "go").touch()
    ran = house.ended(running)
    house.environment["PATH"] = os.environ["PATH"]
    return ran


def decoy(hers: Path, victim: Path) -> Path:
    """A target of hers, whose work tree and whose mirror's root lead to root's folder."""
    folder = hers / "decoy"
    assert tries("mkdir", "-p", folder / ".poolferry")
    assert tries("ln", "-s", victim, folder / ".poolferry/work")
    return folder


@pytest.mark.parametrize("where", ["here", "far", "mirror"])
def test_who_owns_the_folder_above_a_target_leads_a_copy_nowhere(
    house: House, sshd: Sshd, hers: Path, victim: Path, where: str
) -> None:
    house.write("passwd", "evil::0:0::/:/bin/sh\n")
    target = hers / "photos"
    if where == "far":
        house.job(target=sshd.url(target), pipe=sshd.pipe)
    else:
        house.job(target=str(target), rsync={"points": where == "here"})
    other = decoy(hers, victim)
    ran = run_meanwhile(house, ("mv", target, hers / "away"), ("ln", "-s", other, target))
    assert target.is_symlink(), "it is about what happens then"
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "link of another user" in str(ran.value) or "somebody else owns" in str(ran.value)
    assert list((hers / "decoy/.poolferry").iterdir()) == [hers / "decoy/.poolferry/work"]
    target.unlink()
    (hers / "away").rename(target)
    again = house.run()
    assert (again.code, again.outcome) == (0, "done"), again


@pytest.mark.parametrize("where", ["here", "far"])
def test_who_owns_the_folder_above_a_mirror_leads_it_nowhere(
    house: House, sshd: Sshd, hers: Path, victim: Path, where: str
) -> None:
    house.write("passwd", "the first")
    house.source.chmod(0o775)  # so no folder of ours in the mirror takes what rsync writes
    target = hers / "photos"
    place = {"target": str(target)} if where == "here" else {"target": sshd.url(target), "pipe": sshd.pipe}
    house.job(rsync={"points": False, "delete": True}, guard={"max_deleted": "100%"}, **place)
    assert house.run().outcome == "done"
    house.write("passwd", "evil::0:0::/:/bin/sh\n")
    ran = run_meanwhile(house, ("mv", target, hers / "away"), ("ln", "-s", victim, target))
    assert target.is_symlink()
    assert (ran.code, ran.outcome) == (1, "failed"), ran


@pytest.mark.parametrize("points", [True, False])
@pytest.mark.sample(1)
def test_a_target_below_a_folder_of_hers_is_as_good_as_any(house: House, hers: Path, *, points: bool) -> None:
    """Every kind of copy, begun in the very folder."""
    house.write("deep/file", "x" * 5000)
    house.write("other/file", "x" * 5000)
    house.write("zz/large", os.urandom(6 * MIB))
    target = hers / "photos"
    how: dict[str, object] = {"target": str(target), "rsync": {"points": points, "parallel": 2 if points else 1}}
    house.job(pipe={"rate_limit": "2M"}, **how)
    process = house.start()
    wait_until(lambda: any(path.stat().st_size > MIB for path in target.rglob("*large*") if path.is_file()))
    strike(process, "all")
    house.ended(process)
    wait_until(lambda: not strays(house.folder))
    house.job(**how)
    first = house.run()
    assert (first.outcome, first["resumed"]) == ("done", True), first
    house.write("deep/file", "changed")
    os.chown(house.source / "other/file", 5, 5)
    assert house.run().outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0
    assert house.call("drill", "photos").code == 0
    back = hers / "back"
    assert house.call("restore", "run", "photos", "--to", str(back)).outcome == "done"
    assert facts(back) == facts(house.source)
    if points:
        one, other = (target / "points" / name / "zz/large" for name in house.points(target))
        assert os.path.samefile(one, other), "unchanged files are linked"


def test_who_owns_a_targets_root_exchanges_nothing_in_it(house: House, hers: Path, victim: Path) -> None:
    house.write("passwd", "evil::0:0::/:/bin/sh\n")
    target = house.target
    target.mkdir(mode=0o775)
    give(target)
    house.job()
    ours = target / ".poolferry"
    acts = [("mv", ours, target / "away"), ("mkdir", ours), ("ln", "-s", victim, ours / "work")]
    ran = run_meanwhile(house, *acts)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert (target.stat().st_uid, target.stat().st_mode & 0o777) == (0, 0o755)
    assert len(ran["warnings"]) == 1
    assert "other users" in ran["warnings"][0]
    assert facts(house.point()) == facts(house.source)
    again = house.run()
    assert (again.outcome, again["warnings"]) == ("nothing-to-do", []), again


@pytest.mark.parametrize("what", ["target", "source"])
def test_a_link_of_hers_leads_to_no_target_and_no_source(house: House, hers: Path, victim: Path, what: str) -> None:
    house.write("a", "x")
    assert tries("ln", "-s", victim, hers / "link")
    house.job(**{what: str(hers / "link" / ("photos" if what == "target" else ""))})
    ran = house.run()
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "somebody else owns" in ran["why"]
    assert "realpath" in ran["hint"]
    assert not house.points()


def test_a_link_of_roots_leads_to_a_target(house: House) -> None:
    (house.folder / "disk/one").mkdir(parents=True)
    (house.folder / "link").symlink_to("disk")
    (house.folder / "disk/two").symlink_to(house.folder / "disk/one")
    house.write("a", "x")
    house.job(target=str(house.folder / "link/two/photos"))
    assert house.run().outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0
    assert (house.folder / "disk/one/photos/latest/a").read_text() == "x"


@pytest.mark.parametrize("path", ["", "a"], ids=["folder", "file"])
def test_a_link_of_hers_above_a_destination_is_not_followed(house: House, hers: Path, victim: Path, path: str) -> None:
    house.write("a", "x")
    house.run(house.job())
    assert tries("ln", "-s", victim, hers / "link")
    to = hers / "link" / ("passwd.new" if path else "folder")
    ran = house.call("restore", "run", "photos", "--to", str(to), *(["--path", path] if path else []))
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "somebody else owns" in ran["why"]


def test_what_lies_at_a_destination_is_not_renamed_elsewhere(house: House, hers: Path, victim: Path) -> None:
    """`--aside` renames what is there; her folder above becomes a link to root's just before."""
    house.write("passwd", "x")
    house.run(house.job())
    (hers / "etc").mkdir()
    (hers / "etc/passwd").write_text("hers")
    give(hers / "etc")
    stat = house.folder / "stand-in/stat"
    stat.parent.mkdir()
    # The look at the destination is over when a restore's first script runs.
    (stat.parent / "sh").write_text(
        f'#!/bin/sh\ncase "$3" in begin-*) rm -rf "{hers}/etc"; ln -sfn "{victim}" "{hers}/etc"; '
        f'chown -h {STRANGER} "{hers}/etc" ;; esac\nexec /bin/sh "$@"\n'
    )
    (stat.parent / "sh").chmod(0o755)
    house.environment["PATH"] = f"{stat.parent}:{os.environ['PATH']}"
    ran = house.call("restore", "run", "photos", "--path", "passwd", "--to", str(hers / "etc/passwd"), "--aside")
    assert (hers / "etc").is_symlink()
    assert (ran.code, ran.outcome) == (1, "failed"), ran


@pytest.mark.parametrize("points", [True, False])
def test_a_link_inside_a_point_leads_a_restore_nowhere(house: House, victim: Path, *, points: bool) -> None:
    house.write("a", "x")
    (house.source / "docs").symlink_to(victim)
    house.run(house.job(rsync={"points": points}))
    back = house.folder / "back"
    ran = house.call("restore", "run", "photos", "--path", "docs/passwd", "--to", str(back / "passwd"))
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert not back.exists()
    assert house.call("restore", "run", "photos", "--path", "docs", "--to", str(back)).outcome == "done"
    assert back.is_symlink()


@pytest.mark.parametrize("how", ["hers", "below hers", "for all"])
def test_a_state_directory_that_others_may_exchange_is_refused(
    house: House, hers: Path, victim: Path, how: str
) -> None:
    house.write("a", "x")
    house.job()
    house.state = hers / "state" if how == "below hers" else house.state
    if how != "below hers":
        house.state.mkdir()
        house.state.chmod(0o777)
        give(house.state) if how == "hers" else house.state
        assert tries("mkdir", house.state / "locks")
        assert tries("ln", "-s", victim / "passwd", house.state / "locks/job-photos")
    ran = house.run()
    if how == "for all":
        assert (ran.code, "locks is not poolferry's own" in ran.errors) == (1, True), ran
        return
    assert ran.code == 1, ran
    assert "chown root" in ran["hint"]
    assert not (hers / "state").exists()


@pytest.mark.parametrize("whole", [True, False])
def test_a_scratch_folder_that_others_may_exchange_is_refused(house: House, hers: Path, *, whole: bool) -> None:
    house.write("a", "x")
    house.run(house.job(drill={"scratch": str(hers)}))
    (hers / "poolferry-drill-photos").mkdir()
    (hers / "poolferry-drill-photos/poolferry-drill").touch()
    (hers / "poolferry-drill-photos/keep").write_text("hers")
    for path in (hers / "poolferry-drill-photos", *(hers / "poolferry-drill-photos").iterdir()):
        give(path)
    ran = house.call("drill", "photos", *(["--whole"] if whole else []))
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert "scratch" in ran["hint"]
    assert (hers / "poolferry-drill-photos/keep").exists()


def test_a_scratch_folder_where_all_may_write_is_good_once_it_is_ours(house: House) -> None:
    scratch = house.folder / "scratch"
    scratch.mkdir()
    scratch.chmod(0o1777)
    house.write("a", "x")
    house.run(house.job(drill={"scratch": str(scratch)}))
    assert house.call("drill", "photos").code == 0
    assert tries("mkdir", scratch / "poolferry-drill-photos")
    ran = house.call("drill", "photos")
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert (scratch / "poolferry-drill-photos").stat().st_uid == STRANGER
