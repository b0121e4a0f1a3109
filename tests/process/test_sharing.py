"""One connection for all commands, on a real sshd.

Changes things.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.command import Effect, Pipeline, alone
from orchestrator.domain.place import Host
from orchestrator.process.executor import Reader
from orchestrator.process.sharing import shared_connections
from orchestrator.process.ssh import ssh_argv
from tests.process.pipelines import until
from tests.whole.sshd import Link, Sshd, link, sshd

__all__ = ["link", "sshd"]
pytestmark = pytest.mark.slow


def whoami(host: Host) -> Pipeline:
    """Tells which connection a command came by."""
    return alone("sh", "-c", "echo $SSH_CONNECTION", effect=Effect.READS, host=host)


def at(server: Sshd) -> tuple[Host, tuple[str, ...]]:
    return Host(name="127.0.0.1", user=server.user, port=server.port), ("-F", str(server.folder / "client"))


def test_all_commands_share_one_connection_that_ends_with_them(sshd: Sshd, tmp_path: Path) -> None:
    host, options = at(sshd)
    with shared_connections((host,), options) as shared:
        reader = Reader(ssh_options=shared)
        told = {reader.read(whoami(host)).stdout for _ in range(4)}
        assert len(told) == 1
        assert sshd.sessions()
    assert until(lambda: not sshd.sessions())
    assert not [name for name in os.listdir(tmp_path) if name.startswith("poolferry-")]


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


def test_no_host_needs_no_folder(tmp_path: Path) -> None:
    with shared_connections((), ("-4",)) as shared:
        assert shared == ("-4",)
        assert not os.listdir(tmp_path)


def test_the_owners_own_path_wins(sshd: Sshd, tmp_path: Path) -> None:
    host, options = at(sshd)
    own = f"/tmp/poolferry-test-{os.getpid()}"
    with shared_connections((host,), (*options, f"-oControlPath={own}")) as shared:
        assert Reader(ssh_options=shared).read(whoami(host)).well
        assert os.path.exists(own)
        Reader(ssh_options=shared).read(whoami(host))
    subprocess.run(ssh_argv(whoami(host).stages[0], ("-Oexit", *options, f"-oControlPath={own}")), check=True)
    assert until(lambda: not os.path.exists(own))
