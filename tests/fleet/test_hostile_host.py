"""A host that was taken over: with its own role it tries everything on everything, and can lie about itself and nothing more."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta

import psycopg
import pytest

from orchestrator.app.fleet_line import CentreLine
from orchestrator.domain.errors import CentreUnreachable
from orchestrator.domain.order import order_request
from orchestrator.domain.permit import DeclaredLimit, PermitRequest
from orchestrator.domain.units import Bytes
from orchestrator.fleet import schema
from orchestrator.fleet.connection import CentreSession
from orchestrator.fleet.cross_checks import cross_check, end_long_transactions, find_held_permits, remove_old_rows
from orchestrator.fleet.enrolment import change_quota, forget_host, let_join_again
from orchestrator.fleet.orders import place_orders
from orchestrator.fleet.overview import find_hosts, find_pools, find_records, find_runs, survey_fleet, survey_week
from orchestrator.fleet.permits import ask_permit, declare_limit
from tests.daemon.daemon_world import until
from tests.fleet.centres import Centre
from tests.fleet.first_version import say_all
from tests.fleet.postgres import PostgresServer

# What a host may do, by table: all else must be denied.
ITS_OWN = {
    "hosts": {"SELECT"}, "centre": {"SELECT"}, "quotas": {"SELECT"}, "migrations": {"SELECT"}, "job_counts": {"SELECT"},
    **{name: {"SELECT", "INSERT", "UPDATE"} for name in ("progress", "runs", "records", "beats", "jobs")},
    **{name: set() for name in "limits permits permit_parts orders lender tickets limits_now permits_now".split()},
}  # fmt: skip
RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
PARTS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
FUNCTIONS = {
    *("this_host", "enrol", "leave", "ask_permit", "settle_permit", "release_permit", "fetch_orders", "report_order"),
    *("show_ticket", "take_order", "is_of_this_world"),
}
OF_NO_HOST = ("centre", "migrations", "limits_now", "permits_now")
RUN = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why)"
    " VALUES (%s, 1, 1, 1, 1, 'photos', 'rsync', 's', 't', 'run', now(), '')"
)
SHOWN = "SELECT poolferry.show_ticket((SELECT machine FROM poolferry.hosts), '{}', gen_random_uuid())"
# No right; not possible; there already; no such object; not ready for it; no such schema; no open transaction; a wrong type of function.
DENIED = ("42501", "0A000", "42P06", "42704", "55000", "3F000", "25P01", "42P13")
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
    "BEGIN; LOCK TABLE poolferry.runs IN ROW EXCLUSIVE MODE", "BEGIN; PREPARE TRANSACTION 'x'", "SELECT pg_export_snapshot()",
    "CREATE OR REPLACE FUNCTION poolferry.this_host() RETURNS integer LANGUAGE sql AS 'SELECT 2'",
    "CREATE RULE x AS ON SELECT TO poolferry.hosts DO INSTEAD SELECT 1", "COMMENT ON TABLE poolferry.runs IS 'x'",
    "ALTER SYSTEM SET port = 1", "ALTER DATABASE postgres SET search_path = 'x'",
    "DO 'BEGIN PERFORM set_config(''role'', ''poolferry_owner'', false); END'", "SELECT set_config('role', 'poolferry_owner', false)",
    # What fills a disk or the memory that all sessions share, or stands in the way of an upgrade.
    "SELECT pg_advisory_lock(n) FROM generate_series(1, 10) AS n", "SELECT pg_advisory_xact_lock(123623913055852)",
    "SELECT pg_try_advisory_lock_shared(28780, 1)", "SELECT pg_advisory_unlock_all()", "SELECT pg_notify('x', repeat('x', 7000))",
    "SELECT pg_logical_emit_message(false, 'x', repeat('x', 1000))", "SELECT pg_create_physical_replication_slot('x')",
    "SELECT lo_import('/etc/passwd')", "SELECT lo_put(1, 0, 'x')", "COPY poolferry.runs (host) FROM '/etc/passwd'",
    "COPY (SELECT 1) TO PROGRAM 'id'", "CREATE FUNCTION pg_temp.x() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    "CREATE OPERATOR poolferry.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4eq)", "CREATE PUBLICATION x",
    "DO 'BEGIN LOOP NULL; END LOOP; END'", "ALTER ROLE CURRENT_USER SET temp_file_limit = -1", "SET temp_file_limit = -1",
    "ALTER ROLE CURRENT_USER RESET temp_file_limit", "SET session_replication_role = replica", "SET log_statement = 'none'",
    "UPDATE poolferry.quotas SET most = 9e18", "INSERT INTO poolferry.quotas VALUES (1, 0, 1)",
    "CREATE EVENT TRIGGER x ON ddl_command_start EXECUTE FUNCTION poolferry.count_told()", "LOAD 'auto_explain'",
    "CREATE TRIGGER x BEFORE INSERT ON poolferry.runs EXECUTE FUNCTION poolferry.count_told()", "CREATE VIEW poolferry.x AS SELECT 1",
    "SELECT poolferry.count_told()", "SELECT poolferry.count_jobs(ARRAY[1])", "SELECT poolferry.end_holders()",
    "SELECT poolferry.lend_permit('x', '{}', 1, 30, false)", "SET log_min_messages = debug5", "SET log_min_error_statement = debug5",
    "ALTER ROLE CURRENT_USER RESET log_min_messages", "SELECT pg_log_backend_memory_contexts(1)", "UPDATE poolferry.hosts SET held_up_at = NULL",
    "SELECT setval('poolferry.hosts_id_seq', 1)", "SELECT nextval('poolferry.permits_id_seq')",
    "ALTER LARGE OBJECT 1 OWNER TO CURRENT_USER", "SELECT pg_stat_get_backend_activity(1), pg_read_binary_file('/etc/passwd')",
    "ALTER FUNCTION poolferry.this_host() SECURITY INVOKER",
    "SELECT pg_stat_reset()", "SELECT * FROM pg_ls_dir('/')", "CHECKPOINT",
    "DECLARE x CURSOR WITH HOLD FOR SELECT pg_ls_logdir()", "SELECT * FROM pg_stat_ssl, pg_hba_file_rules",
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


# By the type of an argument: what a host that was taken over would put there, of the other host's where there is such a thing.
ARGUMENTS = {
    "integer": "(SELECT id FROM poolferry.permits WHERE host = {them})", "uuid": "(SELECT key FROM poolferry.orders WHERE host = {them})",
    "uuid[]": "(SELECT ARRAY[ticket] FROM poolferry.tickets WHERE host = {them})",
    "text": "'photos'", "text[]": "'{{wan}}'::text[]", "boolean": "true", "bigint": "1", "timestamp with time zone": "now()",
}  # fmt: skip


def test_nothing_of_the_catalogue_changes_a_row_of_another_host(
    centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]
) -> None:
    """Each table with rows of hosts and each function that a host may call, as the catalogue has them: one that is added is in by itself."""
    mine, other, me, them = sessions
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="wan", slots=9))
        for each, host in ((mine, "evil"), (other, "good")):
            say_all(each)
            assert ask_permit(each, "photos", PermitRequest(limits=("wan",)), taken=False).granted
            each.change("SELECT poolferry.show_ticket((SELECT machine FROM poolferry.hosts), '{}', gen_random_uuid())")
            request = order_request("run", "photos", user="ann")
            place_orders(session, request, (host,), asked_by="ann", within=timedelta(hours=1))

        def rows_of(table: str) -> list[dict[str, object]]:
            return [row["it"] for row in session.rows(f"SELECT to_jsonb(t) AS it FROM {table} t WHERE t.host = %s ORDER BY t::text", (them,))]  # noqa: S608 # fmt: skip

        tables: dict[str, list[str]] = {}
        for row in session.rows(
            "SELECT 'poolferry.' || c.relname AS name, a.attname AS part FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
            " WHERE c.relnamespace = 'poolferry'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1, a.attnum"
        ):
            tables.setdefault(row["name"], []).append(row["part"])
        tables = {name: parts for name, parts in tables.items() if "host" in parts}
        before = {name: rows_of(name) for name in tables}
        assert [name for name, rows in before.items() if not rows] == [], "each has a row that could be attacked"
        for name, parts in tables.items():
            assert denied(mine, f"SELECT 1 / (host - host) FROM {name} WHERE host = %s", them) in ("", "42501"), name  # noqa: S608
            assert denied(mine, f"DELETE FROM {name} WHERE host = %s", them) in ("", "42501"), name  # noqa: S608
            for part in parts:
                change = f"UPDATE {name} SET {part} = {{0}} WHERE host = %s OR host <> %s"  # noqa: S608
                for value in (part, "NULL", f"(SELECT {part} FROM {name} LIMIT 1)"):  # noqa: S608
                    denied(mine, change.format(value), them, me)
            assert denied(mine, f"UPDATE {name} SET host = %s", them) == "42501", name  # noqa: S608
            may = "SELECT part FROM unnest(%s::text[]) AS part WHERE has_column_privilege(%s, part, 'INSERT')"
            given = [row["part"] for row in mine.rows(may, (parts, name))]
            there = before[name][0] | {"id": 77, "key": "77"}
            insert = f"INSERT INTO {name} ({{0}}) OVERRIDING SYSTEM VALUE SELECT {{0}} FROM jsonb_populate_record(NULL::{name}, %s::jsonb)"  # noqa: S608
            assert denied(mine, insert.format(", ".join(given or parts)), json.dumps(there)) == "42501", name
        calls = mine.rows(
            "SELECT proname AS name, ARRAY(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t) AS types FROM pg_proc"
            " WHERE pronamespace = 'poolferry'::regnamespace AND has_function_privilege(oid, 'EXECUTE') ORDER BY proname = 'leave', 1"
        )
        assert {row["name"] for row in calls} == FUNCTIONS
        numbers = {
            name: session.first("SELECT " + text.format(them=them) + " AS it") for name, text in ARGUMENTS.items()
        }
        for row in calls:
            values = [(numbers[each] or {}).get("it") for each in row["types"]]
            holes = ", ".join(f"%s::{each}" for each in row["types"])
            denied(mine, f"SELECT * FROM poolferry.{row['name']}({holes})", *values)  # noqa: S608
        assert {name: rows_of(name) for name in tables} == before


def test_what_is_not_its_own_is_denied(sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    for statement in FORBIDDEN:
        state = denied(sessions[0], statement)
        assert state in DENIED, (statement, state)
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


def test_a_name_of_its_own_is_not_taken_for_ours(sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    """A search path cannot lead our functions astray: there is no schema in which a host may put anything."""
    mine = sessions[0]
    mine.change("SET search_path = pg_temp, public, poolferry")
    assert mine.first("SELECT poolferry.this_host() AS host") == {"host": sessions[2]}
    mine.change("SET row_security = off")  # which raises rather than shows more
    assert denied(mine, "SELECT * FROM poolferry.runs") == "42501"


def test_its_statements_write_little_beside_the_tables(sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    mine = sessions[0]
    assert mine.first("SELECT current_setting('temp_file_limit') AS it") == {"it": "64MB"}
    mine.change("SET work_mem = '64kB'")
    assert denied(mine, "SELECT count(*) FROM (SELECT repeat(n::text, 40) AS x FROM generate_series(1, 600000) AS n ORDER BY x) AS y") == "53400"  # fmt: skip


_RUN = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why, ended_at, outcome,"
    " moved_bytes, warnings) VALUES (%s, 1, 9, 9, 9, 'watch', 'pool', 's', 't', 'run', {begun}, '', {ended}, 'done', {moved}, {json})"
)
_JOB = (
    "INSERT INTO poolferry.jobs (host, job, engine, source, target, state, why, hint, late_after_s, copied_at)"
    " VALUES (%s, 'watch', 'pool', 's', 't', 'up', '', '', {limit}, {copied})"
)
_BEAT = "INSERT INTO poolferry.beats (host, host_at, every_s, version) VALUES (%s, {at}, {every}, '1')"
_RECORD = "INSERT INTO poolferry.records (host, subject, incarnation, key, seq, born, body) VALUES (%s, 'point', 1, 'x', 1, 1, {json})"
ITS_ROWS = {
    "run": (_RUN, {"begun": "now()", "ended": "now()", "moved": "1", "json": "'[]'"}),
    "beat": (_BEAT, {"at": "now()", "every": "300"}),
    "job": (_JOB, {"limit": "3600", "copied": "now()"}),
    "record": (_RECORD, {"json": "'[]'"}),
}
TIMES = ("'infinity'", "'-infinity'", "'294000-01-01'", "'4000-01-01 BC'")
NUMBERS = ("'Infinity'", "'NaN'", "1e300", "1e15", "-1")
JSONS = (
    "('[' || repeat('9', 5000) || ']')::jsonb", "(repeat('[', 3000) || repeat(']', 3000))::jsonb", "'5'",
    "'{\"name\": [1], \"identity\": {}, \"state\": \"active\", \"x\": 1e400}'",
)  # fmt: skip
VALUES = [
    *((row, name, value) for row, name in (("run", "begun"), ("run", "ended"), ("job", "copied"), ("beat", "at")) for value in TIMES),
    *((row, name, value) for row, name in (("job", "limit"), ("beat", "every")) for value in NUMBERS),
    *((row, "json", value) for row in ("run", "record") for value in JSONS), ("run", "moved", "9223372036854775807"),
]  # fmt: skip


def test_nothing_that_it_tells_ends_the_looks_of_people_at_all_hosts(
    centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]
) -> None:
    """Seen: one sign of life that promises the next one after 1e300 seconds, and no page, letter or notice of the fleet came any more."""
    mine, _, me, _ = sessions
    with centre.administrator() as session:
        for row, name, value in VALUES:
            for needed, (statement, usual) in ITS_ROWS.items():  # what is not taken does no harm
                denied(mine, statement.format(**(usual | ({name: value} if needed == row else {}))), me)
            survey_fleet(session)
            survey_week(session)
            cross_check(session)
            find_pools(session, host=None)
            find_runs(session, host=None, job=None, outcome=None)
            find_records(session, subject="point", host=None)
            assert {each.name for each in find_hosts(session)} == {"evil", "good"}, (name, value)
            for table in ("beats", "jobs", "records", "runs"):
                session.change(f"DELETE FROM poolferry.{table}")  # noqa: S608


def test_what_it_told_before_the_centre_looked_at_values_is_made_readable(
    postgres: PostgresServer, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    centre = Centre(postgres, empty_database)
    before = {number: each for number, each in schema.migrations().items() if number < 50}
    with centre.administrator() as session:
        with monkeypatch.context() as patch:
            patch.setattr(schema, "migrations", lambda: before)
            schema.upgrade_schema(session)
        with centre.session(centre.join("evil")) as mine:
            row = mine.first("SELECT poolferry.this_host() AS host")
            assert row is not None
            for statement, usual in ITS_ROWS.values():
                bad = {
                    "begun": "'infinity'",
                    "moved": "9223372036854775807",
                    "every": "1e11",
                    "copied": "'4000-01-01 BC'",
                }
                told = usual | {name: value for name, value in bad.items() if name in usual}
                assert denied(mine, statement.format(**told), row["host"]) == ""
        schema.upgrade_schema(session)
        assert [each.name for each in find_hosts(session)] == ["evil"]
        assert find_runs(session, host=None, job=None, outcome=None) == ()
        assert survey_week(session).well == 0


def test_locks_that_it_holds_hold_up_nobody(
    centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]
) -> None:
    """Seen: in a transaction that it never ended it had the locks of a limit, and nobody was lent a permit of that any more."""
    mine, other, me, them = sessions
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="wan", slots=9))
        session.change("ALTER TABLE poolferry.runs DISABLE TRIGGER USER")
        session.change(
            "UPDATE poolferry.runs SET begun_at = now() - interval '3 years', arrived_at = now() - interval '3 years'"
        )
        session.change("ALTER TABLE poolferry.runs ENABLE TRIGGER USER")
        other.change(_BEAT.format(at="now()", every="300"), (them,))
        mine.change("SET idle_in_transaction_session_timeout = 0")
        mine.change("BEGIN")
        mine.change("UPDATE poolferry.runs SET seq = 2 WHERE host = %s", (me,))
        mine.rows("SELECT poolferry.ask_permit('photos', '{wan}', 1, 30, false)")
        assert remove_old_rows(session, timedelta(days=730)) == 1, (
            "the run of the other host: its own waits for the next time"
        )
        assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        assert denied(mine, "SELECT 1") == "57P01"
        assert [each.about for each in find_held_permits(session)] == ["locks of evil"]


COMPUTES = "SELECT count(*) FROM pg_class WHERE pg_sleep(1) IS NOT NULL"  # by others, while it waits for them itself
ALONE = "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0"


@pytest.mark.parametrize(
    "waits", ["UPDATE poolferry.runs SET seq = 3", COMPUTES], ids=["for a lock of its own", "for its own workers"]
)
def test_a_host_that_waits_while_it_has_the_locks_holds_up_nobody(centre: Centre, waits: str) -> None:
    """Seen: who waits for a lock was taken for one who waits for a permit as others do."""
    evil = centre.join("evil")
    with (
        centre.administrator() as session,
        centre.session(evil) as beside,
        centre.session(evil) as mine,
        centre.session(centre.join("good")) as other,
    ):
        declare_limit(session, DeclaredLimit(name="wan", slots=9))
        row = mine.first("SELECT poolferry.this_host() AS host")
        assert row is not None
        mine.change(RUN, (row["host"],))
        beside.change("BEGIN")
        beside.change("UPDATE poolferry.runs SET seq = 2")
        mine.change(f"{ALONE}; SET parallel_leader_participation = off; SET statement_timeout = 0")
        mine.change("BEGIN")
        mine.rows("SELECT poolferry.ask_permit('photos', '{wan}', 1, 30, false)")
        mine.change("SET LOCAL lock_timeout = 0")
        states = list[str]()
        hangs = threading.Thread(target=lambda: states.append(denied(mine, waits)))
        hangs.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE query = %s AND wait_event_type IN ('Lock', 'IPC')"
        until(lambda: bool(session.rows(waiting, (waits,))), "it waits", str)
        assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        hangs.join()
        # Its other session is ended first, and then it may come to the end of what it waits for before it is ended itself.
        assert states == ["57P01"] or denied(mine, "SELECT 1") in ("57P01", "lost"), states
        assert [each.about for each in find_held_permits(session)] == ["locks of evil"]


def test_a_host_that_takes_the_locks_again_and_again_is_cut_off_each_time_and_named(centre: Centre) -> None:
    """Seen: it gave them back after four seconds and took them again: no transaction was old, and each permit took seconds."""
    evil = centre.join("evil")
    with centre.administrator() as session, centre.session(centre.join("good")) as other:
        declare_limit(session, DeclaredLimit(name="wan", slots=9))
        with centre.session(evil) as leaves:
            leaves.change("BEGIN")
            leaves.rows("SELECT poolferry.leave()")  # so that nobody could write its name down
            for _ in range(2):
                with centre.session(evil) as mine:
                    mine.change("BEGIN")
                    mine.rows("SELECT poolferry.ask_permit('photos', '{wan}', 1, 30, false)")
                    assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
                    assert denied(mine, "SELECT 1") == "57P01"
            assert denied(leaves, "SELECT 1") == "57P01"
        (found,) = find_held_permits(session)
        assert found.about == "locks of evil"
        assert "its sessions were ended 2 times within a day" in found.why


ASK = "SELECT poolferry.ask_permit('photos', '{wan}', 1, 30, false)"
LOCK_LOOPS = {
    "asks and gives back": "SELECT poolferry.release_permit(permit) FROM poolferry.ask_permit('photos', '{wan}', 1, 30, false)",
    "rolls back": f"BEGIN; {ASK}; ROLLBACK",
    "rolls back a part": f"BEGIN; SAVEPOINT s; {ASK}; ROLLBACK TO s; COMMIT",
    "breaks a statement": f"{ASK}, 1 / (random() * 0)::integer",
    "asks for many": "SELECT poolferry.ask_permit('job-' || n, '{wan}', 1, 30, false) FROM generate_series(1, 20) AS n",
    "says that many go on": "SELECT poolferry.ask_permit('job-' || n, '{wan}', 1, 30, true) FROM generate_series(1, 20) AS n",
    "waits with many": "SELECT poolferry.ask_permit('job-' || n, '{lab}', 1, 30, false) FROM generate_series(1, 20) AS n",
    "sets what it may": f"SET standard_conforming_strings = off; SET transform_null_equals = on; BEGIN; {ASK}; ROLLBACK",
}  # fmt: skip


@pytest.mark.parametrize("loop", LOCK_LOOPS.values(), ids=LOCK_LOOPS)
@pytest.mark.sample(4)
def test_a_session_of_a_host_has_one_lock_whatever_it_asks_for(centre: Centre, loop: str) -> None:
    """Seen: each permit that it gave back left its lock behind, and in seconds the table of locks that all sessions share was full."""
    evil = centre.join("evil")
    with centre.administrator() as session, centre.session(evil) as mine, centre.session(evil) as beside:
        declare_limit(session, DeclaredLimit(name="wan", slots=10_000))
        declare_limit(session, DeclaredLimit(name="lab", slots=1))
        for _ in range(20):
            for each in (mine, beside):
                denied(each, loop)
        held = "SELECT count(*) AS n FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND a.usename = %s"
        assert session.first(held, (evil.role,)) == {"n": 2}
        with centre.session(centre.join("good")) as other:
            assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted


def test_no_host_keeps_a_permit_of_another_alive_whose_session_is_gone(centre: Centre) -> None:
    """Its session may have the number that the other one's had."""
    with centre.administrator() as session, centre.session(centre.join("evil")) as mine:
        declare_limit(session, DeclaredLimit(name="wan", slots=1))
        with centre.session(centre.join("good")) as other:
            assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False, lease_s=1).granted
        assert denied(mine, f"BEGIN; {ASK}; ROLLBACK") == ""  # it has its lock, and no permit
        session.change(
            "UPDATE poolferry.permits SET seen_at = seen_at - interval '1 hour', backend = %s",
            (mine.connection.info.backend_pid,),
        )
        assert ask_permit(mine, "photos", PermitRequest(limits=("wan",)), taken=False).granted


def test_a_request_that_does_not_see_what_others_were_lent_is_refused(
    centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]
) -> None:
    """Otherwise more would be lent than there is."""
    mine, other, _, _ = sessions
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="wan", slots=1))
        for level in ("REPEATABLE READ", "SERIALIZABLE"):
            mine.change(f"BEGIN ISOLATION LEVEL {level}")
            mine.rows("SELECT 1")
            assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
            assert denied(mine, ASK) == "0A000"
            mine.change("ROLLBACK")


def test_a_host_does_not_hold_up_that_it_is_cut_off(centre: Centre) -> None:
    with centre.session(centre.join("evil")) as mine, centre.administrator() as session:
        mine.change("SET idle_in_transaction_session_timeout = 0")
        mine.change("BEGIN")
        mine.rows("SELECT poolferry.leave()")
        time.sleep(2.1)
        let_join_again(session, "evil")
        assert denied(mine, "SELECT 1") == "57P01"


def test_a_permit_that_is_held_for_days_while_others_wait_is_named(
    centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]
) -> None:
    mine, other, _, _ = sessions
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="wan", slots=1))
        assert ask_permit(mine, "photos", PermitRequest(limits=("wan",)), taken=False).granted
        session.change("UPDATE poolferry.permits SET granted_at = granted_at - interval '3 days'")
        assert find_held_permits(session) == ()
        assert not ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        (found,) = find_held_permits(session)
        assert (found.about, found.why) == (
            "permit of evil photos",
            "it holds wan for 3 d, and 1 run of another host waits for that",
        )


def test_no_host_learns_the_names_of_others(centre: Centre) -> None:
    """All sessions show to all their purpose, and the catalogue all roles. Seen: roles had the names of their hosts."""
    identity = centre.join("secret-project")
    with (
        closing(CentreLine("sender")) as line,
        line.visit(centre.options, identity),
        centre.session(centre.join("evil")) as mine,
    ):
        seen = mine.rows(
            "SELECT application_name, query, client_addr FROM pg_stat_activity WHERE usename = %s", (identity.role,)
        )
        assert [tuple(each.values())[:2] for each in seen] == [("poolferry sender", "<insufficient privilege>")]
        catalogue = (
            "SELECT (SELECT string_agg(r::text, ' ') FROM pg_roles AS r) || (SELECT string_agg(a::text, ' ') FROM pg_stat_activity AS a)"
            " || (SELECT string_agg(l::text, ' ') FROM pg_locks AS l) || (SELECT string_agg(s::text, ' ') FROM pg_stats AS s) AS all"
        )
        assert "secret" not in str(mine.rows(catalogue))


RECORDS = (
    "INSERT INTO poolferry.records (host, subject, incarnation, key, seq, born, body)"
    " SELECT %s, 'step', 1, 'x' || n, 1, 1, jsonb_build_object('said', {text}) FROM generate_series(1, 2000) AS n"
)


def test_it_cannot_fill_the_centre(centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]) -> None:
    mine, other, me, them = sessions
    with centre.administrator() as session:
        change_quota(session, "evil", Bytes(1 << 20))
    large = "(SELECT string_agg(md5(n::text), '') FROM generate_series(1, 40000) AS n)"
    assert denied(mine, RUN.replace("'photos'", large).replace("1, 1, 1, 1", "1, 2, 1, 1"), me) == "22001"
    assert denied(mine, RECORDS.format(text="repeat(md5(n::text), 100)"), me) == "53400"
    assert denied(mine, RECORDS.format(text="''"), me) == ""
    grow = "UPDATE poolferry.records SET body = jsonb_build_object('said', (SELECT string_agg(md5((n + seq)::text), '') FROM generate_series(1, 100) AS n))"
    assert denied(mine, grow) == "53400", "small rows cannot be made large"
    version = "INSERT INTO poolferry.beats (host, host_at, every_s, version) VALUES (%s, now(), 300, repeat('x', 1000))"
    assert denied(mine, version, me) == "23514"
    assert (
        denied(mine, "SELECT poolferry.ask_permit('x' || n, '{}', 1, 30, false) FROM generate_series(1, 1001) AS n")
        == "53400"
    )
    assert denied(other, RECORDS.format(text="repeat(md5(n::text), 10)"), them) == "", (
        "another host has a quota of its own"
    )
    with centre.administrator() as session:
        (evil,) = find_hosts(session, name="evil")
        real = session.first(
            "SELECT sum(pg_column_size(r)) AS bytes FROM poolferry.records AS r WHERE host = %s", (me,)
        )
        assert real is not None
        assert real["bytes"] < evil.told < evil.most
        session.change("DELETE FROM poolferry.records WHERE host = %s", (me,))
        session.change("DELETE FROM poolferry.runs WHERE host = %s", (me,))
        assert find_hosts(session, name="evil")[0].told == 0
        assert find_hosts(session, name="good")[0].told > 0
        forget_host(session, "good")
        assert session.first("SELECT count(*) AS n FROM poolferry.records") == {"n": 0}


def test_all_its_connections_leave_room_for_others(centre: Centre) -> None:
    evil, good = centre.join("evil"), centre.join("good")
    with ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(centre.session(evil))
        with pytest.raises(CentreUnreachable, match="too many connections for role"):
            stack.enter_context(centre.session(evil))
        assert stack.enter_context(centre.session(good)).first("SELECT 1 AS one") == {"one": 1}


def test_a_transaction_that_never_ends_is_ended_by_the_centres_look(
    centre: Centre, sessions: tuple[CentreSession, CentreSession, int, int]
) -> None:
    mine, other, _, _ = sessions
    for each in (mine, other):
        each.change("SET idle_in_transaction_session_timeout = 0")
        each.change("LISTEN flood")
        each.change("BEGIN")
    with centre.administrator() as session:
        assert end_long_transactions(session) == ()
        assert mine.first("SELECT 1 AS one") == {"one": 1}
        found = end_long_transactions(session, timedelta(0))
        assert [each.about for each in found] == ["sessions of evil", "sessions of good"]
        for each in (mine, other):
            assert denied(each, "SELECT 1") == "57P01"
