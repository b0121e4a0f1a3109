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
    return [line for each in orders for line in (_line(each), *_job_lines(each))]


def _job_lines(order: OrderRecord) -> Iterator[str]:
    """Yield what the host said of each job of an evacuation. The last line, which counts them, is said with the order."""
    if order.verb is ActVerb.EVACUATE:
        yield from (f"    {printable_line(line)}" for line in order.said.splitlines()[:-1] if line.strip())


def _line(order: OrderRecord) -> str:
    what = " ".join(filter(None, (order.verb.value, order.subject, order.about)))
    again = f", attempt {order.attempt}" if order.attempt > 1 else ""
    until = f" until {order.deadline.astimezone():%Y-%m-%d %H:%M}" if order.state is OrderState.ASKED else ""
    last = next((line for line in reversed(order.said.splitlines()) if line.strip()), "")
    if order.unknown_there:
        last = f"its poolferry {order.version or 'of unknown version'} does not know {order.verb}; upgrade it there"
    said = f": {shorten(printable_line(last))}" if last else ""
    return f"{order.id} {order.host}: {what}, by {printable_line(order.asked_by)}: {_STATES[order.state]}{until}{again}{said}"


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
