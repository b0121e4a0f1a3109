"""The daemon's open files over many runs, with all that goes on around them: hooks, notices, reloads, requests for its metrics.

What leaks one in each run ends a daemon after a thousand of them: it cannot start another, and no night is copied any more.
"""

import signal
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.due import DueRun
from orchestrator.history.store import open_history
from tests.daemon.daemon_world import Daemon, daemon, until
from tests.ferry import Ferry
from tests.peers import WebPeer
from tests.processes import links, threads
from tests.web.sites import ask, read_until

pytestmark = pytest.mark.slow
JOBS = tuple(f"job{number}" for number in range(5))
MORE = """daily = "02:30"
[hooks]
before = [["/bin/sh", "-c", "exit {code}"]]
done = "/bin/true"
nothing-to-do = "/bin/true"
waiting = "/bin/true"
"""
MACHINE = """[metrics]
listen = "unix:{socket}"
[notice.room]
kind = "webhook"
url = "{url}"
"""
NEWEST = "SELECT coalesce(max(id), 0) FROM runs"


def opened(clock: Daemon) -> list[str]:
    """Return what the daemon has open, sorted: descriptors by what they are, and its threads."""
    pid = clock.process.pid
    return sorted([*(each.partition(":")[0] for each in links(pid)), *["thread"] * threads(pid)])


def round_of_runs(ferry: Ferry, clock: Daemon, socket: Path, number: int) -> None:
    """Each job runs once: something new or not, or put off by its hook; beside them a reload and requests."""
    (ferry.root / f"{JOBS[0]}-source" / "b.bin").write_bytes(b"%d" % number)
    path, now = str(ferry.state / "history.sqlite"), datetime.now(UTC)
    with closing(sqlite3.connect(path)) as read:
        (newest,) = read.execute(NEWEST).fetchone()
    due = [
        DueRun(job=name, scheduled_at=now, newest=now, slots=1, why=f"round {number}", noted=now, after_run=newest)
        for name in JOBS
    ]
    with open_history(path) as history:
        history.due_runs.write(due_runs=due)
    wanted = ended(clock) + len(JOBS)

    def over() -> bool:
        clock.send(signal.SIGHUP)
        with ask(socket, "/metrics") as asked:
            read_until(asked, b"poolferry_")
        time.sleep(0.3)
        return ended(clock) >= wanted

    until(over, "all jobs have run", lambda: clock.log[-3000:])


def ended(clock: Daemon) -> int:
    """Count the runs that the daemon saw end."""
    log = clock.log
    return sum(log.count(f": {outcome}: ") for outcome in ("done", "nothing-to-do", "waiting", "failed"))


@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=[pytest.mark.long, pytest.mark.timeout(3000)])])
def test_what_is_open_does_not_grow(ferry: Ferry, web: WebPeer, rounds: int) -> None:
    for name in JOBS:
        ferry.job(name, MORE.format(code=75 if name == JOBS[-1] else 0))
    socket = ferry.root / "metrics.sock"
    (ferry.config / "poolferry.toml").write_text(MACHINE.format(socket=socket, url=web.url))
    with daemon(ferry) as clock:
        until(socket.exists, "its metrics can be asked for", lambda: clock.log)
        round_of_runs(ferry, clock, socket, 0)
        until(lambda: len(set(map(len, (opened(clock) for _ in range(5))))) == 1, "it rests")
        first = opened(clock)
        for number in range(rounds):
            round_of_runs(ferry, clock, socket, number + 1)
        # Two more than at first may be under way: a request's, a notice's. One for each run would be fifteen.
        until(lambda: len(opened(clock)) <= len(first) + 2, f"as at first: {first}", lambda: str(opened(clock)))
        assert clock.end() == 0
