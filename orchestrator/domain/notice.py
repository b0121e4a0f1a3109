"""Notices: the channels declared in poolferry.toml, and the message that a channel sends."""

import re
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import config_key
from orchestrator.domain.units import Seconds, parse_duration

_REPORTED = ("failing", "late", "incomplete", "no-file")
STATES = (*_REPORTED, "waiting", "paused")
_ADDRESS = re.compile(r"[A-Za-z0-9._%+=/&'*-]+(@[A-Za-z0-9.-]+)?")
_SERVER = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_WEB = re.compile(r"https?://[!-~]+")
_FILE = re.compile(r"@[^\x00-\x1f]+")


def parse_address(text: str) -> str:
    """Parse a mail address, or a user of this machine. Raises: ValueError."""
    if not _ADDRESS.fullmatch(text) or text.startswith("-"):
        raise ValueError('a mail address such as "admin@example.org", or a user of this machine')
    return text


def parse_server(text: str) -> str:
    """Parse the address of a mail server. Raises: ValueError."""
    if not _SERVER.fullmatch(text) or text.startswith("-"):
        raise ValueError('a mail server such as "mail.example.org:587"')
    return text


def parse_web(text: str) -> str:
    """Parse a web address, or "@FILE", as such an address is often a secret. Raises: ValueError."""
    if not (_WEB.fullmatch(text) or _FILE.fullmatch(text)):
        raise ValueError('an address such as "https://example.org/…", or "@FILE": it stands in that file')
    return text


def parse_apprise(text: str) -> str:
    """Parse an address in the form of Apprise, or "@FILE". Raises: ValueError."""
    if not (_FILE.fullmatch(text) or re.fullmatch(r"[a-z][a-z0-9+.-]*://[!-~]*", text)):
        raise ValueError('an address that Apprise knows, such as "matrix://…", or "@FILE": it stands in that file')
    return text


def parse_hour(text: str) -> Seconds:
    """Parse the interval between two pings. Raises: ValueError."""
    seconds = parse_duration(text)
    if not 60 <= seconds <= 86400:
        raise ValueError('a duration from "1m" to "1d"')
    return seconds


_JOBS = "only of these jobs; all when none is named"
_STATES = "which states are reported"


@dataclass(frozen=True, slots=True, kw_only=True)
class MailChannel:
    """A mail, through this machine's sendmail or straight to a mail server."""

    name: str = ""
    to: tuple[str, ...] = config_key("who gets it", parse=parse_address, example='["admin@example.org"]')
    sender: str | None = config_key(
        "from whom; without it poolferry at this machine's name", default=None, parse=parse_address,
        example="backup@example.org",
    )  # fmt: skip
    smtp: str | None = config_key(
        "speak to this mail server in place of sendmail", default=None, parse=parse_server,
        example="mail.example.org:587",
    )  # fmt: skip
    security: str = config_key(
        "of the way to the mail server: starttls, tls from the first byte, or none", default="starttls",
        choices=("starttls", "tls", "none"),
    )  # fmt: skip
    user: str | None = config_key("name to log in with at the mail server", default=None, example="backup")
    password_file: str | None = config_key("file with the password", default=None, example="mail-password")
    jobs: tuple[str, ...] = config_key(_JOBS, default=(), example='["photos"]')
    states: tuple[str, ...] = config_key(_STATES, default=_REPORTED, choices=STATES)
    digest: bool = config_key("the weekly digest too", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class NtfyChannel:
    """A push notification to a phone, through a topic of an ntfy server."""

    name: str = ""
    topic: str = config_key("address of the topic", parse=parse_web, example="https://ntfy.example.org/backups")
    token_file: str | None = config_key("file with the access token", default=None, example="ntfy-token")
    jobs: tuple[str, ...] = config_key(_JOBS, default=(), example='["photos"]')
    states: tuple[str, ...] = config_key(_STATES, default=_REPORTED, choices=STATES)
    digest: bool = config_key("the weekly digest too", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookChannel:
    """A JSON object sent to a web address."""

    name: str = ""
    url: str = config_key("where it is posted to", parse=parse_web, example="https://example.org/hooks/backup")
    token_file: str | None = config_key(
        "file with a token, sent as Authorization: Bearer", default=None, example="hook-token"
    )
    jobs: tuple[str, ...] = config_key(_JOBS, default=(), example='["photos"]')
    states: tuple[str, ...] = config_key(_STATES, default=_REPORTED, choices=STATES)
    digest: bool = config_key("the weekly digest too", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppriseChannel:
    """A message through Apprise; needs the extra `notices` of poolferry."""

    name: str = ""
    url: str = config_key("address in Apprise's own way of writing", parse=parse_apprise, example="@apprise-url")
    jobs: tuple[str, ...] = config_key(_JOBS, default=(), example='["photos"]')
    states: tuple[str, ...] = config_key(_STATES, default=_REPORTED, choices=STATES)
    digest: bool = config_key("the weekly digest too", default=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PingChannel:
    """Pings to an external monitor, which raises an alarm when they stop."""

    name: str = ""
    url: str = config_key(
        "address to ping; {job} in it becomes the job's name", parse=parse_web,
        example="https://hc.example.org/ping/KEY/{job}?create=1",
    )  # fmt: skip
    of: str = config_key(
        "each run's start and end, or that all jobs are protected: none is late or failing", default="runs",
        choices=("runs", "protected"),
    )  # fmt: skip
    style: str = config_key(
        "healthchecks: /start and /fail are put behind the address; plain: it is only pinged when all is well",
        default="healthchecks", choices=("healthchecks", "plain"),
    )  # fmt: skip
    every: Seconds = config_key(
        'with of = "protected": how often', default=Seconds(3600), parse=parse_hour, example="30m"
    )
    jobs: tuple[str, ...] = config_key(_JOBS, default=(), example='["photos"]')


MessageChannel = MailChannel | NtfyChannel | WebhookChannel | AppriseChannel
Channel = MessageChannel | PingChannel
CHANNEL_TYPES: dict[str, type[Channel]] = {
    "mail": MailChannel,
    "ntfy": NtfyChannel,
    "webhook": WebhookChannel,
    "apprise": AppriseChannel,
    "ping": PingChannel,
}


class NoticeType(StrEnum):
    """Type of a message."""

    TROUBLE = "trouble"
    REMINDER = "reminder"
    RECOVERY = "recovery"
    DIGEST = "digest"
    TEST = "test"
    START = "start"
    SUCCESS = "success"
    FAIL = "fail"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"


PING_TYPES = (NoticeType.START, NoticeType.SUCCESS, NoticeType.FAIL, NoticeType.PROTECTED, NoticeType.UNPROTECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message for one channel. `about`: a job, or the week of a digest; `facts`: the same as JSON, for programs."""

    kind: NoticeType
    about: str
    made_at: datetime
    subject: str
    body: str
    facts: str = "{}"


class DeliveryFailed(Exception):
    """A message that the peer did not accept; the text gives the reason and holds no secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """A message and its delivery state. `due_at` None: no more tries; then `sent_at` None: it was given up.

    `held_at`: until then a process that is sending it has it for itself.
    """

    id: int
    channel: str
    message: Message
    tries: int
    due_at: datetime | None
    held_at: datetime | None
    sent_at: datetime | None
    error: str | None
