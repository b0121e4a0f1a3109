"""The schema of a centre: applied once and in order, by several at once, and never over what a newer poolferry made."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.schema import migrations, upgrade_schema
from tests.fleet.centres import Centre
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
