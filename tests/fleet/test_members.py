"""Hosts of a centre, by the commands that a page shows: made, invited, joined, left, invited again, forgotten."""

import json
import os
import re
import secrets
import shlex
import stat
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from orchestrator.domain.errors import CentreRefused, CentreUnreachable
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.fleet.credentials import read_identity
from orchestrator.fleet.enrolment import forget_host, invite_host, join_centre, let_join_again
from orchestrator.fleet.ledger import read_progress
from orchestrator.fleet.schema import HOSTS, OWNER, upgrade_schema
from tests.ferry import Ended, Ferry
from tests.fleet.centres import Centre
from tests.fleet.postgres import PostgresServer, program

BIN = os.path.dirname(program("createdb"))


@pytest.fixture
def keeper(centre: Centre) -> Iterator[dict[str, str]]:
    """An administrator of a centre who is no superuser: the environment of their commands."""
    name, password = f"keeper_{secrets.token_hex(4)}", secrets.token_hex(8)
    with centre.administrator() as session:
        session.change(f"CREATE ROLE {name} LOGIN CREATEROLE PASSWORD '{password}'")
        session.change(f"GRANT {OWNER} TO {name}")
        session.change(f"GRANT {HOSTS} TO {name} WITH ADMIN OPTION")
    yield {"PGUSER": name, "PGPASSWORD": password}
    with centre.administrator() as session:
        for row in session.rows("SELECT role FROM poolferry.hosts"):
            session.change(f"DROP ROLE IF EXISTS {row['role']}")
        session.change(f"DROP OWNED BY {name}")
        session.change(f"DROP ROLE {name}")


def typed(ferry: Ferry, line: str) -> Ended:
    """A whole line, as a person copies it."""
    name, *words = shlex.split(line)
    assert name == "poolferry"
    return ferry.run(*words)


def invited(ferry: Ferry, centre: Centre, host: str, *more: str) -> str:
    """The command that joins a host."""
    words = ("--centre", centre.server.url(centre.database), "--address", centre.address)
    told = ferry.run("fleet", "invite", host, *words, *more)
    assert told.code == 0, told.err
    return told.out.strip()


def test_from_an_empty_database_to_a_host_that_is_forgotten(
    ferry: Ferry, postgres: PostgresServer, empty_database: str, tmp_path: Path
) -> None:
    url = postgres.url(empty_database)
    centre = Centre(postgres, empty_database)
    made = ferry.run("fleet", "init", "--centre", url, "--json")
    assert made.value["applied"][0] == "0001-hosts.sql", made.err
    assert "up to date" in ferry.run("fleet", "init", "--centre", url).out
    command = invited(ferry, centre, "web-1")
    joined = typed(ferry, command)
    assert (joined.code, "joined as web-1" in joined.out) == (0, True), joined.err
    key = ferry.state / "fleet.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert json.loads(key.read_text())["password"] not in (command, ferry.config.joinpath("poolferry.toml").read_text())
    assert f'[fleet]\ncentre = "{centre.address}"\n' in (ferry.config / "poolferry.toml").read_text()
    again = typed(ferry, command)
    assert (again.code, "has joined as web-1" in again.err) == (2, True)

    other = Ferry(tmp_path / "other")
    stolen = typed(other, command)
    assert (stolen.code, "does not know this host" in stolen.err) == (1, True)
    second = ferry.run("fleet", "invite", "web-1", "--centre", url)
    assert (second.code, "a host web-1 has joined already" in second.err) == (1, True)
    assert typed(other, invited(ferry, centre, "web-1", "--again")).code == 0
    left = ferry.run("fleet", "leave")
    assert (left.code, "does not know this host" in left.err) == (0, True), "so it can join again"
    assert other.run("fleet", "leave").code == 0
    assert not (other.state / "fleet.key").exists()
    assert ferry.run("fleet", "forget", "web-1", "--centre", url).code == 0
    assert "no host web-1 is known" in ferry.run("fleet", "forget", "web-1", "--centre", url).err


def test_an_administrator_who_may_not_end_sessions_is_told_and_still_gets_the_invitation(
    ferry: Ferry, centre: Centre, keeper: dict[str, str]
) -> None:
    """Seen: the former role was gone by then, and the token of the new one was never shown."""
    with centre.administrator() as session:  # as where no superuser ever made or upgraded the centre
        session.change("REVOKE pg_signal_backend FROM poolferry_owner")
    words = ("--centre", f"{centre.address}&user={keeper['PGUSER']}")
    first = ferry.run("fleet", "invite", "web-1", *words, "--address", centre.address, **keeper)
    assert typed(ferry, first.out.strip()).code == 0
    identity = read_identity(str(ferry.state))
    assert identity is not None
    with centre.session(identity):
        again = ferry.run("fleet", "invite", "web-1", "--again", *words, "--address", centre.address, **keeper)
    assert (again.code, "GRANT pg_signal_backend TO" in again.err) == (0, True), again.err
    (ferry.state / "fleet.key").unlink()
    assert typed(ferry, again.out.strip()).code == 0
    identity = read_identity(str(ferry.state))
    assert identity is not None
    with centre.session(identity):
        gone = ferry.run("fleet", "forget", "web-1", *words, **keeper)
    assert (gone.code, "GRANT pg_signal_backend TO" in gone.err) == (0, True), gone.err


def test_an_invitation_that_is_used_twice_at_once_lets_one_in(centre: Centre) -> None:
    with centre.administrator() as session:
        token = invite_host(session, "web-1").token

    def join(machine: str) -> FleetIdentity | str:
        try:
            return join_centre(centre.options, token, machine=machine)
        except CentreRefused as error:
            return error.why

    with ThreadPoolExecutor(6) as pool:
        ended = list(pool.map(join, "abcdef"))
    (joined,) = [each for each in ended if isinstance(each, FleetIdentity)]
    assert all("was used" in each or "does not know this host" in each for each in ended if isinstance(each, str)), (
        ended
    )
    with centre.session(joined) as host:
        assert read_progress(host).machine == "abcdef"[ended.index(joined)]


def test_a_centre_that_was_put_back_without_memberships_lets_its_hosts_in_again(centre: Centre) -> None:
    """PostgreSQL 16 and later give none of them that a copy of 15 holds and root had granted: as from Debian 12 to 13."""
    identity = centre.join("web-1")
    with centre.administrator() as session:
        session.change(f"REVOKE {HOSTS} FROM {identity.role}")
        with pytest.raises(CentreUnreachable), centre.session(identity):
            pass
        upgrade_schema(session)
    with centre.session(identity) as host:
        assert host.first("SELECT name FROM poolferry.hosts") == {"name": "web-1"}


def test_a_token_lives_for_a_day(ferry: Ferry, centre: Centre) -> None:
    command = invited(ferry, centre, "web-1")
    with centre.administrator() as session:
        session.change("UPDATE poolferry.hosts SET invited_at = now() - interval '25 hours'")
    told = typed(ferry, command)
    assert (told.code, "is older than a day" in told.err) == (1, True)


@pytest.mark.parametrize("mode", [0o640, 0o644, 0o660])
def test_a_password_that_others_may_read_is_not_used(ferry: Ferry, centre: Centre, mode: int) -> None:
    assert typed(ferry, invited(ferry, centre, "web-1")).code == 0
    (ferry.state / "fleet.key").chmod(mode)
    told = ferry.run("fleet", "leave")
    assert (told.code, f"is open to others (mode {mode:04o})" in told.err) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("join", "postgresql://c.example.org/f?sslmode=require", "--token", "x"), "sslmode=verify-full"),
        (("join", "postgresql:///f", "--token", "x"), "that is no token"),
        (("leave",), "this host has joined no centre"),
        (("invite", "web-1"), "no centre is declared"),
        (("invite", "Web 1", "--centre", "{centre}"), "is not a host's name"),
    ],
)
@pytest.mark.sample(2)
def test_what_cannot_be_meant_is_told(ferry: Ferry, centre: Centre, words: tuple[str, ...], said: str) -> None:
    told = ferry.run("fleet", *(word.format(centre=centre.server.url(centre.database)) for word in words))
    assert told.code in (1, 2)
    assert said in told.err


def test_a_person_who_is_not_let_in_reads_what_helps_a_person(ferry: Ferry, postgres: PostgresServer) -> None:
    """Seen: at the centre, with a database that was not made yet, `fleet status` said that this host is not known, and to invite it again."""
    there = os.environ | {
        "PGHOST": str(postgres.folder),
        "PGPORT": str(postgres.port),
        "PGUSER": "postgres",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    address, name = postgres.url("postgres"), f"late_{secrets.token_hex(4)}"
    try:
        for far in (address.replace("/postgres?", f"/{name}?"), address.replace("=postgres", f"={name}")):
            told = ferry.run("fleet", "status", "--centre", far)
            assert (told.code, f"does not let {'postgres' if far.endswith('postgres') else name} in" in told.err) == (
                1,
                True,
            ), told
            assert "this host" not in told.err
            (line, *_) = re.findall("`([^`]*)`", told.err)
            words = [each for each in shlex.split(line) if each not in ("runuser", "-u", "--", "postgres")]
            assert subprocess.run(words, env=there, capture_output=True, text=True).returncode == 0, line
        with psycopg.connect(address, autocommit=True) as connection:
            found = connection.execute(
                "SELECT count(*) FROM pg_database d JOIN pg_roles r ON d.datname = r.rolname WHERE rolsuper AND datname = %s",
                (name,),
            )
            assert found.fetchone() == (1,)
            connection.execute(f"DROP ROLE {name}".encode())
    finally:
        postgres.drop_database(name)
    away = ferry.run("fleet", "status")
    assert (away.code, "`poolferry fleet init --centre postgresql:///poolferry` makes one" in away.err) == (2, True), (
        away
    )


@pytest.mark.parametrize("again", [True, False])
def test_a_host_cannot_keep_its_role_from_being_dropped(centre: Centre, *, again: bool) -> None:
    """Seen: its default rights, which each role may set, depended on it, and it could neither be forgotten nor invited again."""
    evil = centre.join("evil")
    with centre.session(evil) as mine, centre.administrator() as session:
        for what in ("TABLES", "FUNCTIONS", "SEQUENCES", "SCHEMAS"):
            mine.change(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {what} TO poolferry_host")
        mine.change("ALTER ROLE CURRENT_USER SET search_path = 'x'")
        if again:
            let_join_again(session, "evil")
            assert invite_host(session, "evil").role != evil.role
        else:
            forget_host(session, "evil")
        assert session.rows("SELECT 1 FROM pg_roles WHERE rolname = %s", (evil.role,)) == []
