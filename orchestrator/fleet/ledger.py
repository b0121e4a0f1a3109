"""The ledger of a centre: what hosts tell of their histories, stored in batches, each in one transaction and at most once.

Why one JSON value for each statement: a batch is one round trip, a centre ignores what a newer host tells and fills what an older
one does not, and no temporary table is needed, for which a host would need rights. The figures: tests/bench/fleet.py.
"""

import json
from collections.abc import Mapping, Sequence

from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.ledger import LedgerProgress, LedgerRow
from orchestrator.fleet.connection import CentreSession

BATCH_S = 120.0  # on a slow line; then it is cut, and told again
_PROGRESS = """
SELECT centre.id::text AS centre, hosts.id AS host, hosts.name AS name, coalesce(hosts.machine, '') AS machine,
    coalesce(progress.incarnation, 1) AS incarnation, coalesce(progress.batch, '') AS batch, coalesce(progress.seq, 0) AS seq
FROM poolferry.hosts CROSS JOIN poolferry.centre LEFT JOIN poolferry.progress ON progress.host = hosts.id
WHERE hosts.id = poolferry.this_host()
"""
_BEGIN = "INSERT INTO poolferry.progress (host) VALUES (%s) ON CONFLICT (host) DO NOTHING"
_STORED = """
UPDATE poolferry.progress SET incarnation = %(incarnation)s, batch = %(batch)s, seq = greatest(seq, %(seq)s)
WHERE host = %(host)s AND batch = %(before)s
"""
_TIMES = "begun_at ended_at".split()
_RUN_COLUMNS = (
    "incarnation integer, id bigint, seq bigint, born bigint, job text, engine text, source text, target text, type text,"
    " begun_at timestamptz, begun_why text, ended_at timestamptz, outcome text, why text, hint text, moved_bytes bigint,"
    " took_s float8, resumed integer, attempts integer, points jsonb, warnings jsonb"
)
_RUN_NAMES = [each.split()[0] for each in _RUN_COLUMNS.split(",")]
_CHANGING = [name for name in _RUN_NAMES if name not in ("incarnation", "id", "born", "begun_at")]
# A host that was put back to an older copy calls a run interrupted that ended long ago, as the centre knows.
_RUNS = f"""
INSERT INTO poolferry.runs AS known (host, {", ".join(_RUN_NAMES)})
SELECT %(host)s, {", ".join("resumed <> 0" if name == "resumed" else name for name in _RUN_NAMES)}
FROM json_to_recordset(%(rows)s::json) AS told ({_RUN_COLUMNS})
ON CONFLICT (host, incarnation, id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _CHANGING)}
WHERE excluded.seq > known.seq AND (known.ended_at IS NULL OR excluded.outcome IS DISTINCT FROM 'interrupted')
"""  # noqa: S608 - our own columns
_REMOVED = """
UPDATE poolferry.runs SET removed = true, seq = told.seq
FROM jsonb_to_recordset(%(rows)s::jsonb) AS told (incarnation integer, id bigint, seq bigint)
WHERE runs.host = %(host)s AND runs.incarnation = told.incarnation AND runs.id = told.id
"""
_RECORDS = """
INSERT INTO poolferry.records AS known (host, subject, incarnation, key, seq, born, body)
SELECT %(host)s, subject, incarnation, key, seq, born, body
FROM jsonb_to_recordset(%(rows)s::jsonb)
    AS told (subject text, incarnation integer, key text, seq bigint, born bigint, body jsonb)
ON CONFLICT (host, subject, incarnation, key) DO UPDATE SET seq = excluded.seq, body = excluded.body
WHERE excluded.seq > known.seq
"""
_BIRTHS = """
SELECT subject, incarnation, key, born FROM poolferry.records WHERE host = %(host)s
UNION ALL SELECT 'run', incarnation, id::text, born FROM poolferry.runs WHERE host = %(host)s
"""


class UnfitRow(CentreRefused):
    """A row that the centre's tables do not take; the others of its batch are not stored with it."""


def read_progress(centre: CentreSession) -> LedgerProgress:
    """Return what the centre has of this host. Raises: CentreRefused when it does not know it as a member."""
    row = centre.first(_PROGRESS)
    if row is None:
        raise CentreRefused(
            f"this host is no member at {centre.centre}: it left, or was invited anew",
            hint="at the centre: `poolferry fleet invite HOST --again`; it prints the command that joins again",
        )
    return LedgerProgress(
        centre=row["centre"], host=row["host"], name=row["name"], machine=row["machine"],
        incarnation=row["incarnation"], batch=row["batch"], last=row["seq"],
    )  # fmt: skip


def end_older_sessions(centre: CentreSession) -> None:
    """End what a sender of this host before this one left at the centre: behind a silent line it holds its locks for long."""
    centre.rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = session_user AND pid <> pg_backend_pid()"
        " AND application_name = current_setting('application_name')"
    )


def births_at_centre(centre: CentreSession, host: int) -> dict[tuple[str, int, str], int]:
    """Return when each row of a host was made, by subject, incarnation and key; in microseconds since 1970, as the host says."""
    found = centre.rows(_BIRTHS, {"host": host}, seconds=300)
    return {(row["subject"], row["incarnation"], row["key"]): row["born"] for row in found}


def store_batch(
    centre: CentreSession, rows: Sequence[LedgerRow], *, host: int, before: str, batch: str, incarnation: int
) -> None:
    """Store a batch: all of it, or nothing. `before`: the batch that the centre must have last.

    Raises: CentreUnreachable: it may or may not be stored · UnfitRow · CentreRefused when another sender was faster.
    """
    from psycopg.errors import DataError, IntegrityError

    runs = [_run(row) for row in rows if row.subject == "run" and row.body is not None]
    removed = [_identity(row) for row in rows if row.subject == "run" and row.body is None]
    records = [
        {"subject": row.subject, "key": row.key, "born": row.born, "body": row.body} | _order(row)
        for row in rows
        if row.subject != "run" and row.body is not None
    ]
    mark = {
        "host": host,
        "before": before,
        "batch": batch,
        "incarnation": incarnation,
        "seq": max((row.seq for row in rows), default=0),
    }
    try:
        with centre.transaction(BATCH_S):
            centre.connection.execute(_BEGIN.encode(), (host,))
            if centre.connection.execute(_STORED.encode(), mark).rowcount != 1:
                why = "another sender tells the centre of this host at the same time"
                raise CentreRefused(why, hint="two machines with one state directory? give one a name of its own")
            for statement, told in ((_RUNS, runs), (_REMOVED, removed), (_RECORDS, records)):
                if told:
                    centre.connection.execute(statement.encode(), {"host": host, "rows": json.dumps(told)})
    except CentreRefused as error:
        if isinstance(error.__cause__, DataError | IntegrityError):
            raise UnfitRow(error.why, hint=error.hint) from error
        raise


def _order(row: LedgerRow) -> dict[str, object]:
    return {"incarnation": row.incarnation, "seq": 0 if row.back else row.seq}


def _identity(row: LedgerRow) -> dict[str, object]:
    return {"id": int(row.key)} | _order(row)


def _run(row: LedgerRow) -> Mapping[str, object]:
    return {**(row.body or {}), "born": row.born} | _identity(row)
