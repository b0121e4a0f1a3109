"""The fleet as its centre knows it: of an administrator all hosts, of a host that has joined itself alone."""

from typing import TYPE_CHECKING

from orchestrator.app.fleet_members import connect_checked

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.fleet_status import FleetHost, FleetPool, FleetRecord, FleetRun, FleetStatus, HostState
    from orchestrator.fleet.connection import CentreSession

_ALL = 1_000_000


def connect_viewer(settings: "Settings", centre: str | None) -> "CentreSession":
    """Connect to look. `centre`: as whoever that address says; None: as this host, if it has joined. Raises: CentreUnreachable."""
    from orchestrator.fleet.credentials import read_identity

    identity = None if centre is not None else read_identity(settings.where.state)
    return connect_checked(settings, centre, identity, purpose="viewer")


def fleet_status(settings: "Settings", centre: str | None) -> "FleetStatus":
    """Return how the fleet stands. Raises: CentreUnreachable, CentreRefused."""
    from orchestrator.fleet.overview import survey_fleet

    with connect_viewer(settings, centre) as session:
        return survey_fleet(session)


def fleet_hosts(
    settings: "Settings", centre: str | None, *, state: "HostState | None", name: str | None, limit: int
) -> "tuple[FleetHost, ...]":
    """Return the hosts that fit. `name`: with * for any text. Raises: CentreUnreachable, CentreRefused."""
    from orchestrator.fleet.overview import find_hosts

    with connect_viewer(settings, centre) as session:
        return find_hosts(session, state=state, name=name, limit=limit)


def fleet_runs(
    settings: "Settings", centre: str | None, *, host: str | None, job: str | None, outcome: str | None, limit: int
) -> "tuple[FleetRun, ...]":
    """Return the newest runs that fit. Raises: CentreUnreachable, CentreRefused."""
    from orchestrator.fleet.overview import find_runs

    with connect_viewer(settings, centre) as session:
        return find_runs(session, host=host, job=job, outcome=outcome, limit=limit)


def fleet_pools(settings: "Settings", centre: str | None, *, host: str | None, limit: int) -> "tuple[FleetPool, ...]":
    """Return the watched pools of all hosts, or of one. Raises: CentreUnreachable, CentreRefused."""
    from orchestrator.fleet.overview import find_pools

    with connect_viewer(settings, centre) as session:
        return find_pools(session, host=host, limit=limit)


def fleet_records(
    settings: "Settings", centre: str | None, *, subject: str, host: str | None, limit: int
) -> "tuple[FleetRecord, ...]":
    """Return the newest rows of a subject that fit. Raises: CentreUnreachable, CentreRefused."""
    from orchestrator.fleet.overview import find_records

    with connect_viewer(settings, centre) as session:
        return find_records(session, subject=subject, host=host, limit=limit)


def fleet_metrics(settings: "Settings", centre: str | None) -> bytes:
    """Return the numbers of the whole fleet for Prometheus. Raises: CentreUnreachable, CentreRefused, OrchestratorError."""
    from orchestrator import compose
    from orchestrator.fleet.overview import find_hosts
    from orchestrator.views.fleet_metrics import fleet_metrics_text

    with connect_viewer(settings, centre) as session:
        return fleet_metrics_text(find_hosts(session, limit=_ALL), compose.now())
