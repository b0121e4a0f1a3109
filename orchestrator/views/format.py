"""Instants, ages and tables as text, for people and in JSON. Instants are shown in the machine's own time zone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from orchestrator.domain.names import printable_line
from orchestrator.domain.units import show_duration

if TYPE_CHECKING:
    from orchestrator.domain.problem import UnseenCopies

_WRAPPED = 100
_WEEK = 7  # the same weekday again would be ambiguous


def format_iso(instant: datetime | None) -> str | None:
    """Render an instant for JSON: UTC, to the second."""
    return None if instant is None else instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_clock(instant: datetime | None, *, now: datetime) -> str:
    """Render an instant for people: "today 02:31", "yesterday 02:31", "2024-11-03 02:31"."""
    if instant is None:
        return "unknown"
    local, today = instant.astimezone(), now.astimezone().date()
    day = {0: "today", 1: "yesterday"}.get((today - local.date()).days)
    return f"{day} {local:%H:%M}" if day else f"{local:%Y-%m-%d %H:%M}"


def format_brief(instant: datetime | None, *, now: datetime) -> str:
    """Render an instant briefly: "today 02:31", "Thu 02:31" within six days on either side, else "2024-11-03"."""
    if instant is None:
        return "unknown"
    local = instant.astimezone()
    away = abs((now.astimezone().date() - local.date()).days)
    return f"today {local:%H:%M}" if not away else f"{local:%a %H:%M}" if away < _WEEK else f"{local:%Y-%m-%d}"


def format_ago(instant: datetime | None, *, now: datetime) -> str:
    """Render how long ago an instant was: "3 h 2 min ago"; a clock that was wrong shows as "… after now"."""
    if instant is None:
        return "never"
    seconds = (now - instant).total_seconds()
    return f"{show_duration(seconds)} ago" if seconds >= 0 else f"{show_duration(-seconds)} after now"


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: frozenset[str] = frozenset()
) -> list[list[str]]:
    """Pad the cells to columns, head first; columns in `right` are numbers. The last column is left unchanged."""
    cells = [list(head), *([printable_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return [
        [
            cell.rjust(widths[at]) if head[at] in right else cell if at == len(head) - 1 else cell.ljust(widths[at])
            for at, cell in enumerate(row)
        ]
        for row in cells
    ]


def shorten(text: str, most: int = _WRAPPED) -> str:
    """Return the first line of a text, cut where it is longer than `most`."""
    first = text.partition("\n")[0]
    return first if len(first) <= most else first[: most - 1] + "…"


def indent(lines: Sequence[str], by: int = 2) -> list[str]:
    """Indent the lines. Each stays one line: a name in it may hold a line end, and must not look like a line of ours."""
    return [" " * by + printable_line(line) for line in lines]


def parse_instant(text: str, *, end_of_day: bool = True) -> datetime:
    """Parse an instant: "2024-11-03", "2024-11-03 02:31" (local time), "2024-11-03T01:31:00Z". Raises: ValueError.

    A day alone means its last moment: the newest copy "as of" that day. A point's name is an instant too.
    """
    from orchestrator.domain.names import POINT_NAME, parse_point_name

    if POINT_NAME.fullmatch(text):
        return parse_point_name(text)
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError('a time such as "2024-11-03 02:31" (local) or "2024-11-03T01:31:00Z"') from None
    if end_of_day and len(text.strip()) == len("2024-11-03"):
        told = told.replace(hour=23, minute=59, second=59)
    try:
        return told.astimezone(UTC)
    except OverflowError:
        raise ValueError("a time between the years 1 and 9999") from None


def unseen_value(unseen: "UnseenCopies | None") -> dict[str, Any] | None:
    """Render for programs that the last look at a place did not find its copies; None: it did."""
    return None if unseen is None else {"since": format_iso(unseen.since), "why": unseen.why}


def unseen_sentence(unseen: "UnseenCopies", said: str = "") -> str:
    """Return since when looks do not find a copy, and what they found, unless that is `said` already."""
    why = "" if unseen.why in said else f" ({shorten(unseen.why, 120)})"
    return f"not seen since {unseen.since.astimezone():%Y-%m-%d %H:%M}{why}"
