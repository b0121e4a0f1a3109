"""Permits at the centre: limits that are declared there, and permits that hosts ask for, hold and give back.

A permit is a row, and its sign of life the one advisory lock of the session that asked; so each permit needs a session. Why not a row
lock alone: it needs a transaction that stays open as long as the run, which keeps old rows of the whole database alive, and after a
crash of the centre nobody knows who held one. Why not an advisory lock alone: it leaves no trace either, has no weight, and its queue
is not fair. So the row stays for its lease after the session is gone, and a run that goes on claims it again within that time.

Why who waits asks again and is not called by NOTIFY: orchestrator/README.md, decision 8.
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.job import TimeWindow, parse_window
from orchestrator.domain.permit import DeclaredLimit, PermitAnswer, PermitRecord, PermitRequest
from orchestrator.fleet.connection import CentreSession

LEASE_S = 30  # for so long a permit outlives its session; a host that still lives comes again much sooner
# The centre looks for a holder that went silent: by its own keepalives, which a host may set for its session.
SESSION_LIMITS: Mapping[str, str] = {
    "tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3", "tcp_user_timeout": "25000",
    "synchronous_commit": "off",  # what is lent is put on the disk by a statement of its own, in which no limit is locked
}  # fmt: skip
# Whether the centre can settle is asked in the same round trip.
_ASK = (
    b"SELECT asked.*, to_regprocedure('poolferry.settle_permit(integer)') IS NOT NULL AS settles"
    b" FROM poolferry.ask_permit(%s, %s, %s, %s, %s) AS asked"
)


def ask_permit(
    centre: CentreSession,
    job: str,
    request: PermitRequest,
    *,
    taken: bool,
    lease_s: int = LEASE_S,
    within: float = 30.0,
) -> PermitAnswer:
    """Ask for a permit, or again whether it is lent now. `taken`: say that the run goes on, lent or not.

    Raises: CentreUnreachable, CentreRefused.
    """
    with centre.within(within):
        asked = (job, list(request.limits), request.weight, lease_s, taken)
        row = centre.connection.execute(_ASK, asked).fetchone()
        # Put what was lent on the disk before it is believed. A centre of before 0040 cannot: if it crashes within that half second, it forgets what it
        # lent, and the run claims it again.
        if row is not None and row["granted"] and not taken and row["settles"]:
            centre.connection.execute(b"SELECT poolferry.settle_permit(%s)", (row["permit"],))
    if row is None:
        raise CentreRefused("the centre gave no answer to a request for a permit", hint="poolferry fleet init there")
    return PermitAnswer(
        permit=row["permit"], granted=row["granted"], busy=row["busy"], place=row["place"], limit=row["in_limit"], used=row["used"],
        slots=row["slots"], opens=row["opens"], unknown=tuple(row["unknown"]), clamped=tuple(row["clamped"]),
    )  # fmt: skip


def release_permit(centre: CentreSession, permit: int, *, within: float) -> None:
    """Give a permit back, or leave the queue. Raises: CentreUnreachable."""
    centre.rows("SELECT poolferry.release_permit(%s)", (permit,), seconds=within)


def declare_limit(centre: CentreSession, limit: DeclaredLimit) -> None:
    """Declare a limit, or change it: what is lent stays lent. Raises: CentreRefused for a zone that is not known."""
    if not centre.first("SELECT 1 AS one FROM pg_catalog.pg_timezone_names WHERE name = %s", (limit.zone,)):
        raise CentreRefused(f"the centre knows no time zone {limit.zone}", hint="--zone Europe/Berlin, or --zone UTC")
    between = parse_window(limit.between) if limit.between else None
    centre.change(
        "INSERT INTO poolferry.limits (name, slots, opens, closes, zone) VALUES (%s, %s, %s, %s, %s) ON CONFLICT (name) DO UPDATE"
        " SET slots = excluded.slots, opens = excluded.opens, closes = excluded.closes, zone = excluded.zone",
        (limit.name, limit.slots, between and between.begin, between and between.end, limit.zone),
    )


def remove_limit(centre: CentreSession, name: str) -> None:
    """Remove a limit: jobs that name it go on without it. Raises: CentreRefused when there is none of that name."""
    if not centre.change("DELETE FROM poolferry.limits WHERE name = %s", (name,)):
        known = ", ".join(each.name for each in list_limits(centre))
        raise CentreRefused(
            f"the centre knows no limit {name}" + (f", only {known}" if known else ""), hint="poolferry fleet permits"
        )


def list_limits(centre: CentreSession) -> tuple[DeclaredLimit, ...]:
    """Return all limits by name, with what is lent of each."""
    return tuple(
        DeclaredLimit(
            name=row["name"], slots=row["slots"], zone=row["zone"], lent=row["lent"], waiting=row["waiting"],
            between="" if row["opens"] is None else str(TimeWindow(begin=row["opens"], end=row["closes"])),
        )
        for row in centre.rows("SELECT * FROM poolferry.limits_now ORDER BY name")
    )  # fmt: skip


def list_permits(centre: CentreSession) -> tuple[PermitRecord, ...]:
    """Return the permits that are held, then those that wait, in the order of asking."""
    return tuple(
        _record(row) for row in centre.rows("SELECT * FROM poolferry.permits_now ORDER BY granted_at IS NULL, id")
    )


def _record(row: Mapping[str, Any]) -> PermitRecord:
    return PermitRecord(
        host=row["host"], job=row["job"], limits=tuple(row["limits"]), weight=row["weight"], held=row["granted_at"] is not None,
        taken=row["taken"], lives=row["lives"], since=row["granted_at"] or row["asked_at"],
    )  # fmt: skip
