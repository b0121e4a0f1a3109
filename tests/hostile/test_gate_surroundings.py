"""A gate whose environment, files or line are not as they should be, or at which several come at once, answers as ever, or nothing."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.process.handover import PERL
from tests.hostile.adding_gate import ask, first_point, script, write_line
from tests.turns import turns
from tests.whole.house import House, facts, trees_equal
from tests.whole.sshd import Sshd, make_key, sshd

pytestmark = [pytest.mark.slow, pytest.mark.namespace]
__all__ = ["sshd"]


def behind(sshd: Sshd, front: str) -> None:
    """Let the gate's command run behind other words, as the line of its key is written."""
    line = (sshd.folder / "authorized_keys").read_text()
    write_line(sshd, line.replace('command="', f'command="{front} ', 1))


def bare(sshd: Sshd) -> None:
    """Let the line give the key all that `restrict` takes."""
    line = (sshd.folder / "authorized_keys").read_text()
    assert '",restrict ' in line, line
    write_line(sshd, line.replace('",restrict ', '" ', 1))


def again_with(sshd: Sshd, more: str) -> None:
    """Start the server with more in its configuration."""
    sshd.stop()
    with open(sshd.folder / "server", "a", encoding="utf-8") as file:
        file.write(more)
    sshd.start()


def of_all_hands(sshd: Sshd) -> None:
    """Start the server where files are for everybody, unless who makes them says otherwise."""
    before = os.umask(0)
    try:
        again_with(sshd, "")
    finally:
        os.umask(before)


SURROUNDINGS: dict[str, Callable[[Sshd], None]] = {
    "no HOME, no PATH": lambda sshd: behind(sshd, "exec env -u HOME -u PATH"),
    "an empty environment": lambda sshd: behind(sshd, 'exec env -i SSH_ORIGINAL_COMMAND=\\"$SSH_ORIGINAL_COMMAND\\"'),
    "another language": lambda sshd: behind(sshd, "exec env LC_ALL=tr_TR.UTF-8 LANG=C LANGUAGE=de POSIXLY_CORRECT=1"),
    "umask 0": of_all_hands,
    "no restrict": bare,
    "a banner before the login": lambda sshd: again_with(sshd, f"Banner {__file__}\n"),
}


@pytest.mark.parametrize("around", SURROUNDINGS)
@pytest.mark.sample(3)
def test_a_gate_answers_as_ever_whatever_is_around_it(house: House, sshd: Sshd, around: str) -> None:
    folder = first_point(house, sshd)
    before, name = facts(folder / "points"), house.points()[0]
    SURROUNDINGS[around](sshd)
    house.write("new", "file")
    (house.source / "new").chmod(0o604)
    assert (ended := house.run()).outcome == "done", ended
    assert trees_equal(house.source, house.point())
    open_to_others = [
        path
        for path in (
            *house.state.glob("gate-*"),
            *(house.state / "arrivals").iterdir(),
            folder,
            *(folder / ".poolferry").iterdir(),
            folder / "points",
        )
        if not path.is_symlink() and path.stat().st_mode & 0o077
    ]
    assert open_to_others == []
    for words in (("true",), ("sh", "-c", "x", "remove.sh", str(folder), name), ("cat", "--", "/etc/shadow")):
        refused = ask(sshd, *words)
        assert (refused.returncode, b"refused: " in refused.stderr, refused.stdout) == (126, True, b""), refused
    after = facts(folder / "points")
    assert {path: after[path] for path in before if path} == {path: each for path, each in before.items() if path}


def test_nothing_passes_where_perl_is_gone(house: House, sshd: Sshd) -> None:
    first_point(house, sshd)
    before = facts(house.target)
    line = (sshd.folder / "authorized_keys").read_text()
    write_line(sshd, line.replace(f'command="{PERL} ', 'command="/nowhere/perl ', 1))
    house.write("new", "file")
    failed = house.run()
    assert failed.outcome == "failed", failed
    assert "/nowhere/perl" in str(failed.value), failed
    assert facts(house.target) == before
    write_line(sshd, line)
    assert (ended := house.run()).outcome == "done", ended


def test_a_shell_that_talks_makes_no_point_and_is_named(house: House, sshd: Sshd) -> None:
    """Its words come before each answer, and are taken for none."""
    first_point(house, sshd)
    before = facts(house.target / "points")
    talks = house.folder / "talks"
    talks.write_text("echo Welcome to the server\n")
    line = (sshd.folder / "authorized_keys").read_text()
    behind(sshd, f". {talks}; exec")
    house.write("new", "file")
    failed = house.run()
    assert failed.outcome == "failed", failed
    assert "Welcome to the server" in str(failed.value), failed
    assert facts(house.target / "points") == before
    write_line(sshd, line)
    assert (ended := house.run()).outcome == "done", ended
    assert trees_equal(house.source, house.point())


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(5000))


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("damage", "name"),
    turns((_garbage, _empty, _link, os.mkfifo, os.mkdir), ("places", "session", "lock", "asked", "bytes")),
)
@pytest.mark.sample(6)
def test_damaged_files_of_a_gate_hold_up_nobody_or_are_named(
    house: House, sshd: Sshd, name: str, damage: Callable[[Path], None]
) -> None:
    first_point(house, sshd)
    write_line(sshd, (sshd.folder / "authorized_keys").read_text())  # and nobody is left behind
    path = house.state / f"gate-laptop.{name}"
    path.unlink(missing_ok=True)
    damage(path)
    passwd = Path("/etc/passwd").read_bytes()
    asked = script(sshd, "see-point.sh", str(house.target), house.points()[0])
    if asked.returncode:
        assert b"poolferry gate laptop: refused: " in asked.stderr, asked
        assert name.encode() in asked.stderr, asked
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    house.write("new", "file")
    assert (ended := house.run()).outcome == "done", ended
    assert trees_equal(house.source, house.point())
    assert Path("/etc/passwd").read_bytes() == passwd


def other_host(house: House, sshd: Sshd, *, key: bool) -> House:
    """Another host with the same job and other files; `key`: it has one of its own, and a gate to the same folder."""
    other = House(house.folder / "other")
    other.target = house.target
    client = sshd.folder / "client"
    if key:
        make_key(sshd.folder / "other_key")
        client = sshd.folder / "other-client"
        client.write_text((sshd.folder / "client").read_text().replace("user_key", "other_key"))
        public = (sshd.folder / "other_key.pub").read_text()
        keys = sshd.folder / "authorized_keys"
        done = house.call("setup", "gate", "desk", "--adds", str(house.target), "--key", public, "--into", str(keys))
        assert done.code == 0, done
    other.job(target=sshd.url(house.target), pipe={"ssh-options": ["-F", str(client)]})
    return other


@pytest.mark.parametrize("key", [False, True], ids=["one key", "two gates"])
@pytest.mark.sample(1)
def test_two_hosts_at_one_folder_mix_nothing(house: House, sshd: Sshd, key: bool) -> None:
    """They come at once, again and again: each point is one host's, whole, and none that was there changes."""
    first_point(house, sshd)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    hosts = [house, other_host(house, sshd, key=key)]
    versions = [house.point()]
    for turn in range(3):
        before = {point: facts(house.target / "points" / point) for point in house.points()}
        for number, each in enumerate(hosts):
            for name in range(40):
                each.write(f"both/{name}", f"{turn} of {number}, {name}")
            each.write(f"only {number}/file", f"{turn}")
        runs = [each.start() for each in hosts]
        ends = [each.ended(run, within=300) for each, run in zip(hosts, runs, strict=True)]
        assert {end.outcome for end in ends} <= {"done", "failed", "refused", "waiting", "nothing-to-do"}, ends
        assert {point: facts(house.target / "points" / point) for point in before} == before
        new = [house.target / "points" / point for point in house.points() if point not in before]
        assert len(new) == sum(end.outcome == "done" for end in ends), (new, ends)
        for point in new:
            assert any(trees_equal(each.source, point) for each in hosts), (point, ends)
        versions += new
    assert len(versions) > 1, "nobody got through"
