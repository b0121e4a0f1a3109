"""Rotation sets and their enrolled disks, from targets.toml."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.config.decode import Path, TomlFile, decode_section, list_choices, nearest_name, show_value
from orchestrator.config.times import parse_span
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import config_key
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.place import Location, Place
from orchestrator.domain.rotation import (
    CONTENTS,
    EXPECTS,
    MOUNT_ROOT,
    POOL_PREFIX,
    VISIT_WITHIN,
    WEEKDAYS,
    Disk,
    RotationSet,
)
from orchestrator.domain.units import Bytes, Seconds, parse_size

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GUID = re.compile(r"[1-9][0-9]{0,19}")
IDENTITY = "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[1-9][0-9]{0,19})$"


def parse_identity(text: str) -> str:
    """Parse a filesystem's uuid or a pool's guid, as udev writes them. Raises: ValueError."""
    small = text.lower()
    if _UUID.fullmatch(small) or (_GUID.fullmatch(text) and int(text) < 1 << 64):
        return small
    raise ValueError('the uuid of a filesystem or the guid of a pool, as "poolferry disks enroll" writes it')


def parse_file(text: str) -> str:
    """Parse an absolute path. Raises: ValueError."""
    if not text.startswith("/"):
        raise ValueError('an absolute path such as "/etc/poolferry/keys/red"')
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class SetKeys:
    """A rotation set: disks of which any one satisfies a job."""

    expect: str = config_key(
        "which disk to ask for: the one that was away longest, the next in order, by weekday, or one for each month's end",
        default="oldest", choices=EXPECTS, example="fixed",
    )  # fmt: skip
    order: tuple[str, ...] = config_key(
        'with expect = "fixed": its disks in turn; those not named come last', default=(), example='["red", "blue"]'
    )
    fresh_within: Seconds | None = config_key(
        "some disk of the set holds a copy not older than this", default=None, parse=parse_span, example="7d"
    )
    each_within: Seconds | None = config_key(
        "every disk of the set holds a copy not older than this", default=None, parse=parse_span, example="30d"
    )
    away_at_least: int = config_key(
        "warn when fewer disks than this are away from the machine", default=0, least=0, example="1"
    )
    keep_for: Seconds | None = config_key(
        'with expect = "month-end": how long a disk is left alone once it is written', default=None, parse=parse_span,
        example="365d",
    )  # fmt: skip
    verify: Bytes | None = config_key(
        "read so much of the copies again in each visit, what was not read for longest first", default=None, parse=parse_size,
        example="20G",
    )  # fmt: skip
    visit_within: Seconds = config_key(
        "warn when a copy to one of its disks would take longer than this at the pace it goes", default=VISIT_WITHIN,
        parse=parse_span, example="12h",
    )  # fmt: skip
    power_off: bool = config_key(
        "switch a disk off when all is done, as far as it lets itself", default=True, example="false"
    )
    use_again: bool = config_key(
        "scheduled runs use a disk again that was said to be safe to remove and stayed plugged in; else it is left alone until it "
        "was away, or a command names it",
        default=False, example="true",
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskKeys:
    """A disk of a rotation set; `poolferry disks enroll` writes these lines."""

    set: str = config_key("the rotation set it belongs to", example="offsite")
    identity: str = config_key(
        "the uuid of its filesystem or of its LUKS container, or the guid of its pool", parse=parse_identity,
        example="0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e",
    )  # fmt: skip
    content: str = config_key("what is on it", default="ext4", choices=CONTENTS, example="zfs")
    inside: str | None = config_key(
        "the uuid or guid of what is in the opened LUKS container", default=None, parse=parse_identity,
        example="15440512953407512343",
    )  # fmt: skip
    key_file: str | None = config_key(
        "the file that opens its LUKS container, or loads the key of its pool", default=None, parse=parse_file,
        example="/etc/poolferry/keys/red",
    )  # fmt: skip
    days: tuple[str, ...] = config_key(
        'with expect = "weekday": the days on which it is asked for', default=(), choices=WEEKDAYS, example='["monday"]'
    )
    note: str | None = config_key("a mark by which people know it", default=None, example="blue sticker")


SECTIONS: dict[str, type[Any]] = {"set": SetKeys, "disk": DiskKeys}
_LEAST = {"set": "[set.NAME], such as [set.offsite]", "disk": '[disk.NAME] with set = "…" and identity = "…"'}


def parse_sets(toml_file: TomlFile, places: Iterable[str]) -> dict[str, RotationSet | None]:
    """Read every rotation set with its disks, None where one of the declarations is wrong; record each mistake."""
    written = {kind: _members(toml_file, kind) for kind in SECTIONS}
    sets = {
        name: decode_section(toml_file, SetKeys, table, ("set", name), lambda _: None)
        for name, table in written["set"].items()
    }
    disks = {name: _disk(toml_file, name, table, written["set"]) for name, table in written["disk"].items()}
    _judge_names(toml_file, places, written)
    _judge_identities(toml_file, disks)
    return {
        name: None if keys is None else _set(toml_file, name, keys, disks, written["disk"])
        for name, keys in sets.items()
    }


def _members(toml_file: TomlFile, kind: str) -> dict[str, dict[str, object]]:
    """Return the entries of a kind that are tables, by name."""
    table = toml_file.table.get(kind, {})
    if not isinstance(table, dict):
        toml_file.say((kind,), f"{show_value(table)} does not fit", _LEAST[kind])
        return {}
    for name, written in table.items():
        if not isinstance(written, dict):
            toml_file.say((kind, name), f"{show_value(written)} does not fit", _LEAST[kind])
        elif not JOB_NAME.fullmatch(name):
            wanted = "letters, digits, dots, - and _, the first a letter or a digit"
            toml_file.say((kind, name), f"is no name for a {kind}", wanted)
    return {name: written for name, written in table.items() if isinstance(written, dict)}


def _disk(toml_file: TomlFile, name: str, table: dict[str, object], sets: Iterable[str]) -> Disk | None:
    at: Path = ("disk", name)
    keys = decode_section(toml_file, DiskKeys, table, at, lambda _: None)
    if keys is None:
        return None
    known = list(sets)
    if keys.set not in known:
        near = nearest_name(keys.set, known)
        wanted = f'"{near}", the nearest name' if near else list_choices(known) or f"[set.{keys.set}]"
        toml_file.say((*at, "set"), f'there is no set "{keys.set}"', wanted)
    held = keys.inside or keys.identity
    if held.isdigit() is not (keys.content == "zfs"):
        what, wanted = ("is the guid of a pool", 'content = "zfs"') if held.isdigit() else ("is no guid of a pool", "")
        wanted = wanted or 'a number such as 15440512953407512343 in quotes, or another content than "zfs"'
        toml_file.say((*at, "inside" if keys.inside else "identity"), f"{show_value(held)} {what}", wanted)
    if keys.inside and keys.identity.isdigit():
        toml_file.say(
            (*at, "identity"), "is the guid of a pool, and a pool holds no LUKS container", "the container's uuid"
        )
    return Disk(
        name=name, set=keys.set, identity=keys.identity, content=keys.content, inside=keys.inside,
        key_file=keys.key_file, days=keys.days, note=keys.note or "",
    )  # fmt: skip


def _judge_names(toml_file: TomlFile, places: Iterable[str], written: Mapping[str, Iterable[str]]) -> None:
    """Check that names are unique. Why: copies are remembered by the name of the place or disk on which they lie."""
    taken = dict.fromkeys(places, "place")
    for kind, names in written.items():
        for name in names:
            if name in taken:
                toml_file.say((kind, name), f"a {taken[name]} has this name too", "a name of its own")
            taken.setdefault(name, kind)


def _judge_identities(toml_file: TomlFile, disks: Mapping[str, Disk | None]) -> None:
    owners: dict[str, str] = {}
    for name, disk in disks.items():
        for identity in {disk.identity, disk.inside} - {None} if disk else ():
            owner = owners.setdefault(str(identity), name)
            if owner != name:
                toml_file.say(("disk", name, "identity"), f"disk {owner} has this identity too", "the disk's own")


def _set(
    toml_file: TomlFile, name: str, keys: SetKeys, disks: Mapping[str, Disk | None], written: Mapping[str, Mapping[str, object]]
) -> RotationSet | None:  # fmt: skip
    own = [each for each, table in written.items() if table.get("set") == name]
    members = tuple(disk for each in own if (disk := disks[each]) is not None)
    _judge_order(toml_file, name, keys, own)
    for disk in members:
        if disk.days and keys.expect != "weekday":
            toml_file.say(("disk", disk.name, "days"), "means nothing here", f'expect = "weekday" in [set.{name}]')
    if keys.keep_for is not None and keys.expect != "month-end":
        toml_file.say(("set", name, "keep-for"), "means nothing here", 'expect = "month-end" beside it')
    if keys.expect == "weekday" and members and not any(disk.days for disk in members):
        toml_file.say(("set", name, "expect"), "no disk of the set has days", f"days in [disk.{members[0].name}]")
    if len(members) != len(own):
        return None
    return RotationSet(
        name=name, disks=members, expect=keys.expect, order=_order(keys, own), fresh_within=keys.fresh_within,
        each_within=keys.each_within, away_at_least=keys.away_at_least, keep_for=keys.keep_for, power_off=keys.power_off,
        use_again=keys.use_again,
        verify=keys.verify, visit_within=keys.visit_within,
    )  # fmt: skip


def _judge_order(toml_file: TomlFile, name: str, keys: SetKeys, own: list[str]) -> None:
    at = ("set", name, "order")
    told = [each for each in keys.order if each not in own]
    twice = sorted({each for each in keys.order if keys.order.count(each) > 1})
    if keys.expect == "fixed" and (told or twice):
        what = f'disk "{told[0]}" is not of this set' if told else f'disk "{twice[0]}" stands there twice'
        toml_file.say(at, what, f"disks of the set, each once: {list_choices(own) or 'there is none yet'}")
    elif keys.order and keys.expect != "fixed":
        toml_file.say(at, "means nothing here", 'expect = "fixed" beside it')


def _order(keys: SetKeys, own: list[str]) -> tuple[str, ...]:
    """Return the order of disks; unnamed ones come last, so that a new disk needs no second edit."""
    return (*keys.order, *(name for name in own if name not in keys.order)) if keys.expect == "fixed" else ()


def set_place(rotation: RotationSet, job: str, *, datasets: bool) -> Place:
    """Return the set as a job's target. Its location is unique for each job, and nothing else has it."""
    path = f"{POOL_PREFIX}{rotation.name}/{job}" if datasets else f"{MOUNT_ROOT}/{rotation.name}/{job}"
    return Place(name=rotation.name, location=Location(path=path), rotation=rotation)
