"""Review of a kit's configuration before anybody trusts it, as other users may have been able to write the kit.

A file whose keys run programs, choose ssh's options, or send data away is set aside until a person names it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.config.decode import parse_toml_file
from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.kit import KitReview, SetAside
from orchestrator.domain.names import JOB_NAME, show_name

MACHINE = "poolferry.toml"
TARGETS = "targets.toml"
_JOBS, _TOML = "jobs/", ".toml"
# Of a job file: sections and keys that run a program, or change how ssh reaches a host. [hooks] holds only commands, except its
# timeout.
_RUNS = (("drill", "check-command"), ("pipe", "ssh-options"), ("snapshots", "use"))


def review_kit(files: Mapping[str, bytes], trusted: frozenset[str]) -> KitReview:
    """Return the files of a kit that are taken over unchanged. `trusted`: names of jobs, or "poolferry" for its own file."""
    accepted, set_aside, left_out, copies = dict[str, bytes](), list[SetAside](), list[str](), list[str]()
    for path, content in sorted(files.items()):
        name = file_name(path)
        if name is None:
            left_out.append(show_name(path))
            continue
        toml_file = parse_toml_file(path, content, least="")
        table: dict[str, Any] = {} if isinstance(toml_file, ConfigMistake) else toml_file.table
        acts = tuple(_acts(path, table))
        if path.startswith(_JOBS):
            copies.append(f"{name}: {_shown(table.get('source'))} to {_shown(table.get('target'))}")
        if acts and name not in trusted:
            set_aside.append(SetAside(name=name, path=path, acts=acts))
        else:
            accepted[path] = content
    return KitReview(accepted=accepted, set_aside=tuple(set_aside), left_out=tuple(left_out), copies=tuple(copies))


def file_name(path: str) -> str | None:
    """Return the name of a configuration file for --trust; None when the path is none of ours."""
    if path in (MACHINE, TARGETS):
        return path.removesuffix(_TOML)
    name = path.removeprefix(_JOBS).removesuffix(_TOML)
    return name if path == f"{_JOBS}{name}{_TOML}" and JOB_NAME.fullmatch(name) else None


def _acts(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    if path == MACHINE:
        for kind, each in _tables(table.get("notice")):
            yield f"sends notices: {kind} {_shown(each.get('to') or each.get('url') or each.get('topic'))}"
        for section in ("metrics",):
            if section in table:
                yield f"[{section}] {_shown(table[section])}"
        return
    if path == TARGETS:
        return
    hooks = table.get("hooks")
    if isinstance(hooks, Mapping):
        for event, commands in hooks.items():
            if event != "timeout":
                yield f"hook {show_name(event)}: {_shown(commands)}"
    for section, key in _RUNS:
        found = table.get(section)
        if isinstance(found, Mapping) and key in found:
            yield f"[{section}] {key}: {_shown(found[key])}"


def _tables(notice: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the channels, written as [notice.NAME] or as [[notice]]."""
    each: Any = notice.items() if isinstance(notice, Mapping) else (("", one) for one in notice or ())
    for name, found in each:
        if isinstance(found, Mapping):
            yield show_name(str(name)), found


def _shown(value: Any) -> str:
    words = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return show_name(words if len(words) <= 200 else words[:199] + "…")
