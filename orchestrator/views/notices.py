"""Notices that were sent, to whom, and whether they were accepted, as lines and as JSON."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.notice import MessageRecord
from orchestrator.views.format import format_clock, format_iso, indent, shorten


def notice_value(found: MessageRecord) -> dict[str, Any]:
    """Render one notice for programs."""
    return {
        "id": found.id,
        "channel": found.channel,
        "kind": found.message.kind.value,
        "about": found.message.about,
        "at": format_iso(found.message.made_at),
        "subject": found.message.subject,
        "state": _state(found),
        "tries": found.tries,
        "sent": format_iso(found.sent_at),
        "again": format_iso(found.due_at),
        "error": found.error,
        "facts": json.loads(found.message.facts),
    }


def _state(found: MessageRecord) -> str:
    return "delivered" if found.sent_at else "queued" if found.due_at else "given up"


def notice_lines(found: Sequence[MessageRecord], *, full: bool, now: datetime) -> list[str]:
    """Render the newest notices for people. `full`: with the text of each."""
    if not found:
        return ["no notice was sent yet"]
    lines = list[str]()
    for each in found:
        when = format_clock(each.message.made_at, now=now)
        lines.append(f"{when}  {each.channel}  {_state(each)}: {shorten(each.message.subject, 140)}")
        if each.error:
            lines += indent([f"after {each.tries} tries: {each.error}"], 4)
        if full:
            lines += indent(each.message.body.rstrip("\n").split("\n"), 4)
    return lines
