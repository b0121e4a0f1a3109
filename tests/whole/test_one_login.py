"""One login for each run over ssh: what a run asks of its host, and its rsyncs, go through one connection; without it they go on."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.rsync.commands import digests_command
from orchestrator.process.ssh_master import shared_connections
from tests.engines.rsync.builders import job as declared
from tests.processes import argv_of, links, living, told
from tests.whole.damage import fill
from tests.whole.house import House, kill, rsyncs, trees_equal, wait_until
from tests.whole.large_copy import AT_ONCE, in_the_middle, random_file
from tests.whole.sshd import Sshd

pytestmark = pytest.mark.slow


@pytest.fixture
def loud(tmp_path: Path) -> Iterator[Sshd]:
    """A server whose log names each login."""
    server = Sshd(tmp_path / "loud", more="LogLevel VERBOSE")
    server.start()
    yield server
    server.stop()


def logins(server: Sshd) -> int:
    return (server.folder / "log").read_text().count("Accepted publickey")


def masters(server: Sshd) -> list[int]:
    """The processes here that hold the shared connections to a server; their command line is their socket's path."""
    found = [
        pid
        for pid in living()
        if any("ferry-ssh-" in word for word in argv_of(pid)) and argv_of(pid)[0].startswith("ssh: ")
    ]
    return [pid for pid in found if _reaches(pid, server)]


def _reaches(pid: int, server: Sshd) -> bool:
    """One of its connections is to the server's port."""
    own, rows = set(links(pid)), [line.split() for line in told(pid, "net/tcp").decode().splitlines()[1:]]
    return any(f"socket:[{row[9]}]" in own and int(row[2].partition(":")[2], 16) == server.port for row in rows)


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.sample(2)
def test_each_run_logs_in_once(house: House, loud: Sshd, way: str, lanes: int) -> None:
    fill(house.source)
    for number in range(40):
        house.write(f"many/{number}", bytes(1000 + number))
    far = house.source if way == "pull" else house.target
    one = {"source": loud.url(far)} if way == "pull" else {"target": loud.url(far)}
    house.job(**one, pipe=loud.pipe, rsync={"parallel": lanes})  # of two rsyncs the second has its own connection
    seen, outcomes = [], []
    for change in ("first", "none", "some", "verify", "drill"):
        if change == "some":
            house.write("plain", "changed")
            house.write("many/new", "new")
            time.sleep(1.1)
        before = logins(loud)
        if change in ("verify", "drill"):
            told = house.call(change, "photos", *(["--source"] if change == "verify" else []))
            assert told.code == 0, told
        else:
            outcomes.append(house.run().outcome)
        seen.append((change, logins(loud) - before))
    assert outcomes == ["done", "nothing-to-do", "done"]
    assert trees_equal(house.source, house.point())
    assert dict(seen) == {"first": lanes, "none": 1, "some": lanes, "verify": 1, "drill": int(way == "push")}


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.sample(1)
def test_a_run_whose_connection_dies_in_mid_copy_goes_on(house: House, loud: Sshd, way: str) -> None:
    size = random_file(house.source / "disk.img", 120_000_000).stat().st_size
    one = {"source": loud.url(house.source)} if way == "pull" else {"target": loud.url(house.target)}
    house.job(**one, pipe={**loud.pipe, "rate-limit": "60M"}, retry=AT_ONCE)
    run = house.start()
    in_the_middle(house, size)
    (master,) = masters(loud)
    kill(master)
    ended = house.ended(run)
    assert (ended.outcome, ended["attempts"], ended["resumed"]) == ("done", 2, True), ended
    assert "the transfer broke off in the middle" in str(ended["warnings"]), ended
    assert ended["moved_bytes"] < 1.2 * size
    assert trees_equal(house.source, house.point())
    assert logins(loud) == 2
    wait_until(lambda: not masters(loud))
    assert not loud.sessions()


def test_a_run_that_is_asked_to_stop_leaves_nothing_on_the_connection(house: House, loud: Sshd) -> None:
    size = random_file(house.source / "disk.img", 120_000_000).stat().st_size
    house.job(target=loud.url(house.target), pipe={**loud.pipe, "rate-limit": "20M"})
    run = house.start()
    in_the_middle(house, size)
    assert rsyncs(run)
    run.send_signal(signal.SIGTERM)
    ended = house.ended(run)
    assert ended.outcome == "interrupted", ended
    wait_until(lambda: not loud.sessions())
    assert not masters(loud)
    house.job(target=loud.url(house.target), pipe=loud.pipe)
    assert (again := house.run()).outcome == "done", again
    assert (again["resumed"], trees_equal(house.source, house.point())) == (True, True)


def test_a_stopped_connection_is_a_stall_and_the_next_attempt_has_its_own(house: House, loud: Sshd) -> None:
    """Frozen, it answers nobody: neither the copy nor the question after it."""
    size = random_file(house.source / "disk.img", 120_000_000).stat().st_size
    alive = ["-oServerAliveInterval=1", "-oServerAliveCountMax=2"]
    pipe = {"ssh-options": [*loud.pipe["ssh-options"], *alive], "rate-limit": "30M", "stall-after": "5s"}  # type: ignore[misc]
    house.job(target=loud.url(house.target), pipe=pipe, retry=AT_ONCE)
    run = house.start()
    in_the_middle(house, size)
    (master,) = masters(loud)
    kill(master, signal.SIGSTOP)
    try:
        wait_until(lambda: not rsyncs(run), 60)
    finally:
        kill(master, signal.SIGCONT)
    ended = house.ended(run)
    assert (ended.outcome, ended["resumed"]) == ("done", True), ended
    assert trees_equal(house.source, house.point())


def test_an_rsync_without_a_connection_logs_in_by_itself_and_leaves_none(loud: Sshd, tmp_path: Path) -> None:
    """It finds no socket, or one of a connection that has died; it makes none, which would outlive it within its mounts."""
    for name in ("tree", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "tree/file").write_text("content")
    host, options = Host(name="127.0.0.1", user=loud.user, port=loud.port), ("-F", str(loud.folder / "client"))
    job = declared()
    job = replace(job, pipe=replace(job.pipe, ssh_options=options))
    tree = Location(path=str(tmp_path / "tree"), host=host)
    command = digests_command(tree, str(tmp_path / "empty"), "xxh128", job, whole=True)
    with shared_connections((host,), options) as shared:
        (folder,) = [Path(word.partition("=")[2]).parent for word in shared if word.startswith("-oControlPath=")]
        _told_by(command, shared)
        assert (logins(loud), os.listdir(folder)) == (1, [])
        subprocess.run(ssh_argv(Command(argv=("true",), effect=Effect.READS, host=host), shared), check=True)
        _told_by(command, shared)
        assert logins(loud) == 2
        (master,) = masters(loud)
        kill(master)
        assert os.listdir(folder), "its socket stays behind"
        _told_by(command, shared)
        assert (logins(loud), masters(loud)) == (3, [])


def _told_by(command: Command, options: tuple[str, ...]) -> None:
    done = subprocess.run(ssh_argv(command, options), capture_output=True, text=True, check=True)
    assert done.stdout.endswith("|file\n"), done
