"""Rows of histories on their way to the centre of a fleet."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass

SUBJECTS = ("run", "step", "point", "verdict", "drill", "problem", "disk", "visit", "notice")
NAMED = frozenset({"disk"})  # by an id that is one all over the world, not by a number of this history
LONGEST = 4000  # characters of one text


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One row as it is now. `incarnation`, `key`: its identity at the host; `seq`: grows with each change at the host.

    `born`: microseconds since 1970 when it was made, so that a row of another incarnation is seen by it. `body` None: it was
    removed. `back`: the centre takes it only if it lacks it.
    """

    subject: str
    incarnation: int
    key: str
    seq: int
    born: int
    body: Mapping[str, object] | None
    back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerMark:
    """The last batch that the centre is known to have, up to the change `last`; `sending`: one that it may have besides."""

    centre: str
    batch: str
    last: int
    sending: str
    sending_last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerProgress:
    """The last batch that a centre has of a host, up to the change `last`, and the incarnation that it knows last."""

    centre: str
    host: int
    name: str
    machine: str
    incarnation: int
    batch: str
    last: int


def plain_text(text: str) -> str:
    r"""Return a text that every database holds: bytes of no encoding as \xff, no zero byte, at most LONGEST characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        text = (
            text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            if _escaped(text)
            else ascii(text)
        )
    text = text.replace("\x00", "\\x00")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _escaped(text: str) -> bool:
    return all(not 0xD800 <= ord(each) <= 0xDFFF or 0xDC80 <= ord(each) <= 0xDCFF for each in text)


def incarnation_of(subject: str, key: str, begins: Mapping[str, list[tuple[int, int]]]) -> int:
    """Return to which incarnation a row belongs. `begins`: of each subject, (its first number, the incarnation), rising."""
    if subject in NAMED:
        return 1
    return next((which for first, which in reversed(begins.get(subject, ())) if int(key) >= first), 1)


def divide(births: Mapping[int, int], elsewhere: Mapping[int, int]) -> int:
    """Return from which number on the rows of a history are not the centre's rows of these numbers.

    `births`, `elsewhere`: when each was made, here and as the centre knows it. Rows that the centre lacks begin no division.
    """
    return min(
        (number for number, born in births.items() if elsewhere.get(number, born) != born),
        default=max(births, default=0) + 1,
    )
