"""A YAML file as values that know their lines. Needs PyYAML, which is an extra: only two imports want it."""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass, field

_LARGEST = 256 << 10
_MOST = 20_000
_DEEPEST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlValue:
    """One value: a text, a list or a table."""

    line: int
    text: str = ""
    items: "tuple[YamlValue, ...]" = ()
    table: "Mapping[str, YamlValue]" = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def at(self, *path: str) -> "YamlValue":
        """Return the value below these keys; an empty one where there is none."""
        found = self
        for key in path:
            found = found.table.get(key, YamlValue(line=found.line))
        return found

    def texts(self) -> tuple[str, ...]:
        """Return the texts of a list, or the only one."""
        return tuple(each.text for each in self.items) or ((self.text,) if self.text else ())

    @property
    def yes(self) -> bool:
        """Return True for a text that YAML takes for true."""
        return self.text.lower() in ("true", "yes", "on")


def parse_yaml(text: str) -> YamlValue:
    """Parse the text. Raises: ValueError with the line; and where PyYAML is not installed."""
    try:
        import yaml
    except ImportError:
        raise ValueError(
            'PyYAML is not installed: pip install "poolferry[yaml]", or apt install python3-yaml'
        ) from None
    if len(text) > _LARGEST:
        raise ValueError(f"is larger than {_LARGEST >> 10} KiB: no settings of a person")
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ValueError(f"line {line}: is no YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"is no YAML: {str(error)[:200]}") from None
    return _converted(node, iter(range(_MOST)), 0) if node else YamlValue(line=1)


def _converted(node: Any, count: Iterator[int], depth: int) -> YamlValue:
    """Convert the library's node. Why counted: a name for a value may stand for itself, or for very many."""
    line = node.start_mark.line + 1
    if depth > _DEEPEST or next(count, None) is None:
        raise ValueError(f"line {line}: is nested too deeply, or has too many values")
    if isinstance(node.value, str):
        empty = node.tag == "tag:yaml.org,2002:null"
        return YamlValue(line=line, text="" if empty else node.value)
    if node.id == "sequence":
        return YamlValue(line=line, items=tuple(_converted(each, count, depth + 1) for each in node.value))
    table = {str(key.value): _converted(value, count, depth + 1) for key, value in node.value if key.id == "scalar"}
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in node.value if key.id == "scalar"}
    return YamlValue(line=line, table=table, lines=lines)
