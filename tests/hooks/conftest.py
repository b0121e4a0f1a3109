"""What the tests of the hooks share: calling one as the runner does, a web peer that fails and hangs. Reads."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

HOOKS = Path(__file__).parents[2] / "hooks"
PATH = "/usr/local/bin:/usr/bin:/bin"  # what a clean environment has: no sbin, no shims

Answer = subprocess.CompletedProcess[str]


@pytest.fixture
def hook(tmp_path: Path) -> Callable[..., Answer]:
    """call(argv…, event=…, **facts): the end of the hook, which runs in a clean environment."""

    def call(
        *argv: str, event: str, report: str = "{}", path: str = PATH, credentials: Path | None = None, **facts: str
    ) -> Answer:
        told = {"event": event, "contract": "1", "job": "photos", "run": "17"} | facts
        environment = {f"POOLFERRY_{name.upper()}": value for name, value in told.items()}
        environment |= {"PATH": path, "HOME": str(tmp_path)}
        environment |= {"CREDENTIALS_DIRECTORY": str(credentials)} if credentials else {}
        environment |= {name: os.environ[name] for name in ("SSL_CERT_FILE",) if name in os.environ}
        return subprocess.run(
            [str(HOOKS / argv[0]), *argv[1:]], input=report, env=environment, capture_output=True, text=True, timeout=50
        )

    return call


class WebPeer:
    """A real HTTP server on loopback. `answers`: for each request in turn a status, "hang" or "dribble"; then 200."""

    def __init__(self) -> None:
        self.answers: list[int | str] = []
        self.requests: list[tuple[str, str, dict[str, str], str]] = []
        self.over = threading.Event()
        peer = self

        class Desk(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                peer.requests.append((self.command, self.path, dict(self.headers), body))
                with contextlib.suppress(OSError):  # a caller that gave up
                    peer.answer(self, peer.answers.pop(0) if peer.answers else 200)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Desk)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        self.thread.start()

    def answer(self, desk: BaseHTTPRequestHandler, answer: int | str) -> None:
        """Give the answer, or never, or too slowly."""
        if answer == "hang":
            self.over.wait(60)
            return
        if answer == "dribble":
            while not self.over.wait(0.2):
                desk.wfile.write(b"H")
            return
        desk.send_response(int(answer))
        if int(answer) in (301, 302, 307):
            desk.send_header("Location", f"{self.url}/elsewhere")
        desk.send_header("Content-Length", "0")
        desk.end_headers()

    def close(self) -> None:
        """End every thread."""
        self.over.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def web() -> Iterator[WebPeer]:
    """A web peer, ended afterwards."""
    peer = WebPeer()
    yield peer
    peer.close()
