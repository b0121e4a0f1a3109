"""The server: a socket from systemd, one of our own, or a TCP address on request; until it is told to end."""

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator

import uvicorn

from orchestrator.app.settings import WrongRequest
from orchestrator.app.socket_file import listen_in_file
from orchestrator.web.connections import BoundedConnection
from orchestrator.web.guard import AsgiProgram
from orchestrator.web.site import Site

_BACKLOG = 512  # who looks at many pages again after a restart comes at once
_IDLE_S = 1.0
WARM = "poolferry-warm"  # the name of a thread
_FIRST_PASSED = 3  # source: sd_listen_fds(3)


def passed_socket() -> socket.socket | None:
    """Return the socket that systemd opened for this process; None: it opened none. Raises: WrongRequest for several, and for TCP.

    Why not TCP: only the file of a socket says who may open it.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    if os.environ.get("LISTEN_FDS") != "1":
        raise WrongRequest("systemd passed more than one socket; poolferry-web.socket has one ListenStream=")
    passed = socket.socket(fileno=_FIRST_PASSED)
    if passed.family != socket.AF_UNIX:
        passed.close()
        raise WrongRequest(
            "systemd passed a socket of the network, which anybody may open; poolferry-web.socket has ListenStream= with the path of a file"
        )
    return passed


def open_unix_socket(path: str) -> socket.socket:
    """Listen on a socket file for its owner and group. Raises: OSError where somebody listens, or something else lies there."""
    return listen_in_file(path, mode=0o660, group=None, backlog=_BACKLOG)


def open_tcp_socket(address: str) -> socket.socket:
    """Listen on an address of this machine alone. Raises: WrongRequest for another one · OSError."""
    host, _, port = address.rpartition(":")
    name = host.strip("[]")
    if name not in ("127.0.0.1", "::1", "localhost") or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise WrongRequest(
            f"--listen {address!r}: expected an address of this machine alone, such as 127.0.0.1:9743; "
            "for another machine: ssh -L 9743:/run/poolferry-web.sock HOST, or a reverse proxy on the socket"
        )
    listening = socket.socket(socket.AF_INET6 if ":" in name else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((name, int(port)))
    except BaseException:
        listening.close()
        raise
    listening.listen(_BACKLOG)
    return listening


def tcp_address(listening: socket.socket) -> str:
    """Return the address of a socket, as a link names it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class SiteServer(uvicorn.Server):
    """A server of a site, whose streams it ends before it waits for who is connected.

    It leaves signals to `serve`: the library's own way would end the process before our socket is removed.
    """

    def __init__(self, site: Site) -> None:
        super().__init__(server_config(site.program))
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        self._site.streams.end()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone; `serve` hears them."""
        yield

    def install_signal_handlers(self) -> None:
        """Do the same; older versions of the library call this."""


def server_config(program: AsgiProgram) -> uvicorn.Config:
    """Return the settings by which a program is served."""
    return uvicorn.Config(
        program, http=BoundedConnection, ws="none", lifespan="off", log_config=None, log_level="critical", access_log=False, server_header=False,
        date_header=True, proxy_headers=False, timeout_keep_alive=30, backlog=_BACKLOG,
    )  # fmt: skip


def serve(site: Site, listening: socket.socket) -> None:
    """Answer until SIGTERM or Ctrl-C."""
    asyncio.run(_answer(SiteServer(site), site, listening))


async def _answer(server: SiteServer, site: Site, listening: socket.socket) -> None:
    def end() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    # Not at once: who opened systemd's socket waits for a page.
    # A thread that the end does not wait for, as it does for those of the pool: the history may be locked.
    warm = threading.Thread(target=site.warm, args=(lambda: server.should_exit,), name=WARM, daemon=True)
    loop.call_later(_IDLE_S, warm.start)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    await server.serve(sockets=[listening])
