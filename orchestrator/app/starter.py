"""The first configuration: commented example files."""

import os
from collections.abc import Mapping

from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import url_of_ssh_place

COPIES = "/backup/home"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterFiles:
    """Files written into a folder. `existing`: those that are there already, unchanged; `following`: the next commands."""

    folder: str
    written: tuple[str, ...]
    existing: tuple[str, ...]
    following: tuple[str, ...]


def write_starter(settings: Settings, source: str | None, target: str | None) -> StarterFiles:
    """Write a commented configuration; existing files stay unchanged."""
    from orchestrator.config.starter_files import starter_files

    usual = "/home" if os.geteuid() == 0 else os.path.expanduser("~")
    files = starter_files(_absolute(source or usual), _absolute(target or COPIES))
    folder = settings.where.config
    left = _left_alone(folder, files)
    written = []
    for name, text in files.items():
        path = os.path.join(folder, name)
        if path not in left:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    following = (settings.repeat("check --system"), settings.repeat("plan home"), settings.repeat("run home"))
    return StarterFiles(folder=folder, written=tuple(written), existing=tuple(left), following=following)


def _absolute(place: str) -> str:
    """Return the place as a job file names it; `host:/path` becomes a URL. Raises: WrongRequest for what it cannot be."""
    if "://" in place or os.path.lexists(os.path.expanduser(place)):
        return place if "://" in place else os.path.abspath(os.path.expanduser(place))
    if url := url_of_ssh_place(place):
        if not place.partition("]:" if "]:" in place else ":")[2].startswith("/"):
            raise WrongRequest(
                f"{place}: write an absolute path, as in ssh://nas/srv/photos; jobs/README.md shows jobs of datasets"
            )
        return url
    if not place.startswith(("/", "~", "./", "../")) and "/" in place:
        raise WrongRequest(
            f"{place}: there is no such folder here; write an absolute path; jobs/README.md shows jobs of datasets"
        )
    return os.path.abspath(os.path.expanduser(place))


def _left_alone(folder: str, files: Mapping[str, str]) -> list[str]:
    """Return the files to leave unchanged. Jobs and targets belong together: parts of two examples do not fit."""
    jobs = os.path.join(folder, "jobs")
    there = [os.path.join(folder, name) for name in files if os.path.lexists(os.path.join(folder, name))]
    held = [os.path.join(jobs, name) for name in os.listdir(jobs)] if os.path.isdir(jobs) else []
    others = [path for path in sorted(held) if path.endswith(".toml") and path not in there]
    if others or any(path.endswith(".toml") for path in there):
        pair = [os.path.join(folder, name) for name in files if name.endswith(".toml")]
        return [*there, *others, *(path for path in pair if path not in there)]
    return there
