"""Comparison of a source with an earlier recovery kit: missing and different data."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.domain.answers import NOT_READ, parse_json
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.evacuation import KitFacts
from orchestrator.domain.place import parse_location
from orchestrator.engines.zfs.recovery.delegations import compare_delegations
from orchestrator.engines.zfs.restore.uid_map import changed_accounts

# Facts of the moment, or of a dataset's recreation; and our own marks.
_NOT_TOLD = frozenset("guid used origin mounted keystatus".split())
_SPACE_PROPERTIES = ("quota", "refquota", "reservation", "refreservation")
_NOTHING = {"-", "none", "0", None}


def read_kit(kit: str, pool: str) -> KitFacts:
    """Parse the facts that a pool's restore needs from a kit. Block sizes of old disks become the current one."""
    content = parse_kit_content(kit)
    told = content.get("datasets", {}).get(pool, {}).get("guid")
    words = content["create"]
    for small in ("ashift=9 ", "ashift=10 ", "ashift=11 "):
        words = words.replace(small, "ashift=12 ")
    return KitFacts(
        top_guid=int(told["value"]) if told else None, create=words, above=tuple(content.get("above", ())),
        guids=_guids(content["snapshots"]), own=content.get("own", ""),
    )  # fmt: skip


def parse_kit_content(kit: str) -> dict[str, Any]:
    """Parse the content of a kit, whose commands are shown to people. Raises: OrchestratorError.

    Why so strict: a history that was taken over from a kit holds what a stranger may have written.
    """
    try:
        content = parse_json(kit)
        made: dict[str, Any] = {
            **content,
            "create": _one_command(content.get("create", "zpool create"), ("zpool", "create")),
            "above": [_one_command(line, ("zfs", "create")) for line in content.get("above", ())],
            "own": _one_command(content["own"], ("zfs", "create")) if content.get("own") else "",
        }
        for name in ("source", "copy", "job", "made"):
            if name in content:
                made[name] = _text(content[name])
        if made.get("source"):
            parse_location(made["source"])
        if "datasets" in content:
            made["datasets"] = {name: _properties(own) for name, own in content["datasets"].items()}
        if "allowed" in content:
            allowed = content["allowed"].items()
            made["allowed"] = {name: [_one_command(each, ("zfs", "allow")) for each in told] for name, told in allowed}
        if "holds" in content:
            made["holds"] = [[_text(name), _text(tag)] for name, tag in content["holds"]]
        for part in ("snapshots", "bookmarks"):
            made[part] = [_mark(*mark) for mark in content.get(part, ())]
        for kind in ("users", "groups"):
            made[kind] = {_number(number): _text(name) for number, name in content.get(kind, {}).items()}
        if "accounts" in content:
            made["accounts"] = {
                kind: {_text(name): _number(number) for name, number in told.items()}
                for kind, told in content["accounts"].items()
            }
    except NOT_READ as error:
        hint = (
            "`poolferry run JOB` makes a new kit where the source is there; RECOVERY.md beside the copy holds the steps"
        )
        raise OrchestratorError(f"the recovery kit in the history cannot be read: {error}"[:500], hint=hint) from error
    return made


def _one_command(line: str, program: tuple[str, str]) -> str:
    """Return the line with every word quoted, so that it is one call of this program, whatever it held."""
    words = shlex.split(_text(line))
    if tuple(words[:2]) != program:
        raise ValueError(f"{line[:80]!r} is no {' '.join(program)}")
    return shlex.join(words)


def _properties(own: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    told = {
        kind: {"received": "-", "source": "-", "value": _text(each["value"]), **{name: _text(text) for name, text in each.items()}}
        for kind, each in own.items()
    }  # fmt: skip
    if "guid" in told:
        _number(told["guid"]["value"])
    return told


def _mark(name: str, guid: str, createtxg: str, *more: str) -> list[str]:
    return [_text(name), _number(guid), _number(createtxg), *map(_text, more)]


def _number(number: str) -> str:
    if not (_text(number).isascii() and number.isdigit() and len(number) <= 20):
        raise ValueError(f"{number[:80]!r} is no number")
    return number


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {type(value).__name__}")
    return value


def _guids(snapshots: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Return the guids of the snapshots by full name of the dataset, oldest first."""
    found: dict[str, list[tuple[int, int]]] = {}
    for whole, guid, createtxg, *_ in snapshots:
        found.setdefault(whole.partition("@")[0], []).append((int(createtxg), int(guid)))
    return {name: tuple(guid for _, guid in sorted(marks)) for name, marks in found.items()}


def compare_kits(before: str, now: str) -> tuple[str, ...]:
    """Return one line for each difference: datasets, their properties, snapshots by guid, accounts."""
    then, today = ({"datasets": {}, **parse_kit_content(kit)} for kit in (before, now))
    parts = (_datasets(then["datasets"], today["datasets"]), _snapshots(then, today), compare_delegations(then, today))
    return (*(line for part in parts for line in part), *changed_accounts(then, today))


def _datasets(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(then):
        if name not in now:
            yield f"{name} is not there"
            continue
        for kind in sorted(then[name].keys() | now[name].keys()):
            was, is_now = (_value(side[name].get(kind), kind) for side in (then, now))
            if kind not in _NOT_TOLD and not kind.startswith("poolferry:") and was != is_now:
                yield f"{name}: {kind} was {was or 'not set'}, and is {is_now or 'not set'}"


def _value(told: Mapping[str, str] | None, kind: str) -> str | None:
    value = told["value"] if told else None
    return None if kind in _SPACE_PROPERTIES and value in _NOTHING else value


def _snapshots(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    there = {(whole, guid) for whole, guid, *_ in now["snapshots"]}
    missing: dict[str, list[str]] = {}
    for whole, guid, *_ in then["snapshots"]:
        if (whole, guid) not in there:
            dataset, _, mark = whole.partition("@")
            missing.setdefault(dataset, []).append(f"@{mark}")
    for dataset, marks in missing.items():
        yield f"{dataset}: {_few(marks)} {'is' if len(marks) == 1 else 'are'} not there, by guid"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
