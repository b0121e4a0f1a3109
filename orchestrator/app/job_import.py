"""Job files made from the settings of other programs: reads what is named, and writes all of it or nothing."""

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.app.config_files import create_new_file, holds
from orchestrator.app.settings import WrongRequest
from orchestrator.config.migrate.result import ImportedLine, ImportResult
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass, replace

if TYPE_CHECKING:
    from orchestrator.config.migrate.calls import CalledScripts
    from orchestrator.config.migrate.crontab import ScheduledCommand

SANOID_CONF = "/etc/sanoid/sanoid.conf"
_LARGEST = 4 << 20  # of a file that somebody wrote by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class JobImport:
    """Result of an import. `existing`: files that are there already, for which nothing was written; `following`: what remains to do."""

    folder: str
    written: tuple[str, ...]
    existing: tuple[str, ...]
    following: tuple[str, ...]
    lines: tuple[ImportedLine, ...]

    @property
    def complete(self) -> bool:
        """Return True when jobs were written and nothing was lost."""
        return bool(self.written) and not any(line.lost for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncoidFiles:
    """The files that an import of syncoid reads; "-" is standard input."""

    conf: str | None = None
    crontabs: Sequence[str] = ()
    units: Sequence[str] = ()
    scripts: Sequence[str] = ()


def import_syncoid_jobs(files: SyncoidFiles, to: str, *, stdin: Callable[[], str]) -> JobImport:
    """Write job files for the calls of syncoid and the rules of sanoid.conf into a folder.

    Raises: WrongRequest when there is nothing to read, or a file cannot be understood.
    """
    from orchestrator import compose
    from orchestrator.config.migrate.syncoid_jobs import SyncoidSettings, import_syncoid

    conf = files.conf or (SANOID_CONF if os.path.exists(SANOID_CONF) else None)
    if conf is None and not (files.crontabs or files.units or files.scripts):
        raise WrongRequest(
            f"nothing to read: use --crontab, --unit, --script or --sanoid-conf (there is no {SANOID_CONF})"
        )
    given = SyncoidSettings(
        crontabs=[(_shown(path), read_settings(path, stdin)) for path in files.crontabs],
        units=[(path, read_settings(path, stdin)) for path in files.units],
        conf=(conf, read_settings(conf, stdin)) if conf else None,
    )
    try:
        named = {path: read_settings(path, stdin) for path in files.scripts}
        called, alone = _read_scripts(_schedules(given.crontabs, given.units), named, ("syncoid",))
        given = replace(given, called=called, scripts=alone)
        found = import_syncoid(given, compose.EngineSections())
    except ValueError as error:
        raise WrongRequest(str(error)) from None
    return write_import(found, to)


def _read_scripts(
    schedules: Iterable["ScheduledCommand"], named: Mapping[str, str], programs: Sequence[str]
) -> "tuple[CalledScripts, list[tuple[str, str]]]":
    """Return the scripts that schedules call, also by way of others, where they name one of the programs; and those that nothing calls.

    `named`: those of --script: one of them stands for a file of its name that is not here.
    """
    from orchestrator.config.migrate.calls import CalledScripts, script_schedule, scripts_called

    called: dict[str, str] = {}
    passed_over: set[str] = set()
    foreign: set[str] = set()
    asked = scripts_called(schedules)
    while asked:
        for word in asked:
            path = word if "/" in word else shutil.which(word) or word
            own = next((name for name in named if os.path.abspath(name) == path), None)
            if own is None and not os.path.exists(path):
                own = next((name for name in named if os.path.basename(name) == os.path.basename(word)), None)
            text = named[own] if own else _script(path)
            passed_over |= {word} if text is not None or os.path.isfile(path) else set()
            foreign |= {word} if text is None and _mentions(path, programs) else set()
            called |= {word: text or ""}
        inner = scripts_called(script_schedule(word, called[word])[0] for word in asked)
        asked = tuple(word for word in inner if word not in called)
    relevant = {word for word, text in called.items() if any(program in text for program in programs)}
    while more := {
        word for word, text in called.items() if word not in relevant and any(each in text for each in relevant)
    }:
        relevant |= more
    used = {os.path.basename(word) for word in called}
    alone = [(name, text) for name, text in named.items() if os.path.basename(name) not in used]
    kept = {word: called[word] for word in relevant}
    return CalledScripts(texts=kept, passed_over=frozenset(passed_over), foreign=frozenset(foreign)), alone


def _schedules(crontabs: Sequence[tuple[str, str]], units: Sequence[tuple[str, str]]) -> Iterator["ScheduledCommand"]:
    """Yield the commands of crontabs and units. Raises: ValueError for an unreadable unit."""
    from orchestrator.config.migrate.crontab import ScheduledCommand, parse_crontab
    from orchestrator.config.migrate.systemd_units import parse_unit, scheduled_units

    for file, text in crontabs:
        yield from (each for each in parse_crontab(file, text) if isinstance(each, ScheduledCommand))
    yield from (each for each, _ in scheduled_units([parse_unit(file, text) for file, text in units]))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFiles:
    """The files of another program, and what says when it is called; "-" is standard input."""

    files: Sequence[str]
    crontabs: Sequence[str] = ()
    units: Sequence[str] = ()
    scripts: Sequence[str] = ()


def import_settings(
    program: str,
    files: SettingsFiles,
    to: str,
    *,
    stdin: Callable[[], str],
    target: str | None = None,
    live: bool = False,
) -> JobImport:
    """Write job files for the settings of rsnapshot, btrbk, zrepl or borgmatic. `target`: for borgmatic; `live`: for btrbk.

    Raises: WrongRequest for a file that cannot be understood.
    """
    from orchestrator import compose
    from orchestrator.config.migrate.program_calls import ImportedSettings

    def read(paths: Sequence[str]) -> list[tuple[str, str]]:
        return [(_shown(path), read_settings(path, stdin)) for path in paths]

    given = ImportedSettings(files=read(files.files), crontabs=read(files.crontabs), units=read(files.units))
    engines = compose.EngineSections()
    try:
        named = {path: read_settings(path, stdin) for path in files.scripts}
        called, alone = _read_scripts(_schedules(given.crontabs, given.units), named, (program,))
        given = replace(given, called=called, scripts=alone)
        match program:
            case "rsnapshot":
                from orchestrator.config.migrate.rsnapshot import import_rsnapshot

                found = import_rsnapshot(given, engines)
            case "btrbk":
                from orchestrator.config.migrate.btrbk import import_btrbk

                found = import_btrbk(given, engines, live=live)
            case "zrepl":
                from orchestrator.config.migrate.zrepl import import_zrepl

                found = import_zrepl(given, engines)
            case _:
                from orchestrator.config.migrate.borgmatic import import_borgmatic

                found = import_borgmatic(given, engines, target)
    except ValueError as error:
        raise WrongRequest(str(error)) from None
    return write_import(found, to)


def _shown(path: str) -> str:
    return "crontab" if path == "-" else path


def _script(path: str) -> str | None:
    """Return the text of a shell's script that a crontab calls; None where it is not here, or is something else."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return None
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return None
    head = text[:200].split(b"\n")[0]
    if b"\0" in text[:4096] or (head.startswith(b"#!") and not re.search(rb"\b(ba|da|a|k|z)?sh\b", head)):
        return None
    return text.decode("utf-8", "surrogateescape")


def _mentions(path: str, programs: Sequence[str]) -> bool:
    """Return True for a program in another language that may call one of these."""
    try:
        with open(path, "rb") as file:
            text = file.read(_LARGEST)
            return any(program.encode() in text for program in programs)
    except OSError:
        return False


def read_settings(path: str, stdin: Callable[[], str]) -> str:
    """Return the text of a file that somebody named. Raises: WrongRequest."""
    if path == "-":
        return stdin()
    try:
        if os.path.getsize(path) > _LARGEST:
            raise WrongRequest(f"{path}: is larger than {_LARGEST >> 20} MiB: no settings of a person")
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return file.read().replace(
                "\r\n", "\n"
            )  # as editors of other systems end lines; any other return is part of one
    except OSError as error:
        raise WrongRequest(f"{path}: cannot be read: {error.strerror}") from None


def write_import(found: ImportResult, to: str) -> JobImport:
    """Write all files of an import into a folder, or none where one of them, or another job, is there already."""
    folder = os.path.abspath(to)
    existing = () if _was_cut(folder, found.files) else _existing(folder, found.files)
    written = () if existing else _write_new(folder, found.files, found.private)
    following = (*found.then, f"poolferry check --config {quoted(folder)}") if written else ()
    return JobImport(folder=folder, written=written, existing=existing, following=following, lines=found.told)


def _was_cut(folder: str, files: Mapping[str, str]) -> bool:
    """Return True where some of the files are there, as this import writes them, and nothing else is in the way."""
    ours = {os.path.join(folder, name): _encoded(text) for name, text in files.items()}
    there = _existing(folder, files)
    return 0 < len(there) < len(ours) and all(path in ours and holds(path, ours[path]) for path in there)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _existing(folder: str, files: Mapping[str, str]) -> tuple[str, ...]:
    """Return what is in the way: our files, and jobs of others, whose places would not fit ours."""
    if not files:
        return ()
    jobs = os.path.join(folder, "jobs")
    held = os.listdir(jobs) if os.path.isdir(jobs) else []
    others = [os.path.join(jobs, name) for name in sorted(held) if name.endswith(".toml")]
    ours = [os.path.join(folder, name) for name in files]
    return tuple(dict.fromkeys((*others, *(path for path in ours if os.path.lexists(path)))))


def _write_new(folder: str, files: Mapping[str, str], private: frozenset[str]) -> tuple[str, ...]:
    """Write the files; where one cannot be written, take back those before it."""
    written: list[str] = []
    try:
        for name, text in files.items():
            path = os.path.join(folder, name)
            create_new_file(path, _encoded(text), mode=0o600 if name in private else None)
            written.append(path)
    except OSError as error:
        for path in written:
            os.unlink(path)
        raise WrongRequest(
            f"{error.filename or folder}: cannot be written: {error.strerror}; nothing was written"
        ) from None
    return tuple(written)
