"""The queue's delivery: each due message is claimed, sent, and recorded as sent or to be tried again.

A process that dies between the sending and its record sends twice rather than never.
"""

import os
from collections.abc import Callable
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.notice import Channel, DeliveryFailed, MessageRecord
from orchestrator.domain.units import Seconds, show_duration
from orchestrator.history.notification_queue import NotificationQueue
from orchestrator.notices.transport import SenderContext
from orchestrator.planners.notifications import next_delivery

ONE_MESSAGE = Seconds(8)  # for one message
LEAST = Seconds(2)  # less time is no real try
LEASE = timedelta(minutes=2)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryContext:
    """The settings of a delivery: the declared channels, the needs of senders, and the log for failures."""

    channels: tuple[Channel, ...]
    means: SenderContext
    say: Say


def host_name() -> str:
    """Return this machine's name."""
    return os.uname().nodename


def make_sender_context(where: compose.Directories) -> SenderContext:
    """Return the machine's name, and the folders for a bare file name of a secret: systemd's credentials, the configuration."""
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    folders = (credentials, where.config) if credentials else (where.config,)
    return SenderContext(host=host_name(), secrets=folders, within=ONE_MESSAGE)


def deliver_messages(
    post: DeliveryContext, notifications: NotificationQueue, now: datetime, *, within: Seconds, eagerly: bool = False
) -> None:
    """Send the due messages. A failing channel is skipped for this time. `eagerly`: also messages due for a later try."""
    began = compose.monotonic()
    channels = {channel.name: channel for channel in post.channels}
    sick: set[str] = set()
    for found in notifications.due(now, eagerly=eagerly):
        took = compose.monotonic() - began
        channel = channels.get(found.channel)
        if channel is None:
            notifications.failed(found.id, "the channel is no longer declared", None)
        elif channel.name in sick or took >= within:
            continue
        elif notifications.claim(found, now + timedelta(seconds=took) + LEASE):  # else another process sends it
            patience = Seconds(min(ONE_MESSAGE, max(within - took, LEAST)))
            error = _sent(channel, found, replace(post.means, within=patience))
            then = now + timedelta(seconds=compose.monotonic() - began)
            sick |= {channel.name} if error else set()
            _note(post, notifications, found, error, then)


def _sent(channel: Channel, found: MessageRecord, means: SenderContext) -> str:
    """Send one message; return why the peer has not accepted it; empty: it has."""
    from orchestrator.notices.send import send_message

    try:
        send_message(channel, found.message, means)
    except DeliveryFailed as error:
        return str(error)
    return ""


def _note(
    post: DeliveryContext, notifications: NotificationQueue, found: MessageRecord, error: str, now: datetime
) -> None:
    """Record the result in history and, after a failure, in the log."""
    if not error:
        notifications.sent(found.id, now)
        return
    again = next_delivery(found.tries + 1, found.message.made_at, now)
    notifications.failed(found.id, error, again)
    told = f"again in {show_duration((again - now).total_seconds())}" if again else "given up"
    post.say(f"the notice to {found.channel} was not delivered: {error}; {told}")
