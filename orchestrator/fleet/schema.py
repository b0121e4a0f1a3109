"""The schema of a centre: numbered files, each applied once and in order, all that are missing in one transaction.

A file is never changed once it is released: a centre may be of any age. Everything belongs to a role that nobody can log in as;
whoever applies them needs CREATEROLE, and CREATE on the database.
"""

import functools
import os
import re

from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.fleet.connection import CentreSession

_MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")
_NAME = re.compile(r"(\d{4})-[a-z-]+\.sql")
_LOCK = 0x706F6F6C666C  # "poolfl", of the advisory lock under which one at a time upgrades
_LONG_S = 3600.0
OWNER, HOSTS, READERS = "poolferry_owner", "poolferry_host", "poolferry_reader"
_START = f"""
CREATE SCHEMA IF NOT EXISTS poolferry AUTHORIZATION {OWNER};
GRANT USAGE ON SCHEMA poolferry TO {HOSTS}, {READERS};
SET LOCAL ROLE {OWNER};
CREATE TABLE IF NOT EXISTS poolferry.migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
GRANT SELECT ON poolferry.migrations TO {HOSTS}, {READERS};
"""


@functools.cache
def migrations() -> dict[int, tuple[str, str]]:
    """Return each migration by its number: the name of its file, and its text."""
    found: dict[int, tuple[str, str]] = {}
    for name in sorted(os.listdir(_MIGRATIONS)):
        if match := _NAME.fullmatch(name):
            with open(os.path.join(_MIGRATIONS, name), encoding="utf-8", newline="\n") as file:
                found[int(match[1])] = (name, file.read())
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """The files by which a centre and this poolferry differ. `missing`: what the centre lacks; `newer`: what is not known here."""

    missing: tuple[str, ...]
    newer: tuple[str, ...]


def compare_schema(centre: CentreSession) -> SchemaDifference:
    """Return how the centre's tables differ from those that this poolferry knows; a database without any lacks all. Raises: CentreRefused."""
    made = centre.first("SELECT to_regclass('poolferry.migrations') IS NOT NULL AS made")
    done: dict[int, str] = {}
    if made and made["made"]:
        done = {
            row["number"]: row["name"]
            for row in centre.rows("SELECT number, name FROM poolferry.migrations ORDER BY number")
        }
    return SchemaDifference(
        missing=tuple(name for number, (name, _) in migrations().items() if number not in done),
        newer=tuple(name for number, name in done.items() if number not in migrations()),
    )


def upgrade_schema(centre: CentreSession) -> tuple[str, ...]:
    """Create the schema, or apply what it lacks; return the names of the files that were applied. Raises: CentreRefused."""
    with centre.transaction(_LONG_S):
        centre.change("SET LOCAL statement_timeout = 0")
        centre.change("SET LOCAL lock_timeout = '60s'")
        centre.rows("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        _make_roles(centre)
        centre.change(_START)
        known = compare_schema(centre)
        if known.newer:
            raise CentreRefused(
                f"the centre was upgraded by a newer poolferry: {', '.join(known.newer)} is not known here",
                hint="upgrade poolferry on this machine first",
            )
        for number, (name, text) in migrations().items():
            if name not in known.missing:
                continue
            centre.change(text, seconds=_LONG_S)
            centre.change("INSERT INTO poolferry.migrations (number, name) VALUES (%s, %s)", (number, name))
        centre.change("RESET ROLE")
        if centre.first(_IS_SUPERUSER):
            centre.change(_FORGET_ESTIMATES)
        for row in centre.rows("SELECT role FROM poolferry.hosts JOIN pg_catalog.pg_roles ON rolname = role"):
            _make_member(centre, row["role"])
            bound_role(centre, row["role"])
    return known.missing


def find_named_roles(centre: CentreSession) -> tuple[str, ...]:
    """Return the hosts whose role has their name, as all had once: all roles of a server are seen by each other."""
    named = "SELECT name FROM poolferry.hosts WHERE left_at IS NULL AND role !~ '^poolferry_[0-9a-f]{8}_[0-9a-f]{8}$' ORDER BY name"
    return tuple(row["name"] for row in centre.rows(named))


def _make_roles(centre: CentreSession) -> None:
    """Create the three roles that nobody logs in as. They belong to the whole server, and may be there."""
    there = {row["rolname"] for row in centre.rows("SELECT rolname FROM pg_catalog.pg_roles")}
    for role in (OWNER, HOSTS, READERS):
        if role not in there:
            centre.change(f"CREATE ROLE {role} NOLOGIN")
    me = centre.first(
        "SELECT current_user AS me, rolsuper AS super FROM pg_catalog.pg_roles WHERE rolname = current_user"
    )
    if me and not me["super"]:
        centre.change(f"GRANT {OWNER} TO CURRENT_USER")
    centre.change(_LEAST_RIGHTS)
    if me and me["super"]:
        centre.change(_SUPERUSERS_PART)


def _make_member(centre: CentreSession, role: str) -> None:
    """Give a host's role the rights of hosts again, where a copy of the centre was put back without them.

    Why: PostgreSQL 16 and later take no membership from a copy of an earlier one that a superuser other than the first had given.
    """
    from psycopg import sql

    if centre.first("SELECT 1 AS one WHERE NOT pg_catalog.pg_has_role(%s, %s, 'MEMBER')", (role, HOSTS)):
        with centre.within():
            centre.connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(HOSTS), sql.Identifier(role)))


def bound_role(centre: CentreSession, role: str) -> None:
    """Bound what a host's statements write on the centre's disk, as files while they compute and as errors in the log; only a superuser can."""
    from psycopg import sql

    if centre.first(_IS_SUPERUSER):
        with centre.within():
            for name, value in _BOUNDS.items():
                centre.connection.execute(
                    sql.SQL("ALTER ROLE {} SET {} = {}").format(
                        sql.Identifier(role), sql.Identifier(name), sql.Literal(value)
                    )
                )


_IS_SUPERUSER = "SELECT 1 AS one FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper"
# Of columns of which nothing is to be gathered any more, what was gathered before stays otherwise, and each host is told estimates from it.
_FORGET_ESTIMATES = """
DELETE FROM pg_catalog.pg_statistic s USING pg_catalog.pg_attribute a, pg_catalog.pg_class c
WHERE a.attrelid = s.starelid AND a.attnum = s.staattnum AND a.attstattarget = 0 AND c.oid = a.attrelid AND c.relnamespace = 'poolferry'::regnamespace
"""
_BOUNDS = {"temp_file_limit": "64MB", "log_min_messages": "fatal", "log_min_error_statement": "fatal"}
# What every role may do in a fresh database is taken from them: no table for a while, no large object that fills the disk, no
# locks that use up the memory for those of all sessions, no messages into the log that is kept, no snapshots, each of which is a file, no programs.
_LEAST_RIGHTS = f"""
DO $$ BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO {HOSTS}, {READERS}', current_database());
END $$;
"""
_SUPERUSERS_PART = f"""
DO $$ DECLARE each regprocedure; BEGIN
    REVOKE ALL ON SCHEMA public FROM PUBLIC;
    GRANT pg_signal_backend, pg_read_all_stats TO {OWNER};
    FOR each IN SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
        AND proname ~ '^(lo_|lowrite$|loread$|pg_(try_)?advisory_|pg_notify$|pg_logical_emit_message$|pg_export_snapshot$)' LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', each);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO {OWNER}', each);
    END LOOP;
    REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
    GRANT USAGE ON LANGUAGE plpgsql TO {OWNER};
END $$;
"""  # noqa: S608 - our own words
