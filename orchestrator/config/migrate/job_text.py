"""A job file under construction, and its text."""

from collections.abc import Iterable, Mapping

from orchestrator.config.starter_files import quote_location
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.names import show_name

Value = str | bool | int | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobText:
    """A future job file. `origin`: its source line; `sections`: the keys before the first one are under ""."""

    name: str
    origin: str
    sections: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def __str__(self) -> str:
        head = f"# From {show_name(self.origin)}\n"
        parts = [(f"\n[{name}]\n" if name else "\n") + _keys(keys) for name, keys in self.sections.items() if keys]
        return head + "".join(parts)


def to_toml(value: Value) -> str:
    """Return a value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return quote_location(value)
    return "[" + ", ".join(quote_location(each) for each in value) + "]"


def unique_name(wanted: str, taken: Iterable[str]) -> str:
    """Return the name, or the first of name-2, name-3 … that is free."""
    names = set(taken)
    return (
        wanted
        if wanted not in names
        else next(f"{wanted}-{n}" for n in range(2, 10**6) if f"{wanted}-{n}" not in names)
    )


def _keys(keys: Mapping[str, Value]) -> str:
    return "".join(f"{name} = {to_toml(value)}\n" for name, value in keys.items())
