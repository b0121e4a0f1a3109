"""Test that what a target cannot store is named, and lost only by consent; its copies are verified against the source all the same."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.whole.house import House, facts, family, kill, wait_until
from tests.whole.sshd import Sshd, make_key

pytestmark = [pytest.mark.root, pytest.mark.slow]
_PLAIN = "setpriv --reuid=1234 --regid=1234 --clear-groups"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Sshd]:
    """A server where we are an ordinary user."""
    server = Sshd(tmp_path / "sshd", more=f'ForceCommand cd /; {_PLAIN} sh -c "$SSH_ORIGINAL_COMMAND"')
    server.start()
    yield server
    server.stop()


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of that user's."""
    folder = Path(mkdtemp(dir="/var/tmp"))
    os.chown(folder, 1234, 1234)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def test_an_ordinary_user_there_loses_no_owner_unseen(house: House, plain: Sshd, theirs: Path) -> None:
    house.write("mine", "content")
    os.chown(house.source / "mine", 1000, 1000)
    house.write("roots", "content")
    house.target = theirs / "copies"
    ran = house.run(house.job(target=plain.url(house.target), pipe=plain.pipe))
    assert ran.outcome == "failed", ran
    assert "owner 1234:1234, expected 1000:1000" in ran["why"]
    assert "owners = false" in ran["hint"]
    assert house.points() == []
    house.job(target=plain.url(house.target), pipe=plain.pipe, rsync={"owners": False})
    ran = house.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert house.call("verify", "photos").code == 0
    assert house.run().outcome == "nothing-to-do"


def test_nothing_is_restored_among_the_copies(house: House) -> None:
    house.write("file", "content")
    house.run(house.job())
    before = facts(house.target)
    for place in ("points/restored", ".poolferry/restored", "points"):
        ran = house.call("restore", "run", "photos", "--to", str(house.target / place))
        assert (ran.code, ran.outcome) == (3, "refused"), ran
        assert "among the copies" in ran["why"]
    (house.folder / "link").symlink_to(house.target / "points")
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "link/x")).outcome == "refused"
    assert facts(house.target) == before
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).code == 0


def test_a_check_of_the_system_names_programs_that_are_not_gnus(house: House, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "find").write_text("#!/bin/sh\necho 'BusyBox v1.36' >&2; exit 1\n")
    (tools / "find").chmod(0o755)
    server = Sshd(tmp_path / "sshd", path=f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin")
    server.start()
    try:
        house.write("file", "content")
        house.job(target=server.url(house.target), pipe=server.pipe)
        ran = house.call("check", "--system")
        assert ran.code != 0, ran
        assert "missing, or not GNU's (BusyBox?): find" in str(ran.value), ran
        ran = house.run()
        assert "not GNU's" in ran["why"], ran
        assert f"-F {server.folder}/client" in str(ran["evidence"]), "the line works as it stands"
    finally:
        server.stop()


def test_a_first_mirror_over_ssh_that_is_killed_has_its_manifest_after_the_next_run(
    house: House, tmp_path: Path
) -> None:
    server = Sshd(tmp_path / "sshd")
    server.start()
    try:
        for number in range(20):
            house.write(f"small/{number}", "x")
        house.write("large", os.urandom(3 << 20))
        told = {"target": server.url(house.target), "rsync": {"points": False, "delete": True}}
        house.job(**told, pipe={**server.pipe, "rate_limit": "500k"})
        for moment in (".poolferry/target.json", "small/5"):
            process = house.start()
            wait_until((house.target / moment).exists)
            for pid in (process.pid, *(pid for pid, _ in family(process.pid)), *server.sessions()):
                kill(pid)
            house.ended(process)
        house.job(**told, pipe=server.pipe)
        ran = house.run()
        assert (ran.outcome, ran["resumed"]) == ("done", True), ran
        assert house.call("verify", "photos").code == 0
        assert house.run().outcome == "nothing-to-do"
    finally:
        server.stop()


def test_a_host_key_that_changed_has_a_hint_of_its_own(house: House, tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd")
    make_key(tmp_path / "former")
    known = server.folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.port} {(tmp_path / 'former.pub').read_text()}")
    server.start()
    try:
        house.write("file", "content")
        ran = house.run(house.job(target=server.url(house.target), pipe=server.pipe))
        assert "another one than before" in ran["why"], ran
        assert "ssh-keygen -R HOST" in ran["hint"]
        name = f"[127.0.0.1]:{server.port}"
        subprocess.run(["ssh-keygen", "-q", "-R", name, "-f", known], check=True, capture_output=True)
        server.know(server.port)
        assert house.run().outcome == "done"
    finally:
        server.stop()
