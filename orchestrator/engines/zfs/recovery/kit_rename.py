"""A kit as it is for a pool of another name, which takes the place of the one that the kit describes."""

import json
import shlex
from typing import Any

from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content

_LINES = frozenset(("create", "own"))


def rename_kit(kit: str, before: str, now: str, *, keep_paths: bool) -> str:
    """Return the kit with every name of the pool `before`, and of what lies on it, changed to the pool `now`.

    `keep_paths`: the new pool is mounted where the former one was, so that all files have the paths that they had.
    Raises: OrchestratorError.
    """
    content = parse_kit_content(kit)
    made: dict[str, Any] = {
        key: _line(value, before, now) if key in _LINES else _renamed(value, before, now)
        for key, value in content.items()
    }
    made["above"] = [_line(line, before, now) for line in content["above"]]
    if "allowed" in content:
        made["allowed"] = {
            _name(dataset, before, now): [_line(each, before, now) for each in lines]
            for dataset, lines in content["allowed"].items()
        }
    if keep_paths and "mountpoint" not in content.get("datasets", {}).get(before, {"mountpoint": ""}):
        made["create"] = made["create"].replace(
            "zpool create ", f"zpool create -O {shlex.quote(f'mountpoint=/{before}')} ", 1
        )
        made["datasets"][now]["mountpoint"] = {"value": f"/{before}", "received": "-", "source": "local"}
    return json.dumps(made, indent=1, sort_keys=True)


def _renamed(value: Any, before: str, now: str) -> Any:
    if isinstance(value, str):
        return _name(value, before, now)
    if isinstance(value, list):
        return [_renamed(each, before, now) for each in value]
    if isinstance(value, dict):
        return {_name(key, before, now): _renamed(each, before, now) for key, each in value.items()}
    return value


def _name(text: str, before: str, now: str) -> str:
    """Return a name on the pool by its new name; any other text as it is."""
    rest = text.removeprefix(before)
    return now + rest if text.startswith(before) and rest[:1] in ("", "/", "@", "#") else text


def _line(line: str, before: str, now: str) -> str:
    return shlex.join(_name(word, before, now) for word in shlex.split(line))
