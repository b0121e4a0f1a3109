"""A centre and its hosts: made, invited, joined, left, forgotten."""

import os
import shlex
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.errors import CentreRefused, NotMember, OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.machine import FleetOptions
from orchestrator.domain.units import Bytes

if TYPE_CHECKING:
    from orchestrator.domain.fleet import FleetIdentity
    from orchestrator.fleet.connection import CentreSession


@dataclass(frozen=True, slots=True, kw_only=True)
class InvitedHost:
    """An invited host. `command`: what joins it, typed there within a day."""

    host: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradedCentre:
    """A centre whose schema is the newest. `applied`: the files that were missing; `advice`: what would be better, each with the command."""

    centre: str
    applied: tuple[str, ...]
    advice: tuple[str, ...]


def declared_fleet(settings: Settings, centre: str | None = None) -> FleetOptions:
    """Return the section [fleet]. `centre`: an address in place of the declared one. Raises: DeclarationError, WrongRequest."""
    fleet = compose.read_machine_config(settings.where).fleet
    if centre is not None:
        from orchestrator.domain.fleet import parse_centre

        try:
            return replace(fleet, centre=parse_centre(centre))
        except ValueError as error:
            raise WrongRequest(f"that is no centre's address: expected {error}") from None
    if fleet.centre is None:
        raise WrongRequest(
            "no centre is declared: [fleet] in poolferry.toml, or --centre ADDRESS",
            f"`{settings.repeat('fleet init --centre postgresql:///poolferry')}` makes one of a database of this machine; a host joins by the line that "
            "`poolferry fleet invite HOST` prints at its centre",
        )
    return fleet


def require_centre_here(settings: Settings) -> None:
    """Check that the page reaches the declared centre: its sandbox has no network, and sees sockets below /run alone.

    Raises: WrongRequest, DeclarationError.
    """
    from orchestrator.domain.fleet import is_local, is_socket_below_run, socket_address

    centre = str(declared_fleet(settings).centre)
    if not is_local(centre):
        raise WrongRequest(
            f"the page of a fleet is installed on its centre, for its sandbox has no network; [fleet] in poolferry.toml names {centre}"
        )
    if not is_socket_below_run(centre):
        raise WrongRequest(
            f"the sandbox of the page has no network and sees sockets below /run alone, and [fleet] in poolferry.toml names {centre};"
            f' write there: centre = "{socket_address(centre)}"'
        )


def connect_administrator(settings: Settings, centre: str | None) -> "CentreSession":
    """Connect as whoever the address or the operating system says: who administers a centre."""
    return connect_checked(settings, centre, None, purpose="administrator")


def connect_checked(
    settings: Settings, centre: str | None, identity: "FleetIdentity | None", *, purpose: str
) -> "CentreSession":
    """Connect to a centre whose tables are those that this poolferry asks for. `centre`, `identity`: None as of `open_centre`.

    Raises: CentreRefused with the command that upgrades them. A centre that is newer is asked, and that is said.
    """
    from orchestrator.fleet.connection import open_centre
    from orchestrator.fleet.schema import compare_schema

    session = open_centre(declared_fleet(settings, centre), identity, purpose=purpose)
    try:
        found = compare_schema(session)
        if found.missing:
            command = settings.repeat("fleet init" + (f" --centre {shlex.quote(centre)}" if centre else ""))
            here = f"`{command}`, as who administers the centre"
            raise CentreRefused(
                f"the centre {session.centre} is older than this poolferry: it lacks {', '.join(found.missing)}",
                hint=here
                if identity is None
                else "at the centre, once poolferry is upgraded there: `poolferry fleet init`",
            )
    except BaseException:
        session.close()
        raise
    if found.newer and not settings.heard_of_newer:
        settings.heard_of_newer = True
        settings.say(
            f"warning: the centre was upgraded by a newer poolferry, which made {', '.join(found.newer)}: this one may not understand all of it; "
            "upgrade it on this machine"
        )
    return session


def require_identity(settings: Settings) -> "FleetIdentity":
    """Return who this host is at its centre. Raises: WrongRequest when it has joined none."""
    from orchestrator.fleet.credentials import read_identity

    identity = read_identity(settings.where.state)
    if identity is None:
        raise WrongRequest(
            "this host has joined no centre", "at the centre: `poolferry fleet invite HOST`, which prints how"
        )
    return identity


def make_centre(settings: Settings, centre: str | None) -> UpgradedCentre:
    """Make the schema of a centre, or bring it up to date. Raises: CentreRefused, CentreUnreachable."""
    from orchestrator.fleet.connection import open_centre
    from orchestrator.fleet.lock_guard import advise_server
    from orchestrator.fleet.schema import find_named_roles, upgrade_schema

    with open_centre(declared_fleet(settings, centre), None, purpose="administrator") as session:
        applied = upgrade_schema(session)
        roles = [
            f"the role of {name} has the host's name, and all roles of this server see it: `poolferry fleet invite {shlex.quote(name)} --again` "
            "makes another one, with which that host joins once more"
            for name in find_named_roles(session)
        ]
        advice = (*advise_server(session), *roles)
        return UpgradedCentre(centre=session.centre, applied=applied, advice=advice)


def invite(settings: Settings, host: str, *, centre: str | None, address: str | None, again: bool) -> InvitedHost:
    """Invite a host. `address`: the centre's as that host is to type it; `again`: also one that has joined. Raises: CentreRefused."""
    from orchestrator.fleet.enrolment import invite_host, let_join_again

    fleet = declared_fleet(settings, centre)
    public = declared_fleet(settings, address).centre if address else _public_address(str(fleet.centre))
    with connect_administrator(settings, centre) as session:
        if again:
            let_join_again(session, host)
        invitation = invite_host(session, host)
    _say_warning(settings, invitation.warning)
    command = f"poolferry fleet join {shlex.quote(str(public))} --token {shlex.quote(invitation.token)}"
    return InvitedHost(host=host, command=command)


def _public_address(centre: str) -> str:
    """Return a centre's address without its user; of a server on this machine, with this machine's name."""
    from orchestrator.domain.fleet import is_local
    from orchestrator.fleet.connection import name_of_database

    if is_local(centre):
        return f"postgresql://{os.uname().nodename}/{name_of_database(centre)}"
    scheme, _, rest = centre.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def forget(settings: Settings, host: str, *, centre: str | None) -> None:
    """Remove a host and all that it sent from the centre. Raises: CentreRefused when there is none of that name."""
    from orchestrator.fleet.enrolment import forget_host

    with connect_administrator(settings, centre) as session:
        _say_warning(settings, forget_host(session, host))


def _say_warning(settings: Settings, warning: str) -> None:
    if warning:
        settings.say(f"warning: {warning}")


def change_quota(settings: Settings, host: str, most: Bytes, *, centre: str | None) -> None:
    """Say how many bytes of rows a host may tell the centre. Raises: CentreRefused when there is none of that name."""
    from orchestrator.fleet.enrolment import change_quota

    with connect_administrator(settings, centre) as session:
        change_quota(session, host, most)


def join(settings: Settings, address: str, token: str) -> "FleetIdentity":
    """Join a centre with a token, keep the password, and declare the centre in poolferry.toml. Raises: CentreRefused, WrongRequest."""
    from orchestrator.config.this_machine import machine_id_hash
    from orchestrator.fleet.credentials import keep_identity, read_identity
    from orchestrator.fleet.enrolment import join_centre

    where = settings.where
    declared = compose.read_machine_config(where).fleet
    fleet = declared_fleet(settings, address)
    if declared.centre not in (None, fleet.centre):
        raise WrongRequest(
            f"poolferry.toml names another centre, {declared.centre}", "change [fleet] there, or join that one"
        )
    if (known := read_identity(where.state)) is not None:
        raise WrongRequest(f"this host has joined as {known.host}", "`poolferry fleet leave` ends that")
    identity = join_centre(fleet, token, machine=machine_id_hash())
    keep_identity(where.state, identity)
    if declared.centre is None:
        _declare(where, str(fleet.centre))
    return identity


def _declare(where: compose.Directories, centre: str) -> None:
    """Add the section [fleet] to poolferry.toml, whole or not at all."""
    from orchestrator.trees.beneath import new_file_at

    path = os.path.realpath(os.path.join(where.config, "poolferry.toml"))
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            before = file.read()
        mode = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        before, mode = "", 0o644
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    try:
        os.makedirs(where.config, exist_ok=True)
        with new_file_at(path, mode=mode) as new:
            new.write(f'{before}{gap}[fleet]\ncentre = "{centre}"\n'.encode())
    except OSError as error:
        hint = f"add these two lines to it: [fleet] and centre = {centre!r}"
        raise OrchestratorError(
            f"this host has joined, but {path} cannot be written: {error.strerror}", hint=hint
        ) from error


def leave(settings: Settings) -> str:
    """Leave the centre; return the name that this host had there. What it sent stays. Raises: CentreUnreachable, WrongRequest.

    A copy of a machine leaves alone, also while the other one is silent: that one stays a member.
    """
    from orchestrator.config.this_machine import machine_id_hash
    from orchestrator.fleet.connection import open_centre
    from orchestrator.fleet.credentials import drop_identity
    from orchestrator.fleet.enrolment import leave_centre
    from orchestrator.fleet.tickets import NameInUse, forget_ticket, show_ticket

    identity = require_identity(settings)
    try:
        with open_centre(declared_fleet(settings), identity, purpose="leave") as session:
            here = settings.where.state
            show_ticket(session, here, name=identity.host, machine=machine_id_hash(), renew=True, older=False)
            leave_centre(session)
    except NotMember as error:  # it was removed there, invited again or shut out: here, too, it is over
        settings.say(error.why)
    except NameInUse as error:
        settings.say(f"{error.why}. Here it is over; at the centre {identity.host} stays a member")
    forget_ticket(settings.where.state)
    with compose.open_history(settings.where) as history:
        history.outbox.leave()
    drop_identity(settings.where.state)
    return identity.host
