"""Notices by hand: what was told to whom, a look now, and a test of a channel."""

from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Frame, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds

if TYPE_CHECKING:
    from orchestrator.domain.notice import MessageRecord

_WITHIN = Seconds(60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What still waits after a look, and what went wrong."""

    queued: "tuple[MessageRecord, ...]"
    errors: tuple[str, ...]


def list_notices(frame: Frame, limit: int) -> "tuple[MessageRecord, ...]":
    """Return the newest notices. Raises: HistoryError."""
    with frame.views() as views:
        return tuple(views.telling.messages(limit))


def send_notices(frame: Frame) -> Delivery:
    """Look at all jobs now, tell what changed, and try again what is not delivered. Raises: WrongRequest."""
    from orchestrator.app.notify import tell_what_changed
    from orchestrator.domain.machine import anybody_listens

    machine, jobs, trouble = compose.machine(frame.where), frame.configuration().jobs, list[str]()
    if not anybody_listens(jobs, machine):
        raise WrongRequest(f"no [notice.NAME] is declared in {frame.where.config}/poolferry.toml, and no hook for late")
    tell_what_changed(frame.where, jobs, machine, compose.now(), say=trouble.append, within=_WITHIN, eagerly=True)
    for line in trouble:
        frame.say(line)
    with frame.views() as views:
        return Delivery(queued=tuple(views.telling.queued()), errors=tuple(trouble))


def test_channel(frame: Frame, name: str) -> str:
    """Send a test through a channel; return why it was not taken, or nothing. Raises: WrongRequest."""
    from orchestrator.app.notify_queue import host, means_of
    from orchestrator.domain.notice import Undelivered
    from orchestrator.notices.send import send
    from orchestrator.views.notification_text import test_message

    machine = compose.machine(frame.where)
    channel = next((each for each in machine.notice if each.name == name), None)
    if channel is None:
        known = ", ".join(each.name for each in machine.notice) or "none"
        raise WrongRequest(f"there is no [notice.{name}] in poolferry.toml; declared: {known}")
    try:
        send(channel, test_message(name, host=host(), now=compose.now()), means_of(frame.where))
    except Undelivered as refused:
        return str(refused)
    return ""
