"""The guard before each page: who asks, under which name, from which page; and what a browser may do with the answer."""

import contextlib
import re
import secrets
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from http.cookies import CookieError, SimpleCookie
from typing import Any

from orchestrator.app.settings import WrongRequest
from orchestrator.domain.act import parse_user
from orchestrator.domain.fast_dataclass import dataclass

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiProgram = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "poolferry"
ENTRY = "/enter"
LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_LONGEST_REQUEST = 8192  # of path and query
_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_AS_SIX = "0000000000000000FFFF0000"  # before an address of four bytes that a socket of the newer kind has
_FIELD_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}")
HEADERS = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)
_READS = ("GET", "HEAD")


class EntryKey:
    """The secret of one link: good for one entry, then a cookie with another secret stands for it, for the user who entered.

    Why for that user: a browser sends a cookie of this machine to each port of it, so also to a server that another user runs on one.
    """

    def __init__(self, find_user: Callable[[Scope], int | None] | None = None) -> None:
        """Make the secrets. `find_user`: tells the number of the user who asks; it is asked only where a secret fits."""
        self.link = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(32)
        self._user: int | None = None
        self._find_user = find_user or connected_user
        self._lock = threading.Lock()

    def enter(self, key: str, scope: Scope) -> str | None:
        """Return the cookie for the link's key; None when it is another one, or was used. Raises: UserUnknown; the link stays good."""
        if not secrets.compare_digest(key.encode(), self.link.encode()):
            return None
        with self._lock:  # entries are threads
            if self._user is not None:
                return None
            self._user = self._find_user(scope)
            if self._user is None:  # a cookie for nobody would be good for whoever cannot be told, too
                raise UserUnknown
        return self._cookie

    def admits(self, cookie: str, scope: Scope) -> bool:
        """Return True for the cookie that an entry gave, from the user who entered."""
        fits = secrets.compare_digest(cookie.encode(), self._cookie.encode())
        return fits and self._user is not None and self._find_user(scope) == self._user


class UserUnknown(Exception):
    """An entry by a connection whose user the kernel does not tell."""


def connected_user(scope: Scope) -> int | None:
    """Return the number of the user whose process is at the other end of a connection of this machine; None: it is not known."""
    client, server = scope.get("client"), scope.get("server")
    if not client or not server:
        return None
    try:
        ends = [(_kernel_address(*client), _kernel_address(*server))]
    except (OSError, TypeError):
        return None
    ends += [(_AS_SIX + one, _AS_SIX + other) for one, other in ends if len(one) == len("0100007F:0000")]
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError), open(table, encoding="utf-8", newline="\n") as lines:
            for fields in map(str.split, lines):
                # One that its process has closed already has no inode, and counts as root's there.
                if (fields[1], fields[2]) in ends and fields[9] != "0":
                    return int(fields[7])
    return None


def _kernel_address(address: str, port: int) -> str:
    """Return an address as the kernel's tables write it: words in the order of this machine. Raises: OSError for none."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    words = [int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4)]
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


class NobodyNamed(Exception):
    """A request in which the reverse proxy named nobody, or several, or what is no name. The message says which."""


class ProxyUser:
    """The header in which a reverse proxy names who asks; it counts on a unix socket alone, which nobody else should reach."""

    def __init__(self, header: str) -> None:
        """Take the header's name. Raises: WrongRequest for what is none."""
        if not _FIELD_NAME.fullmatch(header):
            raise WrongRequest(f"--proxy-user {header!r}: expected the name of a header, such as X-Remote-User")
        self._header = header

    def read(self, given: Sequence[str]) -> str:
        """Return who asks. `given`: the values of all headers of this name. Raises: NobodyNamed."""
        found = [value for value in given if value]
        if not found:
            raise NobodyNamed(
                f"the reverse proxy named nobody in {self._header}; what is asked for here is recorded with a name"
            )
        try:
            (user,) = map(parse_user, found)
        except ValueError:
            raise NobodyNamed(f"what stands in {self._header} is not one name of a user") from None
        return user

    @property
    def header(self) -> str:
        """Return the header's name."""
        return self._header


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRefusal:
    """A request that is not answered: its status, and why, for the page."""

    status: int
    why: str


class RequestGuard:
    """The guard around the pages. `names`: host names under which they may be asked for; `key`: None where the socket itself is the guard.

    Why the names: a foreign page can point its own name to this address, and would then read what is asked for under it.
    """

    def __init__(
        self, program: AsgiProgram, *, names: tuple[str, ...], key: EntryKey | None, refuse: Callable[[GuardRefusal], bytes]
    ) -> None:  # fmt: skip
        self._program, self._key, self._refuse = program, key, refuse
        self._names = frozenset(name.lower() for name in (*LOCAL_NAMES, *names))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        found = self._judge(scope)

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *_headers(message)]}
            await send(message)

        if found is None:
            await self._program(scope, receive, send_with_headers)
            return
        body = self._refuse(found)
        kind = (b"content-type", b"text/html; charset=utf-8")
        length = (b"content-length", str(len(body)).encode())
        await send_with_headers({"type": "http.response.start", "status": found.status, "headers": [kind, length]})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _judge(self, scope: Scope) -> GuardRefusal | None:
        """Return why a request is refused; None: it is not."""
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _LONGEST_REQUEST:
            return GuardRefusal(status=414, why="this address is too long")
        host = _header(scope, b"host")
        if _name(host) not in self._names:
            return GuardRefusal(
                status=421, why=f"this page is not served under the name {host[:100] or '(none)'}; `poolferry web --host NAME` adds one"
            )  # fmt: skip
        if _header(scope, b"transfer-encoding") and _header(scope, b"content-length"):
            return GuardRefusal(
                status=400, why="this request says twice how long it is, and a proxy may read it otherwise"
            )
        if self._key is not None and not self._is_open(scope) and not self._key.admits(_cookie(scope), scope):
            return GuardRefusal(
                status=403, why="open the link that `poolferry web` printed; it is good once, and this browser then has a cookie, for its user"
            )  # fmt: skip
        if _taken_by_another(scope):
            return GuardRefusal(status=403, why="another page asked for this; only a link of it is followed")
        if scope["method"] not in _READS and not _same_origin(scope, host):
            return GuardRefusal(status=403, why="this request did not come from a page of ours")
        return None

    def _is_open(self, scope: Scope) -> bool:
        return bool(scope["path"] == ENTRY or scope["path"].startswith("/static/"))


def _header(scope: Scope, name: bytes) -> str:
    """Return a header; one that comes twice is one with both, which fits nothing."""
    return b", ".join(value for key, value in scope["headers"] if key == name).decode("latin-1")


def _name(host: str) -> str:
    """Return the name of a host without its port."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() and port.isascii() else host.lower()


def _cookie(scope: Scope) -> str:
    try:
        found = SimpleCookie(_header(scope, b"cookie")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _same_origin(scope: Scope, host: str) -> bool:
    """Return True when a page of ours sent the request; a browser always says so."""
    origin = _header(scope, b"origin")
    return (
        origin in (f"http://{host}", f"https://{host}")
        if origin
        else _header(scope, b"sec-fetch-site") == "same-origin"
    )


def _taken_by_another(scope: Scope) -> bool:
    """Return True where another page asks for something of ours in itself: to measure how long an answer takes, or to hold streams open.

    Another port of this machine is another page, too. A browser of before 2023 says nothing of it.
    """
    if _header(scope, b"sec-fetch-site") not in ("cross-site", "same-site"):
        return False
    kind = _header(scope, b"sec-fetch-mode"), _header(scope, b"sec-fetch-dest")
    return kind != ("navigate", "document")


def _headers(message: MutableMapping[str, Any]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of each answer; a page is kept by nobody."""
    given = {key for key, _ in message.get("headers", ())}
    return (*HEADERS, *(() if b"cache-control" in given else ((b"cache-control", b"no-store"),)))
