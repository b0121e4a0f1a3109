"""Written keys to the values that a dataclass declares, each mistake noted on the way. Pure."""

from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from orchestrator.config.sheet import Path, Sheet, nearest, one_of, shown
from orchestrator.domain.declare import Key
from orchestrator.domain.quick import MISSING, Field, fields

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


class _Unfit(Exception):
    """A value that its key cannot take: what it is, and what was expected."""


def written_name(field: "Field[Any]") -> str:
    """The key of this field as it is written in a file."""
    return field.name.replace("_", "-")


def declared(model: type[Any]) -> dict[str, "Field[Any]"]:
    """The fields that a file fills, by the key as it is written. Kept, as each file asks for the same models again."""
    if model not in _DECLARED:
        _DECLARED[model] = {written_name(field): field for field in fields(model) if "key" in field.metadata}
    return _DECLARED[model]


def kind_of(field: "Field[Any]") -> type[Any]:
    """One of str, int, float, bool and tuple; str for everything that has a `parse` of its own, unless it is a list."""
    wanted: Any = field.type
    if get_origin(wanted) in (Union, UnionType):
        wanted = next(each for each in get_args(wanted) if each is not NoneType)
    if (get_origin(wanted) or wanted) is tuple:
        return tuple
    rule: Key = field.metadata["key"]
    if rule.parse:
        return str
    if wanted not in EXPECTED:
        raise TypeError(f"{field.name}: a key of the type {field.type} needs a parse")
    kind: type[Any] = wanted
    return kind


def fill(sheet: Sheet, model: type[T], table: Table, at: Path, hint: Hint) -> T | None:
    """The declared value, with defaults for what is wrong; None when a required key is. `hint` as in `read_keys`."""
    if not table and (untouched := _untouched(model)) is not None:
        return untouched
    values = read_keys(sheet, model, table, at, hint)
    required = [field.name for field in declared(model).values() if field.default is MISSING]
    return model(**values) if all(name in values for name in required) else None


def _untouched(model: type[T]) -> T | None:
    """What a section that nobody wrote declares, one value for all; None when it has required keys."""
    if model not in _UNTOUCHED:
        needs = any(field.default is MISSING for field in declared(model).values())
        _UNTOUCHED[model] = None if needs else model()
    found: T | None = _UNTOUCHED[model]
    return found


def read_keys(sheet: Sheet, model: type[Any], table: Table, at: Path, hint: Hint) -> dict[str, Any]:
    """The values of all keys that are right, by field name. `hint`: what was meant by a key of another table."""
    known = declared(model)
    for name in table.keys() - known.keys():
        near = nearest(name, known)
        sheet.say((*at, name), "unknown key", hint(name) or (f'"{near}", the nearest name' if near else one_of(known)))
    values: dict[str, Any] = {}
    for name, field in known.items():
        rule: Key = field.metadata["key"]
        if name in table:
            try:
                values[field.name] = _value(table[name], kind_of(field), rule)
            except _Unfit as unfit:
                sheet.say((*at, name), *unfit.args)
        elif field.default is MISSING:
            sheet.say((*at, name), "is missing", rule.says + _such_as(rule, kind_of(field)))
    return values


def _value(written: object, kind: type[Any], rule: Key) -> object:
    """The value of one key. Raises: _Unfit."""
    if kind is tuple:
        if not isinstance(written, list):
            raise _Unfit(f"{shown(written)} does not fit", expected(tuple, rule))
        return tuple(_single(each, tuple, rule) for each in written)
    return _single(written, kind, rule)


def _single(written: object, kind: type[Any], rule: Key) -> object:
    if isinstance(written, str) and (not written.strip() or "\x00" in written):
        raise _Unfit("is empty" if not written.strip() else f"{shown(written)} holds a zero byte", expected(kind, rule))
    value = _parsed(written, rule) if rule.parse else _plain(written, kind, rule)
    if rule.choices and value not in rule.choices:
        raise _Unfit(f"{shown(written)} does not fit", expected(kind, rule))
    if rule.least is not None and isinstance(value, int | float) and value < rule.least:
        raise _Unfit(f"{shown(written)} is too small", expected(kind, rule))
    return value


def _parsed(written: object, rule: Key) -> object:
    if rule.parse and (_is_number(written) or isinstance(written, str)):
        try:
            return rule.parse(str(written))
        except ValueError as error:
            raise _Unfit(f"{shown(written)} does not fit", str(error)) from None
        except OverflowError:
            raise _Unfit(f"{shown(written)} is too large", expected(str, rule)) from None
    raise _Unfit(f"{shown(written)} does not fit", expected(str, rule))


def _plain(written: object, kind: type[Any], rule: Key) -> object:
    wanted = {float: int | float, tuple: str}.get(kind, kind)
    if isinstance(written, wanted) and (kind not in (int, float) or _is_number(written)):
        return written
    raise _Unfit(f"{shown(written)} does not fit", expected(kind, rule))


def _is_number(written: object) -> bool:
    """Why not true and false, which Python counts as numbers: in a file they are none. Nor is nan, or inf."""
    return isinstance(written, int | float) and not isinstance(written, bool) and abs(written) < float("inf")


def expected(kind: type[Any], rule: Key) -> str:
    """What a key takes, in words: what its `parse` says of an empty text, its choices, or its kind."""
    if rule.choices:
        return one_of(rule.choices)
    if rule.parse:
        try:
            rule.parse("")
        except ValueError as error:
            return str(error)
    least = f" of at least {rule.least}" if rule.least is not None else ""
    return f"{EXPECTED[kind]}{least}{_such_as(rule, kind)}"


def _such_as(rule: Key, kind: type[Any]) -> str:
    quote = '"' if kind is str else ""
    example = rule.example or ('["one", "two"]' if kind is tuple else "")
    return f", such as {quote}{example}{quote}" if example else ""
