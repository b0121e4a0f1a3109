"""How a value declares which keys of a job file fill it: one dataclass is the parser's rule, the schema and the manual. Pure."""

from collections.abc import Callable
from typing import Any

from orchestrator.domain.quick import MISSING, dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What a person may write for one key. `parse` turns the written text into the value; Raises ValueError(expected)."""

    says: str
    parse: Callable[[str], object] | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    least: int | None = None


def key(
    says: str,
    *,
    default: Any = MISSING,
    parse: Callable[[str], object] | None = None,
    choices: tuple[str, ...] = (),
    example: str = "",
    least: int | None = None,
) -> Any:
    """A dataclass field that a job file fills; the field `max_deleted` is the key `max-deleted`.

    Without `parse` the field's type rules: str, int, bool, float, tuple[str, ...]. A number is handed to `parse` as text.
    """
    rule = Key(says=says, parse=parse, choices=choices, example=example, least=least)
    return field(default=default, metadata={"key": rule})
