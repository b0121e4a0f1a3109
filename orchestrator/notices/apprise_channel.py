"""All services that Apprise reaches: chats, pagers, phones. Apprise is imported when something is sent."""

from orchestrator.domain.notice import Apprise, Kind, Message, Undelivered
from orchestrator.notices.transport import Means, many_lines, one_line, told_or_secret

_LOOKS = {Kind.TROUBLE: "failure", Kind.REMINDER: "warning", Kind.RECOVERY: "success"}


def send_wide(channel: Apprise, message: Message, means: Means) -> None:
    """Send the message; Apprise reports the peer's acceptance. Raises: Undelivered."""
    try:
        import apprise
    except ImportError as error:
        raise Undelivered("Apprise is not installed: install poolferry with its extra, poolferry[notices]") from error
    reached = apprise.Apprise()
    if not reached.add(told_or_secret(channel.url, means)):
        raise Undelivered("Apprise does not know this address")
    taken = reached.notify(
        title=one_line(message.subject),
        body=many_lines(message.body),
        notify_type=_LOOKS.get(message.kind, "info"),
        body_format="text",
    )
    if not taken:
        raise Undelivered("Apprise could not deliver it; its own log says why")
