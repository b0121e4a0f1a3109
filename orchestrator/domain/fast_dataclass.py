"""A quick `dataclass` for values: the library's own for type checkers and readers, at a tenth of its start cost.

Why: the library writes and compiles six functions for each frozen class, 0.5 ms on Python 3.11, and brings `inspect` with
it, 6 ms. A run that finds nothing to do declares 79 classes: 55 ms of processor time, where a whole such run may cost 85 ms
beside rsync. Here all classes share one of each function; making a value takes 2 µs more. The library's `fields`, `asdict`
and `replace` know these classes, too: what they ask for is made when they ask.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["MISSING", "Field", "dataclass", "field", "fields", "replace"]


class _Shared:
    """Methods that all values share. The class of the value names its fields."""

    __slots__ = ()

    def __init__(self, **given: Any) -> None:
        cls = type(self)
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


_METHODS = tuple((name, method) for name, method in vars(_Shared).items() if callable(method))


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, each[0]) for each in type(value).__plan__)


def _frozen(why: str) -> AttributeError:
    from dataclasses import FrozenInstanceError

    return FrozenInstanceError(why)


class _Asked:
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
    body["__dataclass_fields__"] = _Asked()
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
