"""The daemon's answer to GET /metrics, on an address or a unix socket; each request gets current numbers."""

import contextlib
import os
import socket
import socketserver
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

from orchestrator.app.socket_file import listen_in_file

_PATIENCE = 10.0  # seconds that one request may take
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """A listening server, until it is closed."""

    def __init__(self, server: socketserver.BaseServer, socket_file: str | None) -> None:
        self._server = server
        self._file = socket_file
        self._thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering; a second call is allowed."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file)


def serve_metrics(listen: str, text: Callable[[], bytes]) -> MetricsServer:
    """Start to answer. `listen`: as in [metrics]; `text`: returns the numbers; called for each request in a thread of its own.

    A unix socket is for its owner and group. Raises: OSError when it cannot listen there.
    """

    class Answer(_MetricsHandler):
        numbers = staticmethod(text)

    if listen.startswith("unix:"):
        path = listen.removeprefix("unix:")
        server: socketserver.BaseServer = _UnixServer(path, Answer)
        return MetricsServer(server, path)
    address, _, port = listen.rpartition(":")
    return MetricsServer(_server_of(address.strip("[]"))((address.strip("[]"), int(port)), Answer), None)


class _TcpServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True


class _Tcp6Server(_TcpServer):
    address_family = socket.AF_INET6


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, answer: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(path, answer, bind_and_activate=False)
        self.socket.close()
        self.socket = listen_in_file(path, mode=0o660, group=None, backlog=self.request_queue_size)


def _server_of(address: str) -> type[_TcpServer]:
    return _Tcp6Server if ":" in address else _TcpServer


class _MetricsHandler(BaseHTTPRequestHandler):
    """The handler of GET /metrics, the only path."""

    timeout = _PATIENCE
    numbers: Callable[[], bytes]
    server_version = "poolferry"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the numbers, or with the error."""
        if self.path.partition("?")[0] != "/metrics":
            self._send(404, b"there is /metrics alone\n")
            return
        try:
            self._send(200, self.numbers(), kind=_TYPE)
        except Exception as error:  # noqa: BLE001 - the client must see a failing check, and the server must not end
            self._send(500, f"{error}\n".encode(errors="replace"))

    do_HEAD = do_GET  # noqa: N815 - http.server's name

    def _send(self, code: int, body: bytes, *, kind: str = "text/plain; charset=utf-8") -> None:
        with contextlib.suppress(ConnectionError, TimeoutError):
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    def address_string(self) -> str:
        """Return the client's address; a unix socket has none."""
        return str(self.client_address)

    def log_message(self, *_: Any) -> None:
        """Log nothing: a scrape every 15 s would fill the log."""
