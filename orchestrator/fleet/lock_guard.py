"""The guard of the table of locks that all sessions of a PostgreSQL share: a host that fills it is shut out.

No right keeps a role from that: each savepoint in which it writes holds a lock, if only of a setting of its own role, and some seconds are
enough for all that there are. So somebody who is logged in already looks each second, and ends the sessions of a host that has a quarter; and
once half of all are taken, of each host that has a sixteenth, as several may do it together. No poolferry comes near that: its fifty sessions
together have some hundred.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import CentreUnreachable
from orchestrator.domain.fleet_watch import FleetFinding
from orchestrator.fleet.connection import CentreSession, Row

ROOMY = 25_600  # locks: so many are not taken within a look or two
_RESERVE = 0x706F6F6C  # "pool", of the locks in reserve
_SIZE = (
    "SELECT current_setting('max_locks_per_transaction')::integer AS each,"
    " current_setting('max_connections')::integer + current_setting('max_prepared_transactions')::integer AS sessions,"
    " current_setting('max_prepared_transactions')::integer AS prepared"
)
_MOST = (
    "SELECT current_setting('max_locks_per_transaction')::integer"
    " * (current_setting('max_connections')::integer + current_setting('max_prepared_transactions')::integer) / 4 AS most"
)
# Functions alone, of which none needs a lock: there may be none left. Locks of a session's own fast path are not in the table.
_COUNT = (
    "SELECT each.usesysid, each.locks FROM (SELECT a.usesysid, count(*) AS locks, sum(count(*)) OVER () AS total"
    " FROM pg_lock_status() AS l JOIN pg_stat_get_activity(NULL) AS a ON a.pid = l.pid WHERE NOT l.fastpath AND a.usesysid IS NOT NULL"
    " GROUP BY a.usesysid) AS each WHERE each.locks > %(most)s OR (each.total > 2 * %(most)s::integer AND each.locks > %(most)s::integer / 4)"
)
# So that they are known by heart when that happens.
_NAMES = "SELECT DISTINCT pg_get_userbyid(usesysid) FROM pg_stat_get_activity(NULL) WHERE usesysid IS NOT NULL"
# Locks are set free, used to look up whose roles those are, and their sessions ended, by one statement: between two of them the host would
# take what was set free. A CASE looks at what decides first; who looked at the table of locks in between would come too late as well.
_END = """
WITH named AS MATERIALIZED (SELECT h.usesysid, CASE WHEN pg_advisory_unlock_all()::text IS NOT NULL THEN pg_get_userbyid(h.usesysid)::text END AS role
    FROM unnest(%(heavy)s::oid[]) AS h (usesysid))
SELECT n.role, (SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_get_activity(NULL) AS a WHERE a.usesysid = n.usesysid) AS number
FROM named AS n WHERE n.role ~ '^poolferry_[a-z0-9_]{1,40}_[0-9a-f]{8}$'
"""


class LockGuard:
    """A session that looks at who holds how many locks, and keeps some in reserve, for when there are no more. `most`: of one host."""

    def __init__(self, centre: CentreSession, *, most: int | None = None) -> None:
        """Begin to guard; a look that ends nobody makes the server know its statements by heart. Raises: CentreUnreachable, CentreRefused."""
        self._centre = centre
        self._most = int((centre.first(_MOST) or {"most": 0})["most"]) if most is None else most
        self._reserved = False
        self._ended: set[str] = set()  # roles whose sessions were ended, and that can still log in
        # Else the first five times of each are planned anew, for which there may be no lock left.
        with centre.within():
            centre.connection.execute(b"SET plan_cache_mode = force_generic_plan")
        for statement in (_COUNT, _NAMES, _END):
            self._by_heart(statement)
        self._keep_reserve()

    def look(self) -> tuple[str, ...]:
        """Look once; shut out each host that has too many locks, and return their names. Raises: CentreUnreachable, CentreRefused."""
        heavy = [row["usesysid"] for row in self._by_heart(_COUNT)]
        if heavy:
            self._reserved = False
            self._ended.update(row["role"] for row in self._by_heart(_END, heavy))
        else:
            self._by_heart(_NAMES)
        names = [self._shut_out(role) for role in sorted(self._ended)]
        if not self._reserved:
            with contextlib.suppress(CentreUnreachable):  # there is no room yet
                self._keep_reserve()
        return tuple(filter(None, names))

    def _by_heart(self, statement: str, heavy: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Return the rows of a statement that the server keeps planned, as to plan it needs locks."""
        with self._centre.within():
            return self._centre.connection.execute(
                statement.encode(), {"most": self._most, "heavy": [*heavy]}, prepare=True
            ).fetchall()

    def _shut_out(self, role: str) -> str:
        """Keep a role from logging in, end those of its sessions that began meanwhile, and write that down.

        Return the host's name; nothing where there is no lock for that yet, as its sessions are just ending: the next look goes on.
        """
        from psycopg import sql

        try:
            with self._centre.within():
                self._centre.connection.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(role)))
            self._centre.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))
            row = self._centre.first(
                "UPDATE poolferry.hosts SET shut_out_at = clock_timestamp() WHERE role = %s RETURNING name", (role,)
            )
        except CentreUnreachable:
            return ""
        self._ended.remove(role)
        return str(row["name"]) if row else ""

    def _keep_reserve(self) -> None:
        """Take what is not taken yet. Why looked at: a session that has just ended may hold them still, and then none is ours."""
        row = self._centre.first(
            "SELECT bool_and(pg_try_advisory_lock(%s, n)) AS all FROM generate_series(1, 100) AS n", (_RESERVE,)
        )
        self._reserved = row is not None and bool(row["all"])


def advise_server(centre: CentreSession) -> tuple[str, ...]:
    """Return what would be better in PostgreSQL's own settings, each with its line: room in the table of locks, no prepared transactions."""
    row = centre.first(_SIZE) or {"each": ROOMY, "sessions": 1, "prepared": 0}
    found = []
    if row["each"] * row["sessions"] < ROOMY:
        found.append(_more_locks(row))
    if row["prepared"]:
        found.append(
            "PostgreSQL lets hosts prepare transactions, which keep their locks without a session, so that for minutes no host is lent a permit; "
            "nothing of ours needs that: `ALTER SYSTEM SET max_prepared_transactions = 0` in psql, then restart PostgreSQL"
        )
    return tuple(found)


def _more_locks(row: Row) -> str:
    """Return the line that gives the table of locks room for what the guard needs to come in time."""
    wanted = -(-ROOMY // row["sessions"])
    return (
        f"PostgreSQL's table of locks has room for {row['each'] * row['sessions']:,}, which a host that was taken over fills within seconds; more give "
        f"`poolferry fleet watch` time to shut it out: `ALTER SYSTEM SET max_locks_per_transaction = {wanted}` in psql, then restart PostgreSQL"
    )


def find_shut_out(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Return the hosts that were shut out and not invited again."""
    return tuple(
        FleetFinding(
            about=f"host {row['name']} shut out", kind="shut-out", bad=True,
            why=f"it filled the table of locks that all sessions share, and was shut out at {row['shut_out_at']:%Y-%m-%d %H:%M} UTC: no poolferry does that",
            hint=f"see what runs on that host; when it is well again: `poolferry fleet invite {quoted(row['name'])} --again` lets it back",
        )
        for row in centre.rows("SELECT name, shut_out_at FROM poolferry.hosts WHERE shut_out_at IS NOT NULL ORDER BY name")
    )  # fmt: skip
