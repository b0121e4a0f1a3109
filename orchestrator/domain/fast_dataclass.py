"""A quick `dataclass` for values: the library's own for type checkers and readers, at a tenth of its start cost.

Why: the library writes and compiles six functions for each frozen class, 0.5 ms on Python 3.11, and brings `inspect` with
it, 6 ms. A run that finds nothing to do declares 79 classes: 55 ms of processor time, where a whole such run may cost 85 ms
beside rsync. Here all classes share one of each function; a class that is made often gets an `__init__` of its own, quicker
than the library's. The library's `fields`, `asdict` and `replace` know these classes, too: what they need is built on demand.

Why not msgspec.Struct, a well-kept library whose values are made in 0.04 µs (0.28 here once a class is made often, 0.40 the
library's): its import costs each start 5 to 11 ms, and most starts make 132 values. Measured in turns, 60 to 80 rounds on
Python 3.11.2, 3.11.7 and 3.13 with msgspec 0.19 and 0.22: a run with nothing to do 1.06 to 1.16 of today's processor time,
`status` 1.05 to 1.11, `--help` 1.07 to 1.15. Reading and planning a million snapshots a side would take 0.66 of the time; with
the own `__init__` of classes that are made often it takes 0.84.
"""

from itertools import count
from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "Field", "dataclass", "field", "fields", "replace"]

_OFTEN = 500  # values of one class: a run with nothing to do makes 130 of all, a dataset survey one per snapshot


class _FastValue:
    """Methods that all values share. The class of the value names its fields."""

    __slots__ = ()

    def __init__(self, **given: Any) -> None:
        cls = type(self)
        if next(cls.__made__) == _OFTEN:  # type: ignore[attr-defined]
            cls.__init__ = _own_init(cls)  # type: ignore[method-assign]
        for name, default, maker in cls.__plan__:  # type: ignore[attr-defined]
            if name in given:
                value = given.pop(name)
            elif default is not MISSING:
                value = default
            elif maker is not MISSING:
                value = maker()
            else:
                raise TypeError(f"{cls.__qualname__} needs {name}")
            object.__setattr__(self, name, value)
        if given:
            raise TypeError(f"{cls.__qualname__} has no {', '.join(given)}")

    def __repr__(self) -> str:
        told = zip(type(self).__plan__, _values(self), strict=True)  # type: ignore[attr-defined]
        return f"{type(self).__qualname__}({', '.join(f'{each[0]}={value!r}' for each, value in told)})"

    def __eq__(self, other: object) -> bool:
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(_values(self))

    def __setattr__(self, name: str, value: object) -> None:
        raise _frozen(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise _frozen(f"cannot delete field {name!r}")

    def __getstate__(self) -> tuple[Any, ...]:
        return _values(self)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for each, value in zip(type(self).__plan__, state, strict=True):  # type: ignore[attr-defined]
            object.__setattr__(self, each[0], value)


_METHODS = tuple((name, method) for name, method in vars(_FastValue).items() if callable(method))


def _own_init(cls: Any) -> Any:
    """Compile an `__init__` for this class alone: 0.1 ms once, then less than half the shared one's time a value."""
    known: dict[str, Any] = {"MISSING": MISSING}
    defaults: dict[str, Any] = {}
    body = []
    for index, (name, default, maker) in enumerate(cls.__plan__):
        known[f"_{index}"] = getattr(cls, name).__set__
        value = name
        if maker is not MISSING:
            known[f"_make{index}"] = maker
            value = f"_make{index}() if {name} is MISSING else {name}"
        if maker is not MISSING or default is not MISSING:
            defaults[name] = default
        body.append(f" _{index}(self, {value})")
    front = ", ".join(("self", *(["*"] if body else []), *(each[0] for each in cls.__plan__)))
    text = "\n".join((f"def __init__({front}):", *(body or [" pass"])))
    exec(text, known)  # noqa: S102 - names of fields, nothing else
    made = known["__init__"]
    made.__kwdefaults__, made.__qualname__, made.__module__ = defaults, f"{cls.__qualname__}.__init__", cls.__module__
    return made


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, each[0]) for each in type(value).__plan__)


def _frozen(why: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(why)


class _LazyFields:
    """Descriptor of `__dataclass_fields__`: the library recognizes its classes by it and builds it on demand."""

    def __get__(self, _: object, cls: Any) -> "dict[str, Any]":
        import dataclasses

        body: dict[str, Any] = {"__annotations__": {each.name: each.type for each in cls.__quick__}}
        for each in cls.__quick__:
            told = {"default": each.default, "default_factory": each.default_factory}
            given = {name: value for name, value in told.items() if value is not MISSING}
            body[each.name] = dataclasses.field(**given, metadata=each.metadata)
        twin: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(type(cls.__name__, (), body))
        found: dict[str, Any] = twin.__dataclass_fields__
        cls.__dataclass_fields__ = found
        return found


def _declared(cls: Any) -> Any:
    """Build the class again with slots for its fields and the shared methods; its own methods stay."""
    known = {each.name: each for base in reversed(cls.__mro__[1:]) for each in getattr(base, "__quick__", ())}
    body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    own = body.get("__annotations__", {})
    for name, kind in own.items():
        given = body.pop(name, MISSING)
        told = given if isinstance(given, _Field) else _Field(default=given)
        told.name, told.type = name, kind
        known[name] = told
    for name, method in _METHODS:
        if body.get(name) is None:
            body[name] = method
    body["__slots__"] = tuple(own)
    body["__quick__"] = tuple(known.values())
    body["__plan__"] = tuple((each.name, each.default, each.default_factory) for each in known.values())
    body["__made__"] = count(1)
    body["__dataclass_fields__"] = _LazyFields()
    return type(cls)(cls.__name__, cls.__bases__, body)


class _Missing:
    """Marker for a field without a default."""


class _Field:
    """One field of a class, with as much of the library's field as poolferry uses."""

    __slots__ = ("default", "default_factory", "metadata", "name", "type")

    def __init__(self, *, default: Any, default_factory: Any = None, metadata: Any = None) -> None:
        self.default = default
        self.default_factory = MISSING if default_factory is None else default_factory
        self.metadata = metadata or {}
        self.name = ""
        self.type: Any = None


if TYPE_CHECKING:
    from dataclasses import MISSING, Field, dataclass, field, fields, replace
else:
    MISSING = _Missing()
    Field = _Field

    def dataclass(*, frozen, slots, kw_only):
        """Return the decorator for values: frozen, slotted, with named fields; use the library for all else."""
        if not (frozen and slots and kw_only):
            raise TypeError("use dataclasses.dataclass for what is no frozen, slotted value with named fields")
        return _declared

    def field(*, default=MISSING, default_factory=None, metadata=None):
        """Return a field with more settings than its default."""
        return _Field(default=default, default_factory=default_factory, metadata=metadata)

    def fields(cls):
        """Return the fields of a class, or of a value's class."""
        return cls.__quick__

    def replace(value, /, **changes):
        """Return a copy of the value with some fields changed."""
        cls = type(value)
        return cls(**{each[0]: getattr(value, each[0]) for each in cls.__plan__ if each[0] not in changes}, **changes)
