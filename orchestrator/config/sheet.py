"""One file while it is judged: what is written in it, and the mistakes found so far. Pure."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.domain.errors import Mistake
from orchestrator.domain.names import show_name

if TYPE_CHECKING:
    from orchestrator.config.locate import Lines

Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_AT_MOST = 60


class Sheet:
    """A file's text and top table, and its mistakes. `file`: the path as the user would type it."""

    __slots__ = ("_lines", "file", "mistakes", "table", "text")

    def __init__(self, file: str, text: str, table: dict[str, object]) -> None:
        self.file = file
        self.text = text
        self.table = table
        self.mistakes: list[Mistake] = []
        self._lines: Lines | None = None

    def say(self, path: Path, what: str, expected: str) -> None:
        """Note a mistake of this key; where it is missing, of the table that lacks it."""
        line = self._located().of(path)
        self.mistakes.append(
            Mistake(file=show_name(self.file), line=line, key=dotted(path), what=what, expected=expected)
        )

    def _located(self) -> "Lines":
        if self._lines is None:
            from orchestrator.config.locate import locate  # a file without mistakes never needs it

            self._lines = locate(self.text)
        return self._lines


def dotted(path: Path) -> str:
    """The key as it is written: parts joined by dots, those with other than letters, digits, - and _ in quotes."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{show_name(part)}"' for part in path)


def shown(value: object) -> str:
    """A written value as a message names it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            name = show_name(value)
            return f'"{name if len(name) <= _SHOWN_AT_MOST else name[:_SHOWN_AT_MOST] + "…"}"'
        case int() | float():
            return (
                f"{value:.60g}" if isinstance(value, float) else "a huge number" if abs(value) > 10**18 else str(value)
            )
        case list():
            return "a list"
        case dict():
            return "a table"
    return "a date or time without quotes"


def one_of(names: Iterable[str]) -> str:
    """ "a", "b" or "c", as a message lists them."""
    quoted = [f'"{name}"' for name in names]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant."""
    from difflib import get_close_matches  # only mistakes need it

    known = {each.lower(): each for each in names}
    return next((known[each] for each in get_close_matches(name.lower(), known, n=1)), None)
