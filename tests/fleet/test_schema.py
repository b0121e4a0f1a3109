"""The schema of a centre: applied once and in order, by several at once, and never over what a newer poolferry made."""

import hashlib
import re
import shlex
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet import schema
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.enrolment import forget_host
from orchestrator.fleet.schema import migrations, upgrade_schema
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.first_version import say_all
from tests.fleet.postgres import PostgresServer


def test_it_is_applied_once_however_many_begin(postgres: PostgresServer, empty_database: str) -> None:
    def begin(_: int) -> tuple[str, ...]:
        with open_centre(FleetOptions(centre=postgres.url(empty_database)), None, purpose="test") as centre:
            return upgrade_schema(centre)

    with ThreadPoolExecutor(3) as pool:
        done = [each for each in pool.map(begin, range(3)) if each]
    assert done == [tuple(name for name, _ in migrations().values())]


def test_a_newer_schema_is_left_alone(centre: Centre) -> None:
    with centre.administrator() as session:
        session.change("INSERT INTO poolferry.migrations (number, name) VALUES (9999, '9999-later.sql')")
        with pytest.raises(CentreRefused, match=r"9999-later\.sql is not known here"):
            upgrade_schema(session)


# The files that centres in the world have applied: one that is changed makes two schemas of one number.
RELEASED = {
    "0001-hosts.sql": "e8c1748f76f6f871",
    "0002-ledger.sql": "0644b3484305e53f",
    "0020-permits.sql": "3cc3d8ced0aedb0b",
    "0021-orders.sql": "db63d500ff52b320",
}


def test_what_was_applied_once_is_never_changed() -> None:
    made = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in migrations().values()}
    assert {name: made.get(name) for name in RELEASED} == RELEASED


def test_a_centre_of_the_first_version_with_all_its_rows_is_brought_to_today(
    postgres: PostgresServer, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hosts go on as they are, before it and after it, and what they told is there."""
    centre = Centre(postgres, empty_database)
    first = {number: each for number, each in migrations().items() if number < 30}
    with centre.administrator() as session:
        with monkeypatch.context() as before:
            before.setattr(schema, "migrations", lambda: first)
            assert len(upgrade_schema(session)) == 4
        old, gone = centre.join("old"), centre.join("gone")
        with centre.session(old) as host:
            say_all(host)
        with centre.session(gone) as host:
            say_all(host)
        told = session.rows("SELECT host, incarnation, id, job FROM poolferry.runs ORDER BY host")
        assert upgrade_schema(session) == tuple(name for number, (name, _) in migrations().items() if number >= 30)
        with centre.session(old) as host:
            say_all(host)
            assert host.first("SELECT current_setting('temp_file_limit') AS it") == {"it": "64MB"}
        assert session.rows("SELECT host, incarnation, id, job FROM poolferry.runs ORDER BY host") == told
        counted = "SELECT host, bytes FROM poolferry.quotas ORDER BY host"
        real = (
            "SELECT host, sum(bytes)::bigint AS bytes FROM (SELECT host, pg_column_size(r) + 100 AS bytes FROM poolferry.runs r UNION ALL"
            " SELECT host, pg_column_size(r) + 100 FROM poolferry.records r UNION ALL SELECT host, pg_column_size(j) + 100 FROM poolferry.jobs j) AS it"
            " GROUP BY host ORDER BY host"
        )
        for quota, stored in zip(session.rows(counted), session.rows(real), strict=True):
            assert quota["host"] == stored["host"]
            assert abs(quota["bytes"] - stored["bytes"]) < 20  # a row is a little shorter in its table
        forget_host(session, "gone")
        assert session.rows("SELECT DISTINCT host FROM poolferry.runs") == [{"host": told[0]["host"]}]


def test_each_command_says_what_helps_at_a_centre_of_another_version(
    postgres: PostgresServer, empty_database: str, ferry: Ferry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: `fleet watch` said that a column shut_out_at does not exist, and `fleet orders` answered as if all were well."""
    centre = Centre(postgres, empty_database)
    address = ("--centre", postgres.url(empty_database))
    commands = (("watch",), ("status",), ("orders",), ("invite", "web-9"), ("permits",), ("forget", "web-1"))

    def hints() -> set[str]:
        ended = [ferry.run("fleet", *words, *address) for words in commands]
        assert [each.code for each in ended] == [1] * len(commands), ended
        assert all("is older than this poolferry: it lacks " in each.err for each in ended), ended
        return {re.findall(r"`poolferry ([^`]*)`", each.err)[0] for each in ended}

    (hint,) = hints()  # of a database in which nothing was made yet
    older = {number: each for number, each in migrations().items() if number < 90}
    with centre.administrator() as session, monkeypatch.context() as before:
        before.setattr(schema, "migrations", lambda: older)
        upgrade_schema(session)
        session.change("INSERT INTO poolferry.hosts (name, role) VALUES ('web-1', 'poolferry_web_1_0123abcd')")
    assert hints() == {hint}
    made = ferry.run(*shlex.split(hint))
    assert (made.code, "0090-shut-out.sql" in made.out) == (0, True), made
    assert "the role of web-1 has the host's name" in made.out
    assert "`ALTER SYSTEM SET max_locks_per_transaction = 256` in psql" in made.out
    assert ferry.run("fleet", "orders", *address).code == 0
    with centre.administrator() as session:
        (line,) = re.findall(r"`(ALTER SYSTEM [^`]*)`", made.out)
        session.change(line)
        session.change("ALTER SYSTEM RESET max_locks_per_transaction")
        session.change("INSERT INTO poolferry.migrations (number, name) VALUES (9999, '9999-later.sql')")
    ahead = ferry.run("fleet", "orders", *address)
    assert (ahead.code, "a newer poolferry, which made 9999-later.sql" in ahead.err) == (0, True), ahead
    assert "upgrade poolferry on this machine first" in ferry.run("fleet", "init", *address).err
