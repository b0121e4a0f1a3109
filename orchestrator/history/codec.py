r"""Storage of instants, lists and any text in columns, so that they are read back unchanged; and the statements of queries.sql.

Text is stored as TEXT. Text that is no valid Unicode (a file name in another encoding arrives as surrogates) is stored as the
BLOB of its bytes, so it is read back to the byte, and ordinary text stays readable with any SQLite tool. Columns that may hold
such text have the type ANY; lists are JSON in ASCII, where a surrogate is \udcff, and have the type TEXT.

Instants are INTEGER microseconds since 1970 in UTC, in columns whose names end in `_at`.
"""

import functools
import json
import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from orchestrator.domain.errors import Evidence

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@functools.cache
def load_queries() -> dict[str, str]:
    """Return all statements of queries.sql."""
    with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8") as file:
        parts = _NAME.split(file.read())
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode_text(text: str) -> str | bytes:
    """Return the value that a column of type ANY stores for this text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _raw(text)
    return text


def decode_text(value: object) -> object:
    """Return the original value; a BLOB was text."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def tail_of_output(output: str | bytes, limit: int) -> str:
    """Return the last `limit` bytes of an output, begun at a whole character."""
    raw = output if isinstance(output, bytes) else _raw(output)
    if len(raw) <= limit:
        return raw.decode("utf-8", "surrogateescape")
    last = raw[-limit:]
    begun = next((at for at in range(min(4, len(last))) if last[at] & 0xC0 != 0x80), 0)
    return last[begun:].decode("utf-8", "surrogateescape")


def to_microseconds(instant: datetime) -> int:
    """Return the microseconds since 1970. Raises: ValueError for a naive instant."""
    if instant.tzinfo is None:
        raise ValueError(f"an instant without a time zone: {instant}")
    return (instant - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the instant of a count of microseconds, in UTC."""
    return _EPOCH + timedelta(microseconds=count)


def encode_list(values: Iterable[object]) -> str:
    """Return a list as JSON; ASCII, so that any text survives."""
    return json.dumps(list(values))


def decode_list(text: str | None) -> tuple[str, ...]:
    """Return the texts of a stored list; none when none were stored."""
    return tuple(json.loads(text)) if text else ()


def decode_exits(text: str | None) -> tuple[int | None, ...]:
    """Return the exit statuses of a stored list; None: still unknown when it ended."""
    return tuple(json.loads(text)) if text else ()


def encode_evidence(evidence: Evidence | None) -> str | None:
    """Return the evidence as JSON."""
    if evidence is None:
        return None
    # "last_words": the field's name in the first histories.
    return json.dumps(
        {"lines": evidence.lines, "exits": evidence.exits, "last_words": evidence.last_output, "host": evidence.host}
    )


def decode_evidence(text: str | None) -> Evidence | None:
    """Parse the evidence that `encode_evidence` wrote."""
    if text is None:
        return None
    held = json.loads(text)
    return Evidence(
        lines=tuple(held["lines"]),
        exits=tuple(held["exits"]),
        last_output=tuple(held["last_words"]),
        host=held["host"],
    )


def _raw(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte, as JSON may contain
        return text.encode("utf-8", "surrogatepass")
