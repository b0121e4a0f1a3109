"""The answer to GET /metrics, over TCP and over a unix socket."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from orchestrator.daemon.metrics_server import serve_metrics

TEXT = b"poolferry_up 1\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(text: Callable[[], bytes] = lambda: TEXT) -> Iterator[int]:
    """Its port."""
    port = free_port()
    with closing(serve_metrics(f"127.0.0.1:{port}", text)):
        yield port


def fetch(port: int, path: str = "/metrics", method: str = "GET") -> tuple[int, str, bytes]:
    """The answer: its code, its kind, and what it says. It waits for less long than the server's own patience."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=5)) as line:
        line.request(method, path)
        answer = line.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read()


def ask(path: Path, request: bytes) -> bytes:
    """Return what a unix socket answers."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(10)
        line.connect(str(path))
        line.sendall(request)
        return b"".join(iter(lambda: line.recv(1 << 16), b""))


def test_each_request_gets_fresh_numbers() -> None:
    count = iter(range(10))
    with served(lambda: b"poolferry_asked %d\n" % next(count)) as port:
        for number in range(3):
            kind = "text/plain; version=0.0.4; charset=utf-8"
            assert fetch(port) == (200, kind, b"poolferry_asked %d\n" % number)


def test_there_is_nothing_else() -> None:
    with served() as port:
        assert fetch(port, "/")[0] == 404
        assert fetch(port, "/metrics2")[0] == 404
        assert fetch(port, method="POST")[0] == 501
        assert fetch(port, "/metrics?a=b")[2] == TEXT
        assert fetch(port, method="HEAD")[2] == b""


def test_a_look_that_fails_is_seen_and_ends_nothing() -> None:
    answers: Iterator[bytes | Exception] = iter([OSError("no history"), TEXT])

    def text() -> bytes:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with served(text) as port:
        assert fetch(port)[::2] == (500, b"no history\n")
        assert fetch(port)[::2] == (200, TEXT)


def test_one_who_says_nothing_stops_nobody() -> None:
    with served() as port, socket.create_connection(("127.0.0.1", port)):
        assert fetch(port)[2] == TEXT


def test_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sock"
    with closing(serve_metrics(f"unix:{path}", lambda: TEXT)):
        assert path.stat().st_mode & 0o777 == 0o660
        answer = ask(path, b"GET /metrics HTTP/1.0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.0 200 ")
        assert answer.endswith(TEXT)
        with pytest.raises(OSError, match="somebody listens there already"):
            serve_metrics(f"unix:{path}", lambda: TEXT)
    assert not path.exists()


def test_a_socket_that_a_killed_daemon_left_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "metrics.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with closing(serve_metrics(f"unix:{path}", lambda: TEXT)):
        assert ask(path, b"HEAD /metrics HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 ")


def test_a_closed_one_leaves_no_thread() -> None:
    before = set(threading.enumerate())
    with served() as port:
        fetch(port)
    assert not [thread for thread in threading.enumerate() if thread not in before and thread.name == "metrics"]
    with pytest.raises(ConnectionRefusedError):
        fetch(port)
