"""The first configuration: commented example files, or job files made from the settings of syncoid and sanoid."""

import os
from collections.abc import Callable, Mapping, Sequence

from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import url_of_ssh_place

COPIES = "/backup/home"
SANOID_CONF = "/etc/sanoid/sanoid.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterFiles:
    """Files written into a folder. `existing`: those that are there already, unchanged; `following`: the next commands."""

    folder: str
    written: tuple[str, ...]
    existing: tuple[str, ...]
    following: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncoidLine:
    """Result of importing one line. `where`: its file and number; `job`: the job made from it, if any."""

    where: str
    job: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncoidImport:
    """Result of an import: each line, and the files."""

    files: StarterFiles
    lines: tuple[SyncoidLine, ...]


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


def import_syncoid(conf: str | None, crontabs: Sequence[str], to: str, *, stdin: Callable[[], str]) -> SyncoidImport:
    """Write job files for the syncoid lines of crontabs and the rules of sanoid.conf into a folder. "-" is `stdin`.

    Raises: WrongRequest when there is nothing to read; OrchestratorError for a file that cannot be understood.
    """
    from orchestrator.config.migrate import import_all

    if conf is None and os.path.exists(SANOID_CONF):
        conf = SANOID_CONF
    if conf is None and not crontabs:
        raise WrongRequest(f"nothing to read: use --crontab or --sanoid-conf (there is no {SANOID_CONF})")
    read = [("crontab" if path == "-" else path, _text(path, stdin)) for path in crontabs]
    try:
        found = import_all(read, (conf, _text(conf, stdin)) if conf else None)
    except ValueError as error:
        raise WrongRequest(f"{conf}: {error}") from None
    folder = os.path.abspath(to)
    written, existing = _write_new(folder, found.files)
    following = (*found.then, f"poolferry check --config {folder}") if found.files else ()
    return SyncoidImport(
        files=StarterFiles(folder=folder, written=written, existing=existing, following=following),
        lines=tuple(SyncoidLine(where=each.where, job=each.job, text=each.text) for each in found.told),
    )


def _text(path: str, stdin: Callable[[], str]) -> str:
    if path == "-":
        return stdin()
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _write_new(folder: str, files: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the files; return the paths that were written, and those that existed already."""
    written, existing = [], []
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
        except FileExistsError:
            existing.append(path)
    return tuple(written), tuple(existing)
