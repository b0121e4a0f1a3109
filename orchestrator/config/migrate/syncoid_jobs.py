"""Jobs from a sanoid.conf and from the calls of syncoid in crontabs, systemd's units and scripts, with the result of each line."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.config.migrate.calls import (
    CalledScripts,
    ProgramCall,
    explain_unread,
    find_calls,
    script_schedule,
    why_not,
)
from orchestrator.config.migrate.crontab import ScheduledCommand, parse_crontab
from orchestrator.config.migrate.job_text import JobText, Value
from orchestrator.config.migrate.map_rules import (
    copy_rules,
    has_snapshots_elsewhere,
    import_policy,
    keep_numbers,
    snapshots_section,
    source_rules,
)
from orchestrator.config.migrate.map_syncoid import MAY_DESTROY, map_options
from orchestrator.config.migrate.neighbours import tell_neighbours, tell_schedule
from orchestrator.config.migrate.result import ImportBuilder, ImportResult, Lost
from orchestrator.config.migrate.sanoid_conf import parse_sanoid_conf
from orchestrator.config.migrate.syncoid import SyncoidCall, parse_syncoid
from orchestrator.config.migrate.systemd_units import parse_unit, scheduled_units
from orchestrator.config.migrate.time_span import late_after
from orchestrator.config.parse_job import Engines
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.place import Location

_NAMED = re.compile(r"(?:^|[\s/;&|('\"])(?:syncoid|sanoid)(?=[\s;&|)'\"]|$)", re.MULTILINE)
_LET_GO = (
    "the first run of each job continues from the newest snapshot that both sides hold, one of syncoid's own included: nothing "
    "is sent again. Once it has ended well a bookmark of poolferry's remembers what was sent, and syncoid's snapshots may go, on "
    "both sides: zfs list -H -o name -t snapshot -r DATASET | grep @syncoid_ | xargs -r -d '\\n' -n 1 zfs destroy"
)

File = tuple[str, str]
"""How a file is called, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncoidSettings:
    """All texts of an import. `conf`: the sanoid.conf; `units`: systemd's; `scripts`: those that no crontab calls.
    `called`: those that one calls.
    """

    crontabs: Sequence[File] = ()
    conf: File | None = None
    units: Sequence[File] = ()
    scripts: Sequence[File] = ()
    called: CalledScripts = field(default_factory=CalledScripts)


def import_syncoid(settings: SyncoidSettings, engines: Engines) -> ImportResult:
    """Import all of these texts. Raises: ValueError for an unreadable sanoid.conf or unit."""
    conf = settings.conf
    policies = parse_sanoid_conf(conf[1]) if conf else ()
    work = ImportBuilder(policies, conf[0] if conf else "")
    made: dict[str, list[str]] = {}
    for scheduled, notes in _schedules(settings, work):
        jobs = _import_schedule(work, scheduled, settings)
        if jobs:
            made.setdefault(scheduled.where.rpartition(":")[0], []).append(scheduled.where.rpartition(":")[2])
            for where, text in notes:
                work.say(where, text, jobs[0] if len(jobs) == 1 else None)
    for policy in policies:
        import_policy(work, policy)
    return work.result(engines, _then(work, made, conf and conf[0]))


Schedules = Iterator[tuple[ScheduledCommand, Sequence[tuple[str, str]]]]


def _schedules(settings: SyncoidSettings, work: ImportBuilder) -> Schedules:
    """Yield all commands that are called at some time, with messages about what was around them."""
    for file, text in settings.crontabs:
        lines = text.split("\n")
        for found in parse_crontab(file, text):
            if isinstance(found, ScheduledCommand):
                yield found, ()
            elif _NAMED.search(lines[found[0] - 1]):
                work.say(f"{file}:{found[0]}", Lost(f"is not carried over: {found[1]}"))
    yield from scheduled_units([parse_unit(file, text) for file, text in settings.units])
    for file, text in settings.scripts:
        scheduled, note = script_schedule(file, text)
        yield scheduled, (note,)


def _import_schedule(work: ImportBuilder, scheduled: ScheduledCommand, settings: SyncoidSettings) -> list[str]:
    """Make a job of each call of syncoid in a command; return their names."""
    try:
        calls = find_calls(scheduled, settings.called.texts)
    except ValueError as error:
        if _NAMED.search(scheduled.command):
            file = scheduled.where.rpartition(":")[0]
            where = f"{file}:{number[1]}" if (number := re.match(r"line (\d+): ", str(error))) else scheduled.where
            work.say(where, Lost(f"is not carried over: {str(error).partition(': ')[2]}"))
        return []
    at = [index for index, call in enumerate(calls) if call.program in ("syncoid", "sanoid")]
    if not at:
        for told, lost in explain_unread(scheduled, settings.called, "syncoid"):
            work.say(scheduled.where, Lost(told) if lost else told)
        return []
    made: list[str] = []
    for index in at:
        _import_call(work, calls[index], made)
    if any(calls[index].program == "syncoid" for index in at):
        tell_neighbours(work, calls, at, made)
        tell_schedule(work, scheduled, made)
    return made


def _import_call(work: ImportBuilder, call: ProgramCall, made: list[str]) -> None:
    if call.program == "sanoid":
        if not call.host:
            work.say(call.where, "calls sanoid, which jobs do now: take it away")
        return
    try:
        if why := why_not(call):
            raise ValueError(why)
        told = parse_syncoid(call.words)
        if other := _same_copy(work, told):
            retried = call.command.joined == "||"
            text = f"is the same copy as that of jobs/{other}.toml"
            work.say(
                call.where,
                f"{text}: a run tries again by itself" if retried else Lost(f"is not carried over: it {text}"),
                other,
            )
            return
        made.append(_replication(work, call, told, made[-1] if made and call.command.joined == "&&" else None))
    except ValueError as error:
        work.say(call.where, Lost(f"is not carried over: {error}"))


def _same_copy(work: ImportBuilder, told: SyncoidCall) -> str | None:
    parent, _, last = told.target.path.rpartition("/")
    for job in work.jobs:
        head = job.sections[""]
        name = job.sections["zfs"].get("name", str(head["source"]).rpartition("/")[2]) if "zfs" in job.sections else ""
        place = work.places.get(str(head.get("target", "")))
        if place == Location(path=parent, host=told.target.host) and name == last:
            return job.name
    return None


def _replication(work: ImportBuilder, call: ProgramCall, told: SyncoidCall, after: str | None) -> str:
    """Make a job of one call and return its name. Raises: ValueError."""
    scheduled = call.scheduled
    parent, last = _parent(told)
    keys, notes = map_options(told)
    place = work.place(parent)
    name = work.name(told.source, to=place)
    head: dict[str, Value] = {"engine": "zfs", "source": str(told.source), "target": place}
    head |= {"schedule": scheduled.schedule} if scheduled.schedule else {}
    head |= {"every": scheduled.every} if scheduled.every else {}
    late = late_after(scheduled.schedule, scheduled.every)
    head |= {"late-after": late} if late else {}
    head |= {"after": (after,)} if after else {}
    if last != told.source.path.rpartition("/")[2]:
        keys["zfs"]["name"] = last
    source, copy = source_rules(work, told, scheduled.schedule), copy_rules(work, told)
    if source or has_snapshots_elsewhere(work, told):
        keys["zfs"].setdefault("skip-snapshots", ("syncoid_*",))
    elif not told.has("no-sync-snap"):
        notes.append(_nobody_takes(told))
    sections: dict[str, Mapping[str, Value]] = {"": head, "zfs": keys["zfs"], "pipe": keys["pipe"]}
    sections |= {"snapshots": snapshots_section(source)} if source else {}
    sections |= {"keep": keep_numbers(copy, without=("frequently",))} if copy else {}
    work.add(
        call.where, JobText(name=name, origin=call.where, sections=sections), (*_timing(scheduled), *call.notes, *notes)
    )
    for policy, section in ((source, "snapshots"), (copy, "keep")):
        if policy:
            work.use(policy, section, name)
    return name


def _parent(told: SyncoidCall) -> tuple[Location, str]:
    """Return the dataset above the copy, and the copy's own name in it. Raises: ValueError."""
    parent, _, last = told.target.path.rpartition("/")
    if told.source.host and told.target.host:
        raise ValueError("poolferry carries data between this machine and one other, not between two others")
    if told.has("skip-parent"):
        raise ValueError(
            "--skip-parent: poolferry copies the source itself too. Replace the line by one for each child, and import those: "
            f"{_children(told)}"
        )
    if not parent:
        below = f"{last}/{told.source.path.rpartition('/')[2]}"
        raise ValueError(
            f"its copy is the whole pool {last}, and poolferry keeps copies below a dataset: syncoid to {below}, or a job with "
            f'the place dataset = "{last}"; it begins with a full copy'
        )
    return Location(path=parent, host=told.target.host), last


def _children(told: SyncoidCall) -> str:
    """Return a command that lists the children of a source, to write a line for each."""
    host = told.source.host
    ssh = f"{host.ssh} " if host else ""
    return f"{ssh}zfs list -H -o name -r -d 1 '{told.source.path}' | tail -n +2"


def _nobody_takes(told: SyncoidCall) -> str:
    if told.source.host:
        return "syncoid took a snapshot before each copy; poolferry copies those that are there: does sanoid take any there?"
    return Lost(
        "the snapshot that syncoid took before each copy is not carried over, and nobody takes any now: write [snapshots], such as "
        "daily = 14"
    )


def _timing(scheduled: ScheduledCommand) -> Iterator[str]:
    if scheduled.schedule is None and scheduled.every is None and scheduled.when:
        yield Lost(
            f'its time is not carried over: "{scheduled.when}" is no schedule for a job file: the job runs by hand until it has one'
        )
    if scheduled.user not in ("", "root"):
        yield f"runs as the user {scheduled.user}: poolferry's jobs run as whoever calls poolferry"


def _take_away(file: str, lines: Sequence[str]) -> str:
    """Return what ends the calls of a file: a crontab's lines, a script's calls, or a unit's timer."""
    both = "otherwise syncoid and poolferry both replicate"
    if file.endswith(".service"):
        name = file.rpartition("/")[2].removesuffix(".service")
        return f"systemctl disable --now {name}.timer, {both}"
    where = f" (line {', '.join(dict.fromkeys(lines))})" if lines != ["1"] else ""
    return f"take what became a job out of {file}{where}, {both}"


def _then(work: ImportBuilder, made: Mapping[str, Sequence[str]], conf: str | None) -> tuple[str, ...]:
    """List the remaining manual work, in order."""
    found = [_LET_GO] if made else []
    if any(MAY_DESTROY in job.sections.get("zfs", {}) for job in work.jobs):
        found.append(
            'may-destroy = ["rollback"] stands in the files as a comment: syncoid throws away without asking what was changed on a '
            "copy; if the first run refuses such a copy and nothing there is worth keeping, take the # away for that one run"
        )
    found += [_take_away(file, lines) for file, lines in made.items()]
    if made and not work.channels:
        found.append(
            "nobody is notified when a job fails or is late: write a [notice.NAME] in poolferry.toml (jobs/README.md shows each kind)"
        )
    if conf:
        found.append(
            f"systemctl disable --now sanoid.timer, or take what became a job out of {conf}, or both take snapshots"
        )
        found.append("a job leaves a kind of snapshot that it gives no number alone, where sanoid removes all of it")
    return tuple(found)
