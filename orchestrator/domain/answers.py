"""Parsing of data that others write: a parser understands an answer or a file, or one class of error is raised.

Why in one place: a host that an attacker controls may answer anything, and nobody can foresee how a parser reacts to it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, AnyStr, TypeVar

from orchestrator.domain.errors import Evidence, UnreadableAnswer
from orchestrator.domain.hint_phrases import HOLDS_COMMAND
from orchestrator.domain.names import printable_word
from orchestrator.domain.plan import Command

_Read = TypeVar("_Read")
# Exceptions of a parser for text in an unexpected form. RecursionError: nested lists; OverflowError: years and sizes that no
# clock or disk has.
NOT_READ = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
GONE = ": No such file or directory"  # as find ends a line, whose locale is C or C.UTF-8; of more lines than are kept the first is "…"
_SHOWN = 200
_SMALL = 4 << 20  # bytes; smaller text takes little memory, however it is split
_MOST = ((b"\n", 4_000_000), (b"\0", 4_000_000), (b"\t", 32_000_000), (b" ", 32_000_000))
_MOST_JSON = 16 << 20  # bytes; as objects they take twenty times as much
_LARGEST = 1 << 63
# Instants outside come from wrong clocks and from names of others; inside, days can be added, and any time zone shown.
_FIRST, _LAST = datetime(1000, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


def understand(program: str, command: Command, said: bytes, parse: Callable[[bytes], _Read]) -> _Read:
    """Return the answer, parsed by `parse`. Raises: UnreadableAnswer with the host and the beginning of the answer."""
    try:
        if len(said) > _SMALL:
            _check_size(said)
        return parse(said)
    except (*NOT_READ, OSError) as error:  # OSError: a year that the C library does not know; a parser opens nothing
        raise unreadable(program, command, said, error) from error


def split_lines(said: AnyStr) -> list[AnyStr]:
    """Return the lines of an answer, split at newlines alone.

    Why not splitlines(): it also splits at returns, of text at form feeds and others, too, which an owner may have in a value of
    a property or in the tag of a hold.
    """
    if isinstance(said, bytes):
        return said.removesuffix(b"\n").split(b"\n") if said else []
    return said.removesuffix("\n").split("\n") if said else []


def text_lines(said: bytes) -> list[str]:
    """Return the lines of an answer as text, split at newlines alone."""
    return split_lines(said.decode("utf-8", "surrogateescape"))


def unreadable(program: str, command: Command, said: bytes | None, error: Exception) -> UnreadableAnswer:
    """Build the error for an answer that its parser does not understand. `said` None: it is too long to show."""
    from orchestrator.domain.command_line import evidence_line

    where = f" on {command.host}" if command.host else ""
    begins = printable_word((said or b"")[: 4 * _SHOWN].decode("utf-8", "surrogateescape"))[:_SHOWN]
    return UnreadableAnswer(
        f"what {program}{where} answered cannot be read: {_reason(error)}"
        + (f'; it begins with "{begins}"' if begins else "; it said nothing" if said is not None else ""),
        evidence=Evidence(
            lines=(evidence_line(command),),
            exits=(0,),
            last_output=("",),
            host=str(command.host) if command.host else None,
        ),
        hint=(
            f"`{command.host.ssh} true` must print nothing: mend the login scripts there; else " if command.host else ""
        )
        + HOLDS_COMMAND,
    )


def too_much(program: str, evidence: Evidence, hint: str = "") -> UnreadableAnswer:
    """Build the error for an answer that was cut off because it is too long for memory."""
    where = f" on {evidence.host}" if evidence.host else ""
    return UnreadableAnswer(
        f"{program}{where} said more than an answer may hold, so it was ended",
        evidence=evidence,
        hint=hint or f"{HOLDS_COMMAND}; nothing that it said was used",
    )


def _reason(error: Exception) -> str:
    kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
    return printable_word(f"{kind}{error}"[: 4 * _SHOWN])[:_SHOWN]


def _check_size(said: bytes) -> None:
    """Raise ValueError for text that would take many times its own size once it is split."""
    for mark, most in _MOST:
        if said.count(mark) > most:
            raise ValueError(f"more than {most} parts in one answer")


def parse_json(text: bytes | str) -> Any:
    """Parse JSON that others wrote. Raises: ValueError, also for endlessly nested lists and for more than 16 MiB."""
    import json  # most runs read no JSON

    if len(text) > _MOST_JSON:
        raise ValueError("more JSON than any answer holds")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deep") from None


def parse_count(text: bytes | str) -> int:
    """Parse a number that a file's size, a time or a database can hold. Raises: ValueError."""
    if len(text) > 20:
        raise ValueError(f"not a number of this world: {text[:_SHOWN]!r}")
    return check_count(int(text))


def check_count(number: int) -> int:
    """Return a number that a file's size, a time or a database can hold. Raises: ValueError for another one."""
    if not -_LARGEST <= number < _LARGEST:
        raise ValueError(f"not a number of this world: {number}")
    return number


def parse_guid(text: bytes | str) -> int:
    """Parse the guid of a pool, a dataset or a snapshot: 64 bits at random, so half of all are larger than a count. Raises: ValueError."""
    number = int(text) if len(text) <= 20 and text.isascii() and text.isdigit() else 1 << 64
    if number >= 1 << 64:
        raise ValueError(f"no guid: {text[:_SHOWN]!r}")
    return number


def parse_instant(text: str) -> datetime:
    """Parse an instant that was stored as text. Raises: ValueError for one that is none, or has no time zone."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"an instant without a time zone: {text[:40]}")
    return bound_instant(instant)


def instant_at(seconds: float) -> datetime:
    """Return the instant so many seconds after 1970, bounded. Raises: ValueError or OverflowError for what is no number of them."""
    return bound_instant(datetime.fromtimestamp(seconds, UTC))


def bound_instant(instant: datetime) -> datetime:
    """Return the instant, or the nearest one with which can be calculated."""
    return min(max(instant, _FIRST), _LAST)


def seal_text(text: str) -> str:
    """Return a text with its digest as the first line."""
    return f"{_digest(text)}\n{text}"


def open_sealed(sealed: str) -> str:
    """Return the text below its digest. Raises: ValueError when it is not as it was written."""
    digest, _, text = sealed.partition("\n")
    if digest != _digest(text):
        raise ValueError("it is not as it was written")
    return text


def _digest(text: str) -> str:
    from hashlib import sha256  # few starts need it

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
