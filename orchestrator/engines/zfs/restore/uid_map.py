"""Account numbers at the time of a kit, compared with the machine where the data return: files have only numbers."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from orchestrator.domain.answers import text_lines
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost

_ACCOUNT_TYPES = (
    ("users", "user", "useradd -u", "usermod -u", ""),
    ("groups", "group", "groupadd -g", "groupmod -g", ":"),
)
_SHOWN = 8


def owner_warnings(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the warnings before a restore: the first lines, and the number of others."""
    lines = tuple(changed_accounts(then, now))
    more = (f"{len(lines) - _SHOWN} more accounts have another number, or are not there",)
    return (*lines[:_SHOWN], *(more if len(lines) > _SHOWN else ()))


def accounts_command(host: Host | None) -> Command:
    """Build the command that prints all accounts of a machine."""
    return commands.script_command("list-accounts.sh", effect=Effect.READS, where=CommandHost(host=host))


def parse_accounts(output: bytes) -> dict[str, Any]:
    """Parse the output of `accounts_command` into the form of a kit."""
    parts: dict[str, list[str]] = {"=users": [], "=groups": []}
    part = "=users"
    for line in text_lines(output):
        if line in parts:
            part = line
        else:
            parts[part].append(line)
    return make_accounts(parts)


def make_accounts(parts: Mapping[str, Iterable[str]]) -> dict[str, Any]:
    """Return accounts in the form of a kit: by number the first name that the machine lists; by name its number."""
    told: dict[str, Any] = {"accounts": {}}
    for kind, *_ in _ACCOUNT_TYPES:
        numbers, names = dict[str, str](), dict[str, str]()
        for line in parts.get(f"={kind}", ()):
            name, *rest = line.split(":")
            if len(rest) > 1:
                numbers.setdefault(rest[1], name)
                names.setdefault(name, rest[1])
        told[kind] = numbers
        told["accounts"][kind] = names
    return told


def changed_accounts(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line with its hint for each account whose number changed, or that is missing."""
    for kind, what, add, renumber, colon in _ACCOUNT_TYPES:
        here, called = _names(now, kind), now.get(kind, {})
        for name, number in sorted(_names(then, kind).items(), key=lambda each: (int(each[1]), each[0])):
            if here.get(name) == number:
                continue
            other, mine = called.get(number), here.get(name)
            told = f"{what} {name} had the number {number}, which is {other or 'nobody'} now"
            told += f", and has {mine}" if mine else ""
            if other is None:
                yield f"{told}: `{renumber if mine else add} {number} {shlex.quote(name)}`"
            else:
                made = (
                    f"`{renumber} {number} {shlex.quote(name)}` once {other} has another one"
                    if mine
                    else f"make {name}"
                )
                yield f"{told}: {made}{'; or' if mine else ', then'} `chown -hR --from={colon}{number} {shlex.quote(f'{colon}{name}')}` on what returns"


def _names(told: Mapping[str, Any], kind: str) -> Mapping[str, str]:
    """Return the number of each name. Older kits hold only one name of each number."""
    known: Mapping[str, str] | None = told.get("accounts", {}).get(kind)
    return {name: number for number, name in told.get(kind, {}).items()} if known is None else known
