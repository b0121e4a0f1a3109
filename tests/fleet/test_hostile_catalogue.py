"""All that a host's role may touch, as the catalogue of its database has it: what is added anywhere is in by itself, and no list forgets it."""

import re

import psycopg
import pytest

from orchestrator.domain.permit import DeclaredLimit, PermitRequest
from orchestrator.fleet import schema
from orchestrator.fleet.cross_checks import end_prepared_transactions
from orchestrator.fleet.lock_guard import advise_server
from orchestrator.fleet.permits import ask_permit, declare_limit
from tests.fleet.centres import Centre, make_centre
from tests.fleet.first_version import say_all
from tests.fleet.postgres import PostgresServer

OURS = "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast|^pg_temp'"
# What a role may do with each kind of thing, of all that the database has beside what every PostgreSQL has.
MAY = {
    "schemas": f"SELECT nspname FROM pg_namespace n WHERE {OURS} AND has_schema_privilege(oid, 'USAGE')",  # noqa: S608 - our own words
    "schemas to make things in": "SELECT nspname FROM pg_namespace WHERE has_schema_privilege(oid, 'CREATE')",
    "tables elsewhere": f"SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE {OURS}"  # noqa: S608
    " AND nspname <> 'poolferry'"
    " AND relkind IN ('r', 'v', 'm', 'p', 'f') AND (has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')"
    " OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))",
    "functions elsewhere": f"SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE {OURS}"  # noqa: S608
    " AND nspname <> 'poolferry' AND has_function_privilege(p.oid, 'EXECUTE')",
    "functions with the rights of others": "SELECT proname::text FROM pg_proc WHERE prosecdef AND has_function_privilege(oid, 'EXECUTE')",
    "functions by which permits are lent and files are written": "SELECT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
    " AND proname ~ '^(lo_|lowrite$|loread$|pg_(try_)?advisory_|pg_notify$|pg_logical_emit_message$|pg_export_snapshot$|pg_read_|pg_ls_|pg_stat_file$)'"
    " AND proname !~ '_old$' AND has_function_privilege(oid, 'EXECUTE')",
    "this database": "SELECT r FROM unnest(ARRAY['CONNECT', 'CREATE', 'TEMP']) AS r WHERE has_database_privilege(current_database(), r)",
    "servers": "SELECT srvname::text FROM pg_foreign_server WHERE has_server_privilege(oid, 'USAGE')",
    "wrappers": "SELECT fdwname::text FROM pg_foreign_data_wrapper WHERE has_foreign_data_wrapper_privilege(oid, 'USAGE')",
    "languages to write in": "SELECT lanname::text FROM pg_language WHERE lanpltrusted AND lanname <> 'sql' AND has_language_privilege(oid, 'USAGE')",
    "tablespaces": "SELECT spcname::text FROM pg_tablespace WHERE spcname <> 'pg_default' AND has_tablespace_privilege(oid, 'CREATE')",
    "roles": "SELECT rolname::text FROM pg_roles WHERE rolname <> current_user AND pg_has_role(oid, 'MEMBER')",
    "things of its own": "SELECT pg_describe_object(classid, objid, 0) FROM pg_shdepend WHERE deptype = 'o' AND refobjid = current_user::regrole",
    "rights of its own": "SELECT rolname::text FROM pg_roles WHERE rolname = current_user AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication"
    " OR rolbypassrls)",
}  # fmt: skip
KNOWN = {
    "schemas": {"poolferry"}, "this database": {"CONNECT"}, "roles": {"poolferry_host"},
    "functions with the rights of others": {
        *("this_host", "enrol", "leave", "ask_permit", "settle_permit", "release_permit", "fetch_orders", "report_order", "show_ticket", "take_order"),
    },
}  # fmt: skip
RUNS = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why)"
    " SELECT poolferry.this_host(), 2, n, 1, 1, %s, 'rsync', 's', 't', 'run', now(), '' FROM generate_series(1, 500) AS n"
)
POLICIES = "SELECT DISTINCT qual, coalesce(with_check, qual) AS checked FROM pg_policies WHERE 'poolferry_host' = ANY (roles) OR 'public' = ANY (roles)"
ITS_OWN = re.compile(r"\(host = \(\s*SELECT poolferry\.this_host\(\) AS this_host\)\)|\(role = SESSION_USER\)")
# Looked through for PostgreSQL 15: of the functions that change something, those that every role may call. They need other rights, a mode of the
# server or a transaction of their own, are parts of others, or say what documentation says that a host can see.
HARMLESS = re.compile(
    r"RI_FKey_|binary_upgrade_|brin|gin|bthandler|hashhandler|gisthandler|spghandler|heap_tableam_handler|amvalidate|bernoulli|system|dsnowball_|plpgsql_"
    r"|clock_timestamp|timeofday|random|setseed|gen_random_uuid|current_query|currtid2|currval|lastval|nextval|setval|set_config|pg_sleep"
    r"|cursor_to_xml|query_to_xml|ts_rewrite|ts_stat|tsvector_update_trigger|suppress_redundant_updates_trigger|unique_key_recheck|txid_status|pg_xact_"
    r"|pg_blocking_pids|pg_cancel_backend|pg_terminate_backend|pg_control_|pg_(copy|create|drop)_|pg_replication_slot_advance|pg_logical_slot_"
    r"|pg_current_wal_|pg_last_|pg_is_|pg_get_|pg_stat_|pg_lock_status|pg_safe_snapshot_|pg_isolation_test_|pg_prepared_xact|pg_notification_queue_usage"
    r"|pg_(database|indexes|relation|table|tablespace|total_relation)_size|pg_(collation|database_collation)_actual_version|pg_partition_|pg_sequence_last"
    r"|pg_extension_config_dump|pg_import_system_collations|pg_jit_available|pg_nextoid|pg_read_file_old|pg_rotate_logfile_old|pg_stop_making_pinned"
)


def test_nothing_in_the_database_is_open_to_a_host_but_what_is_known(centre: Centre) -> None:
    with centre.session(centre.join("evil")) as mine:
        for kind, asked in MAY.items():
            assert {next(iter(row.values())) for row in mine.rows(asked)} == KNOWN.get(kind, set()), kind
        policies = mine.rows(POLICIES)
        assert len(policies) == 2
        for row in policies:
            assert ITS_OWN.fullmatch(row["qual"]), row
            assert ITS_OWN.fullmatch(row["checked"]), row


def test_each_function_that_changes_something_was_looked_through(centre: Centre) -> None:
    """Seen: each snapshot that is exported is a file, and a host could make as many as it liked."""
    with centre.session(centre.join("evil")) as mine:
        if mine.connection.info.server_version // 10000 != 15:
            pytest.skip("another PostgreSQL than the one whose functions were looked through")
        found = mine.rows(
            "SELECT DISTINCT proname::text AS name FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'"
            " AND has_function_privilege(oid, 'EXECUTE') ORDER BY 1"
        )
    assert [row["name"] for row in found if not HARMLESS.match(row["name"])] == []


TEXTS = """
SELECT c.relname || '.' || a.attname AS name FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = s.staattnum
WHERE c.relnamespace = 'poolferry'::regnamespace AND c.relname <> 'migrations' AND a.atttypid IN ('text'::regtype, 'name'::regtype, 'jsonb'::regtype)
    AND a.attname NOT IN ('state', 'engine', 'outcome', 'type', 'subject', 'verb') ORDER BY 1
"""


def test_no_estimate_tells_a_host_what_others_have(
    postgres: PostgresServer, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: by EXPLAIN a host found the names of jobs, paths and hosts of others, letter by letter, for estimates come from the rows of all."""
    centre = Centre(postgres, empty_database)
    before = {number: each for number, each in schema.migrations().items() if number < 130}
    with centre.administrator() as session:
        with monkeypatch.context() as patch:
            patch.setattr(schema, "migrations", lambda: before)
            schema.upgrade_schema(session)
        with centre.session(centre.join("evil")) as mine, centre.session(centre.join("good")) as other:
            for each, job in ((mine, "photos"), (other, "secret")):
                say_all(each)
                each.change(RUNS, (job,))
            other.change("UPDATE poolferry.jobs SET source = '/srv/secret'")

            def estimates(job: str) -> list[str]:
                return [
                    row["QUERY PLAN"] for row in mine.rows(f"EXPLAIN SELECT FROM poolferry.runs WHERE job = '{job}'")
                ]

            session.change("ANALYZE")
            assert estimates("secret") != [line.replace("nobody", "secret") for line in estimates("nobody")]
            assert session.rows(TEXTS)
            schema.upgrade_schema(session)
            for _ in range(2):
                assert session.rows(TEXTS) == []
                assert estimates("secret") == [line.replace("nobody", "secret") for line in estimates("nobody")]
                session.change("ANALYZE")


def test_what_a_host_prepared_is_rolled_back_and_named() -> None:
    """Seen: without a session that could be ended it kept the locks of a limit, and no host was lent a permit of that any more."""
    server = PostgresServer(max_prepared_transactions="2")
    try:
        server.start()
        centre = make_centre(server)
        with centre.administrator() as session, centre.session(centre.join("good")) as other:
            declare_limit(session, DeclaredLimit(name="wan", slots=9))
            (advice,) = [each for each in advise_server(session) if "prepare" in each]
            assert "`ALTER SYSTEM SET max_prepared_transactions = 0` in psql" in advice
            with centre.session(centre.join("evil")) as mine:
                mine.change("BEGIN")
                mine.rows("SELECT poolferry.ask_permit('photos', '{wan}', 1, 30, false)")
                mine.change("PREPARE TRANSACTION 'for ''ever'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                session.connection.execute(b"SELECT FROM poolferry.limits FOR UPDATE NOWAIT")
            (found,) = end_prepared_transactions(session)
            assert (found.about, "1 transaction of it kept locks" in found.why) == (
                "prepared transactions of evil",
                True,
            )
            assert end_prepared_transactions(session) == ()
            assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
            session.change("ALTER SYSTEM SET max_prepared_transactions = 0")
    finally:
        server.remove()
