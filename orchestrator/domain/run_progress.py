"""The progress of a run as other processes read it: a small note in the state directory while bytes move."""

from datetime import datetime
from typing import Any

from orchestrator.domain.answers import NOT_READ, check_count, parse_instant, parse_json
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import printable_line

LARGEST = 4096  # bytes of a note


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The bytes of a run so far, at an instant. `expected`, `rate` (bytes a second), `left_s`: None while unknown.

    `waits`: what a run waits for that has not begun to look; empty: it works.
    """

    run: int
    done: int
    expected: int | None
    rate: int | None
    left_s: float | None
    at: datetime
    waits: str = ""


def progress_value(found: RunProgress) -> dict[str, object]:
    """Return the values of a note."""
    return {
        "run": found.run,
        "done_bytes": found.done,
        "expected_bytes": found.expected,
        "bytes_per_s": found.rate,
        "left_s": None if found.left_s is None else round(found.left_s),
        "at": found.at.isoformat(),
        "waits": found.waits,
    }


def parse_progress_note(text: bytes) -> RunProgress | None:
    """Parse a note; None for anything that is none."""
    try:
        told = parse_json(text)
        left = told["left_s"]
        return RunProgress(
            run=_count(told["run"]),
            done=_count(told["done_bytes"]),
            expected=_count_or_none(told["expected_bytes"]),
            rate=_count_or_none(told["bytes_per_s"]),
            left_s=None if left is None else float(_count(left)),
            at=parse_instant(told["at"]),
            waits=_text(told.get("waits", "")),
        )
    except NOT_READ:
        return None


def _text(value: Any) -> str:
    """Return a text of one line. Raises: ValueError for what is none."""
    if type(value) is not str:
        raise ValueError(f"no text: {value!r:.40}")
    return printable_line(value)


def _count(value: Any) -> int:
    """Return a count. Raises: ValueError for what is none."""
    if type(value) is not int or value < 0:
        raise ValueError(f"no count: {value!r:.40}")
    return check_count(value)


def _count_or_none(value: Any) -> int | None:
    return None if value is None else _count(value)
