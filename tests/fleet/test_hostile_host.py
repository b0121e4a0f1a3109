"""A host that was taken over: with its own role it tries everything on everything, and can lie about itself and nothing more."""

from collections.abc import Iterator

import psycopg
import pytest

from orchestrator.fleet.connection import CentreSession
from tests.fleet.centres import Centre

# What a host may do, by table: all else must be denied.
ITS_OWN = {
    "hosts": {"SELECT"}, "centre": {"SELECT"}, "migrations": {"SELECT"},
    **{name: {"SELECT", "INSERT", "UPDATE"} for name in ("progress", "runs", "records", "beats", "jobs")},
    **{name: set() for name in ("limits", "permits", "permit_parts", "orders", "limits_now", "permits_now")},
}  # fmt: skip
RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
PARTS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
FUNCTIONS = {"this_host", "enrol", "leave", "ask_permit", "release_permit", "fetch_orders", "report_order"}
OF_NO_HOST = ("centre", "migrations", "limits_now", "permits_now")
RUN = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why)"
    " VALUES (%s, 1, 1, 1, 1, 'photos', 'rsync', 's', 't', 'run', now(), '')"
)
FORBIDDEN = (
    "INSERT INTO poolferry.hosts (name, role) VALUES ('x', 'x')", "UPDATE poolferry.hosts SET name = 'good'",
    "UPDATE poolferry.hosts SET left_at = now() WHERE name = 'good'", "UPDATE poolferry.centre SET id = gen_random_uuid()",
    "INSERT INTO poolferry.migrations VALUES (99, 'x')", "CREATE TABLE poolferry.x ()", "CREATE TABLE public.x ()",
    "CREATE TEMP TABLE x ()", "CREATE SCHEMA x", "CREATE ROLE x", "CREATE EXTENSION file_fdw", "CREATE DATABASE x",
    "SET ROLE poolferry_owner", "SET ROLE poolferry_reader", "SET ROLE postgres", "SET SESSION AUTHORIZATION postgres",
    "ALTER TABLE poolferry.runs DISABLE ROW LEVEL SECURITY", "ALTER TABLE poolferry.runs ADD COLUMN x integer",
    "DROP TABLE poolferry.runs", "DROP POLICY own ON poolferry.runs", "GRANT poolferry_reader TO CURRENT_USER",
    "ALTER ROLE CURRENT_USER SUPERUSER", "ALTER ROLE CURRENT_USER BYPASSRLS", "ALTER ROLE CURRENT_USER CONNECTION LIMIT -1",
    "ALTER ROLE poolferry_host NOLOGIN", "COPY (SELECT 1) TO '/tmp/x'", "COPY poolferry.runs FROM PROGRAM 'id'",
    "SELECT pg_read_file('/etc/passwd')", "SELECT lo_create(0)", "SELECT lo_from_bytea(0, 'x')", "SELECT pg_reload_conf()",
    "SELECT pg_sleep(0) FROM pg_authid", "SELECT * FROM pg_shadow", "SELECT poolferry.stamp_beat()",
    "BEGIN; LOCK TABLE poolferry.runs IN ROW EXCLUSIVE MODE",
    "CREATE OR REPLACE FUNCTION poolferry.this_host() RETURNS integer LANGUAGE sql AS 'SELECT 2'",
    "CREATE RULE x AS ON SELECT TO poolferry.hosts DO INSTEAD SELECT 1", "COMMENT ON TABLE poolferry.runs IS 'x'",
    "ALTER SYSTEM SET port = 1", "ALTER DATABASE postgres SET search_path = 'x'",
    "DO 'BEGIN PERFORM set_config(''role'', ''poolferry_owner'', false); END'",
)  # fmt: skip


@pytest.fixture
def sessions(centre: Centre) -> Iterator[tuple[CentreSession, CentreSession, int, int]]:
    """Sessions of a host that was taken over and of another one, and their numbers; each has a run."""
    evil, good = centre.join("evil"), centre.join("good")
    with centre.session(evil) as mine, centre.session(good) as other:
        numbers = []
        for each in (mine, other):
            row = each.first("SELECT poolferry.this_host() AS host")
            assert row is not None
            each.change(RUN, (row["host"],))
            each.change("INSERT INTO poolferry.progress (host) VALUES (%s)", (row["host"],))
            numbers.append(row["host"])
        yield mine, other, numbers[0], numbers[1]


def denied(session: CentreSession, statement: str, *values: object) -> str:
    """The state with which a statement is denied; empty: it was done."""
    try:
        session.connection.execute(statement.encode(), values or None)
    except psycopg.Error as error:
        return error.sqlstate or "lost"
    return ""


def test_its_rights_are_those_of_the_list_and_no_more(centre: Centre, sessions: tuple[CentreSession, ...]) -> None:
    mine = sessions[0]
    found: dict[str, set[str]] = {}
    tables = (
        "SELECT relname AS name, relrowsecurity AS secure FROM pg_class WHERE relnamespace = 'poolferry'::regnamespace"
    )
    with centre.administrator() as session:
        ours = session.rows(f"{tables} AND relkind IN ('r', 'v', 'p', 'm')")
    assert [row["name"] for row in ours if not row["secure"] and row["name"] not in OF_NO_HOST] == []
    for table in (f"poolferry.{row['name']}" for row in ours):
        whole = mine.rows(
            "SELECT r FROM unnest(%s::text[]) AS r WHERE has_table_privilege(%s, r)", (list(RIGHTS), table)
        )
        parts = mine.rows(
            "SELECT r FROM unnest(%s::text[]) AS r WHERE has_any_column_privilege(%s, r)", (list(PARTS), table)
        )
        found[table.partition(".")[2]] = {row["r"] for row in (*whole, *parts)}
    assert found == ITS_OWN
    sequences = mine.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'poolferry'::regnamespace AND relkind = 'S'"
        " AND CASE WHEN relkind = 'S' THEN has_sequence_privilege(oid, 'USAGE, SELECT, UPDATE') END"
    )
    assert sequences == []
    functions = mine.rows(
        "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'poolferry'::regnamespace AND has_function_privilege(oid, 'EXECUTE')"
    )
    assert {row["proname"] for row in functions} == FUNCTIONS


def test_rows_of_others_are_neither_seen_nor_changed(sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    mine, other, me, them = sessions
    for name in ("progress", "runs", "records", "beats", "jobs"):
        assert mine.first(f"SELECT count(*) AS n FROM poolferry.{name} WHERE host <> %s", (me,)) == {"n": 0}  # noqa: S608
        assert denied(mine, f"DELETE FROM poolferry.{name}") == "42501"  # noqa: S608
        assert denied(mine, f"TRUNCATE poolferry.{name}") == "42501"
    assert mine.rows("SELECT name FROM poolferry.hosts") == [{"name": "evil"}]
    assert mine.change("UPDATE poolferry.runs SET job = 'x', seq = 99 WHERE host = %s", (them,)) == 0
    assert denied(mine, RUN, them) == "42501"
    assert denied(mine, RUN + " ON CONFLICT (host, incarnation, id) DO UPDATE SET job = 'x'", them) == "42501"
    assert denied(mine, "UPDATE poolferry.runs SET host = %s", them) == "42501"
    assert denied(mine, "UPDATE poolferry.runs SET arrived_at = now() - interval '1 year'") == "42501"
    assert denied(mine, "UPDATE poolferry.beats SET seen_at = now()") == "42501"
    assert other.first("SELECT job FROM poolferry.runs") == {"job": "photos"}


def test_what_is_not_its_own_is_denied(sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    for statement in FORBIDDEN:
        state = denied(sessions[0], statement)
        assert state in ("42501", "0A000", "42P06", "42704", "55000", "3F000"), statement
        if statement.startswith("BEGIN"):
            sessions[0].change("ROLLBACK")


def test_a_session_of_another_is_not_its_to_end(sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    mine, other, _, _ = sessions
    row = other.first("SELECT pg_backend_pid() AS pid")
    assert row is not None
    assert denied(mine, "SELECT pg_terminate_backend(%s)", row["pid"]) == "42501"
    assert (
        mine.rows(
            "SELECT query FROM pg_stat_activity WHERE pid = %s AND query NOT LIKE '%%insufficient%%'", (row["pid"],)
        )
        == []
    )


def test_before_it_joins_and_after_it_left_it_can_do_nothing(centre: Centre) -> None:
    identity = centre.join("brief")
    with centre.session(identity) as session:
        row = session.first("SELECT poolferry.this_host() AS host")
        assert row is not None
        session.rows("SELECT poolferry.leave()")
        assert denied(session, RUN, row["host"]) == "42501"
        assert session.rows("SELECT * FROM poolferry.enrol('again')") == []
        assert session.rows("SELECT * FROM poolferry.runs") == []
