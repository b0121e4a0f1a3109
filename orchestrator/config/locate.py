"""Line numbers of the keys of a TOML text.

Why: tomllib returns values without their lines, and a mistake without its line is hard to find.
"""

import re
from bisect import bisect_right

Path = tuple[str, ...]

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_PART = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')[ \t]*""")
_STRING = re.compile(
    r'''
    """(?:\\.|(?!""")[^\\])*"{3,5}
    | \'{3}(?:(?!\'{3}).)*\'{3,5}
    | "(?:[^"\\\n]|\\.)*"
    | \'[^\'\n]*\'
    ''',
    re.DOTALL | re.VERBOSE,
)
_PLAIN = re.compile(r"""[^\s#,\[\]{}"']+""")
_END = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?:\n|\Z)")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))")
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


class KeyLines:
    """Line numbers of a text's keys, starting at 1; `twice`: each repeated key, with its line."""

    __slots__ = ("_first", "_items", "_whole", "twice")

    def __init__(self) -> None:
        self._first: dict[Path, int] = {}
        self._items: dict[Path, list[int]] = {}
        self._whole: set[Path] = set()
        self.twice: list[tuple[Path, int]] = []

    def of(self, path: Path, item: int | None = None) -> int:
        """Return the line of this key or table, or of the nearest one around it; line 1 for the file itself.

        `item`: of this element of the key's list, counted from 0.
        """
        items = self._items.get(path, []) if item is not None else []
        if item is not None and item < len(items):
            return items[item]
        while path and path not in self._first:
            path = path[:-1]
        return self._first.get(path, 1)

    def paths(self) -> set[Path]:
        """Return every key and table that was found."""
        return set(self._first)

    def note(self, path: Path, line: int) -> None:
        """Remember a key or table, and the tables around it."""
        for length in range(1, len(path) + 1):
            self._first.setdefault(path[:length], line)

    def note_item(self, path: Path, line: int) -> None:
        """Remember the next element of a key's list."""
        self._items.setdefault(path, []).append(line)

    def note_key(self, path: Path, line: int) -> None:
        """Remember a key with a value, which may appear only once."""
        if path in self._first:
            self.twice.append((path, line))
        self._whole.add(path)
        self.note(path, line)

    def note_table(self, path: Path, line: int, *, again: bool) -> None:
        """Remember the header of a table; `again`: its header appeared before."""
        if again or path in self._whole:
            self.twice.append((path, line))
        self.note(path, line)


def locate_keys(text: str) -> KeyLines:
    """Find the line of every key and table of a valid text; in a broken text, of those before the error.

    Keys within lists of tables have no index: the first one counts.
    """
    return _TomlScan(text).run()


class _TomlScan:
    """One pass over one text. `latest`: the key whose value is read; `fresh`: an element of its list may begin."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.lines = KeyLines()
        self.lists: set[Path] = set()
        self.headers: set[Path] = set()
        self.latest: Path = ()
        self.fresh = False

    def run(self) -> KeyLines:
        table: Path | None = ()
        while self._next():
            if self._next() == "[":
                table = self._header()
                if table is None:
                    break
            elif not (self._key(table or ()) and self._value()):
                break
        return self.lines

    def _next(self) -> str:
        """Return the next character that is neither blank nor comment; empty at the end."""
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def _take(self, sign: str) -> bool:
        there = self.text.startswith(sign, self.at)
        self.at += len(sign) if there else 0
        return there

    def _path(self) -> Path:
        parts: list[str] = []
        while found := _PART.match(self.text, self.at):
            bare, basic, literal = found.groups()
            parts.append(bare or literal or _ESCAPE.sub(_unescape, basic or ""))
            self.at = found.end()
            if not self._take("."):
                break
        return tuple(parts)

    def _header(self) -> Path | None:
        line = bisect_right(self.starts, self.at)
        several = self._take("[[")
        if not several:
            self._take("[")
        path = self._path()
        if not path or not self._take("]]" if several else "]"):
            return None
        again = path in self.headers and not several and not self._in_list(path)
        self.lines.note_table(path, line, again=again)
        (self.lists if several else self.headers).add(path)
        return path

    def _in_list(self, path: Path) -> bool:
        return any(path[:length] in self.lists for length in range(1, len(path) + 1))

    def _key(self, around: Path) -> bool:
        """Record the key at this position, and move past its equals sign. Return False when there is no key."""
        line = bisect_right(self.starts, self.at)
        path = self._path()
        if not path or not self._take("="):
            return False
        self.latest = around + path
        note = self.lines.note if self._in_list(around) else self.lines.note_key
        note(self.latest, line)
        return True

    def _value(self) -> bool:
        """Move past the value of the latest key and record keys of inline tables. Return False if it never ends."""
        open_: list[tuple[str, Path]] = []
        while self._piece(open_):
            if not open_ and _END.match(self.text, self.at):  # a space may separate a date and its time
                return True
        return False

    def _piece(self, open_: list[tuple[str, Path]]) -> bool:
        """Move past the next bracket, comma, text or word of a value."""
        sign = self._next()
        if self.fresh and sign != "]":
            self.lines.note_item(self.latest, bisect_right(self.starts, self.at))
        self.fresh = False
        if sign and sign in "[{":
            open_.append((sign, self.latest))
            if sign == "[":
                self.lists.add(self.latest)
        elif sign and sign in "]}" and open_:
            self.latest = open_.pop()[1]
        elif sign != "," or not open_:
            found = _STRING.match(self.text, self.at) or _PLAIN.match(self.text, self.at)
            self.at = found.end() if found else self.at
            return bool(found)
        self.at += 1
        # Of lists in lists the outer one's elements count.
        self.fresh = (
            sign in "[," and bool(open_) and open_[-1][0] == "[" and [each for each, _ in open_[-2:]] != ["[", "["]
        )
        if sign in "{," and open_ and open_[-1][0] == "{" and self._next() != "}":
            return self._key(open_[-1][1])
        return True


def _unescape(found: re.Match[str]) -> str:
    digits = found[1] or found[2]
    return chr(int(digits, 16)) if digits else _SHORT.get(found[3], found[3])
