"""Another centre in place of the one that is lost: a standby that takes over, a copy that is put back, and an order that found no room."""

import subprocess
import threading
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.app.fleet_orders import list_orders, place_orders
from orchestrator.domain.errors import CentreRefused, CentreUnreachable, NotNow
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.schema import upgrade_schema
from tests.daemon.daemon_world import until
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.fleet.postgres import PostgresServer, program


def told(centre: Centre) -> list[int]:
    """The numbers of all runs at the centre, however often each is there."""
    with centre.administrator() as session:
        return [row["id"] for row in session.rows("SELECT id FROM poolferry.runs ORDER BY id, incarnation")]


def order(host: FleetHost, centre: Centre) -> int:
    """Place an order of that host; return its number."""
    (placed,) = place_orders(
        host.settings, "pause", "photos", hosts=(host.name,), point="", span="3d", asked_by="ann", within=timedelta(hours=1),
        centre=centre.server.url(centre.database),
    )  # fmt: skip
    return placed.id


def test_a_standby_that_takes_over_is_told_what_it_lacks(
    tmp_path: Path, own_centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host names both in one address, the standby first. What the first one had said to have, and the standby never got, is told again."""
    host, first = FleetHost(tmp_path / "web-1", own_centre, "web-1", monkeypatch), own_centre.server
    standby = PostgresServer(follows=first, wal_level="replica", max_wal_senders="2")
    try:
        standby.start()
        host.declare(
            f"postgresql:///{own_centre.database}?host={standby.folder},{first.folder}&port={standby.port},{first.port}"
        )
        host.record(count=5)
        host.send()
        known = order(host, own_centre)
        with own_centre.administrator() as session:
            has_all = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()"
            until(lambda: bool(session.rows(has_all)), "it has all", str)
        with open_centre(FleetOptions(centre=standby.url("postgres")), None, purpose="test") as session:
            session.change("ALTER SYSTEM SET primary_conninfo = ''")  # the line between the two is cut
            session.rows("SELECT pg_reload_conf()")
            until(lambda: not session.rows("SELECT 1 FROM pg_stat_wal_receiver"), "it gets no more", str)
            host.record(count=5)
            host.send()
            order(host, own_centre)
            assert told(own_centre) == list(range(1, 11))
            with host.history() as history:
                assert history.outbox.count() == 0
            first.stop("immediate")
            host.record()
            with pytest.raises((CentreUnreachable, CentreRefused)):
                host.send()  # nobody took over yet
            session.rows("SELECT pg_promote()")
        own_centre.server = standby
        host.send()
        host.send()
        assert told(own_centre) == list(range(1, 12))
        orders = list_orders(host.settings, 50, centre=standby.url(own_centre.database))
        assert [each.id for each in orders] == [known], (
            "an order that only the first one had is lost, and says so by that"
        )
    finally:
        standby.remove()


def test_a_copy_that_is_put_back_while_runs_go_on_is_told_what_it_lacks(
    tmp_path: Path, own_centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, server = FleetHost(tmp_path / "web-1", own_centre, "web-1", monkeypatch), own_centre.server
    dump, over, sent = server.folder / "dump", threading.Event(), list[int]()
    at = ("-h", str(server.folder), "-p", str(server.port), "-U", "postgres")
    host.record(count=300)
    host.send()
    subprocess.run([program("pg_dump"), *at, "--format=custom", f"--file={dump}", own_centre.database], check=True)

    def goes_on() -> None:
        while not over.is_set():
            host.record()
            with suppress(CentreUnreachable, CentreRefused, NotNow):
                sent.append(host.send().rows)

    host.record(count=50)
    host.send()
    sender = threading.Thread(target=goes_on)
    sender.start()
    try:
        until(lambda: len(sent) > 1, "it tells", str)
        server.drop_database(own_centre.database)
        subprocess.run([program("createdb"), *at, own_centre.database], check=True)
        done = subprocess.run(
            [program("pg_restore"), *at, f"--dbname={own_centre.database}", str(dump)], capture_output=True, text=True
        )
        assert [
            line for line in done.stderr.splitlines() if "error" in line and "pg_logical_emit_message" not in line
        ] == []
        with own_centre.administrator() as session:
            upgrade_schema(session)
        number = len(sent)
        until(lambda: len(sent) > number + 1, "it tells again", str)
    finally:
        over.set()
        sender.join()
    host.send()
    host.send()
    with host.history() as history:
        assert history.outbox.count() == 0
        assert told(own_centre) == sorted(run.id for run in history.views.runs("photos", 100_000))
