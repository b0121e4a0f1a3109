"""Orders: fetched by the host, checked against its own files, carried out once by its daemon, and told back."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.app.fleet_line import CentreLine
from orchestrator.app.fleet_orders import fetch_once, list_orders, place_orders
from orchestrator.config.this_machine import machine_id_hash
from orchestrator.domain.errors import CentreRefused, CentreUnreachable, NotNow
from orchestrator.domain.order import OrderRecord, OrderState, order_request
from orchestrator.fleet import orders
from tests.daemon.daemon_world import Daemon, daemon, runs, until
from tests.fleet.centres import Centre
from tests.fleet.hosts import MACHINE, FleetHost
from tests.fleet.lines import SilentLine


def fetch(host: FleetHost) -> None:
    """Fetch once, unless the daemon's own process does it at this moment."""
    with contextlib.suppress(NotNow):
        fetch_by(host)


def fetch_by(host: FleetHost) -> int:
    """Fetch in a session that ends; return how many orders there are."""
    with contextlib.closing(CentreLine("orders")) as line:
        return fetch_once(host.settings, line)


class Ordering:
    """A host that has joined, and its centre's administrator."""

    def __init__(self, host: FleetHost, centre: Centre) -> None:
        self.host, self._centre = host, centre
        self.administrator = centre.server.url(centre.database)

    def order(self, verb: str, job: str = "photos", *, span: str = "", within_s: float = 3600) -> int:
        """Place an order; its number."""
        (placed,) = place_orders(
            self.host.settings, verb, job, hosts=(self.host.name,), point="", span=span, asked_by="ann",
            within=timedelta(seconds=within_s), centre=self.administrator,
        )  # fmt: skip
        return placed.id

    def record(self, number: int) -> OrderRecord:
        """One order as the centre knows it."""
        return next(
            each for each in list_orders(self.host.settings, 50, centre=self.administrator) if each.id == number
        )

    def carried_on(self, number: int, *, within: float = 60) -> OrderRecord:
        """Fetch until the order has ended."""
        end = time.monotonic() + within
        while (found := self.record(number)).state in (OrderState.ASKED, OrderState.TAKEN, OrderState.BEGUN):
            assert time.monotonic() < end, found
            fetch(self.host)
            time.sleep(0.1)
        return found


@pytest.fixture
def ordering(tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> Ordering:
    """A host with the job photos, that has joined."""
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
    host.ferry.job()
    return Ordering(host, centre)


@pytest.fixture
def clock(ordering: Ordering) -> Iterator[Daemon]:
    """Its daemon."""
    with listening(ordering) as running:
        yield running


@contextmanager
def listening(ordering: Ordering) -> Iterator[Daemon]:
    """A daemon that takes acts."""
    socket = ordering.host.ferry.state / "control.sock"
    socket.unlink(missing_ok=True)
    with daemon(ordering.host.ferry) as running:
        until(socket.exists, "it listens", lambda: running.log)
        yield running


def test_orders_are_carried_out_once_by_the_daemon_and_their_outcome_comes_back(
    ordering: Ordering, clock: Daemon
) -> None:
    run, pause = ordering.order("run"), ordering.order("pause", span="3d")
    strange, drill = ordering.order("run", "letters"), ordering.order("drill")
    fetchers = [threading.Thread(target=fetch, args=(ordering.host,)) for _ in range(3)]
    for each in fetchers:
        each.start()
    for each in fetchers:
        each.join()
    done = ordering.carried_on(run)
    assert (done.state, done.attempt, "moved" in done.said) == (OrderState.DONE, 1, True), done
    assert ordering.carried_on(pause).said.startswith("rests until")
    assert (ordering.carried_on(strange).state, ordering.record(strange).said) == (OrderState.REFUSED, "there is no job of this name")  # fmt: skip
    assert ordering.carried_on(drill).state in (OrderState.DONE, OrderState.FAILED)
    with ordering.host.settings.views() as views:
        acts = views.acts.newest(9)
        begun = [(each.kind.value, each.begun_why) for each in views.runs("photos", 9)]
    assert begun.count(("run", "ordered by ann at the centre")) == 1
    assert sorted((each.verb.value, each.who) for each in acts) == [
        ("drill", "ann by the centre"), ("pause", "ann by the centre"), ("run", "ann by the centre"),
    ]  # fmt: skip
    shown = ordering.host.ferry.run("fleet", "orders", "--centre", ordering.administrator)
    assert f"{run} web-1: run photos, by ann: done" in shown.out


def test_what_the_daemons_death_cut_is_tried_once_more(ordering: Ordering) -> None:
    waits = ordering.host.ferry.root / "waits"
    waits.write_text(f"#!/bin/sh\ntest -e {waits}.twice && exit 0\ntouch {waits}.once\nexec sleep 600\n")
    waits.chmod(0o755)
    ordering.host.ferry.job("mail", f'[hooks]\nbefore = ["{waits}"]\n')
    number = ordering.order("run", "mail")
    with listening(ordering) as first:
        fetch(ordering.host)
        until(lambda: Path(f"{waits}.once").exists(), "the run waits", lambda: first.log)
        until(lambda: ordering.record(number).state is OrderState.BEGUN, "the centre knows", lambda: first.log)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(10)
    Path(f"{waits}.twice").touch()
    with listening(ordering):
        done = ordering.carried_on(number)
    assert (done.state, done.attempt) == (OrderState.DONE, 2), done


def test_an_order_that_comes_too_late_is_not_carried_out(ordering: Ordering) -> None:
    never = ordering.order("run", within_s=0.1)
    time.sleep(0.2)
    fetch_by(ordering.host)
    found = ordering.record(never)
    assert (found.state, found.said) == (OrderState.EXPIRED, "its deadline passed before the host asked for orders")
    assert runs(ordering.host.ferry) == []


def test_a_host_fetches_its_own_orders_alone_and_can_place_none(
    tmp_path: Path, ordering: Ordering, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = ordering.order("run")
    other = FleetHost(tmp_path / "web-2", centre, "web-2", monkeypatch)
    monkeypatch.setattr(MACHINE, lambda: other.machine)
    assert fetch_by(other) == 0
    with centre.administrator() as session:
        row = session.first("SELECT key::text FROM poolferry.orders")
        assert row
    with centre.session(other.identity) as session:
        orders.report_order(session, row["key"], OrderState.DONE, attempt=1)
        for statement in ("INSERT INTO {} DEFAULT VALUES", "UPDATE {} SET verb = 'run'", "SELECT * FROM {}"):
            with pytest.raises(CentreRefused, match="does not allow"):
                session.change(statement.format("poolferry.orders"))
    assert ordering.record(number).state is OrderState.ASKED


def test_a_line_that_falls_silent_does_not_hold_the_fetcher(
    ordering: Ordering, centre: Centre, line: SilentLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "ANSWER_S", 0.5)
    number = ordering.order("pause")
    ordering.host.declare(f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    with centre.session(ordering.host.identity):
        pass
    assert fetch_with(line, ordering) < 10
    ordering.host.declare(centre.address)
    assert ordering.record(number).state is OrderState.ASKED


def fetch_with(line: SilentLine, ordering: Ordering) -> float:
    """Return how long a fetch takes on a line that falls silent as soon as it stands."""
    from orchestrator.fleet import connection

    opened = connection.open_centre

    def open_and_silence(*given: object, **more: object) -> connection.CentreSession:
        session = opened(*given, **more)  # type: ignore[arg-type]
        line.silence()
        return session

    connection.open_centre = open_and_silence
    began = time.monotonic()
    try:
        with pytest.raises(CentreUnreachable, match="silent for"):
            fetch_by(ordering.host)
    finally:
        connection.open_centre = opened
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("verb", "job"),
    [("restore", "photos"), ("eject", "photos"), ("run", "../etc"), ("run", "--all"), ("prune", "photos")],
)
def test_only_what_the_daemon_takes_can_be_ordered(verb: str, job: str) -> None:
    with pytest.raises(ValueError, match=r"ordered|name that one can have"):
        order_request(verb, job)


def test_the_commands_say_what_is_wrong(ordering: Ordering) -> None:
    ferry, administrator = ordering.host.ferry, ("--centre", ordering.administrator)
    assert ferry.run("fleet", "orders", *administrator).out == "nothing was ordered\n"
    for words, said in (
        (("run", "photos", "--host", "nowhere"), "no host nowhere has joined; there are web-1"),
        (("run", "photos", "--all"), "no host has told that it declares a job photos"),
        (("run", "photos"), "expected --host HOST or --all"),
        (("pause", "photos", "--host", "web-1", "--for", "9y"), "span: expected one of"),
        (("cancel", "17"), "there is no order 17 that waits"),
    ):  # fmt: skip
        ended = ferry.run("fleet", "order", *words, *administrator)
        assert (ended.code != 0, said in ended.err) == (True, True), (words, ended)
    ordering.host.send()
    placed = ferry.run("fleet", "order", "run", "photos", "--all", *administrator)
    assert placed.code == 0, placed.err
    assert "web-1: run photos, by " in placed.out
    assert ferry.run("fleet", "order", "cancel", "1", *administrator).out == "order 1: cancelled\n"
