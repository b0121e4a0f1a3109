"""Orders of the centre at their host: fetched, asked of the daemon by its control socket, and what became of them told back.

An order is carried out at most once for each attempt: the daemon records its key before it begins, and takes no key twice. What was
cut by the daemon's own death is tried once more where it does no harm when it is done twice; else it is told that nobody knows its end.
"""

import threading
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.control import DaemonControl
from orchestrator.app.fleet_line import CentreLine
from orchestrator.app.fleet_members import connect_administrator, declared_fleet, require_identity
from orchestrator.app.fleet_sender import lock_of_fleet
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.act import ENDED_WITH_DAEMON, ActRecord
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.order import (
    MOST_ATTEMPTS,
    RETRIED,
    UNKNOWN_END,
    FetchedOrder,
    OrderRecord,
    OrderState,
    describe_unknown_end,
    order_request,
)

if TYPE_CHECKING:
    from orchestrator.fleet.connection import CentreSession

EVERY_S = 20.0
_RAREST_S = 600.0  # of the largest fleet
LONGEST_S = 120.0  # between two looks, while the centre is away


def place_orders(
    settings: Settings, verb: str, subject: str, *, hosts: tuple[str, ...] | None, point: str, span: str, asked_by: str,
    within: timedelta, centre: str | None, guid: str = "",
) -> tuple[OrderRecord, ...]:  # fmt: skip
    """Place an order for hosts; None: for all that declare the job, or one whose source lies on the pool, of this name.

    Raises: WrongRequest, CentreRefused, CentreUnreachable.
    """
    from orchestrator.fleet.orders import place_orders

    try:
        request = order_request(verb, subject, point=point, span=span, guid=guid, user=asked_by)
    except ValueError as error:
        raise WrongRequest(str(error)) from None
    with connect_administrator(settings, centre) as session:
        return place_orders(session, request, hosts, asked_by=asked_by, within=within)


def list_orders(settings: Settings, limit: int, *, centre: str | None) -> tuple[OrderRecord, ...]:
    """Return the newest orders, the newest first."""
    from orchestrator.fleet.orders import list_orders

    with connect_administrator(settings, centre) as session:
        return list_orders(session, limit)


def cancel_order(settings: Settings, number: int, *, centre: str | None) -> None:
    """Take back an order that its host has not fetched yet. Raises: CentreRefused."""
    from orchestrator.fleet.orders import cancel_order

    with connect_administrator(settings, centre) as session:
        cancel_order(session, number)


def begin_fetching(settings: Settings, *, every_s: float) -> None:
    """Fetch orders again and again, in a thread that ends with the process: nothing waits for it."""

    def go() -> None:
        pause, line = every_s, CentreLine("orders")
        while True:
            try:
                fetch_once(settings, line)
                pause = max(every_s, min(line.least_pause_s, _RAREST_S))
            except OrchestratorError:  # whoever tells the centre says that it is away
                pause = min(2 * pause, LONGEST_S)
            except Exception as error:  # noqa: BLE001 - a thread that dies silently would leave all orders open
                settings.say(f"orders: this is a mistake in poolferry: {type(error).__name__}: {error}")
                pause = LONGEST_S
            compose.sleep(pause * (0.75 + 0.5 * compose.random_fraction()))

    threading.Thread(target=go, name="orders", daemon=True).start()


def fetch_once(settings: Settings, line: CentreLine) -> int:
    """Fetch the open orders of this host, and carry each on by one step; return how many there are.

    Raises: CentreUnreachable · CentreRefused · NotNow when another process is at it · OrchestratorError without a daemon.
    """
    from orchestrator.config.this_machine import machine_id_hash
    from orchestrator.fleet.orders import fetch_orders
    from orchestrator.fleet.tickets import show_ticket

    identity = require_identity(settings)
    with (
        lock_of_fleet(settings.where.state, "orders"),
        line.visit(declared_fleet(settings), identity) as centre,
    ):
        machine = machine_id_hash()
        ticket = partial(show_ticket, centre, settings.where.state, name=identity.host, machine=machine)
        ticket(renew=False)
        if orders := fetch_orders(centre, machine):
            # Of a copy of this machine, which fetches them too, the ticket is older from now on.
            newest = ticket(renew=True)
            for each in orders:
                _carry_on(settings, centre, each, newest)
    return len(orders)


def _carry_on(settings: Settings, centre: "CentreSession", order: FetchedOrder, ticket: str) -> None:
    """Ask the daemon for an order that it does not know, or say what became of one that it does. `ticket`: this host's newest, if the centre has them."""
    from orchestrator.fleet.orders import report_order
    from orchestrator.fleet.tickets import take_order

    attempt = max(1, order.attempt)
    act = _act_of(settings, order.request.order)
    if act is not None and act.well is False and act.said == ENDED_WITH_DAEMON:
        if order.request.verb not in RETRIED:
            why = describe_unknown_end(order.request)
            report_order(centre, order.key, OrderState.FAILED, attempt=attempt, act=act.id, said=why)
            return
        if attempt < MOST_ATTEMPTS:
            attempt += 1
            act = None
    elif act is None and order.state is OrderState.BEGUN:
        why = f"this host's history knows nothing of it any more, so {UNKNOWN_END}"
        report_order(centre, order.key, OrderState.FAILED, attempt=attempt, said=why)
        return
    if act is None:
        if order.late:
            why = "its deadline passed before it was begun" if attempt == 1 else "it was cut, and its deadline is over"
            report_order(centre, order.key, OrderState.EXPIRED, attempt=attempt, said=why)
            return
        # Each attempt is known there before it begins: it may end while the centre is away. And only one of two copies of this machine takes it.
        if ticket:
            if not take_order(centre, order.key, attempt=attempt, ticket=ticket):
                return
        elif order.state is OrderState.ASKED or attempt != order.attempt:
            report_order(centre, order.key, OrderState.TAKEN, attempt=attempt)
        request = replace(order.request, order=f"{order.key}.{attempt}")
        answer = DaemonControl(settings).ask(request)
        if not answer.accepted:
            state = OrderState.TAKEN if answer.later else OrderState.REFUSED
            report_order(centre, order.key, state, attempt=attempt, said=answer.said)
            return
        act = _act_of(settings, request.order)
    if act is not None:
        state = OrderState.BEGUN if act.well is None else OrderState.DONE if act.well else OrderState.FAILED
        if state is not order.state or attempt != order.attempt:
            report_order(centre, order.key, state, attempt=attempt, act=act.id, said=act.said)


def _act_of(settings: Settings, key: str) -> ActRecord | None:
    with settings.views() as views:
        return views.acts.of_order(key)
