"""The server as a process: its socket, one that systemd passes, many open streams, and its end."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import uvicorn

from orchestrator import compose
from orchestrator.app.control import DaemonControl
from orchestrator.history.store import open_history
from orchestrator.web.live import LivePart
from orchestrator.web.pages import Pages
from orchestrator.web.server import WARM, open_unix_socket, serve, server_config
from orchestrator.web.site import Site
from tests.ferry import COMMAND, Ferry
from tests.history.records import begin, report
from tests.processes import fields, links, threads, told
from tests.web.sites import ask, link_in, read_until, serving, settings_of, started_by_systemd
from tests.whole.house import wait_until

STREAMS = 200


@pytest.fixture
def path(ferry: Ferry) -> Path:
    ferry.job()
    return ferry.root / "web.sock"


def test_a_socket_is_for_its_owner_and_group_and_goes_with_the_server(ferry: Ferry, path: Path) -> None:
    with serving(ferry, "--socket", str(path)) as (child, said):
        assert f"ssh -L 9743:{path}" in said
        seen = path.stat()
        assert stat.S_ISSOCK(seen.st_mode)
        assert stat.S_IMODE(seen.st_mode) == 0o660
        with ask(path, "/") as asked:
            assert b"HTTP/1.1 200" in read_until(asked, b"History knows no run yet")
        with ask(path, "/", host="evil.example") as asked:
            assert b"HTTP/1.1 421" in read_until(asked, b"</html>")
        with ask(path, "/?" + "a" * 1_000_000) as asked:  # it does not even read all of it
            assert b"HTTP/1.1 200" not in asked.recv(1 << 16)
        child.send_signal(signal.SIGTERM)
        assert child.wait(10) == 0
    assert not path.exists()


def test_two_hundred_who_look_cost_little_and_hold_nobody_up(ferry: Ferry, path: Path) -> None:
    who = compose.process_identity()
    with (
        open_history(str(ferry.state / "history.sqlite")) as history,
        serving(ferry, "--socket", str(path)) as (child, _),
    ):
        run = begin(history, now=compose.now(), pid=who.pid, process_started=who.started, boot=who.boot)
        looking = [ask(path, f"/live/runs/{run}") for _ in range(STREAMS)]
        for each in looking:
            assert b"text/event-stream" in read_until(each, b"event: show")
        with ask(path, "/runs") as asked:
            read_until(asked, b"running")
        history.ended(run, report(run, why="carried over"), compose.now())
        for each in looking:
            assert b"carried over" in read_until(each, b"event: over")
            each.close()
        spent = sum(int(field) / os.sysconf("SC_CLK_TCK") for field in fields(child.pid)[11:13])
        assert spent < 8, "one part is made for all of them"


def test_what_is_open_does_not_grow_with_those_who_look(ferry: Ferry, path: Path) -> None:
    """Pages, mistakes, streams and those who go away in the middle: all close what they opened."""
    assert ferry.run("run", "photos").code == 0
    point = f"/points/photos/{(ferry.target() / 'latest').readlink().name}"
    pages = (
        "/",
        "/jobs/photos",
        "/runs",
        "/runs/1",
        "/disks",
        "/pools",
        point,
        f"{point}/deep",
        "/none",
        "/live/promises",
    )
    with serving(ferry, "--socket", str(path)) as (child, _):

        def opened() -> int:
            return len(links(child.pid)) + threads(child.pid)

        def look() -> None:
            for page in pages:
                with ask(path, page) as asked:
                    read_until(asked, b"event: show" if "live" in page else b"</html>")
                ask(path, page).close()

        look()
        first = opened()
        for _ in range(12):
            look()
        # A few threads more may be made; a file that one kind of page leaves open would be twelve.
        wait_until(lambda: opened() <= first + 8)


def test_what_a_page_imports_is_there_before_it_is_asked_for(ferry: Ferry, path: Path) -> None:
    """Of the front page before anybody knows the socket; of the others soon after, though nobody asks."""
    child = subprocess.Popen(
        [*COMMAND, "web", "--socket", str(path)], env={**ferry.variables(), "PYTHONPROFILEIMPORTTIME": "1"}, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    too_long, known = threading.Timer(60, child.kill), ""
    too_long.start()
    try:
        assert child.stderr
        for line in child.stderr:
            known += line
            if "orchestrator.views.run_charts" in line:
                break
    finally:
        too_long.cancel()
        child.kill()
        child.communicate()
    front, _, later = known.partition("serving ")
    assert "orchestrator.app.uncovered" in front
    assert "orchestrator.views.run_charts" in later


def test_open_streams_do_not_hold_up_the_end(ferry: Ferry, path: Path) -> None:
    with serving(ferry, "--socket", str(path)) as (child, _), ask(path, "/live/promises") as asked:
        read_until(asked, b"event: show")
        child.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        assert child.wait(15) == 0
        assert time.monotonic() - begun < 10


TWO_WAYS = (
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Length: 30\r\n\r\nabc",
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nX-Remote-User : root\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
)


def test_what_a_proxy_may_read_in_another_way_is_refused_and_a_head_holds_nothing_open(
    ferry: Ferry, path: Path
) -> None:
    with serving(ferry, "--socket", str(path), "--proxy-user", "X-Remote-User"):
        for request in TWO_WAYS:
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(str(path))
                asked.settimeout(20)
                asked.sendall(request.encode())
                assert asked.recv(1 << 16).split()[1] in (b"400", b"421", b"501"), request
        with ask(path, "/live/promises", method="HEAD") as asked:
            assert b"text/event-stream" in _to_its_end(asked)


def _to_its_end(asked: socket.socket) -> bytes:
    return b"".join(iter(lambda: asked.recv(1 << 16), b""))


OPEN = """
import http.client, sys
asked = http.client.HTTPConnection(sys.argv[1], timeout=30)
asked.request("GET", "/" + sys.argv[2], headers={"Cookie": sys.argv[3]})
answer = asked.getresponse()
print(answer.status, answer.headers["set-cookie"])
"""


@pytest.mark.root
def test_a_cookie_that_another_user_of_this_machine_got_hold_of_opens_nothing(ferry: Ferry) -> None:
    """A browser sends it to each port of the machine, so also to a server of that user's."""
    ferry.job()
    with serving(ferry, "--listen", "127.0.0.1:0") as (_, said):
        link = link_in(said)
        place, _, path = link.removeprefix("http://").partition("/")

        def opened(path: str, cookie: str, *user: str) -> str:
            words = [*user, "/usr/bin/python3", "-c", OPEN, place, path, cookie]
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout

        cookie = opened(path, "").split()[1].rstrip(";")
        other = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        codes = [opened("", cookie, *user).split()[0] for user in ((), other)]
    assert codes == ["200", "403"]


def test_a_socket_that_somebody_serves_is_left_alone(ferry: Ferry, path: Path) -> None:
    with serving(ferry, "--socket", str(path)):
        second = ferry.run("web", "--socket", str(path))
        assert second.code == 1
        assert "somebody listens there already" in second.err
        with ask(path, "/") as asked:
            read_until(asked, b"</html>")
    path.write_text("a file of the owner's")
    assert ferry.run("web", "--socket", str(path)).code == 1
    assert path.read_text() == "a file of the owner's"


def test_a_socket_whose_server_was_killed_is_taken(ferry: Ferry, path: Path) -> None:
    with serving(ferry, "--socket", str(path)) as (child, _):
        child.kill()
        child.wait()
        assert path.exists()
        with serving(ferry, "--socket", str(path)), ask(path, "/") as asked:
            read_until(asked, b"</html>")


def test_systemd_passes_a_socket(ferry: Ferry, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as passed:
        child = started_by_systemd(ferry, passed, path)
        try:
            with ask(path, "/") as asked:
                read_until(asked, b"History knows no run yet")
        finally:
            child.terminate()
            _, said = child.communicate(timeout=20)
    assert child.returncode == 0
    assert said == b""
    assert path.exists(), "it is systemd's"


@pytest.mark.parametrize(
    "address", ["0.0.0.0:9743", "[::]:9743", "192.0.2.1:80", "9743", "127.0.0.1:x", "127.0.0.1:99999", "example.org:80"]
)
def test_no_address_of_the_network_is_served(ferry: Ferry, address: str) -> None:
    ferry.job()
    told = ferry.run("web", "--listen", address)
    assert told.code == 2
    assert "this machine alone" in told.err


def test_tcp_is_entered_by_the_link_alone(ferry: Ferry) -> None:
    ferry.job()
    with serving(ferry, "--listen", "127.0.0.1:0") as (_, said):
        link = link_in(said)
        place, _, path = link.removeprefix("http://").partition("/")
        host, _, port = place.partition(":")
        answers = []
        for target in ("/", f"/{path}", f"/{path}"):
            with socket.create_connection((host, int(port)), 10) as asked:
                asked.sendall(f"GET {target} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n".encode())
                answers.append(read_until(asked, b"\r\n\r\n").split()[1])
    assert answers == [b"403", b"303", b"403"]


def test_without_its_libraries_it_says_what_installs_them(ferry: Ferry) -> None:
    ferry.job()
    hidden = ferry.root / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['starlette'] = None\n")
    told = ferry.run("web", PYTHONPATH=f"{hidden}:{Path(__file__).parents[2]}")
    assert told.code == 1
    assert 'pip install "poolferry[web]"' in told.err


@pytest.mark.root
def test_another_user_with_the_right_to_read_shows_what_is_roots_and_cannot_write(ferry: Ferry, path: Path) -> None:
    """As the unit has it: history and configuration stay 0700 and 0600."""
    who = compose.process_identity()
    with open_history(str(ferry.state / "history.sqlite")) as history:
        begin(history, now=compose.now(), pid=who.pid, process_started=who.started, boot=who.boot)
    before = (ferry.state / "history.sqlite").read_bytes()
    assert stat.S_IMODE(ferry.state.stat().st_mode) == 0o700
    nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search"
    with socket.socket(socket.AF_UNIX) as passed:
        child = started_by_systemd(ferry, passed, path, user=f"{nobody} --bounding-set=-all,+dac_read_search")
        try:
            with ask(path, "/") as asked:
                read_until(asked, b"Running now")
            with ask(path, "/runs/1") as asked:
                read_until(asked, b"You may close this page")
            status = told(child.pid, "status").decode()
        finally:
            child.terminate()
            child.communicate(timeout=20)
    assert "Uid:\t65534\t65534\t65534\t65534" in status
    assert "CapEff:\t0000000000000004" in status
    assert (ferry.state / "history.sqlite").read_bytes() == before


def test_a_page_that_is_made_before_it_is_asked_for_holds_up_neither_start_nor_end(
    ferry: Ferry, monkeypatch: pytest.MonkeyPatch
) -> None:
    ferry.job()
    settings = settings_of(ferry)
    pages, made, go_on = Pages(settings, DaemonControl(settings)), list[str](), threading.Event()

    def slow(*_: object) -> str:
        made.append("begun")
        go_on.wait(60)
        made.append("over")
        return ""

    monkeypatch.setattr("orchestrator.web.pages._FRONT_S", 0.01)
    monkeypatch.setattr("orchestrator.web.server._IDLE_S", 0.01)
    monkeypatch.setattr(pages, "promises", slow)
    pages.warm_front()
    assert "over" not in made
    go_on.set()
    wait_until(lambda: "over" in made)
    go_on.clear()
    made.clear()

    def slow_end(*_: object) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return slow()

    monkeypatch.setattr(pages, "runs", slow_end)
    monkeypatch.setattr(pages, "disks", slow)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serve(Site(pages), listening)
    assert made == ["begun"]
    go_on.set()
    wait_until(lambda: not [each for each in threading.enumerate() if each.name == WARM])
    assert made == ["begun", "over"], "no other page is begun then"


def test_a_page_that_cannot_be_made_ends_nothing(
    ferry: Ferry, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ferry.job()
    settings = settings_of(ferry)
    pages, made = Pages(settings, DaemonControl(settings)), list[str]()

    def broken(*_: object) -> str:
        raise RuntimeError("a mistake of ours")

    for name in ("promises", "runs"):
        monkeypatch.setattr(pages, name, broken)
    monkeypatch.setattr(pages, "disks", lambda: made.append("disks"))
    pages.warm_front()
    pages.warm(lambda: False)
    assert made == ["disks"]
    assert caplog.text.count("RuntimeError: a mistake of ours") == 2


def test_pages_and_streams_that_wait_for_history_leave_threads_to_what_needs_none(
    ferry: Ferry, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(ferry)
    pages, begun, go_on = Pages(settings, DaemonControl(settings)), list[str](), threading.Event()

    def slow(*asked: object) -> LivePart:
        begun.append(str(asked[0]))
        go_on.wait(60)
        return LivePart(marked="")

    monkeypatch.setattr(pages, "runs", slow)
    monkeypatch.setattr(pages, "part", slow)
    server = uvicorn.Server(server_config(Site(pages).program))
    with open_unix_socket(str(path)) as listening, ExitStack() as held:
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
        thread.start()
        try:
            for number in range(100):
                held.enter_context(ask(path, f"/live/{'promises' if number % 2 else f'runs/{number}'}"))
            wait_until(lambda: "promises" in begun)
            for _ in range(60):
                held.enter_context(ask(path, "/runs"))
            wait_until(lambda: begun.count("None") >= 30)
            with ask(path, "/static/app.css") as style, ask(path, "/") as front:
                assert b"HTTP/1.1 200" in style.recv(1 << 16)
                assert b"HTTP/1.1 200" in read_until(front, b"</html>")
            assert begun.count("promises") == 1, "one look for all who ask for the same"
            assert not go_on.is_set()
        finally:
            go_on.set()
            held.close()  # who asked goes away, so each stream ends by itself and before its loop
            server.should_exit = True
            thread.join()
