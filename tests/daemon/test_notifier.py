"""Test what the daemon tells beside its runs: a job that becomes late by time alone, and numbers; and no channel holds it up."""

import signal
import socket
from pathlib import Path

import pytest

from tests.app.notices import by_ntfy, declare
from tests.daemon.daemon_world import daemon, until
from tests.ferry import Ferry
from tests.peers import WebPeer

pytestmark = pytest.mark.slow


def requested(path: Path) -> str:
    """Return what a scraper gets over the socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(20)
        line.connect(str(path))
        line.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        return b"".join(iter(lambda: line.recv(1 << 16), b"")).decode()


def test_a_job_that_is_late_is_told_of_though_nothing_runs(ferry: Ferry, web: WebPeer) -> None:
    ferry.job(more='late-after = "1s"\n')
    assert ferry.run("run", "photos").code == 0
    declare(ferry, by_ntfy(web))
    with daemon(ferry, ahead=60) as clock:
        until(lambda: any("late" in body for *_, body in web.requests), "somebody is told", lambda: clock.log)
        clock.end()


def test_a_channel_that_hangs_holds_no_run_up(ferry: Ferry, web: WebPeer) -> None:
    ferry.job(more='late-after = "1s"\n')
    assert ferry.run("run", "photos").code == 0
    ferry.job("music")
    declare(ferry, by_ntfy(web))
    web.answers[:] = ["hang"]
    with daemon(ferry, ahead=60) as clock:
        until(lambda: web.requests, "it is asked", lambda: clock.log)
        file = ferry.config / "jobs" / "music.toml"
        file.write_text('every = "1h"\n' + file.read_text())
        clock.send(signal.SIGHUP)
        clock.says("music: a run is due")
        until(lambda: ferry.target("music").exists(), "the run begins", lambda: clock.log)
        web.over.set()
        clock.end()


def test_numbers_are_written_and_served(ferry: Ferry) -> None:
    ferry.job(more='every = "1m"\n')
    file, line = ferry.root / "poolferry.prom", ferry.root / "line"
    declare(ferry, f'[metrics]\ntextfile = "{file}"\nlisten = "unix:{line}"\n')
    with daemon(ferry) as clock:
        clock.says("photos: done: ")
        until(lambda: file.exists() and "photos" in file.read_text(), "they are written", lambda: clock.log)
        assert 'backup_job="photos"' in requested(line)
        clock.end()
    assert not line.exists()
