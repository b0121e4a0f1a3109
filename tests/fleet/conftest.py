"""One PostgreSQL for each process of the tests, and for each test a centre of its own."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from orchestrator.domain.machine import FleetOptions
from orchestrator.domain.permit import DeclaredLimit
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.permits import declare_limit
from orchestrator.fleet.schema import upgrade_schema
from tests.fleet.askers import COUNT, PermitHost
from tests.fleet.centres import Centre, make_centre
from tests.fleet.lines import SilentLine
from tests.fleet.postgres import PostgresServer
from tests.web.conftest import browser

__all__ = ["browser"]  # a Chromium for the pages, as for those of one host


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server that all tests of this process share: who stops it uses one of its own."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def model_database(postgres: PostgresServer) -> str:
    """The name of a database with the whole schema, of which others are copies."""
    return make_centre(postgres).database


@pytest.fixture
def empty_database(postgres: PostgresServer) -> Iterator[str]:
    """The name of a database without anything in it."""
    name = postgres.make_database()
    yield name
    postgres.drop_database(name)


@pytest.fixture
def centre(postgres: PostgresServer, model_database: str) -> Iterator[Centre]:
    """A centre without hosts."""
    made = Centre(postgres, postgres.make_database(template=model_database))
    with made.administrator() as session:
        upgrade_schema(session)  # rights on a database are no part of its copy
    yield made
    postgres.drop_database(made.database)


@pytest.fixture
def line(centre: Centre) -> Iterator[SilentLine]:
    """A line to the server."""
    made = SilentLine(centre.server.port)
    yield made
    made.close()


@pytest.fixture
def sessions() -> Iterator[ExitStack]:
    """Sessions that end with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def asker(centre: Centre, sessions: ExitStack) -> PermitHost:
    """A host, and the limits link (2 slots) and lab (3)."""
    with centre.administrator() as session:
        session.change(COUNT)
        declare_limit(session, DeclaredLimit(name="link", slots=2))
        declare_limit(session, DeclaredLimit(name="lab", slots=3))
    return PermitHost(centre, centre.join("web-1"), sessions)


@pytest.fixture
def own_centre() -> Iterator[Centre]:
    """A centre on a server of its own, which the test stops, and which others can follow."""
    server = PostgresServer(
        synchronous_commit="on", wal_level="replica", max_wal_senders="2"
    )  # what it said that it stored is there after a crash
    try:
        server.start()
        name = server.make_database()
        with open_centre(FleetOptions(centre=server.url(name)), None, purpose="test") as session:
            upgrade_schema(session)
            session.change(COUNT)
            declare_limit(session, DeclaredLimit(name="link", slots=2))
            declare_limit(session, DeclaredLimit(name="lab", slots=3))
        centre = Centre(server, name)
        yield centre
        centre.server.remove()
    finally:
        server.remove()
