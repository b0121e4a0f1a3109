"""Jobs from an rsnapshot.conf and the times at which it is called. Source: rsnapshot(1) 1.4."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.config.migrate.job_text import JobText, Value
from orchestrator.config.migrate.program_calls import (
    ImportedSettings,
    ProgramSchedule,
    program_schedules,
    sections_of,
    tell_program_schedule,
    without_schedule,
)
from orchestrator.config.migrate.result import ImportBuilder, ImportResult, Lost, make_name, may_lie_in
from orchestrator.config.models import parse_any_location
from orchestrator.config.parse_job import Engines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location, url_of_ssh_place
from orchestrator.domain.source_tree import join_folders

_QUIET = frozenset(
    "config_version cmd_cp cmd_rm cmd_rsync cmd_ssh cmd_logger cmd_du cmd_rsnapshot_diff verbose loglevel logfile lockfile du_args "
    "link_dest sync_first use_lazy_deletes stop_on_stale_lockfile no_create_root rsync_numtries snapshot_root retain interval exclude "
    "backup one_fs rsync_long_args rsync_short_args ssh_args".split()
)
_WHY = {
    "backup_script": "a program that makes files: write them somewhere by [hooks] before, and copy that folder",
    "backup_exec": "a program of yours can be a hook, [hooks] before or done",
    "cmd_preexec": "a program of yours can be a hook, [hooks] before",
    "cmd_postexec": "a program of yours can be a hook, [hooks] done and failed",
    "include": "[rsync] has excludes alone: write what is left out",
    "include_file": "[rsync] has excludes alone: write what is left out",
    "exclude_file": "it was not read: write its lines as [rsync] excludes",
    "include_conf": "it was not read: give its text as part of this file",
    "linux_lvm_cmd_lvcreate": "poolferry makes no LVM snapshots",
}
_LONG_ARGS = frozenset(
    "--delete --numeric-ids --relative --delete-excluded --archive --hard-links --acls --xattrs --sparse --links --times --perms "
    "--owner --group --recursive --stats --human-readable --verbose --quiet --itemize-changes --delete-after".split()
)
KINDS = ("hourly", "daily", "weekly", "monthly", "yearly")
_SPANS = {"hourly": 1, "daily": 24, "weekly": 168, "monthly": 24 * 28, "yearly": 24 * 365}


@dataclass(frozen=True, slots=True, kw_only=True)
class RsnapshotLine:
    """One line of the file: its number, and its words, which tabs separate."""

    where: str
    words: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return the name of the setting."""
        return self.words[0]


def parse_rsnapshot_conf(file: str, text: str) -> tuple[tuple[RsnapshotLine, ...], tuple[tuple[str, str], ...]]:
    """Return the lines, and (where, why) of those that rsnapshot itself would refuse. A line that begins with a blank goes on."""
    lines: list[RsnapshotLine] = []
    wrong: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        where = f"{file}:{number}"
        if not line.strip() or line.startswith("#"):
            continue
        words = tuple(word.strip() for word in re.split(r"\t+", line.strip()))
        if line[0] in " \t" and lines:
            lines[-1] = RsnapshotLine(where=lines[-1].where, words=(*lines[-1].words, *words))
        elif len(words) == 1 and " " in words[0]:
            wrong.append((where, "rsnapshot wants tabs between the words of a line"))
        else:
            lines.append(RsnapshotLine(where=where, words=words))
    return tuple(lines), tuple(wrong)


def import_rsnapshot(settings: ImportedSettings, engines: Engines) -> ImportResult:
    """Import rsnapshot's settings. Raises: ValueError for an unreadable unit."""
    work = ImportBuilder()
    schedules = list(program_schedules(work, settings, "rsnapshot"))
    roots = [root for file, text in settings.files for root in _import_file(work, file, text, schedules)]
    jobs = [job.name for job in work.jobs]
    for found in schedules:
        tell_program_schedule(work, found, jobs)
    if jobs and not schedules:
        work.say(settings.files[0][0] + ":1", without_schedule("rsnapshot"))
    then = [
        f"rsnapshot's own points in {root} stay where they are: keep them until poolferry has enough of its own"
        for root in roots
    ]
    then += [
        "the first run of each job copies everything: into another folder, as points of poolferry hold more than a tree"
    ]
    then += [f"take rsnapshot out of {each.scheduled.where}, otherwise both copy" for each in schedules]
    return work.result(engines, then if jobs else ())


def _import_file(work: ImportBuilder, file: str, text: str, schedules: Sequence[ProgramSchedule]) -> Iterator[str]:
    """Make a job of all `backup` lines of one machine; yield the folder of the copies."""
    lines, wrong = parse_rsnapshot_conf(file, text)
    for where, why in wrong:
        work.say(where, Lost(f"is not carried over: {why}"))
    values = {line.key: line.words[1] for line in lines if len(line.words) > 1}
    root = values.get("snapshot_root", "").rstrip("/")
    for line in lines:
        if line.key not in _QUIET:
            work.say(
                line.where, Lost(f"{line.key} is not carried over: {_WHY.get(line.key, 'no equivalent in poolferry')}")
            )
    if not root.startswith("/"):
        work.say(f"{file}:1", Lost("is not carried over: it has no snapshot_root with a whole path"))
        return
    timed, when = _lowest(lines, schedules)
    keep = _keep(work, lines, schedules)
    shared = _shared(work, lines)
    patterns = [" ".join(line.words[1:]) for line in lines if line.key == "exclude" and len(line.words) > 1]
    relative = not any(line.key == "rsync_long_args" and "--relative" not in line.words[-1] for line in lines)
    patterns = patterns if relative else [f"//{each[1:]}" if each.startswith("/") else each for each in patterns]
    groups: dict[tuple[object, ...], list[_Backup]] = {}
    for line in lines:
        if line.key == "backup":
            try:
                found = _parse_backup(line, shared["rsync"])
                groups.setdefault((found.source.host, *found.rsync.items()), []).append(found)
            except ValueError as error:
                work.say(line.where, Lost(f"is not carried over: {error}"))
    for group in groups.values():
        for backups in _joinable(group):
            _import_backups(work, backups, root, patterns, {"keep": keep, "pipe": shared["pipe"]}, when)
    if timed and not when and schedules:
        work.say(f"{file}:1", Lost(f"no schedule calls `rsnapshot {timed}`: the jobs run by hand until they have one"))
    yield root


def _lowest(lines: Sequence[RsnapshotLine], schedules: Sequence[ProgramSchedule]) -> tuple[str, ProgramSchedule | None]:
    """Return the interval that copies, the first one, and its schedule; with sync_first it is `sync`."""
    first = next((line.words[1] for line in lines if line.key in ("retain", "interval") and len(line.words) > 2), "")
    called = (each for name in ("sync", first) for each in schedules if any(name in words for words in each.arguments))
    return first, next(called, None)


def _keep(
    work: ImportBuilder, lines: Sequence[RsnapshotLine], schedules: Sequence[ProgramSchedule]
) -> dict[str, Value]:
    """Return [keep]: each interval as the span between two of its calls, or by its name."""
    keep: dict[str, Value] = {}
    for line in lines:
        if line.key not in ("retain", "interval"):
            continue
        name, number = (*line.words[1:3], "", "")[:2]
        kind = name if name in KINDS else _kind(name, schedules)
        if not number.isdigit() or kind is None or kind in keep:
            why = "no number" if not number.isdigit() else "which span it has stands in the crontab (--crontab)"
            why = f"[keep] {kind} is taken" if kind in keep else why
            work.say(line.where, Lost(f"retain {name} is not carried over: {why}"))
        elif int(number):
            keep[kind] = int(number)
    return {kind: keep[kind] for kind in KINDS if kind in keep}


def _kind(name: str, schedules: Sequence[ProgramSchedule]) -> str | None:
    """Return the kind whose span fits between two calls of an interval; None when nothing calls it."""
    found = next((each for each in schedules if any(name in words for words in each.arguments)), None)
    late = str(found.keys.get("late-after", "")) if found else ""
    if not late:
        return None
    hours = int(late[:-1]) * (24 if late.endswith("d") else 1) - 2
    return max((kind for kind in KINDS if _SPANS[kind] <= max(hours, 1)), key=lambda kind: _SPANS[kind])


def _shared(work: ImportBuilder, lines: Sequence[RsnapshotLine]) -> dict[str, Mapping[str, Value]]:
    """Return the sections that all jobs of a file have in common."""
    rsync: dict[str, Value] = {"one-file-system": False}
    pipe: dict[str, Value] = {}
    for line in lines:
        value = " ".join(line.words[1:])
        if line.key == "one_fs":
            rsync["one-file-system"] = value != "0"
        elif line.key == "ssh_args":
            pipe["ssh-options"] = tuple(value.split())
        elif line.key == "rsync_short_args":
            _short_args(work, line, value, rsync)
        elif line.key == "rsync_long_args":
            for word in value.split():
                if word not in _LONG_ARGS:
                    work.say(
                        line.where,
                        Lost(f"rsync's {word} is not carried over: [rsync] in the job says how files are copied"),
                    )
    return {"rsync": rsync, "pipe": pipe}


def _short_args(work: ImportBuilder, line: RsnapshotLine, value: str, rsync: dict[str, Value]) -> None:
    for letter in value.lstrip("-"):
        if letter == "x":
            rsync["one-file-system"] = True
        elif letter == "c":
            rsync["checksum"] = True
        elif letter not in "avqhHAXSWPlptgoDrz -":
            work.say(
                line.where, Lost(f"rsync's -{letter} is not carried over: [rsync] in the job says how files are copied")
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backup:
    """One `backup` line. `below`: the folder that it names in rsnapshot's own points."""

    where: str
    source: Location
    below: str
    rsync: Mapping[str, Value]
    notes: tuple[str, ...]


def _parse_backup(line: RsnapshotLine, shared: Mapping[str, Value]) -> _Backup:
    """Parse one `backup` line. Raises: ValueError."""
    if len(line.words) < 3:
        raise ValueError("backup needs a source and a folder")
    rsync, notes = dict(shared), list[str]()
    for option in filter(None, ",".join(line.words[3:]).split(",")):
        if option in ("one_fs=1", "one_fs=0"):
            rsync["one-file-system"] = option == "one_fs=1"
        else:
            notes.append(Lost(f"its option {option} is not carried over: no equivalent in poolferry"))
    return _Backup(
        where=line.where, source=_source(line.words[1]), below=line.words[2].strip("/"), rsync=rsync, notes=tuple(notes)
    )


def _joinable(group: list[_Backup]) -> list[list[_Backup]]:
    """Return the lines that become one job: all of a group, or each by itself where a job could not have them all."""
    try:
        join_folders([each.source for each in group])
    except ValueError:
        return [[each] for each in group]
    return [group]


def _import_backups(
    work: ImportBuilder,
    backups: Sequence[_Backup],
    root: str,
    patterns: Sequence[str],
    shared: Mapping[str, Mapping[str, Value]],
    when: ProgramSchedule | None,
) -> None:
    """Make one job of `backup` lines of one machine."""
    first, *more = backups
    source, rsync = first.source, dict(first.rsync)
    if excludes := tuple(dict.fromkeys(_excludes(patterns, [each.source for each in backups]))):
        rsync["excludes"] = excludes
    host = make_name(source.host.name) if source.host else ""
    name = work.free_name(host or make_name(first.below or "localhost")) if more else work.name(source)
    folder = "/".join([root, "poolferry", host or make_name(first.below or "localhost"), "all" if more else name])
    what: dict[str, Value] = (
        {"sources": tuple(str(each.source) for each in backups)} if more else {"source": str(source)}
    )
    head: dict[str, Value] = {"engine": "rsync", **what, "target": work.place(Location(path=folder), f"{name}-copies")}
    head |= when.keys if when else {}
    sections = sections_of(head=head, rsync=rsync, keep=shared["keep"], pipe=shared["pipe"] if source.host else {})
    work.add(first.where, JobText(name=name, origin=first.where, sections=sections), first.notes)
    for each in more:
        work.say(each.where, f"became a source of jobs/{name}.toml", name)
        for note in each.notes:
            work.say(each.where, note, name)


def _source(text: str) -> Location:
    """Return the source of a `backup` line. Raises: ValueError."""
    if text.startswith(("rsync://", "lvm://")) or "::" in text:
        raise ValueError(f"{text}: poolferry copies from folders, here or through ssh")
    url = None if text.startswith("/") else url_of_ssh_place(text)
    if url is None and not text.startswith("/"):
        raise ValueError(f"{text}: is no whole path")
    if set("*?[") & set(text):
        raise ValueError(f"{text}: a job has one folder as its source; leave out the rest by [rsync] excludes")
    return parse_any_location(url or text)


def _excludes(patterns: Sequence[str], sources: Sequence[Location]) -> Iterator[str]:
    """Yield the patterns for a source, or for several. Why: rsnapshot calls rsync with --relative, so a pattern with "/" before it
    begins at the root of the machine there, as with several sources here; with one it begins at the source.
    """
    several = len(sources) > 1
    for other in patterns:
        if not other.startswith("/"):
            yield other
        elif other.startswith("//"):  # it begins at each source already
            yield from (f"{each.path.rstrip('/')}{other[1:]}" for each in sources) if several else (other[1:],)
        elif several:
            yield from (other,) if may_lie_in(other, [each.path for each in sources]) else ()
        elif other.startswith(f"{(top := sources[0].path.rstrip('/'))}/") and len(other) > len(top) + 1:
            yield other[len(top) :]
