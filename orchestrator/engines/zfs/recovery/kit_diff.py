"""Comparison of a source with an earlier recovery kit: missing and different data."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.domain.evacuation import KitFacts
from orchestrator.engines.zfs.recovery.delegations import compare_delegations
from orchestrator.engines.zfs.restore.uid_map import changed_accounts

# Facts of the moment, or of a dataset's recreation; and our own marks.
_NOT_TOLD = frozenset("guid used origin mounted keystatus".split())
_SPACE_PROPERTIES = ("quota", "refquota", "reservation", "refreservation")
_NOTHING = {"-", "none", "0", None}


def read_kit(kit: str, pool: str) -> KitFacts:
    """Parse the facts that a pool's restore needs from a kit. Block sizes of old disks become the current one."""
    content = json.loads(kit)
    told = content["datasets"].get(pool, {}).get("guid")
    words = content["create"]
    for small in ("ashift=9 ", "ashift=10 ", "ashift=11 "):
        words = words.replace(small, "ashift=12 ")
    return KitFacts(
        top_guid=int(told["value"]) if told else None, create=words, above=tuple(content.get("above", ())),
        guids=_guids(content["snapshots"]), own=content.get("own", ""),
    )  # fmt: skip


def _guids(snapshots: Sequence[Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Return the guids of the snapshots by full name of the dataset, oldest first."""
    found: dict[str, list[tuple[int, int]]] = {}
    for whole, guid, createtxg in snapshots:
        found.setdefault(whole.partition("@")[0], []).append((int(createtxg), int(guid)))
    return {name: tuple(guid for _, guid in sorted(marks)) for name, marks in found.items()}


def compare_kits(before: str, now: str) -> tuple[str, ...]:
    """Return one line for each difference: datasets, their properties, snapshots by guid, accounts."""
    then, today = json.loads(before), json.loads(now)
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
