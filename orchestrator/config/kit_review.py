"""Review of a kit's configuration before anybody trusts it, as other users may have been able to write the kit.

A file whose keys run programs, choose ssh's options, or send data away is set aside until a person names it.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.config.decode import parse_toml_file
from orchestrator.domain.errors import ConfigMistake, OrchestratorError
from orchestrator.domain.kit import KitReview, SetAside
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.domain.place import parse_location

MACHINE = "poolferry.toml"
TARGETS = "targets.toml"
_JOBS, _TOML = "jobs/", ".toml"
# What a job file may hold without running a program, choosing how ssh reaches a host, sending data away in the open, or writing
# where the kit wants it: these sections and keys. All others, of later versions too, set the file aside; a test holds that each
# key is in one of the two tables.
HARMLESS = frozenset(
    "engine source sources target schedule every daily spread on late-after after stop-at window min-interval priority known-as "
    "permits permit-weight permit-away "
    "keep verify guard retry pool sanoid zfs "
    "drill.every drill.files drill.size drill.whole-every drill.check-within hooks.timeout "
    "pipe.stall-after pipe.buffer pipe.rate-limit "
    "rsync.excludes rsync.in-place rsync.hard-links rsync.acls rsync.xattrs rsync.devices rsync.numeric-ids rsync.sparse "
    "rsync.one-file-system rsync.owners rsync.modes rsync.compress rsync.checksum rsync.parallel rsync.fake-super rsync.whole-look rsync.most-holes "
    "snapshots.frequently snapshots.hourly snapshots.daily snapshots.weekly snapshots.monthly snapshots.yearly snapshots.recursive "
    "snapshots.autosnap snapshots.autoprune snapshots.needs-hook".split()
)
ACTING = frozenset(
    "hooks prune drill.check-command drill.scratch pipe.ssh-options pipe.transport pipe.public-transport snapshots.use rsync.points rsync.delete".split()
)
# Values of those that do nothing: what is the default anyhow.
_IDLE = {"pipe.transport": "ssh", "pipe.public-transport": False, "rsync.points": True, "rsync.delete": False}
_MACHINE_HARMLESS = frozenset(("clock", "digest"))
_LONGEST = 4000  # characters that are shown of one value


def review_kit(files: Mapping[str, bytes], trusted: frozenset[str], *, host: str | None = None) -> KitReview:
    """Return the files of a kit that are taken over unchanged.

    `trusted`: names of jobs, or "poolferry" or "targets" for those files; `host`: where the kit came from. Raises:
    OrchestratorError for a name that the kit does not have.
    """
    places = _places(files.get(TARGETS, b""))
    accepted, set_aside, left_out, copies = dict[str, bytes](), list[SetAside](), list[str](), list[str]()
    for path, content in sorted(files.items()):
        name = file_name(path)
        if name is None:
            left_out.append(show_name(path))
            continue
        table = _table(path, content)
        acts = (
            tuple(_acts(path, table, places, host))
            if isinstance(table, dict)
            else (f"it cannot be read, and might run anything once it is mended: {table.what}",)
        )
        if path.startswith(_JOBS) and isinstance(table, dict):
            target = table.get("target")
            where = places.get(target, "") if isinstance(target, str) else ""
            copies.append(f"{name}: {_shown(table.get('source'))} to {_shown(target)}{where and f' ({_shown(where)})'}")
        if acts and name not in trusted:
            set_aside.append(SetAside(name=name, path=path, acts=acts))
        else:
            accepted[path] = content
    if unknown := sorted(trusted - {name for path in files if (name := file_name(path))}):
        known = ", ".join(each.name for each in set_aside) or "nothing is set aside"
        raise OrchestratorError(f"--trust {show_name(unknown[0])}: the kit has no such file", hint=f"one of: {known}")
    return KitReview(accepted=accepted, set_aside=tuple(set_aside), left_out=tuple(left_out), copies=tuple(copies))


def file_name(path: str) -> str | None:
    """Return the name of a configuration file for --trust; None when the path is none of ours."""
    if path in (MACHINE, TARGETS):
        return path.removesuffix(_TOML)
    name = path.removeprefix(_JOBS).removesuffix(_TOML)
    return name if path == f"{_JOBS}{name}{_TOML}" and JOB_NAME.fullmatch(name) else None


def _table(path: str, content: bytes) -> dict[str, Any] | ConfigMistake:
    toml_file = parse_toml_file(path, content, least="")
    return toml_file if isinstance(toml_file, ConfigMistake) else toml_file.table


def _places(targets: bytes) -> dict[str, str]:
    """Return where each place of the kit's targets.toml lies."""
    table = _table(TARGETS, targets)
    places = table.get("place") if isinstance(table, dict) else None
    found = {}
    for name, keys in places.items() if isinstance(places, dict) else ():
        where = (keys.get("path") or keys.get("dataset")) if isinstance(keys, dict) else None
        if isinstance(where, str):
            found[name] = where
    return found


def _acts(path: str, table: Mapping[str, Any], places: Mapping[str, str], host: str | None) -> Iterator[str]:
    if path == TARGETS:
        return
    if path == MACHINE:
        for name in table:
            if name not in _MACHINE_HARMLESS:
                yield from _sends(name, table[name])
        return
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _section_acts(name, value)
        elif name not in HARMLESS or name in ACTING:
            yield f"{show_name(name)}: {_shown(value)}"
    target = table.get("target")
    where = places.get(target, "") if isinstance(target, str) else ""
    if "://" in where and host_of(where) != host:
        yield f"copies are sent to {_shown(where)}"


def _section_acts(section: str, keys: Mapping[str, Any]) -> Iterator[str]:
    if section in HARMLESS:
        return
    for key, value in keys.items():
        name = f"{section}.{key}"
        if name in HARMLESS or (name in _IDLE and type(value) is type(_IDLE[name]) and value == _IDLE[name]):
            continue
        yield (
            f"hook {show_name(key)}: {_shown(value)}"
            if section == "hooks"
            else f"[{show_name(section)}] {show_name(key)}: {_shown(value)}"
        )


def _sends(section: str, value: Any) -> Iterator[str]:
    """Yield what a section of poolferry.toml does; each channel, written as [notice.NAME] or as [[notice]], for itself."""
    if section != "notice":
        yield f"[{show_name(section)}] {_shown(value)}"
        return
    channels = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [value])
    for name, keys in channels:
        yield f"sends notices: [notice.{show_name(str(name))}] {_shown(keys)}"


def host_of(place: str) -> str | None:
    """Return the name of the host in a URL of ours; None for a place on this machine, or none of ours."""
    try:
        where = parse_location(place)
    except ValueError:
        return None
    return where.host.name.lower() if where.host else None


def _shown(value: Any) -> str:
    """Return a value whole, on one line; of a very long one its beginning and its end."""
    if isinstance(value, list):
        text = "; ".join(map(_command, value)) if any(isinstance(one, list) for one in value) else _command(value)
    elif isinstance(value, dict):
        text = ", ".join(f"{key} = {_command(one)}" for key, one in value.items())
    else:
        text = str(value)
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]} … and {len(text) - _LONGEST} more characters, read the file … {text[-half:]}"
    return show_name(text)


def _command(value: Any) -> str:
    return shlex.join(map(str, value)) if isinstance(value, list) else str(value)
