"""A centre for tests: a database of its own with the schema of today, and hosts that have joined it."""

import secrets

from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet.connection import CentreSession, open_centre
from orchestrator.fleet.enrolment import invite_host, join_centre
from orchestrator.fleet.schema import upgrade_schema
from tests.fleet.postgres import PostgresServer


class Centre:
    """One centre. Sessions that it opens are the caller's to close."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        self.server = server
        self.database = database

    @property
    def address(self) -> str:
        """The address as a host's file names it: without a user."""
        return f"postgresql:///{self.database}?host={self.server.folder}&port={self.server.port}"

    @property
    def options(self) -> FleetOptions:
        """The section [fleet] of a host."""
        return FleetOptions(centre=self.address)

    def administrator(self) -> CentreSession:
        """A session of who may do everything."""
        return open_centre(FleetOptions(centre=self.server.url(self.database)), None, purpose="test")

    def join(self, name: str, *, machine: str = "") -> FleetIdentity:
        """A host of that name that has joined; each on a machine of its own."""
        with self.administrator() as centre:
            token = invite_host(centre, name).token
        return join_centre(self.options, token, machine=machine or secrets.token_hex(16))

    def session(self, identity: FleetIdentity) -> CentreSession:
        """A session of that host."""
        return open_centre(self.options, identity, purpose="test")


def make_centre(server: PostgresServer) -> Centre:
    """Make a centre on a server."""
    name = server.make_database()
    with open_centre(FleetOptions(centre=server.url(name)), None, purpose="test") as centre:
        upgrade_schema(centre)
    return Centre(server, name)
