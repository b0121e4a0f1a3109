"""The connection to a centre: every wait in it has an end, so that a line that has gone silent never holds a host.

Three things can hang, and each has its own limit. The server computes for too long: `statement_timeout`, `lock_timeout`. The
machine or the line is gone: keepalives and `tcp_user_timeout`. Somebody between takes every byte and passes none on, so that the
line looks healthy: `within` cuts it from outside after a while. Source: procrastinate PR #1596, a worker that hung for seven hours.
"""

import contextlib
import os
import pwd
import socket
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from orchestrator.domain.answers import parse_json
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import CentreFull, CentreRefused, CentreUnreachable, NotMember, OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.fleet import FleetIdentity, is_local
from orchestrator.domain.machine import FleetOptions
from orchestrator.process.deadlines import call_at_deadline

if TYPE_CHECKING:
    import psycopg

CONNECT_S = 10
ANSWER_S = 30.0  # of one statement; what may take longer says so
# The last three: the server, too, sees within a minute that this host is gone, and drops what it held.
_LIMITS = {
    "statement_timeout": "30s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
}  # fmt: skip
# While a connection is made the library gives no state, only the server's words; `lc_messages` of a server may be another's.
_NOT_LET_IN = (
    "authentication failed",
    "client certificate",
    "pg_hba.conf",
    "does not exist",
    "not permitted to log in",
    "no password supplied",
)
_CERTIFICATE = ("certificate verify failed", "alert certificate", "alert bad certificate", "alert unknown ca")
_TRUSTED_BY_DEBIAN = "/etc/ssl/certs/ca-certificates.crt"
# Whoever reads it: a person at the centre or at a host, or the journal of a daemon.
AWAY = "runs go on, and what the centre is to know waits at its host; at the centre `pg_lsclusters` shows whether PostgreSQL is up"
_BUSY = "runs go on, and what the centre is to know waits at its host; call this again in a minute"
INSTALL = 'pip install "poolferry[fleet]", or apt install python3-psycopg'

Row = dict[str, Any]
Values = Sequence[object] | Mapping[str, object]


def has_library() -> bool:
    """Return True when the library for PostgreSQL is installed; it is not imported by this."""
    return find_spec("psycopg") is not None


def connection_settings(
    fleet: FleetOptions, identity: FleetIdentity | None, *, purpose: str, limits: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what libpq needs for each connection to the centre, as keywords of `psycopg.connect`.

    `identity` None: whoever the address or the operating system says, as an administrator connects. `purpose`: what
    `pg_stat_activity` shows. `limits`: settings of the session in place of the usual ones.
    """
    if fleet.centre is None:
        raise OrchestratorError("no centre is declared", hint="[fleet] in poolferry.toml")
    from psycopg.conninfo import conninfo_to_dict

    told = {name: str(value) for name, value in conninfo_to_dict(fleet.centre).items() if value is not None}
    session = {**_LIMITS, **(limits or {})}
    told |= {
        "application_name": f"poolferry {purpose}"[:63],
        "connect_timeout": str(CONNECT_S),
        "keepalives": "1", "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3",
        "tcp_user_timeout": "25000",
        "client_encoding": "UTF8",
        "options": " ".join(f"-c {name}={value}" for name, value in session.items()),
    }  # fmt: skip
    if "," in told.get("host", ""):  # a standby among them, which only reads, is passed by
        told["target_session_attrs"] = "read-write"
    if identity is not None:
        told |= {"user": identity.role} | ({"password": identity.password} if identity.password else {})
    return told | _encryption(fleet)


def name_of_database(centre: str) -> str:
    """Return the database that an address names."""
    from psycopg.conninfo import conninfo_to_dict

    return str(conninfo_to_dict(centre).get("dbname", ""))


def _encryption(fleet: FleetOptions) -> dict[str, str]:
    """Return the settings for TLS: off this machine always, with the centre's name checked."""
    named = {"sslrootcert": fleet.root_certificate, "sslcert": fleet.certificate, "sslkey": fleet.key}
    given = {name: value for name, value in named.items() if value is not None}
    if fleet.centre and is_local(fleet.centre) and not given:
        return {}
    return {"sslmode": "verify-full", "sslrootcert": _TRUSTED_BY_DEBIAN} | given


@contextlib.contextmanager
def plain_errors(centre: str, *, administers: bool = False) -> Iterator[None]:
    """Turn the library's errors into ours. `administers`: the session is of no host. Raises: CentreUnreachable, CentreRefused."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise _plain_error(centre, error, administers=administers) from error


def _plain_error(centre: str, error: "psycopg.Error", *, administers: bool) -> OrchestratorError:
    """Return our error for one of the library's.

    Source: PostgreSQL, appendix A: 08 connection, 53 resources (53100 disk, 53200 memory, 53300 connections), 57P stopped by an operator; 28 who one is,
    42501 what one may, 55P03 a lock, 57014 a statement that took too long.
    """
    from psycopg.errors import OperationalError

    state = error.sqlstate or ""
    said = _said(error)
    if state.startswith("28") or (not state and any(words in said for words in _NOT_LET_IN)):
        return _not_let_in(centre, said, administers=administers)
    if not state and any(words in said for words in _CERTIFICATE):
        hint = "see of each certificate, here and there, until when it is valid: `openssl x509 -noout -subject -enddate -in FILE`"
        return CentreRefused(
            f"the centre {centre} and this host do not accept each other's certificate: {said}", hint=hint
        )
    if state == "42501":
        return CentreRefused(
            f"the centre {centre} does not allow that: {said}", hint="poolferry fleet init at the centre"
        )
    if state == "53400":
        hint = "what it is to know waits here; there: `poolferry fleet quota HOST --most SIZE` gives it more"
        return CentreFull(f"the centre {centre} takes no more: {said}", hint=hint)
    if state in ("53300", "53200"):
        return CentreUnreachable(f"the centre {centre} is overloaded: {said}", hint=_BUSY)
    if state.startswith("53"):
        hint = "make room at the centre; what it is to know waits here"
        return CentreFull(f"the centre {centre} has no room: {said}", hint=hint)
    if isinstance(error, OperationalError) or state[:2] in ("08", "57", "55", "40", "25"):
        return CentreUnreachable(f"the centre {centre} gives no answer: {said}", hint=AWAY)
    hint = "the centre may be older than this host; there: `poolferry fleet init`, which says so where it is newer"
    return CentreRefused(f"the centre {centre} refused a statement: {said}", hint=hint)


def _not_let_in(centre: str, said: str, *, administers: bool) -> OrchestratorError:
    """Return the error for who is not let in: a host whose password ended, a person without a role there, a database that is not there."""
    from psycopg.conninfo import conninfo_to_dict

    told = conninfo_to_dict(centre)
    user = str(told.get("user") or pwd.getpwuid(os.geteuid()).pw_name)
    if "database" in said and "does not exist" in said:
        hint = f"at the centre: `createdb {quoted(str(told.get('dbname', user)))}`, then `poolferry fleet init`; or this address names another one"
    elif not administers:
        hint = "at the centre: `poolferry fleet invite HOST --again`; it prints the command that joins again"
    elif is_local(centre):
        hint = f"`runuser -u postgres -- createuser --superuser {quoted(user)}` gives {user} a role there"
    else:
        hint = "call it at the centre, as who administers it; a host's own command needs no --centre"
    if administers:
        return CentreRefused(f"the centre {centre} does not let {user} in: {said}", hint=hint)
    return NotMember(f"the centre {centre} does not know this host: {said}", hint=hint)


def _said(error: "psycopg.Error") -> str:
    """Return what the server or the library said, its lines as one."""
    text = (error.diag.message_primary or str(error)).removeprefix("connection is bad: ")
    return "; ".join(" ".join(line.split()) for line in text.split("\n") if line.strip())


class CentreSession:
    """One connection to the centre. Use as a context manager; one thread at a time.

    Every method raises CentreUnreachable or CentreRefused. Outside of `transaction` each statement is one of its own.
    """

    def __init__(self, connection: "psycopg.Connection[Row]", centre: str) -> None:
        self.connection = connection
        self.centre = centre
        self._cut = False
        self._found: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; an unfinished transaction is rolled back."""
        self.connection.close()

    @contextlib.contextmanager
    def within(self, seconds: float = ANSWER_S) -> Iterator[None]:
        """Cut the connection when what is inside is not done in time, however healthy the line looks."""
        deadline = call_at_deadline(seconds, self._cut_line)
        try:
            with plain_errors(self.centre):
                yield
        except OrchestratorError as error:
            if self._cut:
                why = f"the centre {self.centre} gives no answer: silent for {seconds:g} s"
                raise CentreUnreachable(why, hint=AWAY) from error
            raise
        finally:
            deadline.cancel()

    def _cut_line(self) -> None:
        """Shut the socket, which wakes whoever waits at it. Why a duplicate: closing it leaves the library's own open."""
        self._cut = True
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def transaction(self, seconds: float = ANSWER_S) -> Iterator[None]:
        """Run all statements inside as one transaction: all are stored, or none."""
        with self.within(seconds), self.connection.transaction():
            yield

    def rows(self, statement: str, values: Values = (), *, seconds: float = ANSWER_S) -> list[Row]:
        """Return all rows of a statement, by column name. Values go by %s or %(name)s, never into the text."""
        with self.within(seconds):
            return self.connection.execute(statement.encode(), values or None).fetchall()

    def first(self, statement: str, values: Values = (), *, seconds: float = ANSWER_S) -> Row | None:
        """Return the first row of a statement, or None."""
        return next(iter(self.rows(statement, values, seconds=seconds)), None)

    def has_function(self, signature: str, *, seconds: float = ANSWER_S) -> bool:
        """Return True when the centre has a function, such as `poolferry.leave()`: a call of one that an older centre lacks is an error in its log.

        Only a yes is kept for the session: the centre may be upgraded meanwhile.
        """
        if signature not in self._found:
            row = self.first("SELECT to_regprocedure(%s) IS NOT NULL AS it", (signature,), seconds=seconds)
            if not (row and row["it"]):
                return False
            self._found.add(signature)
        return True

    def change(self, statement: str, values: Values = (), *, seconds: float = ANSWER_S) -> int:
        """Run a statement that changes something; return the number of changed rows."""
        with self.within(seconds):
            return self.connection.execute(statement.encode(), values or None).rowcount


def open_centre(
    fleet: FleetOptions, identity: FleetIdentity | None, *, purpose: str, limits: Mapping[str, str] | None = None
) -> CentreSession:
    """Connect to the centre. Arguments: as of `connection_settings`. Raises: CentreUnreachable, CentreRefused."""
    try:
        import psycopg
        from psycopg.rows import dict_row
        from psycopg.types.json import set_json_loads
    except ImportError as error:
        raise OrchestratorError("a fleet needs psycopg", hint=INSTALL) from error
    centre = str(fleet.centre)
    _require_files(fleet)
    with plain_errors(centre, administers=identity is None):
        told: dict[str, Any] = connection_settings(fleet, identity, purpose=purpose, limits=limits)
        connection = psycopg.connect(**told, autocommit=True, row_factory=dict_row)
    set_json_loads(_json_of_a_host, connection)
    return CentreSession(connection, centre)


def _require_files(fleet: FleetOptions) -> None:
    """Check that the files for TLS are there. Raises: CentreRefused with the one that is gone, or lies where this user may not look.

    Why: without its certificate the library goes on, and then the centre seems not to know this host; so it does without its authority's.
    """
    files = {"root-certificate": fleet.root_certificate, "certificate": fleet.certificate, "key": fleet.key}
    for name, file in files.items():
        if file is None:
            continue
        try:
            os.stat(file)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise CentreRefused(
                f"the {name} {file} of [fleet] is gone, so the centre {fleet.centre} is not asked",
                hint="put it back, or change [fleet] in poolferry.toml; `poolferry check` looks at it",
            ) from error
        except OSError as error:
            raise CentreRefused(
                f"this user cannot look at the {name} {file} of [fleet] ({error.strerror}), so the centre {fleet.centre} is not asked",
                hint="as root: `poolferry fleet status`",
            ) from error


def _json_of_a_host(text: bytes | str) -> object:
    """Return JSON that a host told; None where it is none that can be read, so that it ends no look at the others."""
    try:
        return parse_json(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CentreCapacity:
    """The room at a centre. `stay`: less than half of its connections are in use; `hosts`: how many there are, as PostgreSQL estimates."""

    stay: bool
    hosts: int


def read_capacity(centre: CentreSession, seconds: float) -> CentreCapacity:
    """Return how much room there is. Raises: CentreUnreachable when the centre is silent for so long."""
    row = centre.first(_CAPACITY, seconds=seconds)
    return CentreCapacity(stay=bool(row and row["room"]), hosts=int(row["hosts"] or 0) if row else 0)


_CAPACITY = """
SELECT 2 * sum(numbackends) < current_setting('max_connections')::integer AS room,
    (SELECT greatest(reltuples, 0)::bigint FROM pg_catalog.pg_class WHERE oid = to_regclass('poolferry.hosts')) AS hosts
FROM pg_catalog.pg_stat_database
"""
