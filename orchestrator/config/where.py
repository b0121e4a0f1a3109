"""Which locations a job may have, and how two of them lie to each other. Pure."""

import os.path
import re

from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location

_DATASET = r"[A-Za-z][A-Za-z0-9_.: -]*(/[A-Za-z0-9_.:-][A-Za-z0-9_.: -]*)*"


def as_dataset(location: Location) -> Location:
    """The location with the dataset's own name: on a host a URL puts a slash before it."""
    return Location(path=location.path.lstrip("/"), host=location.host) if location.host else location


def wrong_path(location: Location) -> tuple[str, str] | None:
    """What is wrong and what is expected, where a location is no absolute path."""
    if location.path.startswith("/"):
        return None
    return f'"{spelled(location)}" is no absolute path', 'a path that begins with "/" (~ and $NAME are not replaced)'


def wrong_target(location: Location) -> tuple[str, str] | None:
    """What is wrong and what is expected, where a path can hold no copies."""
    if normal(location.path) == "/":
        return f'"{spelled(location)}" is the top of everything', "a directory that holds the copies and nothing else"
    return wrong_path(location)


def wrong_dataset(location: Location) -> tuple[str, str] | None:
    """What is wrong and what is expected, where a location is no dataset."""
    if re.fullmatch(_DATASET, location.path):
        return None
    return f'"{spelled(location)}" is no name of a dataset', 'a name such as "vault/replicas"'


def normal(path: str) -> str:
    """The path without doubled slashes, "." and ".."; a dataset's name as it is."""
    return "/" + os.path.normpath(path).lstrip("/") if path.startswith("/") else path


def machine(location: Location) -> tuple[str, int] | None:
    """What tells one machine from another; None is this one. The user does not: two users see one tree."""
    return (location.host.name.lower(), location.host.port or 22) if location.host else None


def relation(one: str, other: str) -> str | None:
    """How one normal path lies to another of the same machine: "is", "lies inside", "holds", or not at all."""
    if one == other:
        return "is"
    if one.startswith(other.rstrip("/") + "/"):
        return "lies inside"
    return "holds" if other.startswith(one.rstrip("/") + "/") else None


def spelled(location: Location) -> str:
    """The location as a message shows it."""
    return show_name(str(location))
