"""Settings of the whole machine, which the owner declares in poolferry.toml; and whether notices have receivers."""

from collections.abc import Sequence
from datetime import time
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import config_key, parse_clock
from orchestrator.domain.units import Seconds, parse_duration

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.notice import Channel


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


# By the value in the file: the name that systemd-inhibit uses.
INHIBITS = {"sleep": "sleep", "sleep-and-shutdown": "sleep:shutdown", "nothing": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOptions:
    """Settings of the daemon that starts runs."""

    parallel: int = config_key("runs at once, each into a place of its own", default=2, least=1)
    inhibit: str = config_key(
        "what the machine is kept from while the daemon's runs go on, where systemd-logind is",
        default="sleep", choices=tuple(INHIBITS), example="nothing",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestOptions:
    """One message a week about the state of all jobs, sent also when all is well."""

    day: str = config_key("on which day; never: no digest", default="monday", choices=(*DAYS, "never"))
    at: time = config_key("at this local time", default=time(8), parse=parse_clock, example="18:30")


def parse_textfile(text: str) -> str:
    """Parse the path of a file for node_exporter's textfile collector; it must end in .prom. Raises: ValueError."""
    if not text.startswith("/") or not text.endswith(".prom") or text.endswith("/.prom"):
        raise ValueError(
            'an absolute path that ends in .prom, such as "/var/lib/prometheus/node-exporter/poolferry.prom"'
        )
    return text


def parse_listen(text: str) -> str:
    """Parse an address with its port, or "unix:" and an absolute path. Raises: ValueError."""
    address, _, port = text.rpartition(":")
    if not (text.startswith("unix:/") or (address and port.isdigit() and 0 < int(port) < 65536)):
        raise ValueError('an address and a port such as "127.0.0.1:9742", or "unix:/run/poolferry/metrics.sock"')
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Metrics for Prometheus."""

    textfile: str | None = config_key(
        "written after each run, and by the daemon, for node_exporter's textfile collector",
        default=None, parse=parse_textfile, example="/var/lib/prometheus/node-exporter/poolferry.prom",
    )  # fmt: skip
    listen: str | None = config_key(
        'where the daemon answers to GET /metrics: an address and a port, or "unix:" and a path',
        default=None, parse=parse_listen, example="127.0.0.1:9742",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """The times for which the history keeps its records."""

    keep: Seconds = config_key(
        "how long a run's steps, commands, output and errors are kept; its line in `poolferry history` stays",
        default=Seconds(365 * 86400.0), parse=parse_duration, example="180d",
    )  # fmt: skip


def parse_folder(text: str) -> str:
    """Parse the path of a folder. Raises: ValueError."""
    if not text.startswith("/") or ".." in text.split("/"):
        raise ValueError('an absolute path, such as "/srv/restored"')
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Settings of what the status page may ask for."""

    restore_below: str = config_key(
        "below which folder a restore goes that the status page asks for: into a new folder there, which is root's alone",
        default="/var/tmp", parse=parse_folder, example="/srv/restored",  # noqa: S108
    )  # fmt: skip


def _parse_centre(text: str) -> str:
    """Parse the address of a centre. Imported late: few machines have one. Raises: ValueError."""
    from orchestrator.domain.fleet import parse_centre

    return parse_centre(text)


def _parse_pem_path(text: str) -> str:
    """Parse the path of a certificate or a key. Raises: ValueError."""
    if not text.startswith("/") or ".." in text.split("/"):
        raise ValueError('an absolute path, such as "/etc/poolferry/fleet.pem"')
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """The centre of many hosts: a PostgreSQL that gathers what this machine's history knows; no run ever needs it."""

    centre: str | None = config_key(
        "the centre's address, without a password", default=None, parse=_parse_centre,
        example="postgresql://backups.example.org/poolferry",
    )  # fmt: skip
    root_certificate: str | None = config_key(
        "who signs the centre's certificate; without it those that this machine trusts",
        default=None, parse=_parse_pem_path, example="/etc/poolferry/fleet-root.pem",
    )  # fmt: skip
    certificate: str | None = config_key(
        "this host's certificate, where the centre asks for one; its common name is the role of `poolferry fleet invite`",
        default=None, parse=_parse_pem_path, example="/etc/poolferry/fleet.pem",
    )  # fmt: skip
    key: str | None = config_key(
        "the key of that certificate: a file that only its owner may read",
        default=None, parse=_parse_pem_path, example="/etc/poolferry/fleet-key.pem",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineConfig:
    """All settings of poolferry.toml; its defaults when the file is missing."""

    clock: ClockOptions = field(default_factory=ClockOptions)
    digest: DigestOptions = field(default_factory=DigestOptions)
    metrics: MetricsOptions = field(default_factory=MetricsOptions)
    history: HistoryOptions = field(default_factory=HistoryOptions)
    web: WebOptions = field(default_factory=WebOptions)
    fleet: FleetOptions = field(default_factory=FleetOptions)
    notice: "tuple[Channel, ...]" = ()


def has_subscribers(jobs: "Sequence[Job]", machine: "MachineConfig") -> bool:
    """Return True when there is a channel, or a hook for `late`."""
    return bool(machine.notice) or has_late_hook(jobs)


def has_late_hook(jobs: "Sequence[Job]") -> bool:
    """Return True when a job has a hook for `late`, or for an overdue disk."""
    return any((job.hooks.of("late") or job.hooks.of("disk-overdue")) for job in jobs)
