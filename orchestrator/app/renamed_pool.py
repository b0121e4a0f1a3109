"""A pool that comes back under another name: its jobs as they will be, and the lines of the configuration that change."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.config_files import replace_file
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.planners.evacuation import is_in_pool

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.domain.place import Location

_POOL_LINE = r"^([ \t]*{key}[ \t]*=[ \t]*[\"']){pool}(?=[/\"'])"


class RenamedSettings(Settings):
    """Settings in whose jobs one pool of this machine has another name; where their copies lie stays as it is."""

    def __init__(self, settings: Settings, before: str, now: str) -> None:
        super().__init__(config=settings.config, state=settings.state, subscriber=settings.subscriber)
        self._before, self._now = before, now

    def configuration(self) -> "Configuration":
        """Return all jobs and places, with the new name. Raises: DeclarationError."""
        known = super().configuration()
        jobs = tuple(_renamed_job(job, self._before, self._now) for job in known.jobs)
        places = tuple(
            replace(place, location=_renamed(place.location, self._before, self._now)) for place in known.places
        )
        return replace(known, jobs=jobs, places=places)


def _renamed_job(job: "Job", before: str, now: str) -> "Job":
    target = replace(job.target, location=_renamed(job.target.location, before, now))
    return replace(job, source=_renamed(job.source, before, now), target=target)


def _renamed(location: "Location", before: str, now: str) -> "Location":
    if not is_in_pool(location, before):
        return location
    return replace(location, path=now + location.path.removeprefix(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """The text of a configuration file with the pool's new name. `lines`: what changes in it, for people."""

    path: str
    text: str
    lines: tuple[str, ...]


def plan_changes(settings: Settings, before: str, now: str) -> tuple[FileChange, ...]:
    """Return the changes of job files and targets.toml by which all that names one pool names the other.

    Raises: DeclarationError when the configuration would be invalid with them; OSError.
    """
    known = settings.configuration()
    changes = tuple(_changes(known, before, now))
    texts = {change.path: change.text.encode() for change in changes}
    compose.read_configuration(settings.where, texts=texts)
    return changes


def _changes(known: "Configuration", before: str, now: str) -> Iterator[FileChange]:
    targets = os.path.join(known.directory, "targets.toml")
    if any(is_in_pool(place.location, before) for place in known.places):
        yield _changed(targets, "dataset", before, now)
    for job in known.jobs:
        if is_in_pool(job.source, before):
            path = os.path.join(known.directory, "jobs", f"{job.name}.toml")
            yield _changed(path, "source", before, now, name=_name_to_keep(job, before))


def _name_to_keep(job: "Job", pool: str) -> str:
    """Return what the copy of a pool's own dataset is called, where it is called after the pool; empty: nothing to keep."""
    options: object = job.options
    called_by_source = hasattr(options, "name") and options.name is None
    return pool if job.copies and called_by_source and job.source.path == pool else ""


def _changed(path: str, key: str, before: str, now: str, *, name: str = "") -> FileChange:
    with open(path, encoding="utf-8", newline="\n") as file:
        text = file.read()
    found = re.compile(_POOL_LINE.format(key=key, pool=re.escape(before)), re.MULTILINE)
    told: list[str] = []

    def put(match: re.Match[str]) -> str:
        end = text.find("\n", match.end())
        rest = text[match.end() : end if end >= 0 else len(text)]
        told.append(f"{match[1].lstrip()}{now}{rest}")
        return f"{match[1]}{now}"

    changed = found.sub(put, text)
    if name:
        line = f'name = "{name}"'
        told.append(f"[zfs] {line}  # the copy keeps its name, so its chain goes on")
        head = re.search(r"^[ \t]*\[zfs\][^\n]*\n", changed, re.MULTILINE)
        at = head.end() if head else len(changed)
        changed = changed[:at] + line + "\n" + changed[at:] if head else f"{changed.rstrip(chr(10))}\n\n[zfs]\n{line}\n"
    return FileChange(path=path, text=changed, lines=tuple(told))


def missed_names(settings: Settings, changes: tuple[FileChange, ...], before: str) -> tuple[str, ...]:
    """Return the jobs and places that would still name the former pool, as their files are written in another way."""
    texts: Mapping[str, bytes] = {change.path: change.text.encode() for change in changes}
    known = compose.read_configuration(settings.where, texts=texts)
    jobs = (f"job {job.name}" for job in known.jobs if is_in_pool(job.source, before))
    places = (f"place {place.name}" for place in known.places if is_in_pool(place.location, before))
    return (*jobs, *places)


def rename_in_configuration(settings: Settings, before: str, now: str) -> tuple[str, list[str]]:
    """Change the pool's name in the configuration, or say what a person has to change; return the state and the lines."""
    from orchestrator.app.pidfile import ask_to_reload

    by_hand = f"change {before} to {now} there by hand: poolferry check says what is left"
    try:
        changes = plan_changes(settings, before, now)
        missed = missed_names(settings, changes, before)
        lines = [f"{change.path}: {line}" for change in changes for line in change.lines]
        if missed:
            return "your turn", [*lines, f"not understood: {', '.join(missed)}", by_hand]
        for change in changes:
            replace_file(change.path, change.text)
    except DeclarationError as error:
        return "your turn", [*map(str, error.mistakes), by_hand]
    except OSError as error:
        return "your turn", [f"{error.filename}: {error.strerror}", by_hand]
    ask_to_reload(settings.where.state)
    return "written", lines
