"""The table of locks that all sessions of a PostgreSQL share: a host that fills it blinds the others for seconds, and is shut out."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import PIPE, STDOUT

import psycopg
import pytest

from orchestrator.domain.errors import CentreUnreachable, OrchestratorError
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.permit import DeclaredLimit, PermitRequest
from orchestrator.fleet.connection import CentreSession
from orchestrator.fleet.lock_guard import LockGuard, find_shut_out
from orchestrator.fleet.permits import ask_permit, declare_limit
from tests.daemon.daemon_world import until
from tests.ferry import COMMAND, Ferry
from tests.fleet.centres import Centre, make_centre
from tests.fleet.hosts import FleetHost
from tests.fleet.postgres import PostgresServer

# What no right keeps a role from, each in a savepoint of its own: rows of its own that it looks at.
LOOKS = "SAVEPOINT s; SELECT FROM poolferry.runs WHERE host = {host} AND incarnation = 1 AND id = {n} FOR SHARE"
ROWS = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why)"
    " SELECT %s, 1, n, 1, 1, 'photos', 'rsync', 's', 't', 'run', now(), '' FROM generate_series(1, 20000) AS n"
)


@pytest.fixture
def small() -> Iterator[Centre]:
    """A centre on a server of its own, with the table of locks that PostgreSQL has as installed."""
    server = PostgresServer()
    try:
        server.start()
        yield make_centre(server)
    finally:
        server.remove()


class Flooder(threading.Thread):
    """A host that takes locks in one transaction until there are none, and keeps at it."""

    def __init__(self, centre: Centre, identity: FleetIdentity) -> None:
        super().__init__(daemon=True)
        self._centre, self._identity = centre, identity
        self.full, self.stops = threading.Event(), threading.Event()
        self.taken = 0

    def fill(self) -> None:
        """Begin, and return when there are no more."""
        self.start()
        assert self.full.wait(120), self.taken

    def run(self) -> None:
        """Take locks; after an error go on from the last savepoint."""
        with suppress(psycopg.Error, OrchestratorError), self._centre.session(self._identity) as session:
            session.change("SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0")
            row = session.first("SELECT poolferry.this_host() AS host")
            assert row is not None
            session.change(f"{ROWS} ON CONFLICT DO NOTHING", (row["host"],))
            session.connection.execute(b"BEGIN")
            while not self.stops.is_set():
                self._take(session, row["host"])

    def _take(self, session: CentreSession, host: int) -> None:
        words = (LOOKS.format(host=host, n=self.taken + each) for each in range(1, 101))
        try:
            session.connection.execute("; ".join(words).encode())
            self.taken += 100
        except psycopg.errors.OutOfMemory:
            self.full.set()
            session.connection.execute(b"ROLLBACK TO s")


def test_a_host_that_fills_the_table_of_locks_is_shut_out_within_seconds(
    small: Centre, ferry: Ferry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: nobody could log in, ask or tell any more until its session was ended, or PostgreSQL started again."""
    evil = FleetHost(tmp_path / "evil", small, "evil", monkeypatch)
    at_centre = ("--centre", small.server.url(small.database))
    with small.administrator() as session, small.session(small.join("good")) as good:
        declare_limit(session, DeclaredLimit(name="wan", slots=9))
        first = Flooder(small, evil.identity)
        first.fill()
        with pytest.raises(CentreUnreachable, match="out of shared memory"):
            ask_permit(good, "mail", PermitRequest(limits=("wan",)), taken=False)
        with pytest.raises(CentreUnreachable, match="out of shared memory"):
            small.administrator()
        first.stops.set()
        first.join(60)

        words = [*COMMAND, "fleet", "watch", "--every", "1h", *at_centre]
        with subprocess.Popen(words, env=ferry.variables(), stdout=PIPE, stderr=STDOUT, text=True) as watch:
            try:
                until(lambda: locks_in_reserve(session) == 100, "it guards the locks", str)
                Flooder(small, evil.identity).start()
                until(lambda: shut_out(session), "the host is shut out", str)
                until(lambda: is_granted(good), "others are lent permits", str)
                until(lambda: locks_in_reserve(session) == 100, "it guards them again", str)
            finally:
                watch.terminate()
                said, _ = watch.communicate(timeout=60)
    assert "locks: host evil filled the table of locks, and is shut out" in said
    refused = evil.ferry.run("fleet", "send")
    assert (refused.code, "is not permitted to log in" in refused.err) == (1, True), refused
    seen = ferry.run("fleet", "watch", *at_centre)
    assert (seen.code, "`poolferry fleet invite evil --again` lets it back" in seen.out) == (4, True), seen
    invited = ferry.run("fleet", "invite", "evil", "--again", *at_centre).out
    assert "shut out" not in ferry.run("fleet", "watch", *at_centre).out
    left = evil.ferry.run("fleet", "leave")
    assert left.code == 0, left
    joined = evil.ferry.run("fleet", "join", small.address, "--token", invited.split("--token ")[1].split()[0])
    assert joined.code == 0, joined


def test_a_guard_that_comes_too_late_ends_who_filled_the_table(small: Centre) -> None:
    """All locks are taken when it looks, but for those that it has in reserve."""
    evil = small.join("evil")
    with small.administrator() as session:
        guard = LockGuard(session)
        flooder = Flooder(small, evil)
        flooder.fill()
        until(lambda: looked(guard) == ("evil",), "it is named, in one of the looks of each second", str)
        flooder.join(60)
        with small.administrator() as other:
            assert [each.about for each in find_shut_out(other)] == ["host evil shut out"]


def test_several_hosts_that_have_most_of_the_table_together_are_shut_out_each(centre: Centre) -> None:
    """Seen: each with less than a quarter, they could have all of it, and the guard looked on."""
    names = ("evil-1", "evil-2", "evil-3", "good")
    with ExitStack() as stack, centre.administrator() as session:
        guard = LockGuard(session, most=100)  # of 400, and 100 are its own reserve
        for name, number in zip(names, (90, 80, 70, 10), strict=True):
            host = stack.enter_context(centre.session(centre.join(name)))
            row = host.first("SELECT poolferry.this_host() AS host")
            assert row is not None
            host.change(ROWS, (row["host"],))
            host.connection.execute(b"BEGIN")
            words = (LOOKS.format(host=row["host"], n=each) for each in range(1, number))
            host.connection.execute("; ".join(words).encode())
        assert {*guard.look()} == {"evil-1", "evil-2", "evil-3"}
        found = [each.about for each in find_shut_out(session)]
    assert found == ["host evil-1 shut out", "host evil-2 shut out", "host evil-3 shut out"]


def looked(guard: LockGuard) -> tuple[str, ...]:
    """Return what a look finds; nothing where not even it got a lock: the next one does."""
    try:
        return guard.look()
    except CentreUnreachable:
        return ()


def is_granted(session: CentreSession) -> bool:
    """Return whether a permit is lent; not yet where the locks are just being freed."""
    try:
        return ask_permit(session, "mail", PermitRequest(limits=("wan",)), taken=False).granted
    except CentreUnreachable:
        return False


def shut_out(session: CentreSession) -> bool:
    """Return whether one is; while there are no locks nobody knows."""
    try:
        return bool(find_shut_out(session))
    except CentreUnreachable:
        return False


def locks_in_reserve(session: CentreSession) -> int:
    """Return how many locks the guard keeps."""
    row = session.first(
        "SELECT count(*) AS n FROM pg_lock_status() WHERE locktype = 'advisory' AND classid = %s::oid", (0x706F6F6C,)
    )
    assert row is not None
    return int(row["n"])
