"""Manual work on notices: list what was sent, check now, and test a channel."""

from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds

if TYPE_CHECKING:
    from orchestrator.domain.notice import MessageRecord

_WITHIN = Seconds(60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Messages that still wait after a check, and errors."""

    queued: "tuple[MessageRecord, ...]"
    errors: tuple[str, ...]


def list_notices(settings: Settings, limit: int) -> "tuple[MessageRecord, ...]":
    """Return the newest notices. Raises: HistoryError."""
    with settings.views() as views:
        return tuple(views.notifications.messages(limit))


def send_notices(settings: Settings) -> Delivery:
    """Check all jobs now, send notices about changes, and retry undelivered messages. Raises: WrongRequest."""
    from orchestrator.app.notify import notify_changes
    from orchestrator.domain.machine import has_subscribers

    machine, jobs, trouble = compose.read_machine_config(settings.where), settings.configuration().jobs, list[str]()
    if not has_subscribers(jobs, machine):
        raise WrongRequest(
            f"no [notice.NAME] is declared in {settings.where.config}/poolferry.toml, and no hook for late"
        )
    notify_changes(settings.where, jobs, machine, compose.now(), say=trouble.append, within=_WITHIN, eagerly=True)
    for line in trouble:
        settings.say(line)
    with settings.views() as views:
        return Delivery(queued=tuple(views.notifications.queued()), errors=tuple(trouble))


def test_channel(settings: Settings, name: str) -> str:
    """Send a test through a channel; return why it was not accepted, or nothing. Raises: WrongRequest."""
    from orchestrator.app.notify_queue import host_name, make_sender_context
    from orchestrator.domain.notice import DeliveryFailed
    from orchestrator.notices.send import send_message
    from orchestrator.views.notification_text import test_message

    machine = compose.read_machine_config(settings.where)
    channel = next((each for each in machine.notice if each.name == name), None)
    if channel is None:
        known = ", ".join(each.name for each in machine.notice) or "none"
        raise WrongRequest(f"there is no [notice.{name}] in poolferry.toml; declared: {known}")
    try:
        send_message(
            channel, test_message(name, host=host_name(), now=compose.now()), make_sender_context(settings.where)
        )
    except DeliveryFailed as refused:
        return str(refused)
    return ""
