"""The bytes of one file as a sheet, or the one mistake that keeps them from being TOML. Reads."""

import re

from orchestrator.config.sheet import Sheet, dotted
from orchestrator.domain.errors import Mistake
from orchestrator.domain.names import show_name

_POSITION = r" \(at (?:line (\d+), column \d+|end of document)\)"
_CURES = {
    "Invalid value": "a text in quotes, a number, true, false, or a list in [ ]",
    "Illegal character": "a text that ends in the line it begins in, and no control characters",
    "Unescaped": "every \\ written twice, or the text in ' '",
    "Expected '=' after": "name = value, or [section]",
    "Invalid statement": "name = value, or [section]",
    "Expected newline": "one key in a line, texts in quotes, and # before remarks",
}


def parse_sheet(file: str, content: bytes, *, least: str) -> Sheet | Mistake:
    """The sheet of a file, or why it is none: bytes that are no UTF-8, broken TOML, a key twice, nothing at all.

    `least`: what such a file must hold, for the message of an empty one.
    """
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return _mistake(file, line, f"byte 0x{error.object[error.start]:02x} is no UTF-8", "a file saved as UTF-8")
    import tomllib  # 2 ms that nobody else pays

    try:
        table = tomllib.loads(text)
    except RecursionError:
        return _mistake(file, 1, "brackets are nested too deep", "lists of lists at most")
    except ValueError as error:
        return _twice(file, text, str(error)) or _broken(file, text, str(error))
    return Sheet(file, text, table) if table else _mistake(file, 1, "the file is empty", least)


def _twice(file: str, text: str, message: str) -> Mistake | None:
    """The mistake of a key or section that is written twice, if tomllib's message means one."""
    if not message.startswith(("Cannot", "Duplicate")):
        return None
    from orchestrator.config.locate import locate

    lines = locate(text)
    if not lines.twice:
        return None
    path, line = lines.twice[0]
    return _mistake(file, line, f"is written a second time, after line {lines.of(path)}", "each key once", dotted(path))


def _broken(file: str, text: str, message: str) -> Mistake:
    """The mistake of broken TOML, in the line that tomllib tells in its message."""
    position = re.search(_POSITION, message)
    line = int(position[1]) if position and position[1] else text.rstrip("\n").count("\n") + 1
    what = re.sub(_POSITION, "", message)
    cure = next((cure for start, cure in _CURES.items() if what.startswith(start)), "")
    return _mistake(file, line, f"is no valid TOML ({what[:1].lower()}{what[1:]})", cure)


def _mistake(file: str, line: int, what: str, expected: str, key: str = "") -> Mistake:
    return Mistake(file=show_name(file), line=line, key=key, what=what, expected=expected)
