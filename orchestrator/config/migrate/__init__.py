"""Import of job files from a sanoid.conf and the syncoid lines of a crontab, with the result of each line."""

import re
from collections.abc import Mapping, Sequence

from orchestrator.config.migrate.crontab import CrontabCall, parse_calls
from orchestrator.config.migrate.job_text import JobText, Value, to_toml
from orchestrator.config.migrate.map_rules import (
    copy_rules,
    has_snapshots_elsewhere,
    import_policy,
    keep_numbers,
    snapshots_section,
    source_rules,
)
from orchestrator.config.migrate.map_syncoid import map_options
from orchestrator.config.migrate.result import ImportBuilder, ImportedLine
from orchestrator.config.migrate.sanoid_conf import parse_sanoid_conf
from orchestrator.config.migrate.syncoid import SyncoidCall, parse_syncoid
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location

_USER = re.compile(r"[a-z_][a-z0-9_-]*")
_LET_GO = (
    "the first run of each job continues from the newest snapshot that both sides hold, one of syncoid's own included: nothing "
    "is sent again. Once it has ended well a bookmark of poolferry's remembers what was sent, and syncoid's snapshots may go, on "
    "both sides: zfs list -H -o name -t snapshot -r DATASET | grep @syncoid_ | xargs -r -d '\\n' -n 1 zfs destroy"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Result of an import: the files to write, by relative path; the result of each line; the remaining manual work."""

    files: Mapping[str, str]
    told: tuple[ImportedLine, ...]
    then: tuple[str, ...]


File = tuple[str, str]
"""How a file is called, and its text."""


def import_all(crontabs: Sequence[File], conf: File | None) -> ImportResult:
    """Import all of these files. Raises: ValueError for an unreadable sanoid.conf."""
    policies = parse_sanoid_conf(conf[1]) if conf else ()
    work = ImportBuilder(policies, conf[0] if conf else "")
    made = {file: _replications(work, file, text) for file, text in crontabs}
    for policy in policies:
        import_policy(work, policy)
    for file, text in crontabs:
        for call in parse_calls(text, "sanoid"):
            line = call.line if isinstance(call, CrontabCall) else call[0]
            work.say(f"{file}:{line}", "calls sanoid, which jobs do now: take it away")
    files = {f"jobs/{job.name}.toml": str(job) for job in work.jobs}
    if work.jobs:
        files["targets.toml"] = _targets(work.places)
    return ImportResult(files=files, told=tuple(work.told), then=_then(made, conf and conf[0]))


def _replications(work: ImportBuilder, file: str, text: str) -> list[int]:
    """Make a job of each call of syncoid; return the numbers of the lines that became one."""
    made: list[tuple[int, str]] = []
    for call in parse_calls(text, "syncoid"):
        line = call.line if isinstance(call, CrontabCall) else call[0]
        try:
            if not isinstance(call, CrontabCall):
                raise ValueError(call[1])
            after = next((name for number, name in reversed(made) if number == line), None) if call.waits else None
            made.append((line, _replication(work, f"{file}:{line}", call, after)))
        except ValueError as error:
            work.say(f"{file}:{line}", f"is not carried over: {error}")
    return [number for number, _ in made]


def _replication(work: ImportBuilder, where: str, call: CrontabCall, after: str | None) -> str:
    """Make a job of one call and return its name. Raises: ValueError."""
    told = parse_syncoid(call.words)
    parent, last = _parent(told)
    keys, notes = map_options(told)
    name = work.name(told.source.path)
    head: dict[str, Value] = {"engine": "zfs", "source": str(told.source), "target": work.place(parent)}
    head |= {"schedule": call.schedule} if call.schedule else {}
    head |= {"after": (after,)} if after else {}
    if last != told.source.path.rpartition("/")[2]:
        keys["zfs"]["name"] = last
    source, copy = source_rules(work, told, call), copy_rules(work, told)
    if source or has_snapshots_elsewhere(work, told):
        keys["zfs"].setdefault("skip-snapshots", ("syncoid_*",))
    elif not told.has("no-sync-snap"):
        notes.append(_nobody_takes(told))
    sections: dict[str, Mapping[str, Value]] = {"": head, "zfs": keys["zfs"], "pipe": keys["pipe"]}
    sections |= {"snapshots": snapshots_section(source)} if source else {}
    sections |= {"keep": keep_numbers(copy, without=("frequently",))} if copy else {}
    work.add(where, JobText(name=name, origin=where, sections=sections), (*_timing(call), *notes))
    for policy, section in ((source, "snapshots"), (copy, "keep")):
        if policy:
            work.use(policy, section, name)
    return name


def _parent(told: SyncoidCall) -> tuple[Location, str]:
    """Return the dataset above the copy, and the copy's own name in it. Raises: ValueError."""
    parent, _, last = told.target.path.rpartition("/")
    if told.source.host and told.target.host:
        raise ValueError("poolferry carries data between this machine and one other, not between two others")
    if not parent:
        raise ValueError(
            f"its copy is the whole pool {last}: poolferry keeps copies below a dataset, such as {last}/copies"
        )
    return Location(path=parent, host=told.target.host), last


def _nobody_takes(told: SyncoidCall) -> str:
    if told.source.host:
        return "syncoid took a snapshot before each copy; poolferry copies those that are there: does sanoid take any there?"
    return "syncoid took a snapshot before each copy, and nobody takes any now: write [snapshots], such as daily = 14"


def _timing(call: CrontabCall) -> list[str]:
    notes: list[str] = []
    if call.schedule is None:
        notes.append(f'"{call.when}" is no schedule for a job file: the job runs by hand until it has one')
    match call.before:
        case () | ("root",):
            pass
        case (user,) if _USER.fullmatch(user):
            notes.append(f"runs as the user {user}: poolferry's jobs run as whoever calls poolferry")
        case before:
            notes.append(f"what stands before syncoid is not carried over: {' '.join(before).removeprefix('root ')}")
    return notes


def _targets(places: Mapping[str, Location]) -> str:
    """Return the text of targets.toml; it must name a place, even when no job copies."""
    if not places:
        return '# No job here copies anything yet.\n[place.copies]\ndataset = "vault/copies"\n'
    tables = (f"[place.{_key(name)}]\ndataset = {to_toml(str(where))}\n" for name, where in places.items())
    return "\n".join(tables)


def _key(name: str) -> str:
    return f'"{name}"' if "." in name else name


def _then(made: Mapping[str, Sequence[int]], conf: str | None) -> tuple[str, ...]:
    """List the remaining manual work, in order."""
    found = [_LET_GO] if any(made.values()) else []
    for file, lines in made.items():
        if lines:
            numbered = ", ".join(map(str, dict.fromkeys(lines)))
            found.append(f"take what became a job out of {file} (line {numbered}), or both copy")
    if conf:
        found.append(
            f"systemctl disable --now sanoid.timer, or take what became a job out of {conf}, or both take snapshots"
        )
        found.append("a job leaves a kind of snapshot that it gives no number alone, where sanoid removes all of it")
    return tuple(found)
