"""Jobs from borgmatic's configuration and the times at which it is called: its source folders, excludes, retention and hooks.

Borg's archives are no files: they are neither read nor copied. Source: borgmatic 1.5 to 2.0; the sections of 1.7 and before too.
"""

import os.path
import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.config.migrate.job_text import JobText, Value
from orchestrator.config.migrate.program_calls import (
    ImportedSettings,
    program_schedules,
    sections_of,
    tell_program_schedule,
    without_schedule,
)
from orchestrator.config.migrate.result import ImportBuilder, ImportedChannel, ImportResult, Lost, make_name, may_lie_in
from orchestrator.config.migrate.yaml_tree import YamlValue, parse_yaml
from orchestrator.config.models import parse_any_location
from orchestrator.config.parse_job import Engines
from orchestrator.domain.place import Location, url_of_ssh_place
from orchestrator.domain.source_tree import join_folders

_SECTIONS = ("location", "storage", "retention", "consistency", "output", "hooks")
_KINDS = ("hourly", "daily", "weekly", "monthly", "yearly")
_QUIET = frozenset(
    "source_directories repositories exclude_patterns one_file_system archive_name_format match_archives prefix local_path remote_path "
    "lock_wait log_file log_file_verbosity verbosity syslog_verbosity monitoring_verbosity color umask statistics progress list_details "
    "retries retry_wait borg_base_directory borg_config_directory borg_cache_directory borg_security_directory borg_keys_directory "
    "borg_files_cache_ttl files_cache checkpoint_interval checkpoint_volume chunker_params relocated_repo_access_is_ok "
    "unknown_unencrypted_repo_access_is_ok source_directories_must_exist numeric_ids numeric_owner skip_actions checks check_last "
    "check_repositories ssh_command temporary_directory user_runtime_directory user_state_directory".split()
)
_WHY = {
    "encryption_passphrase": "points are files as they are, not encrypted: use a target that is",
    "encryption_passcommand": "points are files as they are, not encrypted: use a target that is",
    "compression": "points are files as they are: a target's filesystem can compress",
    "exclude_from": "it was not read: write its lines as [rsync] excludes",
    "patterns": "write what is left out as [rsync] excludes",
    "patterns_from": "write what is left out as [rsync] excludes",
    "exclude_caches": "write those folders as [rsync] excludes: find / -xdev -name CACHEDIR.TAG lists them",
    "exclude_if_present": "write those folders as [rsync] excludes",
    "keep_within": "[keep] counts hours, days, weeks, months and years",
    "before_backup": "a program of yours can be a hook, [hooks] before",
    "after_backup": "a program of yours can be a hook, [hooks] done",
    "on_error": "a program of yours can be a hook, [hooks] failed",
    "commands": "a program of yours can be a hook, [hooks] before, done or failed",
}
_DUMPS = "a program that writes a dump into a source folder can be a hook, [hooks] before"


def import_borgmatic(settings: ImportedSettings, engines: Engines, target: str | None) -> ImportResult:
    """Import borgmatic's files. `target`: the folder for the copies; else one beside the first repository that is a folder here.

    Raises: ValueError for a file that is no YAML, or a target that is no folder.
    """
    work = ImportBuilder()
    where = _location(target) if target else None
    schedules = list(program_schedules(work, settings, "borgmatic"))
    for file, text in settings.files:
        try:
            table = _flat(parse_yaml(text))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        _import_file(work, file, table, where, schedules[0].keys if schedules else {})
    jobs = [job.name for job in work.jobs]
    for found in schedules[:1]:
        tell_program_schedule(work, found, jobs)
    for found in schedules[1:]:
        work.say(
            found.scheduled.where, Lost("is not carried over: a job has one schedule, and another line has it already")
        )
    if jobs and not schedules:
        work.say(f"{settings.files[0][0]}:1", without_schedule("borgmatic"))
    then = [
        "the first run of each job copies everything; keep Borg and its repositories until poolferry has enough points of its own"
    ]
    then += [f"take borgmatic out of {each.scheduled.where}" for each in schedules]
    return work.result(engines, then if jobs else ())


def _location(text: str) -> Location:
    """Return a folder here or on another host. Raises: ValueError."""
    found = parse_any_location(text if "://" in text else url_of_ssh_place(text) or text)
    if not found.path.startswith("/"):
        raise ValueError(f"{text}: write a whole path, or ssh://user@host/path")
    return found


def _flat(root: YamlValue) -> dict[str, tuple[int, YamlValue]]:
    """Return each setting with its line; those of the older sections as if they stood alone."""
    found: dict[str, tuple[int, YamlValue]] = {}
    for key, value in root.table.items():
        if key in _SECTIONS and value.table:
            found |= {name: (value.lines[name], each) for name, each in value.table.items()}
        else:
            found[key] = (root.lines[key], value)
    return found


Settings = Mapping[str, tuple[int, YamlValue]]


def _import_file(
    work: ImportBuilder, file: str, table: Settings, target: Location | None, times: Mapping[str, Value]
) -> None:
    sources = table.get("source_directories", (1, YamlValue(line=1)))[1]
    _tell_lost(work, file, table)
    base = target or _beside_repository(table)
    if base is None:
        work.say(
            f"{file}:1",
            Lost("is not carried over: no repository is a folder here: say with --target where the copies go"),
        )
        return
    found: list[tuple[YamlValue, Location]] = []
    for each in sources.items:
        try:
            found.append((each, _source(each.text)))
        except ValueError as error:
            work.say(f"{file}:{each.line}", Lost(f"is not carried over: {error}"))
    made = [_import_sources(work, file, table, group, base, times) for group in _joinable(found)]
    if not sources.items:
        work.say(f"{file}:1", Lost("is not carried over: it has no source_directories"))
    if made:
        _notices(work, file, table, made)


def _beside_repository(table: Settings) -> Location | None:
    repositories = table.get("repositories", (1, YamlValue(line=1)))[1].items
    paths = (each.at("path").text or each.text for each in repositories)
    local = next((path.removeprefix("file://") for path in paths if path.removeprefix("file://").startswith("/")), None)
    return Location(path=os.path.join(os.path.dirname(local.rstrip("/")), "poolferry")) if local else None


def _tell_lost(work: ImportBuilder, file: str, table: Settings) -> None:
    carried = {*_QUIET, *_NOTICES, *(f"keep_{kind}" for kind in _KINDS), "upload_rate_limit", "remote_rate_limit"}
    for key, (line, value) in table.items():
        if key == "repositories":
            for each in value.items:
                path = each.at("path").text or each.text
                work.say(
                    f"{file}:{each.line}", Lost(f"the archives in {path} are not carried over: only Borg can read them")
                )
        elif key not in carried and (value.text or value.items or value.table):
            why = _WHY.get(key, _DUMPS if key.endswith("_databases") else "no equivalent in poolferry")
            work.say(f"{file}:{line}", Lost(f"{key} is not carried over: {why}"))


def _source(path: str) -> Location:
    """Return a source folder. Raises: ValueError."""
    if not path.startswith("/") or set("*?[") & set(path):
        raise ValueError(f"{path}: a source is a folder with a whole path; leave out the rest by [rsync] excludes")
    return parse_any_location(path)


def _joinable(found: list[tuple[YamlValue, Location]]) -> list[list[tuple[YamlValue, Location]]]:
    """Return the folders that become one job: all of a file, or each by itself where a job could not have them all."""
    if not found:
        return []
    try:
        join_folders([source for _, source in found])
    except ValueError:
        return [[each] for each in found]
    return [found]


def _import_sources(
    work: ImportBuilder, file: str, table: Settings, found: Sequence[tuple[YamlValue, Location]], base: Location,
    times: Mapping[str, Value],
) -> str:  # fmt: skip
    """Make one job of source folders and return its name."""
    (first, source), *more = found
    where = f"{file}:{first.line}"
    one = table.get("one_file_system", (1, YamlValue(line=1)))[1].yes
    rsync: dict[str, Value] = {} if one else {"one-file-system": False}
    excludes = _excludes(work, file, table, "/" if more else source.path)
    if told := tuple(each for each in excludes if not more or may_lie_in(each, [folder.path for _, folder in found])):
        rsync["excludes"] = told
    stem = os.path.basename(file).rpartition(".")[0]
    name = work.free_name(make_name(stem if stem not in ("", "config") else "borgmatic")) if more else work.name(source)
    what: dict[str, Value] = {"sources": tuple(str(each) for _, each in found)} if more else {"source": str(source)}
    head: dict[str, Value] = {"engine": "rsync", **what, "target": work.place(base / name, f"{name}-copies"), **times}
    keep = {kind: int(text) for kind in _KINDS if (text := _text(table, f"keep_{kind}")).isdigit()}
    verify: dict[str, Value] = {} if _text(table, "checks") == "disabled" else {"every": "7d"}
    sections = sections_of(head=head, rsync=rsync, keep={**keep}, verify=verify, pipe=_pipe(table, base))
    notes = (
        ('borgmatic\'s checks became [verify] every = "7d": the newest point is read again each week',)
        if verify
        else ()
    )
    work.add(where, JobText(name=name, origin=where, sections=sections), notes)
    for each, _ in more:
        work.say(f"{file}:{each.line}", f"became a source of jobs/{name}.toml", name)
    return name


def _text(table: Settings, key: str) -> str:
    return table[key][1].text if key in table else ""


def _pipe(table: Settings, base: Location) -> dict[str, Value]:
    pipe: dict[str, Value] = {}
    rate = _text(table, "upload_rate_limit") or _text(table, "remote_rate_limit")
    if rate.isdigit() and int(rate):
        pipe["rate-limit"] = f"{rate}K"
    words = _text(table, "ssh_command").split()
    if base.host and len(words) > 1:
        pipe["ssh-options"] = tuple(words[1:])
    return pipe


def _excludes(work: ImportBuilder, file: str, table: Settings, source: str) -> Iterator[str]:
    """Yield borg's patterns as rsync's, those that can match below a source."""
    for each in table.get("exclude_patterns", (1, YamlValue(line=1)))[1].items:
        pattern = convert_pattern(each.text, source)
        if pattern is None:
            work.say(
                f"{file}:{each.line}",
                Lost(f"the pattern {each.text} is not carried over: write it as [rsync] excludes"),
            )
        elif pattern:
            yield pattern


def convert_pattern(text: str, source: str) -> str | None:
    """Return rsync's pattern for one of borg's; "" when it matches nothing below the source, None when there is none.

    Source: `borg help patterns`: fm, the default, is for whole paths, and its * matches slashes too.
    """
    style, colon, pattern = text.partition(":")
    if not colon or style not in ("fm", "sh", "re", "pp", "pf"):
        style, pattern = "fm", text
    if style == "re" or pattern.startswith("~"):
        return None
    if style in ("pp", "pf"):
        pattern = re.sub(r"([*?\[\\])", r"\\\1", pattern)
    elif style == "fm" and "/" in pattern:
        pattern = re.sub(r"\*+", "**", pattern)
    if pattern.startswith(("**/", "*")) or not pattern.startswith("/"):
        bare = re.sub(r"^\*\*/", "", pattern)
        return bare if pattern.startswith("*") else f"/{pattern}" if source == "/" else ""
    top = source.rstrip("/")
    if pattern.startswith(f"{top}/") and len(pattern) > len(top) + 1:
        return pattern[len(top) :]
    return None if set("*?[") & set(pattern[: len(top) + 1]) else ""


_NOTICES = ("healthchecks", "cronitor", "cronhub", "uptime_kuma", "ntfy", "apprise")


def _notices(work: ImportBuilder, file: str, table: Settings, jobs: Sequence[str]) -> None:
    """Make channels of borgmatic's monitoring hooks."""
    for key in _NOTICES:
        if key not in table:
            continue
        line, value = table[key]
        for channel in _channels(key, value, tuple(jobs)):
            if work.notify(channel):
                work.say(f"{file}:{line}", f"{key} became a [notice] in poolferry.toml")
            else:
                work.say(
                    f"{file}:{line}", Lost(f"{key} is not carried over: its address does not fit into poolferry.toml")
                )


def _channels(key: str, value: YamlValue, jobs: tuple[str, ...]) -> Iterator[ImportedChannel]:
    if key == "ntfy":
        server = (value.at("server").text or "https://ntfy.sh").rstrip("/")
        yield ImportedChannel(kind="ntfy", keys=(), secret=f"{server}/{value.at('topic').text}", jobs=jobs)
    elif key == "apprise":
        for each in value.at("services").items:
            yield ImportedChannel(kind="apprise", keys=(), secret=each.at("url").text, jobs=jobs)
    else:
        address = value.at("ping_url").text or value.at("push_url").text or value.text
        style: tuple[tuple[str, Value], ...] = () if key == "healthchecks" else (("style", "plain"),)
        several: tuple[tuple[str, Value], ...] = (("of", "protected"),) if len(jobs) > 1 else ()
        yield ImportedChannel(kind="ping", keys=(*style, *several), secret=address, jobs=jobs)
