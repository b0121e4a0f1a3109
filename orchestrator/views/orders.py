"""Orders to the hosts of a fleet, and what became of them."""

from collections.abc import Sequence

from orchestrator.domain.names import printable_line
from orchestrator.domain.order import OrderRecord, OrderState
from orchestrator.views.format import format_iso, shorten

_STATES = {
    OrderState.ASKED: "waits for the host", OrderState.TAKEN: "is with the host", OrderState.BEGUN: "goes on", OrderState.DONE: "done",
    OrderState.FAILED: "failed", OrderState.REFUSED: "refused by the host", OrderState.EXPIRED: "not carried out",
    OrderState.CANCELLED: "cancelled",
}  # fmt: skip


def order_lines(orders: Sequence[OrderRecord]) -> list[str]:
    """Render orders, each with the last line that its host said."""
    if not orders:
        return ["nothing was ordered"]
    return [_line(each) for each in orders]


def _line(order: OrderRecord) -> str:
    what = " ".join(filter(None, (order.verb.value, order.job, order.about)))
    again = f", attempt {order.attempt}" if order.attempt > 1 else ""
    until = f" until {order.deadline.astimezone():%Y-%m-%d %H:%M}" if order.state is OrderState.ASKED else ""
    last = next((line for line in reversed(order.said.splitlines()) if line.strip()), "")
    said = f": {shorten(printable_line(last))}" if last else ""
    return f"{order.id} {order.host}: {what}, by {printable_line(order.asked_by)}: {_STATES[order.state]}{until}{again}{said}"


def order_value(order: OrderRecord) -> dict[str, object]:
    """Return one order for a program."""
    return {
        "order": order.id, "host": order.host, "verb": order.verb.value, "job": order.job, "about": order.about, "asked_by": order.asked_by,
        "asked_at": format_iso(order.asked_at), "deadline": format_iso(order.deadline), "state": order.state.value,
        "attempt": order.attempt, "act": order.act, "said": order.said, "told_at": format_iso(order.told_at) if order.told_at else None,
    }  # fmt: skip
