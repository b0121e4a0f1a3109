"""One TOML file during its check: parsed, and its keys converted to the values that a dataclass declares.

Each mistake is recorded, with its line where known.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.fast_dataclass import MISSING, Field, fields
from orchestrator.domain.job import ConfigKey
from orchestrator.domain.names import show_name

if TYPE_CHECKING:
    from orchestrator.config.locate import KeyLines


Path = tuple[str, ...]
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHOWN_AT_MOST = 60


class TomlFile:
    """A file's text and top table, and its mistakes. `file`: the path as the user would type it."""

    __slots__ = ("_lines", "file", "mistakes", "table", "text")

    def __init__(self, file: str, text: str, table: dict[str, object]) -> None:
        self.file = file
        self.text = text
        self.table = table
        self.mistakes: list[ConfigMistake] = []
        self._lines: KeyLines | None = None

    def say(self, path: Path, what: str, expected: str, item: int | None = None) -> None:
        """Record a mistake of this key, or of one element of its list; if the key is missing, of the table that lacks it."""
        line = self._located().of(path, item)
        self.mistakes.append(
            ConfigMistake(file=show_name(self.file), line=line, key=dotted_key(path), what=what, expected=expected)
        )

    def _located(self) -> "KeyLines":
        if self._lines is None:
            from orchestrator.config.locate import locate_keys  # only mistakes need it

            self._lines = locate_keys(self.text)
        return self._lines


def dotted_key(path: Path) -> str:
    """Return the key as written: parts joined by dots, those with other than letters, digits, - and _ in quotes."""
    return ".".join(part if _BARE.fullmatch(part) else f'"{show_name(part)}"' for part in path)


def show_value(value: object) -> str:
    """Return a written value as a message shows it."""
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


def list_choices(names: Iterable[str]) -> str:
    """Return `"a", "b" or "c"`, as a message lists them."""
    quoted = [f'"{name}"' for name in names]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant; None when none is near."""
    from difflib import get_close_matches  # only mistakes need it

    known = {each.lower(): each for each in names}
    return next((known[each] for each in get_close_matches(name.lower(), known, n=1)), None)


_POSITION = r" \(at (?:line (\d+), column \d+|end of document)\)"
_HINTS = {
    "Invalid value": "a text in quotes, a number, true, false, or a list in [ ]",
    "Illegal character": "a text that ends in the line it begins in, and no control characters",
    "Unescaped": "every \\ written twice, or the text in ' '",
    "Expected '=' after": "name = value, or [section]",
    "Invalid statement": "name = value, or [section]",
    "Expected newline": "one key in a line, texts in quotes, and # before remarks",
}


_MOST_PARTS = 32
_DEEP_KEY = rf"""(?m)(?:^|[{{,\[])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{_MOST_PARTS}}}"""


def parse_toml_file(file: str, content: bytes, *, least: str) -> TomlFile | ConfigMistake:
    """Parse a file, or return why it fails: bytes that are no UTF-8, broken TOML, a repeated key, an empty file.

    `least`: the required content, for the message about an empty file.
    """
    try:
        # Not as utf-8-sig: each start would import that codec.
        text = content.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return _mistake(file, line, f"byte 0x{error.object[error.start]:02x} is no UTF-8", "a file saved as UTF-8")
    if deep := re.search(
        _DEEP_KEY, text
    ):  # tomllib takes a time that is square in the parts, and may end the interpreter
        line = text.count("\n", 0, deep.end()) + 1
        return _mistake(
            file, line, f"a key of more than {_MOST_PARTS} parts", "keys of few parts, as in jobs/README.md"
        )
    import tomllib  # 2 ms, only here

    try:
        table = tomllib.loads(text)
    except RecursionError:
        return _mistake(file, 1, "brackets are nested too deep", "lists of lists at most")
    except ValueError as error:
        return _twice(file, text, str(error)) or _broken(file, text, str(error))
    return TomlFile(file, text, table) if table else _mistake(file, 1, "the file is empty", least)


def _twice(file: str, text: str, message: str) -> ConfigMistake | None:
    """Return the mistake of a key or section that is written twice, if tomllib's message means one."""
    if not message.startswith(("Cannot", "Duplicate")):
        return None
    from orchestrator.config.locate import locate_keys

    lines = locate_keys(text)
    if not lines.twice:
        return None
    path, line = lines.twice[0]
    return _mistake(
        file, line, f"is written a second time, after line {lines.of(path)}", "each key once", dotted_key(path)
    )


def _broken(file: str, text: str, message: str) -> ConfigMistake:
    """Return the mistake of broken TOML, in the line that tomllib's message names."""
    position = re.search(_POSITION, message)
    line = int(position[1]) if position and position[1] else text.rstrip("\n").count("\n") + 1
    what = re.sub(_POSITION, "", message)
    hint = next((hint for start, hint in _HINTS.items() if what.startswith(start)), "")
    return _mistake(file, line, f"is no valid TOML ({what[:1].lower()}{what[1:]})", hint)


def _mistake(file: str, line: int, what: str, expected: str, key: str = "") -> ConfigMistake:
    return ConfigMistake(file=show_name(file), line=line, key=key, what=what, expected=expected)


T = TypeVar("T")
Table = Mapping[str, object]
Hint = Callable[[str], str | None]
EXPECTED = {
    str: "a text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list of texts in quotes",
}


_DECLARED: dict[type[Any], dict[str, "Field[Any]"]] = {}
_UNTOUCHED: dict[type[Any], Any] = {}


class _InvalidValue(Exception):
    """A value that its key cannot accept: the value, what was expected, and of a list the element's number."""


def key_of_field(field: "Field[Any]") -> str:
    """Return the key of this field as it is written in a file."""
    return field.name.replace("_", "-")


def declared_fields(model: type[Any]) -> dict[str, "Field[Any]"]:
    """Return the fields that a file sets, by written key. Cached, as each file uses the same models again."""
    if model not in _DECLARED:
        _DECLARED[model] = {key_of_field(field): field for field in fields(model) if "key" in field.metadata}
    return _DECLARED[model]


def field_type(field: "Field[Any]") -> type[Any]:
    """Return str, int, float, bool or tuple; str for each field with its own `parse`, unless it is a list."""
    wanted: Any = field.type
    if get_origin(wanted) in (Union, UnionType):
        wanted = next(each for each in get_args(wanted) if each is not NoneType)
    if (get_origin(wanted) or wanted) is tuple:
        return tuple
    rule: ConfigKey = field.metadata["key"]
    if rule.parse:
        return str
    if wanted not in EXPECTED:
        raise TypeError(f"{field.name}: a key of the type {field.type} needs a parse")
    kind: type[Any] = wanted
    return kind


def decode_section(toml_file: TomlFile, model: type[T], table: Table, at: Path, hint: Hint) -> T | None:
    """Build the declared value, with defaults for wrong keys; None if a required one is. `hint`: see `decode_keys`."""
    if not table and (untouched := _untouched(model)) is not None:
        return untouched
    values = decode_keys(toml_file, model, table, at, hint)
    required = [field.name for field in declared_fields(model).values() if field.default is MISSING]
    return model(**values) if all(name in values for name in required) else None


def _untouched(model: type[T]) -> T | None:
    """Return the shared default value of a missing section; None when it has required keys."""
    if model not in _UNTOUCHED:
        needs = any(field.default is MISSING for field in declared_fields(model).values())
        _UNTOUCHED[model] = None if needs else model()
    found: T | None = _UNTOUCHED[model]
    return found


def decode_keys(toml_file: TomlFile, model: type[Any], table: Table, at: Path, hint: Hint) -> dict[str, Any]:
    """Read the values of all valid keys, by field name. `hint`: the advice for a key of another table."""
    known = declared_fields(model)
    for name in table.keys() - known.keys():
        near = nearest_name(name, known)
        toml_file.say(
            (*at, name), "unknown key", hint(name) or (f'"{near}", the nearest name' if near else list_choices(known))
        )
    values: dict[str, Any] = {}
    for name, field in known.items():
        rule: ConfigKey = field.metadata["key"]
        if name in table:
            try:
                values[field.name] = _value(table[name], field_type(field), rule)
            except _InvalidValue as unfit:
                toml_file.say((*at, name), *unfit.args)
        elif field.default is MISSING:
            toml_file.say((*at, name), "is missing", rule.says + _such_as(rule, field_type(field)))
    return values


def _value(written: object, kind: type[Any], rule: ConfigKey) -> object:
    """Return the value of one key. Raises: _InvalidValue."""
    if kind is tuple:
        if not isinstance(written, list):
            raise _InvalidValue(f"{show_value(written)} does not fit", describe_expected(tuple, rule))
        return tuple(_element(each, number, rule) for number, each in enumerate(written))
    return _single(written, kind, rule)


def _element(written: object, number: int, rule: ConfigKey) -> object:
    try:
        return _single(written, tuple, rule)
    except _InvalidValue as unfit:
        raise _InvalidValue(*unfit.args, number) from None


def _single(written: object, kind: type[Any], rule: ConfigKey) -> object:
    if isinstance(written, str) and (not written.strip() or "\x00" in written):
        raise _InvalidValue(
            "is empty" if not written.strip() else f"{show_value(written)} holds a zero byte",
            describe_expected(kind, rule),
        )
    value = _parsed(written, rule) if rule.parse else _plain(written, kind, rule)
    if rule.choices and value not in rule.choices:
        raise _InvalidValue(f"{show_value(written)} does not fit", describe_expected(kind, rule))
    if rule.least is not None and isinstance(value, int | float) and value < rule.least:
        raise _InvalidValue(f"{show_value(written)} is too small", describe_expected(kind, rule))
    return value


def _parsed(written: object, rule: ConfigKey) -> object:
    if rule.parse and (_is_number(written) or isinstance(written, str)):
        try:
            return rule.parse(str(written))
        except ValueError as error:
            raise _InvalidValue(f"{show_value(written)} does not fit", str(error)) from None
        except OverflowError:
            raise _InvalidValue(f"{show_value(written)} is too large", describe_expected(str, rule)) from None
    raise _InvalidValue(f"{show_value(written)} does not fit", describe_expected(str, rule))


def _plain(written: object, kind: type[Any], rule: ConfigKey) -> object:
    wanted = {float: int | float, tuple: str}.get(kind, kind)
    if isinstance(written, wanted) and (kind not in (int, float) or _is_number(written)):
        return written
    raise _InvalidValue(f"{show_value(written)} does not fit", describe_expected(kind, rule))


def _is_number(written: object) -> bool:
    """Return True for a finite number. Why not true and false: only Python counts them as numbers."""
    return isinstance(written, int | float) and not isinstance(written, bool) and abs(written) < float("inf")


def describe_expected(kind: type[Any], rule: ConfigKey) -> str:
    """Describe the values that a key accepts: the error of its `parse` for an empty text, its choices, or its type."""
    if rule.choices:
        return list_choices(rule.choices)
    if rule.parse and kind is not tuple:  # of a tuple it parses each item
        try:
            rule.parse("")
        except ValueError as error:
            return str(error)
    least = f" of at least {rule.least}" if rule.least is not None else ""
    return f"{EXPECTED[kind]}{least}{_such_as(rule, kind)}"


def _such_as(rule: ConfigKey, kind: type[Any]) -> str:
    quote = '"' if kind is str else ""
    example = rule.example or ('["one", "two"]' if kind is tuple else "")
    return f", such as {quote}{example}{quote}" if example else ""
