"""Sites to ask, in the test's own process and as a process of their own."""

import asyncio
import os
import re
import socket
import subprocess
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from starlette.testclient import TestClient

from orchestrator.app.cached_settings import CachedSettings
from orchestrator.app.control import DaemonControl
from orchestrator.app.demo import DemoControl
from orchestrator.web.guard import EntryKey, ProxyUser
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.ferry import COMMAND, Ferry

HOST = "http://localhost:9743"
OURS = {"Origin": HOST, "Content-Type": "application/x-www-form-urlencoded"}
ODD = "<script>alert(1)</script>\u202egnp.exe\n&\"'" + b"caf\xe9".decode("utf-8", "surrogateescape")


def settings_of(ferry: Ferry) -> CachedSettings:
    """Return the settings of a configuration."""
    return CachedSettings(config=str(ferry.config), state=str(ferry.state))


def client(
    settings: CachedSettings, *, key: EntryKey | None = None, names: tuple[str, ...] = (), demo: bool = False,
    proxy_user: ProxyUser | None = None,
) -> TestClient:  # fmt: skip
    """Return who asks a site under one of its names."""
    control = DemoControl(settings) if demo else DaemonControl(settings)
    site = Site(Pages(settings, control, demo=demo), key=key, names=names, proxy_user=proxy_user)
    return TestClient(site.program, base_url=HOST, follow_redirects=False)


def text_of(page: str) -> str:
    """Return the words of a page, without its marks."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?code>", "", page))).split())


@contextmanager
def serving(ferry: Ferry, *arguments: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """A real `poolferry web`, and what it said first; it is ended with the block."""
    child = subprocess.Popen(
        [*COMMAND, "web", *arguments], env=ferry.variables(), cwd=ferry.root, stderr=subprocess.PIPE
    )
    assert child.stderr is not None
    try:
        said = child.stderr.readline().decode()
        if "making up" in said:
            said = child.stderr.readline().decode()
        yield child, said
    finally:
        if child.poll() is None:
            child.terminate()
        child.wait(20)
        child.stderr.close()


def link_in(said: str) -> str:
    """Return the link that `poolferry web --listen` printed."""
    found = re.search(r"http://\S+/enter\?key=\S+", said)
    assert found, said
    return found[0]


def ask(path: Path, target: str, *, host: str = "localhost:9743", method: str = "GET") -> socket.socket:
    """Send one request to a socket's file; return the connection."""
    asked = socket.socket(socket.AF_UNIX)
    asked.settimeout(40)
    asked.connect(os.fspath(path))
    with suppress(BrokenPipeError):  # what is too long is not even read to its end
        asked.sendall(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    return asked


def read_until(asked: socket.socket, mark: bytes) -> bytes:
    """Return what was answered, up to a mark in it."""
    told = b""
    while mark not in told:
        piece = asked.recv(1 << 16)
        assert piece, told[-500:]
        told += piece
    return told


def token_in(page: str) -> str:
    """The token in a form of a page."""
    return str(re.findall(r'name="token" value="([^"]+)"', page)[0])


def form(site: TestClient, act: str, page: str = "/jobs/photos", **fields: str) -> dict[str, str]:
    """The fields of a form, as a page of ours has it."""
    return {"token": token_in(site.get(page).text), "act": act, **fields}


def started_by_systemd(
    ferry: Ferry, passed: socket.socket, path: Path | None, user: str = ""
) -> subprocess.Popen[bytes]:
    """Start the page with a socket. `path`: where it is to listen, unless it does; `user`: what the unit says about its user, as a command."""
    if path is not None:
        passed.bind(str(path))
        passed.listen()
    script = f'exec 3<&{passed.fileno()}; exec env LISTEN_FDS=1 LISTEN_PID=$$ {user} "$@"'
    return subprocess.Popen(
        ["bash", "-c", script, "bash", *COMMAND, "web"],
        env=ferry.variables(),
        pass_fds=[passed.fileno()],
        stderr=subprocess.PIPE,
    )


def exactly(
    site: Site, target: str, *, method: str = "GET", sent: Mapping[str, str] | None = None, body: bytes = b""
) -> tuple[int, dict[str, str], str]:
    """Ask for exactly this, which a client would put in order first; return status, headers and text."""
    told: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        told.append(message)

    path, _, query = target.partition("?")
    headers = {"host": "localhost:9743", **{name.lower(): value for name, value in (sent or {}).items()}}
    scope = {
        "type": "http", "method": method, "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()], "http_version": "1.1", "scheme": "http",
        "server": None, "client": None, "root_path": "",
    }  # fmt: skip
    asyncio.run(site.program(scope, receive, send))
    text = b"".join(each.get("body", b"") for each in told[1:]).decode()
    return int(told[0]["status"]), {name.decode(): value.decode() for name, value in told[0]["headers"]}, text
