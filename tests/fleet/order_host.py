"""A host that has joined, with its daemon, and its centre's administrator who orders."""

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from orchestrator.app.fleet_line import CentreLine
from orchestrator.app.fleet_orders import fetch_once, list_orders, place_orders
from orchestrator.domain.errors import NotNow
from orchestrator.domain.order import OrderRecord, OrderState
from tests.daemon.daemon_world import Daemon, daemon, until
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost


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

    def order(self, verb: str, job: str = "photos", *, span: str = "", guid: str = "", within_s: float = 3600) -> int:
        """Place an order; its number."""
        (placed,) = place_orders(
            self.host.settings, verb, job, hosts=(self.host.name,), point="", span=span, asked_by="ann",
            within=timedelta(seconds=within_s), centre=self.administrator, guid=guid,
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


@contextmanager
def listening(ordering: Ordering, python_path: str = "") -> Iterator[Daemon]:
    """A daemon that takes acts."""
    socket = ordering.host.ferry.state / "control.sock"
    socket.unlink(missing_ok=True)
    ferry = ordering.host.ferry
    with daemon(ferry, PYTHONPATH=python_path or ferry.variables()["PYTHONPATH"]) as running:
        until(socket.exists, "it listens", lambda: running.log)
        yield running
