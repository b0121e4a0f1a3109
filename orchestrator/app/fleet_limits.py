"""Limits at the centre and the permits that are lent of them, as their administrator declares and sees them."""

import os

from orchestrator.app.fleet_members import connect_administrator
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.permit import DeclaredLimit, PermitList, parse_limit_name


def change_limit(
    settings: Settings, name: str, *, slots: int, between: str | None, zone: str | None, centre: str | None
) -> DeclaredLimit:
    """Declare a limit or change it; return it as it is now. `zone` None: this machine's. Raises: WrongRequest, CentreRefused."""
    from orchestrator.fleet.permits import declare_limit, list_limits

    try:
        parse_limit_name(name)
    except ValueError as error:
        raise WrongRequest(f"{name!r} names no limit: expected {error}") from None
    wanted = DeclaredLimit(name=name, slots=slots, between=_window(between), zone=zone or _zone_of_machine())
    with connect_administrator(settings, centre) as session:
        declare_limit(session, wanted)
        return next(each for each in list_limits(session) if each.name == name)


def drop_limit(settings: Settings, name: str, *, centre: str | None) -> None:
    """Forget a limit. Raises: CentreRefused when there is none of that name."""
    from orchestrator.fleet.permits import remove_limit

    with connect_administrator(settings, centre) as session:
        remove_limit(session, name)


def survey_permits(settings: Settings, *, centre: str | None) -> PermitList:
    """Return all limits, and all permits that are held or waited for."""
    from orchestrator.fleet.permits import list_limits, list_permits

    with connect_administrator(settings, centre) as session:
        return PermitList(limits=list_limits(session), permits=list_permits(session))


def _window(text: str | None) -> str:
    """Return a span of the day in its normal form; empty for none. Raises: WrongRequest."""
    from orchestrator.domain.job import parse_window

    try:
        return "" if text is None else str(parse_window(text))
    except ValueError as error:
        raise WrongRequest(f"--between {text}: expected {error}") from None


def _zone_of_machine() -> str:
    """Return the name of this machine's time zone; UTC where it has none."""
    path = os.path.realpath("/etc/localtime")
    return path.partition("/zoneinfo/")[2] or "UTC"
