"""One connection for all commands, on a real sshd."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader, pipeline_failure
from orchestrator.process.ssh_master import shared_connections
from tests.process.pipelines import until
from tests.whole.sshd import Link, Sshd, link, sshd

__all__ = ["link", "sshd"]
pytestmark = pytest.mark.slow


ASKS = """
import sys, time
from orchestrator.domain.plan import Effect, single_command
from orchestrator.domain.place import Host
from orchestrator.process.executor import Reader, pipeline_failure
from orchestrator.process.ssh_master import shared_connections
host = Host(name="127.0.0.1", user=sys.argv[1], port=int(sys.argv[2]))
with shared_connections((host,), tuple(sys.argv[3:])) as options:
    print(Reader(ssh_options=options).read(single_command("echo", "here", effect=Effect.READS, host=host)).stdout, flush=True)
    time.sleep(100)
"""


def whoami(host: Host) -> Pipeline:
    """Tells which connection a command came by."""
    return single_command("sh", "-c", "echo $SSH_CONNECTION", effect=Effect.READS, host=host)


def at(server: Sshd) -> tuple[Host, tuple[str, ...]]:
    return Host(name="127.0.0.1", user=server.user, port=server.port), ("-F", str(server.folder / "client"))


def folder_of(options: tuple[str, ...]) -> Path:
    """Return the folder of the sockets that ssh's options name."""
    (path,) = [word.partition("=")[2] for word in options if word.startswith("-oControlPath=")]
    return Path(path).parent


def test_all_commands_share_one_connection_that_ends_with_them(sshd: Sshd) -> None:
    host, options = at(sshd)
    with shared_connections((host,), options) as shared:
        folder = folder_of(shared)
        assert folder.is_dir()
        reader = Reader(ssh_options=shared)
        told = {reader.read(whoami(host)).stdout for _ in range(4)}
        assert len(told) == 1
        assert sshd.sessions()
    assert until(lambda: not sshd.sessions())
    assert not folder.exists()


def test_without_it_each_command_logs_in(sshd: Sshd) -> None:
    host, options = at(sshd)
    reader = Reader(ssh_options=options)
    assert len({reader.read(whoami(host)).stdout for _ in range(3)}) == 3


def test_a_connection_that_broke_is_made_anew(sshd: Sshd, link: Link) -> None:
    host, options = at(sshd)
    host = replace(host, port=link.port)
    with shared_connections((host,), options) as shared:
        reader = Reader(ssh_options=shared)
        first = reader.read(whoami(host)).stdout
        link.cut()
        assert until(lambda: not sshd.sessions())
        again = reader.read(whoami(host))
        assert again.well
        assert again.stdout != first


def test_a_run_that_is_killed_leaves_no_session_behind_for_long(sshd: Sshd) -> None:
    """Its connection is nobody's child; the far end can only wait for it."""
    host, options = at(sshd)
    with subprocess.Popen([sys.executable, "-c", ASKS, host.user or "", str(host.port), *options], stdout=-1) as run:
        assert run.stdout is not None
        assert run.stdout.readline()
        assert sshd.sessions("sshd")
        run.kill()
    began = time.monotonic()
    assert until(lambda: not sshd.sessions(), 25)
    assert time.monotonic() - began > 5, "a pause of a few seconds within a run must not cost a login"


def test_no_host_needs_no_folder() -> None:
    with shared_connections((), ("-4",)) as shared:
        assert shared == ("-4",)


def test_what_a_killed_run_left_is_swept_and_what_is_held_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    host = (Host(name="nowhere.invalid"),)
    with shared_connections(host) as long_ago:
        folder = folder_of(long_ago)
        left, strange = Path(tempfile.mkdtemp(prefix="ferry-ssh-")), Path(tempfile.mkdtemp(prefix="ferry-ssh-"))
        fresh = Path(tempfile.mkdtemp(prefix="ferry-ssh-"))
        (strange / "file").write_text("somebody's")
        with socket.socket(
            socket.AF_UNIX
        ) as killed:  # of a connection that was killed with its run, as by the end of a service
            killed.bind(str(left / "0a1b"))
        for one in (folder, left, strange):
            os.utime(one, (0, 0))
        with shared_connections(host):
            pass
        assert folder.is_dir(), "a run that lasts for days keeps its folder"
        assert not left.exists()
        assert (strange / "file").exists()
        assert fresh.exists(), "another run may just be making it"
    assert not folder.exists()
    shutil.rmtree(strange)
    fresh.rmdir()


def test_the_owners_own_path_wins(sshd: Sshd, tmp_path: Path) -> None:
    host, options = at(sshd)
    own = f"/tmp/poolferry-test-{os.getpid()}"
    with shared_connections((host,), (*options, f"-oControlPath={own}")) as shared:
        assert Reader(ssh_options=shared).read(whoami(host)).well
        assert os.path.exists(own)
        Reader(ssh_options=shared).read(whoami(host))
    subprocess.run(ssh_argv(whoami(host).stages[0], ("-Oexit", *options, f"-oControlPath={own}")), check=True)
    assert until(lambda: not os.path.exists(own))


def test_the_line_of_a_failure_tries_the_login_once_the_connection_is_gone(sshd: Sshd) -> None:
    host, options = at(sshd)
    fails = single_command("sh", "-c", "exit 3", "look.sh", effect=Effect.READS, host=host)
    with shared_connections((host,), options) as shared:
        result = Reader(ssh_options=shared).read(fails)
        (line,) = pipeline_failure(fails, result, shared).evidence.lines
    login = line.removesuffix(": look.sh") + " echo here"
    done = subprocess.run(["sh", "-c", login], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "here\n"), (login, done)


def test_a_connection_that_froze_is_let_go_and_made_anew(sshd: Sshd) -> None:
    host, options = at(sshd)
    alive = ("-oServerAliveInterval=1", "-oServerAliveCountMax=2")
    with shared_connections((host,), (*options, *alive)) as shared:
        reader = Reader(ssh_options=shared)
        first = reader.read(whoami(host)).stdout
        wait = single_command("sh", "-c", "echo; exec sleep 60", effect=Effect.READS, host=host)
        under_way = subprocess.Popen(ssh_argv(wait.stages[0], shared), stdout=subprocess.PIPE)
        assert under_way.stdout is not None
        assert under_way.stdout.readline()
        frozen = sshd.sessions()
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        again = reader.read(whoami(host), timeout=Seconds(30))
        assert again.well
        assert again.stdout not in (first, b"")
        assert under_way.wait(30) == 255
        under_way.stdout.close()
    for pid in frozen:
        os.kill(pid, signal.SIGKILL)


def test_more_at_once_than_one_connection_carries_log_in_by_themselves(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd", more="MaxSessions 2")
    server.start()
    host, options = at(server)
    wait = single_command("sh", "-c", "echo $SSH_CONNECTION; read line", effect=Effect.READS, host=host)
    with shared_connections((host,), options) as shared:
        assert Reader(ssh_options=shared).read(whoami(host)).well
        running = [
            subprocess.Popen(ssh_argv(wait.stages[0], shared), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(4)
        ]
        told = [one.stdout.readline() for one in running if one.stdout]
        ended = [one.communicate(b"go\n") for one in running]
        assert [one.returncode for one in running] == [0] * 4, ended
        assert all(told)
        assert len(set(told)) == 3  # two on the shared one, each of the others by itself
    server.stop()
