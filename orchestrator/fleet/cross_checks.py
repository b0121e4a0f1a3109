"""Questions over all hosts that only their centre can answer: two owners of one target, one disk at two places, sessions that never
end, a clock of its own that is wrong; and old rows."""

from datetime import timedelta

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fleet_status import CLOCK_ERROR
from orchestrator.domain.fleet_watch import FleetFinding
from orchestrator.domain.order import UNKNOWN_END
from orchestrator.domain.units import show_count, show_duration
from orchestrator.fleet.connection import CentreSession, Row

_BATCH = 20_000
_LONG_S = 600.0
# The machine and the path of each target, as its newest run named it: of a far one by its address, of a local one by its host's name.
_SHARED_TARGETS = r"""
SELECT place, array_agg(DISTINCT host || ' ' || job ORDER BY host || ' ' || job) AS owners FROM (
    SELECT h.name AS host, h.id, j.job, CASE WHEN r.target LIKE 'ssh://%%'
        THEN regexp_replace(r.target, '^ssh://([^@/]*@)?(\[[^]]*\]|[^:/]+)(:[0-9]+)?', '\2')
        ELSE h.name || '/' || ltrim(r.target, '/') END AS place
    FROM poolferry.jobs j JOIN poolferry.hosts h ON h.id = j.host CROSS JOIN LATERAL (
        SELECT runs.target, runs.source FROM poolferry.runs WHERE runs.host = j.host AND runs.job = j.job AND runs.type = 'run'
        ORDER BY runs.incarnation DESC, runs.id DESC LIMIT 1) AS r
    WHERE j.declared AND j.state <> 'no-file' AND h.left_at IS NULL AND h.joined_at IS NOT NULL AND r.target <> r.source
) AS each GROUP BY place HAVING count(DISTINCT id) > 1 ORDER BY place LIMIT 100
"""
_SHARED_DISKS = """
SELECT identity, min(disk) AS name, array_agg(DISTINCT host || ' (' || disk || ')' ORDER BY host || ' (' || disk || ')') AS places FROM (
    SELECT h.name AS host, h.id, r.body ->> 'name' AS disk, r.body ->> 'identity' AS identity
    FROM poolferry.records r JOIN poolferry.hosts h ON h.id = r.host
    WHERE r.subject = 'disk' AND h.left_at IS NULL AND r.body ->> 'state' = 'active' AND r.body ->> 'identity' <> ''
) AS each GROUP BY identity HAVING count(DISTINCT id) > 1 ORDER BY identity LIMIT 100
"""


_LONG = """
SELECT h.name AS host, count(pg_terminate_backend(a.pid)) AS number, extract(epoch FROM max(clock_timestamp() - a.xact_start))::float8 AS long
FROM pg_stat_activity a JOIN poolferry.hosts h ON h.role = a.usename
WHERE a.datname = current_database() AND a.xact_start < clock_timestamp() - %(longest)s::interval
    AND (pg_has_role(a.usename, 'USAGE') OR pg_has_role('pg_signal_backend', 'USAGE'))
GROUP BY h.name ORDER BY h.name
"""


_LONG_PERMITS = """
SELECT h.name AS host, p.job, extract(epoch FROM clock_timestamp() - p.granted_at)::float8 AS long,
    array_agg(DISTINCT l.name ORDER BY l.name) AS limits, min(l.slots) AS slots, count(DISTINCT w.id) AS waiting
FROM poolferry.permits p JOIN poolferry.hosts h ON h.id = p.host JOIN poolferry.permit_parts d ON d.permit = p.id
    JOIN poolferry.limits l ON l.id = d.in_limit JOIN poolferry.permit_parts o ON o.in_limit = l.id
    JOIN poolferry.permits w ON w.id = o.permit AND w.granted_at IS NULL AND w.host <> p.host AND w.seen_at > clock_timestamp() - interval '2 hours'
WHERE p.granted_at < clock_timestamp() - %(longest)s::interval GROUP BY h.name, p.job, p.id, p.granted_at ORDER BY h.name, p.job LIMIT 100
"""


_UNKNOWN_ENDS = """
SELECT o.id, h.name AS host, o.verb, o.job, o.point, o.span, o.asked_by FROM poolferry.orders o JOIN poolferry.hosts h ON h.id = o.host
WHERE o.state = 'failed' AND o.told_at > now() - interval '7 days' AND position(%(words)s in o.said) > 0 AND NOT EXISTS (
    SELECT FROM poolferry.orders n WHERE n.host = o.host AND n.verb = o.verb AND n.job = o.job AND n.id > o.id) ORDER BY o.id LIMIT 100
"""


def find_unknown_ends(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Return the orders of a week that were begun and of which nobody knows how they ended, until they are given again."""
    return tuple(
        FleetFinding(
            about=f"order {row['id']} to {row['host']}", kind="order", bad=True,
            why=f"{row['verb']} {row['job']}, which {row['asked_by']} ordered, was begun there, and {UNKNOWN_END}; it is not begun again",
            hint=f"`poolferry fleet orders` says more; if it is still wanted: `{_order_again(row)}`",
        )
        for row in centre.rows(_UNKNOWN_ENDS, {"words": UNKNOWN_END})
    )  # fmt: skip


def _order_again(row: Row) -> str:
    """Return the command that gives an order once more."""
    again = f"poolferry fleet order {quoted(row['verb'])} {quoted(row['job'])} --host {quoted(row['host'])}"
    option = {"pause": "--for", "evacuate": "--guid"}.get(row["verb"], "--point")
    value = row["span"] or row["point"]
    return f"{again} {option} {quoted(value)}" if value else again


def cross_check(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Return the targets that two hosts copy to, and the disks that two hosts count as theirs."""
    targets = tuple(
        FleetFinding(
            about=f"target {row['place']}", kind="target", bad=True, why=f"{' and '.join(row['owners'])} copy to the same place",
            hint="give each job a place of its own: each of them removes what the other one made",
        )
        for row in centre.rows(_SHARED_TARGETS, {})
    )  # fmt: skip
    disks = tuple(
        FleetFinding(
            about=f"disk {row['identity']}", kind="disk", bad=True, why=f"{' and '.join(row['places'])} count the same disk as theirs",
            hint=f"on the host that does not have it: `poolferry disks retire {quoted(row['name'])}`; a copy of a whole disk needs a new marker",
        )
        for row in centre.rows(_SHARED_DISKS, {})
    )  # fmt: skip
    return (*targets, *disks)


def end_long_transactions(
    centre: CentreSession, longest: timedelta = timedelta(minutes=10)
) -> tuple[FleetFinding, ...]:
    """End sessions of hosts whose transaction is older, and return what was ended.

    Why: a host sets the limits of its own statements; one that was taken over could compute for ever, and keep dead rows and
    messages of the whole database alive. Ours take seconds. Who may not see or end them, as no superuser, ends none.
    """
    return tuple(
        FleetFinding(
            about=f"sessions of {row['host']}", kind="session", bad=True,
            why=f"{row['number']} of them held a transaction for {show_duration(row['long'])}, and were ended: no poolferry does that",
            hint=f"see what runs on that host; if it was taken over: `poolferry fleet invite {quoted(row['host'])} --again` ends its password",
        )
        for row in centre.rows(_LONG, {"longest": longest})
    )  # fmt: skip


_PREPARED = """
SELECT p.gid, h.name AS host FROM pg_catalog.pg_prepared_xacts p JOIN poolferry.hosts h ON h.role = p.owner
WHERE p.database = current_database() ORDER BY h.name, p.prepared
"""


def end_prepared_transactions(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Roll back what hosts prepared, and return of which hosts: it keeps its locks without a session that could be ended.

    Who may not, as no superuser, says so. PostgreSQL as installed lets nobody prepare anything.
    """
    from psycopg import errors, sql

    ended: dict[str, list[bool]] = {}
    for row in centre.rows(_PREPARED):
        with centre.within():
            try:
                centre.connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(row["gid"])))
                ended.setdefault(row["host"], []).append(True)
            except errors.InsufficientPrivilege:
                ended.setdefault(row["host"], []).append(False)
    return tuple(
        FleetFinding(
            about=f"prepared transactions of {host}", kind="session", bad=True,
            why=f"{show_count(len(each), 'transaction')} of it kept locks without a session; "
            f"{'rolled back now' if all(each) else 'only a superuser can roll that back'}: no poolferry does that",
            hint=f"see what runs on that host; if it was taken over: `poolferry fleet invite {quoted(host)} --again` ends its password",
        )
        for host, each in ended.items()
    )  # fmt: skip


def find_held_permits(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Return the hosts that held the locks of permits and were cut, and permits that are held for a day while others wait."""
    cut = tuple(
        FleetFinding(
            about=f"locks of {row['host']}", kind="locks", bad=True,
            why="it held the locks of permits, so that others could have none, and its sessions were ended "
            f"{show_count(row['times'], 'time')} within a day: no poolferry does that",
            hint=f"see what runs on that host; if it was taken over: `poolferry fleet invite {quoted(row['host'])} --again` ends its password",
        )
        for row in centre.rows("SELECT name AS host, held_up_times AS times FROM poolferry.hosts WHERE held_up_at > now() - interval '1 day' ORDER BY name")
    )  # fmt: skip
    return (*cut, *map(_long_permit, centre.rows(_LONG_PERMITS, {"longest": timedelta(days=1)})))


def _long_permit(row: Row) -> FleetFinding:
    job, limit, more = row["job"], row["limits"][0], str(row["slots"] + 1)
    waiting = show_count(row["waiting"], "run of another host waits", "runs of other hosts wait")
    return FleetFinding(
        about=f"permit of {row['host']} {row['job']}", kind="permit", bad=True,
        why=f"it holds {' and '.join(row['limits'])} for {show_duration(row['long'])}, and {waiting} for that",
        hint=f"on that host: `poolferry status {quoted(job)}`; or a slot more: `poolferry fleet limit {quoted(limit)} --slots {quoted(more)}`",
    )  # fmt: skip


_CLOCK = """
SELECT count(*) AS hosts, coalesce(abs(percentile_cont(0.5) WITHIN GROUP (ORDER BY ahead)), 0) AS middle,
    count(*) FILTER (WHERE ahead > %(error)s) AS ahead, count(*) FILTER (WHERE ahead < -%(error)s) AS behind,
    count(*) FILTER (WHERE ahead > 86400) AS far_ahead
FROM (SELECT extract(epoch FROM b.seen_at - b.host_at)::float8 AS ahead FROM poolferry.beats b JOIN poolferry.hosts h ON h.id = b.host
    WHERE h.joined_at IS NOT NULL AND h.left_at IS NULL AND b.seen_at BETWEEN now() - interval '8 days' AND now() + interval '1 minute') AS heard
"""


def find_wrong_clock(centre: CentreSession) -> tuple[FleetFinding, ...]:
    """Return the centre's own clock where most of at least three hosts that were heard lately say another time, or any one says a day less."""
    found = centre.first(_CLOCK, {"error": CLOCK_ERROR.total_seconds()}) or {}
    hosts, most, keeps = found["hosts"], max(found["ahead"], found["behind"]), _is_far_ahead(found)
    if not keeps and (hosts < 3 or 2 * most <= hosts):
        return ()
    way, kept = "ahead" if found["ahead"] == most else "behind", ", so no old row is removed" if keeps else ""
    return (
        FleetFinding(
            about="the centre's clock", kind="clock", bad=True,
            why=f"{most} of {show_count(hosts, 'host')} heard lately say that it is {show_duration(found['middle'])} {way}{kept}",
            hint="on the machine of the centre: `timedatectl` shows its time, and whether a server sets it",
        ),
    )  # fmt: skip


def _is_far_ahead(found: Row) -> bool:
    """Return True when most hosts say that the centre's clock is ahead by more than a day."""
    return bool(2 * found["far_ahead"] > found["hosts"])


def remove_old_rows(centre: CentreSession, keep: timedelta) -> int:
    """Remove runs with their steps and visits, and orders, that are older than `keep`, a bounded number; return how many.

    Points, verdicts, restore tests, problems and disks stay: they say what there is. Rows that a host holds locked are left for the next time.
    Nothing goes while hosts say that the centre's clock is ahead by more than a day, or none was heard for a week: for a clock that is
    years ahead all is old, and no host tells it again.
    """
    clock = centre.first(_CLOCK, {"error": CLOCK_ERROR.total_seconds()}) or {}
    if not clock["hosts"] or _is_far_ahead(clock):
        return 0
    values = {"keep": keep, "most": _BATCH}
    return sum(centre.change(statement, values, seconds=_LONG_S) for statement in _OLD)


_SOME = "DELETE FROM poolferry.{table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM poolferry.{table} WHERE {which} LIMIT %(most)s FOR UPDATE SKIP LOCKED))"
_OLD = tuple(
    _SOME.format(table=table, which=which)
    for table, which in (
        ("runs", "begun_at < now() - %(keep)s AND arrived_at < now() - %(keep)s"),
        ("records", "subject IN ('step', 'visit', 'notice') AND arrived_at < now() - %(keep)s"),
        ("orders", "asked_at < now() - %(keep)s AND state NOT IN ('asked', 'taken', 'begun')"),
    )
)
