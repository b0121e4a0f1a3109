"""Data that no stream brings: rights that `zfs allow` delegated, holds of users, and their bookmarks; each with the command that makes it again."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.engines.zfs.plan.hold_names import CURSOR, HOLD

_PART = re.compile(r"---- Permissions on (.+?) -+")
_WAYS = {"Local permissions:": ("-l",), "Descendent permissions:": ("-d",), "Local+Descendent permissions:": ()}
_SHOWN = 20


def parse_delegations(lines: Iterable[str], root: str) -> dict[str, list[str]]:
    """Parse `zfs allow` of several datasets into the commands that grant the same again, by dataset, from `root` on down.

    Each of them repeats what is delegated above it.
    """
    found: dict[str, list[str]] = {}
    dataset, part = "", ""
    for line in lines:
        if heading := _PART.fullmatch(line.strip()):
            known = heading[1] in found or not f"{heading[1]}/".startswith(f"{root}/")
            dataset = "" if known else heading[1]
            found.setdefault(heading[1], [])
        elif line.rstrip().endswith(":") and not line.startswith(("\t", " ")):
            part = line.strip()
        elif dataset and line.strip() and (words := _grant(part, line.split())):
            found[dataset].append(shlex.join(("zfs", "allow", *words, dataset)))
    return {name: commands for name, commands in found.items() if commands}


def _grant(part: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of `zfs allow` for one line of a part of its listing. Source: zfs-allow(8)."""
    match (part, *words):
        case ("Permission sets:", name, rights):
            return ("-s", name, rights)
        case ("Create time permissions:", rights):
            return ("-c", rights)
        case (_, "user" | "group" as kind, *name, rights) if part in _WAYS and name:
            # An account that is gone is listed as "(unknown: 1234)".
            return (*_WAYS[part], "-u" if kind == "user" else "-g", name[-1].rstrip(")"), rights)
        case (_, "everyone", rights) if part in _WAYS:
            return (*_WAYS[part], "-e", rights)
        case _:
            return ()


def user_holds(rows: Iterable[Sequence[str]]) -> list[list[str]]:
    """Return (snapshot, tag) of the holds that are not ours."""
    return sorted([name, tag] for name, tag, *_ in rows if not tag.startswith(f"{HOLD}_"))


def compare_delegations(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each right, hold and bookmark of a user that is not there now, with the command that helps."""
    lines = [*_rights(then, now), *_holds(then, now), *_bookmarks(then, now)]
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"and {len(lines) - _SHOWN} more rights, holds and bookmarks: `poolferry kit JOB` lists them"


def _rights(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for dataset, commands in sorted(then.get("allowed", {}).items()):
        there = now.get("allowed", {}).get(dataset, ())
        if dataset in now["datasets"]:
            yield from (f"{dataset}: a right is not delegated: {one}" for one in commands if one not in there)


def _holds(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    there = {name for name, *_ in now["snapshots"]}
    for name, tag in then.get("holds", ()):
        if name in there and [name, tag] not in now.get("holds", []):
            yield f"{name.partition('@')[0]}: a hold is not there: {shlex.join(('zfs', 'hold', tag, name))}"


def _bookmarks(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    there = {(name, guid) for name, guid, *_ in now.get("bookmarks", ())}
    by_guid = {(name.partition("@")[0], guid): name for name, guid, *_ in now["snapshots"]}
    for name, guid, *_ in then.get("bookmarks", ()):
        dataset, _, mark = name.partition("#")
        if (name, guid) in there or mark.startswith(f"{CURSOR}_") or dataset not in now["datasets"]:
            continue
        snapshot = by_guid.get((dataset, guid))
        hint = (
            shlex.join(("zfs", "bookmark", snapshot, name))
            if snapshot
            else "its snapshot is gone, so it cannot be made again"
        )
        yield f"{dataset}: the bookmark #{mark} is not there: {hint}"


def count_received(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return a line on values that were set on the source itself, and are received ones now; empty: there are none."""
    count = sum(
        one["source"] == "local" and now["datasets"].get(name, {}).get(kind, {}).get("source") == "received"
        for name, told in then["datasets"].items()
        for kind, one in told.items()
        if not kind.startswith("poolferry:")
    )
    root = shlex.quote(str(then.get("source", "")))
    return (
        f"{count} values that were set here are received ones now: `zfs get -r -s received all {shlex.quote(root)}` lists them"
        if count
        else ""
    )
