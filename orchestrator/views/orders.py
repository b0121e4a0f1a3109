"""Orders to the hosts of a fleet, and what became of them."""

from collections.abc import Iterator, Sequence

from orchestrator.domain.act import ActVerb
from orchestrator.domain.names import printable_line
from orchestrator.domain.order import OrderRecord, OrderState
from orchestrator.views.format import format_iso, shorten

_STATES = {
    OrderState.ASKED: "waits for the host", OrderState.TAKEN: "is with the host", OrderState.BEGUN: "goes on", OrderState.DONE: "done",
    OrderState.FAILED: "failed", OrderState.REFUSED: "refused by the host", OrderState.EXPIRED: "not carried out",
    OrderState.CANCELLED: "cancelled",
}  # fmt: skip


def order_lines(orders: Sequence[OrderRecord]) -> list[str]:
    """Render orders, each with the last line that its host said; of an evacuation with the line of each job, too."""
    if not orders:
        return ["nothing was ordered"]
    return [line for each in orders for line in (_line(each), *(f"    {line}" for line in job_lines(each)))]


def job_lines(order: OrderRecord) -> Iterator[str]:
    """Yield what the host said of each job of an evacuation. The last line, which counts them, is said with the order."""
    if order.verb is ActVerb.EVACUATE:
        yield from (printable_line(line) for line in order.said.splitlines()[:-1] if line.strip())


def order_what(order: OrderRecord) -> str:
    """Return what was ordered, such as "pause photos for 3d"."""
    return printable_line(" ".join(filter(None, (order.verb.value, order.subject, order.about))))


def order_state(order: OrderRecord) -> str:
    """Return where an order stands, in a few words."""
    return _STATES[order.state]


def order_until(order: OrderRecord) -> str:
    """Return until when an order waits, and which attempt it is; empty: neither."""
    until = f"until {order.deadline.astimezone():%Y-%m-%d %H:%M}" if order.state is OrderState.ASKED else ""
    return ", ".join(filter(None, (until, f"attempt {order.attempt}" if order.attempt > 1 else "")))


def order_said(order: OrderRecord) -> str:
    """Return the last line that the host said of an order; of one that it does not know, why."""
    if order.unknown_there:
        return f"its poolferry {order.version or 'of unknown version'} does not know {order.verb}; upgrade it there"
    return printable_line(next((line for line in reversed(order.said.splitlines()) if line.strip()), ""))


def _line(order: OrderRecord) -> str:
    said = f": {order_said(order) if order.unknown_end else shorten(order_said(order))}" if order_said(order) else ""
    stands = ", ".join(filter(None, (order_state(order), order_until(order))))
    return f"{order.id} {order.host}: {order_what(order)}, by {printable_line(order.asked_by)}: {stands}{said}"


def order_value(order: OrderRecord) -> dict[str, object]:
    """Return one order for a program."""
    evacuates = order.verb is ActVerb.EVACUATE
    return {
        "order": order.id, "host": order.host, "verb": order.verb.value, "job": "" if evacuates else order.subject,
        "pool": order.subject if evacuates else "", "about": order.about, "asked_by": order.asked_by,
        "asked_at": format_iso(order.asked_at), "deadline": format_iso(order.deadline), "state": order.state.value,
        "attempt": order.attempt, "act": order.act, "said": order.said, "told_at": format_iso(order.told_at) if order.told_at else None,
        "version": order.version, "unknown_there": order.unknown_there,
    }  # fmt: skip
