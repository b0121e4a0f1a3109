"""One message through one channel, by the way of its kind and within a time limit."""

from orchestrator.domain.notice import Apprise, Channel, Mail, Message, Ntfy, Ping, Webhook
from orchestrator.notices.transport import Lines, Means, bounded


def send(channel: Channel, message: Message, means: Means) -> None:
    """Send the message to the peer. Raises: Undelivered, at the latest when `means.within` is over."""
    bounded(lambda lines: _by_kind(channel, message, means, lines), means.within)


def _by_kind(channel: Channel, message: Message, means: Means, lines: Lines) -> None:
    match channel:
        case Mail():
            from orchestrator.notices.mail import send_mail

            send_mail(channel, message, means, lines)
        case Ntfy() | Webhook() | Ping():
            from orchestrator.notices.http_channel import send_by_web

            send_by_web(channel, message, means, lines)
        case Apprise():
            from orchestrator.notices.apprise_channel import send_wide

            send_wide(channel, message, means)
