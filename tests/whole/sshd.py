"""A real sshd on loopback with keys of its own, and a link in front of it that counts and can be cut."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest

from tests.processes import family
from tests.whole.house import kill, wait_until

_SERVER = """\
ListenAddress 127.0.0.1
Port {port}
HostKey "{folder}/host_key"
AuthorizedKeysFile "{folder}/authorized_keys"
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowTcpForwarding no
SetEnv HOME="{folder}/home"{path}
{more}
"""
_CLIENT = """\
Host *
    IdentityFile "{folder}/user_key"
    IdentitiesOnly yes
    UserKnownHostsFile "{folder}/known_hosts"
    GlobalKnownHostsFile none
    StrictHostKeyChecking yes
    UpdateHostKeys no
    # Quick ones: a test makes a dozen connections.
    KexAlgorithms curve25519-sha256
    Ciphers aes128-gcm@openssh.com
    LogLevel ERROR
"""


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as requested:
        requested.bind(("127.0.0.1", 0))
        return int(requested.getsockname()[1])


AS_PLAIN_USER = "setpriv --reuid=1234 --regid=1234 --clear-groups"


class Sshd:
    """The server, and what a client needs to reach it. `port`: where it listens; `through`: where clients knock.

    `before`: the words of a program through which it is started, and which it replaces.
    """

    def __init__(self, folder: Path, *, more: str = "", path: str | None = None, before: Sequence[str] = ()) -> None:
        self.folder = folder
        self.port = self.through = free_port()
        self.user = getpass.getuser()
        self._before = before
        (folder / "home").mkdir(parents=True)  # without the login scripts of whoever runs the tests
        for name in ("host_key", "user_key"):
            make_key(folder / name)
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
        self.know(self.port)
        (folder / "client").write_text(_CLIENT.format(folder=folder))
        there = f' PATH="{path}"' if path else ""
        (folder / "server").write_text(_SERVER.format(folder=folder, port=self.port, more=more, path=there))
        self._server: subprocess.Popen[bytes] | None = None

    def know(self, port: int) -> None:
        """The client trusts this host's key at the port too."""
        key = (self.folder / "host_key.pub").read_text()
        with open(self.folder / "known_hosts", "a", encoding="ascii") as file:
            file.write(f"[127.0.0.1]:{port} {key}")

    def start(self) -> None:
        """Listens; returns when it does."""
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        log = self.folder / "log"
        argv = (*self._before, "/usr/sbin/sshd", "-D", "-f", str(self.folder / "server"), "-E", str(log))
        self._server = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        wait_until(self._answers)

    def stop(self) -> None:
        """Ends the server and all its sessions."""
        if self._server is None:
            return
        self._server.terminate()
        for pid in self.sessions():
            kill(pid)
        self._server.wait()
        self._server = None

    @property
    def pid(self) -> int:
        """The server's own process. Raises: ValueError while it does not run."""
        if self._server is None:
            raise ValueError("it does not run")
        return self._server.pid

    def sessions(self, program: str = "") -> list[int]:
        """The processes that serve connections, the eldest first: all, or those of a program, such as "rsync".

        What serves one connection is called sshd, and since OpenSSH 9.8 sshd-session.
        """
        below = family(self._server.pid) if self._server else []
        return [pid for pid, name in below if program in ("", name) or name == f"{program}-session"]

    def url(self, path: str | Path) -> str:
        """The path there as a source or a target names it."""
        return f"ssh://{self.user}@127.0.0.1:{self.through}{quote_from_bytes(os.fsencode(path))}"

    @property
    def pipe(self) -> dict[str, object]:
        """Return what [pipe] must say."""
        return {"ssh-options": ["-F", str(self.folder / "client")]}

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as line:
            return line.recv(4) == b"SSH-"
        return False


def make_key(path: Path) -> None:
    """A new key pair without a passphrase."""
    path.unlink(missing_ok=True)
    path.with_suffix(".pub").unlink(missing_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


class Link:
    """A line to a port that somebody can pull. `moved`: bytes that went over it, both ways."""

    def __init__(self, port: int) -> None:
        self.moved = 0
        self._to = port
        self._closed = False
        self._count = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._database = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._database.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        """Every connection breaks now; new ones may come."""
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Nothing goes through any more."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._database.shutdown(socket.SHUT_RDWR)
        self._database.close()
        self.cut()
        for pair in self._pairs:
            for end in pair:
                end.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                near, _ = self._database.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            self._pairs.append((near, far))
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 18):
                sink.sendall(chunk)
                with self._count:
                    self.moved += len(chunk)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Sshd]:
    """A server where we are an ordinary user."""
    server = Sshd(tmp_path / "sshd", more=f'ForceCommand cd /; {AS_PLAIN_USER} sh -c "$SSH_ORIGINAL_COMMAND"')
    server.start()
    yield server
    server.stop()


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    """A running server."""
    server = Sshd(tmp_path / "sshd")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def link(sshd: Sshd) -> Iterator[Link]:
    """The only way to the server for `sshd.url`."""
    line = Link(sshd.port)
    sshd.know(line.port)
    sshd.through = line.port
    yield line
    line.close()
