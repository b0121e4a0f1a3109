"""The centre of a fleet, as a machine's file names it: its address, and who this host is there."""

import posixpath
import re

from orchestrator.domain.fast_dataclass import dataclass

HOST_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
HOST_NAME_RULE = "a host's name: at most 63 of a-z, 0-9, dot and hyphen, the first and the last of a-z or 0-9"
KEY_FILE = "fleet.key"  # in the state directory
_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<who>[^@/?#]*)@)?(?P<hosts>[^@/?#]*)(?:/(?P<base>[^/?#]*))?(?:\?(?P<rest>[^#]*))?"
)
_TUNABLE = frozenset("host port dbname user sslmode".split())
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "[::1]", "::1"))
_EXPECTED = 'an address such as "postgresql://backups.example.org/poolferry", or "postgresql:///poolferry" for a server on this machine'


def parse_centre(text: str) -> str:
    """Parse the address of a centre: no password in it, and TLS that nobody can lower on the way. Raises: ValueError."""
    found = _ADDRESS.fullmatch(text)
    if found is None or not found["base"] or re.search(r"[\s\x00-\x1f\x7f]", text):
        raise ValueError(_EXPECTED)
    given = dict(each.partition("=")[::2] for each in (found["rest"] or "").split("&") if each)
    if ":" in (found["who"] or "") or "password" in given:
        raise ValueError("an address without a password: `poolferry fleet join` keeps one in the state directory")
    if strange := sorted(given.keys() - _TUNABLE):
        raise ValueError(f"no {strange[0]} in the address: only {', '.join(sorted(_TUNABLE))} after its question mark")
    if not is_local(text) and given.get("sslmode", "verify-full") != "verify-full":
        raise ValueError(
            "sslmode=verify-full, or none: over a network only that keeps others from answering for the centre"
        )
    return text


def is_local(address: str) -> bool:
    """Return True when all of the address lies on this machine: a socket, or loopback."""
    hosts = _hosts(address)
    return hosts is not None and all(host.startswith("/") or host in _LOOPBACK for host in hosts)


def is_socket_below_run(address: str) -> bool:
    """Return True when each host of the address is a socket below /run, or none is named, which is the usual one there."""
    hosts = _hosts(address)
    return hosts is not None and all(posixpath.normpath(host).startswith("/run/") for host in hosts)


def socket_address(address: str) -> str:
    """Return an address of the same database at the usual socket of this machine: without a user, with its port."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise ValueError(_EXPECTED)
    kept = re.findall(r"(?:^|&)((?:port|dbname)=[^&,]*)(?=&|$)", found["rest"] or "")
    port = re.search(r":(\d+)$", found["hosts"])
    kept += [f"port={port[1]}"] if port and "," not in found["hosts"] else []
    return f"postgresql:///{found['base']}" + (f"?{'&'.join(kept)}" if kept else "")


def _hosts(address: str) -> list[str] | None:
    """Return all hosts that an address names; None: it is none."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return None
    named = re.findall(r"(?:^|&)host=([^&]*)", found["rest"] or "")
    hosts = [re.sub(r":\d*$", "", each) for each in found["hosts"].split(",") if each]
    every = [*hosts, *(one for each in named for one in each.split(",") if one)]
    return [re.sub("%2f", "/", host, flags=re.IGNORECASE) for host in every]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetIdentity:
    """This host as a centre knows it: its name and its role there. `password`: empty where a certificate stands for it."""

    host: str
    role: str
    password: str = ""

    def __repr__(self) -> str:
        return f"FleetIdentity(host={self.host!r}, role={self.role!r})"
