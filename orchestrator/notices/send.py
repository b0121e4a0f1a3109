"""One message through one channel, by the sender of its kind and within a time limit."""

from orchestrator.domain.notice import (
    AppriseChannel,
    Channel,
    MailChannel,
    Message,
    NtfyChannel,
    PingChannel,
    WebhookChannel,
)
from orchestrator.notices.transport import OpenConnections, SenderContext, send_within


def send_message(channel: Channel, message: Message, means: SenderContext) -> None:
    """Send the message to the peer. Raises: DeliveryFailed, at the latest when `within` is over."""
    send_within(lambda lines: _by_kind(channel, message, means, lines), means.within)


def _by_kind(channel: Channel, message: Message, means: SenderContext, lines: OpenConnections) -> None:
    match channel:
        case MailChannel():
            from orchestrator.notices.mail import send_mail

            send_mail(channel, message, means, lines)
        case NtfyChannel() | WebhookChannel() | PingChannel():
            from orchestrator.notices.http_channel import send_http

            send_http(channel, message, means, lines)
        case AppriseChannel():
            from orchestrator.notices.apprise_channel import send_apprise

            send_apprise(channel, message, means)
