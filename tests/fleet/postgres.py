"""A real PostgreSQL for tests, of whichever version Debian has: on a socket and on loopback, as a user that is not root."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

_HBA = """
local all postgres trust
local replication postgres trust
local all all scram-sha-256
host all all 127.0.0.1/32 scram-sha-256
"""
# Nothing here outlives the tests, so nothing is waited for on the disk.
_CONF = {
    "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0",
    "shared_buffers": "32MB", "max_connections": "100", "autovacuum": "off", "log_min_messages": "warning",
    "listen_addresses": "127.0.0.1", "max_wal_size": "256MB", "jit": "off", "timezone": "UTC", "lc_messages": "C",
}  # fmt: skip


class ServerMissing(Exception):
    """No PostgreSQL server is installed."""


def program(name: str) -> str:
    """The path of one of the server's programs: Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    path = str(found[-1]) if found else shutil.which(name)
    if path is None:
        raise ServerMissing(f"{name} is missing: apt install postgresql")
    return path


class PostgresServer:
    """One server with its own folder, port and processes; it ends with the process that started it. `follows`: it is a standby of that one."""

    def __init__(self, *, follows: "PostgresServer | None" = None, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="poolferry-pg-", dir="/tmp"))
        self.port = _free_port()
        self.data = self.folder / "data"
        self._settings = {**_CONF, **settings}
        self._process: subprocess.Popen[bytes] | None = None
        self._user = _unprivileged()
        if self._user:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        if follows is None:
            self._run(
                program("initdb"),
                "-D",
                str(self.data),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
                "-N",
            )
            (self.data / "pg_hba.conf").write_text(_HBA)
        else:
            self._run(program("pg_basebackup"), "-D", str(self.data), "-d", follows.url("postgres"), "-c", "fast", "-R")
        conf = "".join(f"{name} = '{value}'\n" for name, value in self._settings.items())
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"{conf}port = {self.port}\nunix_socket_directories = '{self.folder}'\n")

    def _as_user(self, argv: Sequence[str], *, tied: bool = False) -> list[str]:
        """The command line as the server's user; `tied`: it ends with us."""
        words = ["setpriv", *(["--pdeathsig", "INT"] if tied else [])]
        if self._user:
            words += [f"--reuid={self._user.pw_uid}", f"--regid={self._user.pw_gid}", "--clear-groups"]
        return [*words, *argv]

    def _run(self, *argv: str) -> None:
        done = subprocess.run(self._as_user(argv), cwd="/", capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        with (self.folder / "log").open("ab") as log:
            argv = self._as_user([program("postgres"), "-D", str(self.data)], tied=True)
            self._process = subprocess.Popen(argv, cwd="/", stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 60
        while not self.answers():
            assert time.monotonic() < until, (self.folder / "log").read_text()[-4000:]
            assert self._process.poll() is None, (self.folder / "log").read_text()[-4000:]
            time.sleep(0.03)

    def answers(self) -> bool:
        """Return True when it takes a connection."""
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server: `immediate`, as a crash does; `fast`; `smart`."""
        if self._process is not None:
            self._process.send_signal(
                {"immediate": signal.SIGQUIT, "fast": signal.SIGINT, "smart": signal.SIGTERM}[mode]
            )
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        """Stop the server and remove all of it."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, *, user: str = "postgres", tcp: bool = False) -> str:
        """The address of a database of it, on the socket or on loopback."""
        if tcp:
            return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user={user}"

    def make_database(self, *, template: str = "template1") -> str:
        """Make a database and return its name."""
        name = f"fleet_{secrets.token_hex(6)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever still uses it."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


def _unprivileged() -> pwd.struct_passwd | None:
    """The user for a server that refuses root; None: we are no root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])
