"""Locations of data: a path or a dataset, here or on a host reached by ssh; and mount points below a restored folder."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds

if TYPE_CHECKING:
    from orchestrator.domain.rotation import RotationSet

USED = "target-used"  # a small fact of a job: the location of its target at the last run
OVER = "over"  # of a job without a file: the number of its newest run when its owner said that it is over; empty: it is not
FOUND = "found"  # the name of a place that a job was made from, where no configuration is left
_USER = r"[\w.@+%=\\][\w.@+%=\\-]*\$?"  # no sign that a shell or a terminal obeys
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A machine reached by ssh; without user and port, ssh's own configuration applies.

    `here`: this machine itself, whose own shell takes ssh's place: a program that works on one side alone gets a far half so.
    """

    name: str
    user: str | None = None
    port: int | None = None
    here: bool = False

    def __str__(self) -> str:
        """Return the host as a URL has it."""
        return "this machine" if self.here else self.login(bracket=True) + (f":{self.port}" if self.port else "")

    @property
    def ssh(self) -> str:
        """Return the words by which a person reaches it in a shell: ssh -p 2222 ann@nas."""
        return f"{self.shell} {shlex.quote(self.login())}"

    def ssh_with(self, options: Sequence[str]) -> str:
        """Return the same with a job's own ssh-options: ssh -F /etc/nas -p 2222 ann@nas."""
        return " ".join(("ssh", *map(shlex.quote, options), *self.ssh.split(" ")[1:]))

    @property
    def shell(self) -> str:
        """Return the same without the host, as RSYNC_RSH has it: ssh -p 2222."""
        return f"ssh -p {self.port}" if self.port else "ssh"

    def login(self, *, bracket: bool = False) -> str:
        """Return user@name. `bracket`: with [] around an IPv6 address, where a colon would follow."""
        name = f"[{self.name}]" if bracket and ":" in self.name else self.name
        return f"{self.user}@{name}" if self.user else name


HERE = Host(name="this-machine", here=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place for data. `path`: an absolute path (any bytes, as surrogates) or a dataset name."""

    path: str
    host: Host | None = None

    def __str__(self) -> str:
        if self.host is None or self.host.here:
            return self.path
        from urllib.parse import quote_from_bytes  # only URLs need it, and most jobs have none

        return (
            f"ssh://{self.host}/{quote_from_bytes(self.path.encode('utf-8', 'surrogateescape'), safe='/').lstrip('/')}"
        )

    def __truediv__(self, below: str) -> "Location":
        return Location(path=self.path.rstrip("/") + "/" + below, host=self.host)


def parse_location(text: str) -> Location:
    """Parse a path, a dataset name, "file:///…" or "ssh://user@host:port/path" into a location.

    URLs may percent-encode any byte; a dataset on a host is ssh://host/pool/data. Raises: ValueError.
    """
    if "://" not in text:
        if "\x00" in text or not text:
            raise ValueError('a path such as "/srv/photos"')
        return Location(path=_trim(text))
    from urllib.parse import unquote_to_bytes, urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("ssh", "file") or parts.query or parts.fragment:
        raise ValueError('a path, or "ssh://user@host[:port]/path" ("?" and "#" written as %3F and %23)')
    path = unquote_to_bytes(parts.path).decode("utf-8", "surrogateescape")
    if "\x00" in path or path in ("", "/"):
        raise ValueError('a path after the host, such as "ssh://user@host/srv/photos"')
    if parts.scheme == "file":
        if parts.netloc:
            raise ValueError('"file:///path" with three slashes')
        return Location(path=_trim(path))
    return Location(path=_trim(path), host=_host(parts.netloc))


def url_of_ssh_place(text: str) -> str | None:
    """Return the URL of a place written as scp and rsync write it, [user@]host:path; None for another text.

    A path on this machine begins with a slash or has one before its first colon, as in rsync(1).
    """
    match = re.fullmatch(r"((?:[^@/:]+@)?[A-Za-z0-9][A-Za-z0-9._-]*|(?:[^@/:]+@)?\[[0-9A-Fa-f:.]+\]):(?!//)(.+)", text)
    if match is None:
        return None
    from urllib.parse import quote_from_bytes  # most starts need no URL

    return f"ssh://{match[1]}/{quote_from_bytes(match[2].lstrip('/').encode('utf-8', 'surrogateescape'))}"


def _host(netloc: str) -> Host:
    user, _, address = netloc.rpartition("@")
    match = re.fullmatch(rf"({_HOST.pattern})(?::(\d+))?", address)
    if not match or (user and not re.fullmatch(_USER, user)):
        raise ValueError('a host as in "ssh://user@host[:port]/path" (keys, never passwords)')
    port = int(match[2]) if match[2] else None
    if port is not None and not 0 < port < 65536:
        raise ValueError("a port between 1 and 65535")
    return Host(name=match[1].strip("[]"), user=user or None, port=port)


def _trim(path: str) -> str:
    return path.rstrip("/") or "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A target named in targets.toml; one job keeps its copies below `location`.

    `rotation`: the rotation set that it is; the location of copies is known only while a disk of it is here, and nothing may be
    read or written at `location` itself. `disk`: the attached disk of a rotation set that holds it; `device`: the kernel's name
    of that disk; `reach`: shell commands that bring the disk there on a machine without poolferry; `within`: a copy that would take
    longer gets a warning.
    """

    name: str
    location: Location
    rotation: "RotationSet | None" = None
    disk: str = ""
    device: str = ""
    reach: tuple[str, ...] = ()
    within: Seconds | None = None

    @property
    def rotates(self) -> bool:
        """Return True when the place is a rotation set."""
        return self.rotation is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPoint:
    """One mount point. `path`: below the folder; `full`: files lie there; `wanted`: the point has entries below it."""

    path: bytes
    full: bool
    wanted: bool


def outermost_paths(paths: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the paths that lie below no other one, in order."""
    last = b""
    for path in sorted(set(paths), key=lambda each: each + b"/"):
        if not last or not path.startswith(last + b"/"):
            last = path
            yield path


def leads_to_mount(path: bytes, mounts: Sequence[bytes]) -> bool:
    """Return True when a path is a mount point, or lies above one."""
    return any(each == path or each.startswith(path + b"/") for each in mounts)


# Source: RFC 1918, RFC 1122 (loopback), RFC 3927 and 4291 (link-local), RFC 4193 (unique local).
_OWN = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "::1/128",
    "fe80::/10",
    "fc00::/7",
)


def is_public(address: str) -> bool | None:
    """Return True when an address is public; None for other text, such as a name."""
    import ipaddress  # few jobs need it

    try:
        told = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    told = getattr(told, "ipv4_mapped", None) or told
    return not any(told in ipaddress.ip_network(network) for network in _OWN if (":" in network) == (told.version == 6))
