"""Orders at the centre: placed by its administrator, fetched by the host that they are for, which then says what became of them.

Why tables of our own and not procrastinate's queue, measured with 3.10: a host's role that may fetch there may fetch the orders of all
hosts, and remove all workers, for its functions act with the caller's rights; an idle worker keeps 4 connections and sends 100
statements a minute, each of ours is one connection and one statement; and a worker whose line fell silent still hung after 45 s. What
is left to a queue here is little: the host's daemon carries an order out by itself, and the host's history knows that it did.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from orchestrator.domain.act import ActRequest, ActVerb
from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.order import FetchedOrder, OrderRecord, OrderState, order_request
from orchestrator.fleet.connection import CentreSession

ANSWER_S = 15.0


def place_orders(
    centre: CentreSession, request: ActRequest, hosts: Sequence[str] | None, *, asked_by: str, within: timedelta
) -> tuple[OrderRecord, ...]:
    """Place an order for each host; None: for all that declare the job, or one whose source lies on the pool.

    Raises: CentreRefused, and then none is placed.
    """
    with centre.transaction():
        known = {row["name"]: row["id"] for row in centre.rows(_MEMBERS)}
        chosen = _all_hosts_of(centre, request) if hosts is None else list(dict.fromkeys(hosts))
        if strange := [name for name in chosen if name not in known]:
            raise CentreRefused(
                f"no host {', '.join(strange)} has joined; there {_named(sorted(known))}",
                hint="poolferry fleet hosts",
            )
        placed = [
            centre.first(
                _PLACE,
                (
                    known[name],
                    request.verb,
                    request.subject,
                    request.guid or request.point,
                    request.span,
                    asked_by,
                    within,
                ),
            )
            for name in chosen
        ]
    numbers = [row["id"] for row in placed if row]
    return tuple(_record(row) for row in centre.rows(f"{_ORDERS} WHERE o.id = ANY (%s) ORDER BY o.id", (numbers,)))


def _named(hosts: Sequence[str]) -> str:
    """Return which hosts there are, the first ten by name."""
    more = f" and {len(hosts) - 10} more" if len(hosts) > 10 else ""
    return f"are {', '.join(hosts[:10])}{more}" if hosts else "is none yet"


def _all_hosts_of(centre: CentreSession, request: ActRequest) -> list[str]:
    """Return the hosts that have joined and declare what the request is about. Raises: CentreRefused when there is none."""
    if request.pool:
        found = centre.rows(f"{_MEMBERS} {_HOLDS}", (request.pool, f"{request.pool}/"))
        lacking = f"no host has told of a job whose source is a dataset of a pool {request.pool}"
    else:
        found = centre.rows(f"{_MEMBERS} {_DECLARES}", (request.job,))
        lacking = f"no host has told that it declares a job {request.job}"
    if not found:
        raise CentreRefused(lacking, hint="poolferry fleet hosts")
    return [row["name"] for row in found]


def list_orders(centre: CentreSession, limit: int) -> tuple[OrderRecord, ...]:
    """Return the newest orders, the newest first."""
    return tuple(_record(row) for row in centre.rows(f"{_ORDERS} ORDER BY o.id DESC LIMIT %s", (limit,)))


def cancel_order(centre: CentreSession, number: int) -> None:
    """Take an order back that no host has fetched yet. Raises: CentreRefused."""
    if not centre.change("UPDATE poolferry.orders SET state = 'cancelled', told_at = now() WHERE id = %s AND state = 'asked'", (number,)):  # fmt: skip
        raise CentreRefused(
            f"there is no order {number} that waits to be fetched: its host has it, or it is over, or it never was",
            hint="poolferry fleet orders",
        )


def fetch_orders(centre: CentreSession, machine: str) -> tuple[FetchedOrder, ...]:
    """Return the open orders of this host, oldest first; one that is not of the closed list is reported as refused.

    `machine`: a hash of this machine's id, as when it joined. Raises: CentreUnreachable, CentreRefused.
    """
    found = list[FetchedOrder]()
    for row in centre.rows("SELECT * FROM poolferry.fetch_orders(%s)", (machine,), seconds=ANSWER_S):
        key, attempt = str(row["key"]), max(1, row["attempt"])
        try:
            request = order_request(
                row["verb"], row["job"], **_which(row), span=row["span"], user=row["asked_by"], key=key, attempt=attempt
            )  # fmt: skip
        except ValueError as error:
            report_order(centre, key, OrderState.REFUSED, attempt=attempt, said=f"not understood: {error}")
            continue
        found.append(
            FetchedOrder(
                key=key, request=request, state=OrderState(row["state"]), attempt=row["attempt"], late=row["late"]
            )
        )
    return tuple(found)


def report_order(
    centre: CentreSession, key: str, state: OrderState, *, attempt: int, act: int | None = None, said: str = ""
) -> None:
    """Say what became of an order; one that has ended stays as it is. Raises: CentreUnreachable."""
    text = said.replace("\x00", "").encode("utf-8", "replace").decode()
    centre.rows("SELECT poolferry.report_order(%s::uuid, %s, %s, %s, %s)", (key, state.value, attempt, act, text), seconds=ANSWER_S)  # fmt: skip


_MEMBERS = "SELECT h.id, h.name FROM poolferry.hosts h WHERE h.joined_at IS NOT NULL AND h.left_at IS NULL"
_DECLARES = "AND EXISTS (SELECT FROM poolferry.jobs j WHERE j.host = h.id AND j.job = %s AND j.declared AND j.state <> 'no-file') ORDER BY h.name"
_HOLDS = (
    "AND EXISTS (SELECT FROM poolferry.jobs j WHERE j.host = h.id AND (j.source = %s OR starts_with(j.source, %s)) AND j.declared"
    " AND j.state <> 'no-file') ORDER BY h.name"
)
_PLACE = (
    "INSERT INTO poolferry.orders (host, verb, job, point, span, asked_by, deadline)"
    " VALUES (%s, %s, %s, %s, %s, %s, now() + %s) RETURNING id"
)
_ORDERS = (
    "SELECT o.*, h.name AS host_name, coalesce(b.version, '') AS version FROM poolferry.orders o JOIN poolferry.hosts h ON h.id = o.host"
    " LEFT JOIN poolferry.beats b ON b.host = o.host"
)


def _which(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the point of an order, or the guid of its pool: an evacuation has no point, and a host that knows no guid refuses it."""
    return {"guid" if row["verb"] == ActVerb.EVACUATE else "point": row["point"]}


def _record(row: Mapping[str, Any]) -> OrderRecord:
    ((name, value),) = _which(row).items()
    about = " ".join(filter(None, (f"for {row['span']}" if row["span"] else "", f"{name} {value}" if value else "")))  # fmt: skip
    return OrderRecord(
        id=row["id"], host=row["host_name"], verb=ActVerb(row["verb"]), subject=row["job"], about=about, asked_by=row["asked_by"],
        asked_at=row["asked_at"], deadline=row["deadline"], state=OrderState(row["state"]), attempt=row["attempt"], act=row["act"],
        said=row["said"], told_at=row["told_at"], version=row["version"],
    )  # fmt: skip
