"""The session that a host keeps between its visits: the same one while it answers, another one at once where it went half open."""

from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from orchestrator.app import fleet_line
from orchestrator.app.fleet_line import CentreLine
from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.fleet.enrolment import invite_host, let_join_again
from tests.fleet.centres import Centre
from tests.fleet.lines import SilentLine


@pytest.fixture
def kept() -> Iterator[CentreLine]:
    """A line that is closed at the end."""
    with closing(CentreLine("sender")) as made:
        yield made


@pytest.fixture
def web(centre: Centre) -> FleetIdentity:
    """A host that has joined."""
    return centre.join("web-1")


_MANY = """
INSERT INTO poolferry.hosts (name, role, machine, joined_at) SELECT 'h' || n, 'h' || n, 'm', now() FROM generate_series(1, 5000) AS n;
ANALYZE poolferry.hosts
"""


def backend(line: CentreLine, fleet: FleetOptions, web: FleetIdentity) -> int:
    """Visit the centre, and return the process there that answers."""
    with line.visit(fleet, web) as session:
        row = session.first("SELECT pg_backend_pid() AS pid")
    assert row is not None
    return int(row["pid"])


def test_a_session_is_kept_until_it_is_ended_there_or_another_centre_is_named(
    centre: Centre, web: FleetIdentity, kept: CentreLine, line: SilentLine
) -> None:
    first = backend(kept, centre.options, web)
    assert backend(kept, centre.options, web) == first
    with centre.administrator() as session:
        assert session.first("SELECT pg_terminate_backend(%s, 5000) AS ended", (first,)) == {"ended": True}
    second = backend(kept, centre.options, web)
    assert second != first
    elsewhere = FleetOptions(centre=f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    assert backend(kept, elsewhere, web) != second


def test_one_that_went_half_open_is_replaced_within_the_visit(
    centre: Centre, web: FleetIdentity, kept: CentreLine, line: SilentLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_line, "PROBE_S", 2.0)
    fleet = FleetOptions(centre=f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    first = backend(kept, fleet, web)
    line.forget()
    assert backend(kept, fleet, web) != first


def test_none_is_kept_where_half_of_the_centres_connections_are_in_use(
    centre: Centre, web: FleetIdentity, kept: CentreLine
) -> None:
    with ExitStack() as others:
        for _ in range(50):
            others.enter_context(centre.administrator())
        assert backend(kept, centre.options, web) != backend(kept, centre.options, web)
        others.enter_context(centre.administrator()).change(_MANY)
        backend(kept, centre.options, web)
        assert kept.least_pause_s == pytest.approx(5001 / 50), "ten thousand hosts do not all log in each 20 seconds"
    first = backend(kept, centre.options, web)
    assert backend(kept, centre.options, web) == first
    assert kept.least_pause_s == 0


def test_a_role_that_is_revoked_while_it_is_connected_can_do_nothing_more(
    centre: Centre, web: FleetIdentity, kept: CentreLine
) -> None:
    backend(kept, centre.options, web)
    with centre.administrator() as session:
        let_join_again(session, "web-1")
        with kept.visit(centre.options, web) as mine:
            assert mine.first("SELECT poolferry.this_host() AS it") == {"it": None}, "it has left"
        invite_host(session, "web-1")
    with pytest.raises(CentreRefused, match="does not know this host"):
        backend(kept, centre.options, web)
