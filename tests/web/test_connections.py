"""Connections that ask for nothing, or take no answer: they are given up, and others get their pages meanwhile."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest
import uvicorn

from orchestrator.web import connections
from orchestrator.web.guard import Receive, Scope, Send
from orchestrator.web.server import server_config
from tests.web.sites import read_until
from tests.whole.house import wait_until

LARGE = 16 << 20  # bytes: more than the kernel takes
HEAD = b"GET /%s HTTP/1.1\r\nHost: localhost\r\n"


async def answer(scope: Scope, _: Receive, send: Send) -> None:
    """Answer with much, with little, or with a stream in which nothing comes."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    if scope["path"] == "/stream":
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await asyncio.sleep(60)
    await send({"type": "http.response.body", "body": b"a" * (LARGE if scope["path"] == "/large" else 4)})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> uvicorn.Server:
    """A server that is impatient."""
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    monkeypatch.setattr(connections, "ANSWER_S", 1.0)
    return uvicorn.Server(server_config(answer))


@pytest.fixture
def address(server: uvicorn.Server) -> Iterator[tuple[str, int]]:
    """The address at which it serves."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        yield listening.getsockname()
        server.should_exit = server.force_exit = True
        thread.join()


def opened(address: tuple[str, int], *sent: bytes) -> socket.socket:
    """Open a connection and send something."""
    asked = socket.create_connection(address, 30)
    for each in sent:
        asked.sendall(each)
    return asked


def ended(asked: socket.socket, *, drip: bytes = b"") -> bool:
    """Return True when the other side ends the connection, whatever drips into it."""
    asked.settimeout(0.1)
    for _ in range(300):
        try:
            if drip:
                asked.sendall(drip)
            if not asked.recv(1 << 16):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_a_head_that_does_not_come_to_its_end_is_given_up_and_a_stream_is_not(address: tuple[str, int]) -> None:
    with closing(opened(address, HEAD % b"stream", b"\r\n")) as stream:
        read_until(stream, b"begun")
        for sent, drip in (
            ((), b""),
            ((HEAD % b"",), b"X-Slow: x\r\n"),
            ((HEAD % b"", b"\r\n", HEAD % b""), b"X-Slow: x\r\n"),
            ((HEAD.replace(b"GET", b"POST") % b"", b"Content-Length: 9999\r\n\r\n"), b"a"),
        ):
            with closing(opened(address, *sent)) as asked:
                assert ended(asked, drip=drip), sent
        stream.settimeout(0.2)
        with pytest.raises(TimeoutError):
            stream.recv(1)


def test_an_answer_that_nobody_takes_is_given_up(address: tuple[str, int], server: uvicorn.Server) -> None:
    with closing(opened(address, HEAD % b"large", b"Connection: close\r\n\r\n")) as slow:
        with closing(opened(address, HEAD % b"large", b"Connection: close\r\n\r\n")) as quick:
            assert _taken(quick) > LARGE
        wait_until(lambda: not server.server_state.connections)
        assert _taken(slow) < LARGE


def _taken(asked: socket.socket) -> int:
    """Return the number of bytes that come until the end."""
    taken = 0
    with suppress(ConnectionResetError):
        while piece := asked.recv(1 << 20):
            taken += len(piece)
    return taken


def test_more_than_there_may_be_do_not_keep_others_from_their_pages(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 600.0)
    monkeypatch.setattr(connections, "MOST", 20)
    with ExitStack() as held:
        first = [held.enter_context(closing(opened(address))) for _ in range(4)]
        streams = [held.enter_context(closing(opened(address, HEAD % b"stream", b"\r\n"))) for _ in range(6)]
        for each in streams:
            read_until(each, b"begun")
        later = [held.enter_context(closing(opened(address))) for _ in range(20)]
        for each in (*first, *later[:6]):
            with suppress(ConnectionResetError):
                assert each.recv(1) == b"", "who waited longest without a request"
        with closing(opened(address, HEAD % b"", b"\r\n")) as asked:
            read_until(asked, b"aaaa")
        later[-1].sendall(HEAD % b"" + b"\r\n")
        read_until(later[-1], b"aaaa")


def test_a_reader_who_goes_on_slowly_gets_the_whole_answer(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "ANSWER_S", 2.0)
    with closing(opened(address, HEAD % b"large", b"Connection: close\r\n\r\n")) as steady:
        taken = 0
        for _ in range(45):  # twice as long as one who takes nothing may wait
            time.sleep(0.1)
            taken += len(steady.recv(LARGE // 60))
        assert taken < LARGE
        assert taken + _taken(steady) > LARGE


def test_who_was_answered_a_moment_ago_is_not_the_one_given_up(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 600.0)
    monkeypatch.setattr(connections, "MOST", 3)
    with ExitStack() as held:
        old, silent, other = (held.enter_context(closing(opened(address))) for _ in range(3))
        for _ in range(2):
            old.sendall(HEAD % b"" + b"\r\n")
            read_until(old, b"aaaa")
        held.enter_context(closing(opened(address)))
        with suppress(ConnectionResetError):
            assert silent.recv(1) == b""
        for each in (old, other):
            each.sendall(HEAD % b"" + b"\r\n")
            read_until(each, b"aaaa")
