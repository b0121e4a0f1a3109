"""The loaded configuration of a directory, or every mistake in it together."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.config.cross_checks import check_all_jobs
from orchestrator.config.decode import TomlFile, parse_toml_file
from orchestrator.config.models import Configuration
from orchestrator.config.parse_job import Engines, complete_job, parse_job, parse_places
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.job import Job
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.trees.beneath import writable_by_others

if TYPE_CHECKING:
    from orchestrator.domain.rotation import RotationSet


TARGETS = "targets.toml"
NO_JOB = "there is no job"  # the mistake of a configuration without any job file


def load_configuration(directory: str, engines: Engines, *, texts: Mapping[str, bytes] | None = None) -> Configuration:
    """Load all jobs and places. Raises: DeclarationError with the mistakes of all files, ordered by file and line.

    `texts`: read in place of the files of these paths, to see whether a change of them would be valid. Jobs that work on the source
    alone name no target; if there are no others, targets.toml may be missing.
    """
    held = _names_in(directory)
    if not held & {TARGETS, "jobs"}:
        raise _refused([_mistake(directory, "there is no configuration", 'a directory that "poolferry init" filled')])
    mistakes: list[ConfigMistake] = []
    file = os.path.join(directory, TARGETS)
    missing = TARGETS not in held
    targets = (
        None if missing else _read_toml_file(file, "a [place.NAME] with its path", mistakes, (texts or {}).get(file))
    )
    sheets = {
        name: _read_toml_file(file, "engine, source and target", mistakes, (texts or {}).get(file))
        for name, file in _job_files(directory, mistakes)
    }
    drafts = [parse_job(toml_file, name, engines) for name, toml_file in sheets.items() if toml_file]
    wanting = [draft.name for draft in drafts if not (draft.engine and draft.engine.stays)]
    if missing and (wanting or not drafts):
        mistakes.append(_mistake(file, "there is no such file", _a_place_for(wanting)))
    places = parse_places(targets) if targets else {} if missing and not wanting else None
    sets = _sets(targets, places or {}) if targets else {}
    found = check_all_jobs(drafts, places, sets=sets, names=sheets)
    if pruning := [draft for draft in drafts if draft.engine and draft.engine.arrivals]:
        from orchestrator.config.gates import judge_arrivals

        judge_arrivals(pruning, directory)
    mistakes += [mistake for toml_file in (targets, *sheets.values()) if toml_file for mistake in toml_file.mistakes]
    seen: dict[str, bool] = {}
    files = [each.file for each in (targets, *sheets.values()) if each]
    mistakes += writable_by_others((directory, *files, os.path.join(directory, "hooks")), seen)
    if mistakes:
        raise _refused(mistakes)
    jobs = tuple(complete_job(draft, engines[draft.keys["engine"]], found[draft.name]) for draft in drafts)
    called = [path for job in jobs for path in called_files(job, directory)]
    called += [disk.key_file for each in sets.values() if each for disk in each.disks if disk.key_file]
    if mistakes := list(writable_by_others(called, seen)):
        raise _refused(mistakes)
    return Configuration(
        directory=directory,
        jobs=jobs,
        places=tuple(place for place in (places or {}).values() if place),
        sets=tuple(each for each in sets.values() if each),
    )


def _a_place_for(jobs: Collection[str]) -> str:
    copied = f", where {' and '.join(jobs)} put{'' if len(jobs) > 1 else 's'} copies" if jobs else ""
    return f'a file with a [place.NAME]{copied}; "poolferry init" writes one'


def _refused(mistakes: Iterable[ConfigMistake]) -> DeclarationError:
    return DeclarationError(tuple(sorted(mistakes, key=lambda each: (each.file, each.line or 0, each.key, each.what))))


def _mistake(file: str, what: str, expected: str) -> ConfigMistake:
    return ConfigMistake(file=show_name(file), line=None, key="", what=what, expected=expected)


def _names_in(directory: str) -> set[str]:
    """Return the names in the configuration's directory. Raises: DeclarationError."""
    try:
        return set(os.listdir(directory))
    except FileNotFoundError:
        wanted = 'a directory that "poolferry init" filled'
        raise _refused([_mistake(directory, "there is no such directory", wanted)]) from None
    except OSError as error:
        wanted = "a directory that this user may read"
        raise _refused([_mistake(directory, f"cannot be read: {error.strerror}", wanted)]) from None


def _job_files(directory: str, mistakes: list[ConfigMistake]) -> list[tuple[str, str]]:
    """Return each job's name with its file. Hidden files are ignored, as editors create some there."""
    folder = os.path.join(directory, "jobs")
    try:
        files = sorted(file for file in os.listdir(folder) if file.endswith(".toml") and not file.startswith("."))
    except FileNotFoundError:
        files = []
    except OSError as error:
        mistakes.append(_mistake(folder, f"cannot be read: {error.strerror}", "a directory with a file for each job"))
        return []
    if not files:
        mistakes.append(_mistake(folder, NO_JOB, 'a file such as home.toml; "poolferry init" writes one'))
    for file in files:
        if not JOB_NAME.fullmatch(file.removesuffix(".toml")):
            wanted = "letters, digits, dots, - and _, the first a letter or a digit, 100 at most"
            mistakes.append(_mistake(os.path.join(folder, file), "the file's name is no name for a job", wanted))
    return [(file.removesuffix(".toml"), os.path.join(folder, file)) for file in files]


def _read_toml_file(path: str, least: str, mistakes: list[ConfigMistake], text: bytes | None = None) -> TomlFile | None:
    """Read a file's content, or `text` in its place; return None and record the mistake when that fails."""
    try:
        if text is None:
            with open(path, "rb") as file:
                text = file.read()
        held = parse_toml_file(path, text, least=least)
    except FileNotFoundError:
        held = _mistake(path, "there is no such file", "a file that stays while it is read")
    except OSError as error:
        held = _mistake(path, f"cannot be read: {error.strerror}", "a file that this user may read")
    if isinstance(held, ConfigMistake):
        mistakes.append(held)
        return None
    return held


def _sets(targets: TomlFile, places: Iterable[str]) -> "dict[str, RotationSet | None]":
    """Read the rotation sets. Why imported late: most configurations have none, and each run reads this file."""
    if not targets.table.keys() & {"set", "disk"}:
        return {}
    from orchestrator.config.sets import parse_sets

    return parse_sets(targets, places)


# Programs that run a file which is named after them. Compiled by re when needed, which is not in every run.
_RUNS_FILES = r"(sh|bash|dash|ash|ksh|zsh|busybox|python[\d.]*|perl|ruby|node|php|env|nice|ionice|nohup|setpriv|setsid|sudo|timeout|systemd-run)"
# ssh's short options without a value may stand before one with a file in the same word.
_SSH_FILE = r"(?s)-[46AaCfGgKkMNnqsTtVvXxYy]*[iFI](.*)"
_SSH_FILE_KEYS = frozenset(
    "identityfile certificatefile pkcs11provider securitykeyprovider userknownhostsfile globalknownhostsfile proxycommand "
    "knownhostscommand localcommand xauthlocation".split()
)


def called_files(job: Job, directory: str) -> Iterator[str]:
    """Yield the files that a job runs or trusts: hooks, the drill's check-command, ssh's keys and own files, sanoid's configuration."""
    for _, commands in job.hooks.calls:
        for argv in commands:
            yield from hook_files(argv[0], directory)
            yield from _files_run(argv)
    if check := job.drill.check_command:
        yield from (check[0], *_files_run(check)) if check[0].startswith("/") else _files_run(check)
    yield from _ssh_files(job.pipe.ssh_options)
    if job.snapshots and job.snapshots.use:
        yield job.snapshots.use
        yield from (os.path.join(job.snapshots.use, name) for name in ("sanoid.conf", "sanoid.defaults.conf"))


def _files_run(argv: Sequence[str]) -> Iterator[str]:
    """Yield the files that an interpreter, or a program such as env, may run."""
    if re.fullmatch(_RUNS_FILES, os.path.basename(argv[0])):
        yield from (word for word in argv[1:] if word.startswith("/") and os.path.isfile(word))


def hook_files(program: str, directory: str) -> tuple[str, ...]:
    """Return the file of a hook that is named by a path or lies in the configuration's hooks/; others belong to the system."""
    if "/" in program:
        return (program,)
    own = os.path.join(directory, "hooks", program)
    return (own,) if os.path.lexists(own) else ()


def _ssh_files(options: Sequence[str]) -> Iterator[str]:
    """Yield the files that ssh options name: keys, configuration, libraries, programs. Source: ssh(1), ssh_config(5)."""
    for word, after in zip(options, (*options[1:], ""), strict=False):
        found = [match[1] or after] if (match := re.fullmatch(_SSH_FILE, word)) else []
        plain = (after if word == "-o" else word.removeprefix("-o")).strip()
        key, _, value = plain.replace("=", " ", 1).partition(" ")
        if word.startswith("-o") and key.lower() in _SSH_FILE_KEYS:
            found = value.replace('"', " ").split()
        for path in map(os.path.expanduser, found):
            if path.startswith("/") and path != os.devnull and os.path.lexists(path):
                yield path
