"""The queue's delivery: each message that is due is claimed, sent, and written down as sent or to be tried again.

A process that dies between the sending and its record sends twice rather than never.
"""

import os
from collections.abc import Callable
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.notice import Channel, MessageRecord, Undelivered
from orchestrator.domain.units import Seconds, show_duration
from orchestrator.history.notification_queue import Telling
from orchestrator.notices.transport import Means
from orchestrator.planners.notifications import next_try

ONE = Seconds(8)  # for one message
LEAST = Seconds(2)  # less is no honest try
LEASE = timedelta(minutes=2)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Who delivers: the declared channels, what senders need, and where a failure is told."""

    channels: tuple[Channel, ...]
    means: Means
    say: Say


def host() -> str:
    """This machine's name."""
    return os.uname().nodename


def means_of(where: compose.Directories) -> Means:
    """The machine's name, and where a bare file name of a secret is looked for: systemd's credentials, the configuration."""
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    folders = (credentials, where.config) if credentials else (where.config,)
    return Means(host=host(), secrets=folders, within=ONE)


def deliver(post: Post, telling: Telling, now: datetime, *, within: Seconds, eagerly: bool = False) -> None:
    """Sends what is due. A channel that fails is left alone for this time. `eagerly`: also what is to be tried later."""
    began = compose.monotonic()
    channels = {channel.name: channel for channel in post.channels}
    sick: set[str] = set()
    for found in telling.due(now, eagerly=eagerly):
        took = compose.monotonic() - began
        channel = channels.get(found.channel)
        if channel is None:
            telling.failed(found.id, "the channel is no longer declared", None)
        elif channel.name in sick or took >= within:
            continue
        elif telling.claim(found, now + timedelta(seconds=took) + LEASE):  # else another process sends it
            patience = Seconds(min(ONE, max(within - took, LEAST)))
            error = _sent(channel, found, replace(post.means, within=patience))
            then = now + timedelta(seconds=compose.monotonic() - began)
            sick |= {channel.name} if error else set()
            _note(post, telling, found, error, then)


def _sent(channel: Channel, found: MessageRecord, means: Means) -> str:
    """Why the peer has not taken it; empty: it has."""
    from orchestrator.notices.send import send

    try:
        send(channel, found.message, means)
    except Undelivered as error:
        return str(error)
    return ""


def _note(post: Post, telling: Telling, found: MessageRecord, error: str, now: datetime) -> None:
    """How it went, for history and, where it went badly, for whoever reads the log."""
    if not error:
        telling.sent(found.id, now)
        return
    again = next_try(found.tries + 1, found.message.made_at, now)
    telling.failed(found.id, error, again)
    told = f"again in {show_duration((again - now).total_seconds())}" if again else "given up"
    post.say(f"the notice to {found.channel} was not delivered: {error}; {told}")
