"""The sanoid.conf of a machine as rules by dataset, with templates, recursion and overrides resolved.

Source: sanoid 2.1 and 2.2: a section starts from the built-in defaults and [template_default] (unless a recursive section
before it holds its dataset: then from that one's values), then come its templates in order, then its own keys.
"""

import re
from collections.abc import Mapping

from orchestrator.domain.answers import split_lines
from orchestrator.domain.fast_dataclass import dataclass

INTERVALS = ("frequently", "hourly", "daily", "weekly", "monthly", "yearly")
DEFAULTS = {
    "frequently": "0", "hourly": "48", "daily": "90", "weekly": "0", "monthly": "6", "yearly": "0", "autosnap": "yes",
    "autoprune": "yes",
}  # fmt: skip
_OURS = {*INTERVALS, "autosnap", "autoprune", "recursive", "use_template", "path"}
_QUIET = re.compile(r"(monitor|capacity)(_.*)?|.*_(warn|crit)|script_timeout|frequent_period")
# As in sanoid: recursion needs one of its values for yes; other switches are on unless they have one of its values for no.
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"", "0", "false", "no", "off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SanoidPolicy:
    """Rules of sanoid for one dataset. `below`: includes all below it; `unlike`: keys that a job file cannot express."""

    line: int
    dataset: str
    numbers: Mapping[str, int]
    autosnap: bool
    autoprune: bool
    below: bool
    unlike: tuple[str, ...] = ()
    inside: str | None = None  # the dataset of the recursive section that it is an exception from

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds that are kept, the most frequent first."""
        return tuple(kind for kind in INTERVALS if self.numbers[kind])


Section = tuple[int, str, dict[str, str]]


def parse_sanoid_conf(text: str) -> tuple[SanoidPolicy, ...]:
    """Parse the policies in the order of the file. Raises: ValueError with the line that cannot be read."""
    sections = _sections(text)
    templates = {name: keys for _, name, keys in sections if name.startswith("template_")}
    found: list[SanoidPolicy] = []
    values: dict[str, dict[str, str]] = {}
    for line, name, keys in sections:
        if name.startswith("template_"):
            continue
        dataset = keys.get("path", name)
        outer = next((each.dataset for each in reversed(found) if each.below and _holds(each.dataset, dataset)), None)
        start = values[outer] if outer is not None else DEFAULTS | templates.get("template_default", {})
        told = dict(start)
        for template in filter(None, re.split(r"\s*,\s*", keys.get("use_template", ""))):
            told |= templates.get(f"template_{template.strip()}", {})
        told |= keys
        values[dataset] = {
            key: value for key, value in told.items() if key not in ("recursive", "use_template", "path")
        }
        found.append(_policy(line, dataset, told, keys, outer))
    return tuple(found)


def _policy(
    line: int, dataset: str, told: Mapping[str, str], keys: Mapping[str, str], outer: str | None
) -> SanoidPolicy:
    return SanoidPolicy(
        line=line, dataset=dataset, numbers={kind: _number(line, kind, told[kind]) for kind in INTERVALS},
        autosnap=told["autosnap"].lower() not in _FALSE, autoprune=told["autoprune"].lower() not in _FALSE,
        below=keys.get("recursive", "").lower() in _TRUE or "zfs" in keys.get("recursive", "").lower(),
        unlike=tuple(key for key, value in told.items() if value and key not in _OURS and not _QUIET.fullmatch(key)),
        inside=outer,
    )  # fmt: skip


def _sections(text: str) -> list[Section]:
    """Return (line, name, keys) of each section; of a repeated key the first value. Raises: ValueError."""
    found: list[Section] = []
    for number, line in enumerate(split_lines(text), start=1):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if head := re.fullmatch(r"\[\s*(.+?)\s*\]", bare):
            same = next((each for each in found if each[1] == head[1]), None)
            found.append(same or (number, head[1], {}))
            continue
        key, equal, value = (part.strip() for part in bare.partition("="))
        if not equal or not found:
            raise ValueError(f"line {number} is neither [dataset] nor key = value: {bare}")
        found[-1][2].setdefault(key, value)
    return list({name: (line, name, keys) for line, name, keys in found}.values())


def _holds(outer: str, inner: str) -> bool:
    return inner.startswith(f"{outer}/")


def _number(line: int, kind: str, text: str) -> int:
    digits = re.match(r"\d+", text)  # sanoid ignores text after the number
    if digits is None:
        raise ValueError(f"line {line}: {kind} = {text} is no number")
    return int(digits[0])
