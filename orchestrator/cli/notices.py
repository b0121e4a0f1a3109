"""notices: what was told to whom, what waits, a test, and a look now."""

from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import GroupWithUsual, pass_frame
from orchestrator.domain.units import Seconds
from orchestrator.views import output as door

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.history.notification_queue import MessageRecord


@click.group("notices", cls=GroupWithUsual, short_help="What was told to whom, and what waits.")
def notices() -> None:
    """What was told to whom, and what waits to be delivered."""


@notices.command("list")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="how many at most")
@click.option("--full", is_flag=True, help="with the text of each")
@pass_frame
def list_notices(frame: Frame, limit: int, *, full: bool) -> int:
    """The newest notices, and whether each was delivered (the usual command)."""
    with frame.views() as views:
        found = views.telling.messages(limit)
    frame.answer({"notices": [_value(each) for each in found]}, lambda: _lines(found, full=full))
    return 0


@notices.command("send")
@pass_frame
def send_notices(frame: Frame) -> int:
    """Look at all jobs now, tell what changed, and try again what is not delivered yet.

    For machines without the daemon: called by cron each quarter of an hour, it also notices what does not run at all.
    """
    from orchestrator.app.notify import tell_what_changed
    from orchestrator.domain.machine import anybody_listens

    machine, jobs, trouble = compose.machine(frame.where), frame.configuration().jobs, list[str]()
    if not anybody_listens(jobs, machine):
        raise click.UsageError(
            f"no [notice.NAME] is declared in {frame.where.config}/poolferry.toml, and no hook for late"
        )
    tell_what_changed(frame.where, jobs, machine, compose.now(), say=trouble.append, within=Seconds(60), eagerly=True)
    for line in trouble:
        door.say(line)
    with frame.views() as views:
        queued = views.telling.queued()
    lines = (
        [] if frame.quiet and not queued else [f"{len(queued)} wait to be delivered"] if queued else ["all delivered"]
    )
    frame.answer({"queued": [_value(each) for each in queued], "errors": trouble}, lines)
    return 1 if trouble else 0


@notices.command("test")
@click.argument("name")
@pass_frame
def test_notice(frame: Frame, name: str) -> int:
    """Send a test through the channel NAME, and say whether it was taken."""
    from orchestrator.app.notify_queue import host, means_of
    from orchestrator.domain.notice import Undelivered
    from orchestrator.notices.send import send
    from orchestrator.views.notification_text import test_message

    machine = compose.machine(frame.where)
    channel = next((each for each in machine.notice if each.name == name), None)
    if channel is None:
        known = ", ".join(each.name for each in machine.notice) or "none"
        raise click.UsageError(f"there is no [notice.{name}] in poolferry.toml; declared: {known}")
    error = ""
    try:
        send(channel, test_message(name, host=host(), now=compose.now()), means_of(frame.where))
    except Undelivered as refused:
        error = str(refused)
    told = f"{name}: not delivered: {error}" if error else f"{name}: taken; look whether it arrives"
    frame.answer({"channel": name, "delivered": not error, "error": error}, [told])
    return 1 if error else 0


def _value(found: "MessageRecord") -> dict[str, Any]:
    import json

    from orchestrator.views.format import iso

    return {
        "id": found.id,
        "channel": found.channel,
        "kind": found.message.kind.value,
        "about": found.message.about,
        "at": iso(found.message.made_at),
        "subject": found.message.subject,
        "state": _state(found),
        "tries": found.tries,
        "sent": iso(found.sent_at),
        "again": iso(found.due_at),
        "error": found.error,
        "facts": json.loads(found.message.facts),
    }


def _state(found: "MessageRecord") -> str:
    return "delivered" if found.sent_at else "queued" if found.due_at else "given up"


def _lines(found: "tuple[MessageRecord, ...]", *, full: bool) -> list[str]:
    from orchestrator.views.format import indented, shortened

    if not found:
        return ["nobody was told anything yet"]
    now, lines = compose.now(), list[str]()
    for each in found:
        lines.append(f"{_when(each, now)}  {each.channel}  {_state(each)}: {shortened(each.message.subject, 140)}")
        if each.error:
            lines += indented([f"after {each.tries} tries: {each.error}"], 4)
        if full:
            lines += indented([each.message.body.rstrip("\n")], 4)
    return lines


def _when(found: "MessageRecord", now: "datetime") -> str:
    from orchestrator.views.format import clock

    return clock(found.message.made_at, now=now)


COMMANDS: tuple[click.Command, ...] = (notices,)
