"""All services that Apprise reaches: chats, pagers, phones. Apprise is imported when something is sent."""

from orchestrator.domain.notice import AppriseChannel, DeliveryFailed, Message, NoticeType
from orchestrator.notices.transport import SenderContext, text_or_secret, to_many_lines, to_one_line

_LOOKS = {NoticeType.TROUBLE: "failure", NoticeType.REMINDER: "warning", NoticeType.RECOVERY: "success"}


def send_apprise(channel: AppriseChannel, message: Message, means: SenderContext) -> None:
    """Send the message; Apprise reports the peer's acceptance. Raises: DeliveryFailed."""
    try:
        import apprise
    except ImportError as error:
        raise DeliveryFailed(
            "Apprise is not installed: install poolferry with its extra, poolferry[notices]"
        ) from error
    reached = apprise.Apprise()
    if not reached.add(text_or_secret(channel.url, means)):
        raise DeliveryFailed("Apprise does not know this address")
    taken = reached.notify(
        title=to_one_line(message.subject),
        body=to_many_lines(message.body),
        notify_type=_LOOKS.get(message.kind, "info"),
        body_format="text",
    )
    if not taken:
        raise DeliveryFailed("Apprise could not deliver it; its own log says why")
