"""Hosts at a centre, and their roles: invited with a token that joins once, joined with a password that only the host has, gone.

A role can do nothing but join until it has joined. The host then takes a password of its own and sends only its verifier, so
that neither the centre nor who saw the token knows it.
"""

import contextlib
import re
import secrets
from collections.abc import Sequence

from orchestrator.domain.errors import CentreRefused, CentreUnreachable, OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.fleet import HOST_NAME, HOST_NAME_RULE, FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.domain.units import Bytes
from orchestrator.fleet.connection import CentreSession, open_centre
from orchestrator.fleet.schema import HOSTS, bound_role

_MOST_CONNECTIONS = 50  # each run that waits for a permit, or holds one, has its own
_ROLE = re.compile(r"poolferry_[a-z0-9_]{1,40}_[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """The right to join once, within a day, as the host of that name. `token`: the role, a dot and a password.

    `warning`: what of the host's former role did not end; empty: nothing.
    """

    host: str
    role: str
    token: str
    warning: str = ""


def parse_token(token: str) -> tuple[str, str]:
    """Return the role and the password of a token. Raises: ValueError."""
    role, _, password = token.strip().partition(".")
    if not _ROLE.fullmatch(role) or not re.fullmatch(r"[A-Za-z0-9_-]{20,100}", password):
        raise ValueError("the token as `poolferry fleet invite` printed it")
    return role, password


def invite_host(centre: CentreSession, name: str) -> Invitation:
    """Make a role for a host that may join once. An invitation that nobody has used is replaced. Raises: CentreRefused."""
    if not HOST_NAME.fullmatch(name):
        raise OrchestratorError(f"{name!r} is not {HOST_NAME_RULE}", hint="poolferry fleet invite web-1")
    role = f"poolferry_{secrets.token_hex(4)}_{secrets.token_hex(4)}"  # without its name: all roles of a server are seen by each other
    password, gone = secrets.token_urlsafe(24), 0
    _end_transactions(centre, name)
    with centre.transaction():
        known = centre.first(
            "SELECT id, role, joined_at, left_at FROM poolferry.hosts WHERE name = %s FOR UPDATE", (name,)
        )
        if known and known["joined_at"] and not known["left_at"]:
            raise CentreRefused(
                f"a host {name} has joined already, at {known['joined_at']:%Y-%m-%d %H:%M} UTC",
                hint=f"another name for another machine; if it is this one, made anew: `poolferry fleet invite {name} --again`",
            )
        _make_role(centre, role, password)
        bound_role(centre, role)
        if known:
            gone = _drop_role(centre, known["role"])
            centre.change(
                "UPDATE poolferry.hosts SET role = %s, machine = NULL, invited_at = now(), joined_at = NULL, left_at = NULL, shut_out_at = NULL"
                " WHERE id = %s",
                (role, known["id"]),
            )
            centre.change("DELETE FROM poolferry.tickets WHERE host = %s", (known["id"],))
        else:
            centre.change("INSERT INTO poolferry.hosts (name, role) VALUES (%s, %s)", (name, role))
    return Invitation(host=name, role=role, token=f"{role}.{password}", warning=_end_sessions(centre, gone))


def let_join_again(centre: CentreSession, name: str) -> None:
    """End the present role of a host, so that it can be invited again: what it sent stays. Raises: CentreRefused."""
    _end_transactions(centre, name)
    with centre.transaction():
        centre.change("UPDATE poolferry.hosts SET left_at = now() WHERE id = %s", (_known(centre, name),))


def forget_host(centre: CentreSession, name: str) -> str:
    """Remove a host with its role and all that it sent; return what of it did not end. Raises: CentreRefused when there is none of that name."""
    gone = 0
    _end_transactions(centre, name)
    with centre.transaction(600):
        host = _known(centre, name)
        row = centre.first("SELECT role FROM poolferry.hosts WHERE id = %s", (host,))
        centre.change("SET LOCAL statement_timeout = 0")
        centre.change("DELETE FROM poolferry.hosts WHERE id = %s", (host,), seconds=600)
        if row:
            gone = _drop_role(centre, row["role"])
    return _end_sessions(centre, gone)


def change_quota(centre: CentreSession, name: str, most: Bytes) -> None:
    """Say how many bytes of rows a host may tell. Raises: CentreRefused when there is none of that name."""
    _end_transactions(centre, name)
    with centre.transaction():
        centre.change("UPDATE poolferry.quotas SET most = %s WHERE host = %s", (most, _known(centre, name)))


def _end_transactions(centre: CentreSession, name: str) -> None:
    """End what a host has held for some seconds, as it could hold up what is done about it. Who may not, waits for its locks."""
    with contextlib.suppress(CentreRefused):
        centre.rows(_OF_A_HOST, (name,))


_OF_A_HOST = (
    "SELECT pg_terminate_backend(a.pid, 1000) FROM pg_catalog.pg_stat_activity a JOIN poolferry.hosts h ON h.role = a.usename"
    " WHERE h.name = %s AND a.xact_start < clock_timestamp() - interval '2 seconds'"
)


def _known(centre: CentreSession, name: str) -> int:
    row = centre.first("SELECT id FROM poolferry.hosts WHERE name = %s FOR UPDATE", (name,))
    if row is None:
        raise CentreRefused(f"no host {name} is known at the centre", hint="poolferry fleet hosts")
    return int(row["id"])


def _make_role(centre: CentreSession, role: str, password: str) -> None:
    from psycopg import sql

    with centre.within():
        verifier = centre.connection.pgconn.encrypt_password(
            password.encode(), role.encode(), b"scram-sha-256"
        ).decode()
        made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} CONNECTION LIMIT {} IN ROLE {}")
        centre.connection.execute(
            made.format(
                sql.Identifier(role), sql.Literal(verifier), sql.Literal(_MOST_CONNECTIONS), sql.Identifier(HOSTS)
            )
        )


def _drop_role(centre: CentreSession, role: str) -> int:
    """Drop a role; return the number by which its sessions are known. They go on without a role until `_end_sessions`."""
    from psycopg import sql

    known = centre.first("SELECT oid::bigint AS number FROM pg_catalog.pg_roles WHERE rolname = %s", (role,))
    if known:
        _drop_owned(centre, role)
    with centre.within():
        centre.connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))
    return int(known["number"]) if known else 0


def _drop_owned(centre: CentreSession, role: str) -> None:
    """Drop what a role has in this database. It can make nothing but default rights for what it never makes, and those alone would keep it.

    An administrator who is no superuser may not; then a role that has such rights is not dropped, and says so.
    """
    from psycopg import errors, sql

    with centre.within(), contextlib.suppress(errors.InsufficientPrivilege), centre.connection.transaction():
        centre.connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))


def _end_sessions(centre: CentreSession, number: int) -> str:
    """End the sessions of a role that was dropped; return why they go on, or nothing. `number` 0: no role was dropped.

    Why after the commit: until then one can log in; why by its number: its name is gone. What is committed is never lost by an error here.
    """
    if not number:
        return ""
    me = centre.connection.info.user.replace('"', '""')
    asked = "SELECT pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usesysid = "
    told = "sessions that the host has open may go on until they end"
    try:
        centre.rows(f"{asked}%s::oid", (number,))
    except CentreUnreachable as error:
        return f"{told}: {error.why}; a superuser ends them: `{asked}{number}`"
    except CentreRefused as error:
        granted = f'`GRANT pg_signal_backend TO "{me}"` lets this administrator do so the next time'
        return f"{told}: {error.why}; a superuser ends them: `{asked}{number}`; {granted}"
    return ""


def join_centre(fleet: FleetOptions, token: str, *, machine: str) -> FleetIdentity:
    """Join with a token; return who this host is from now on. `machine`: a hash of its id. Raises: CentreRefused."""
    try:
        role, first_password = parse_token(token)
    except ValueError as error:
        raise OrchestratorError("that is no token", hint=f"expected {error}") from error
    first = FleetIdentity(host="", role=role, password=first_password)
    password = secrets.token_urlsafe(32)
    with open_centre(fleet, first, purpose="join") as centre, centre.transaction():
        found = centre.first("SELECT host, host_name FROM poolferry.enrol(%s)", (machine,))
        if found is None:
            why = f"the token {role} was used, or is older than a day"
            raise CentreRefused(why, hint="at the centre: poolferry fleet invite HOST")
        _take_password(centre, role, password)
    return FleetIdentity(host=str(found["host_name"]), role=role, password=password)


def _take_password(centre: CentreSession, role: str, password: str) -> None:
    """Change this role's password: only a verifier crosses the line, from which it cannot be found."""
    from psycopg import sql

    with centre.within():
        verifier = centre.connection.pgconn.encrypt_password(
            password.encode(), role.encode(), b"scram-sha-256"
        ).decode()
        centre.connection.execute(
            sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier))
        )


def leave_centre(centre: CentreSession) -> None:
    """End this host's membership. What it sent stays at the centre, and its role can do nothing more."""
    centre.rows("SELECT poolferry.leave()")


def names_of_hosts(centre: CentreSession) -> Sequence[str]:
    """Return the names of all hosts that this session may see."""
    return tuple(row["name"] for row in centre.rows("SELECT name FROM poolferry.hosts ORDER BY name"))
