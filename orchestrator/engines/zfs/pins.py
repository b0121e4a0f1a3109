"""Holds and bookmarks of ours: who wants each, what room it takes, and how those that nobody wants are let go.

A pool that is away now may still want its pins: as long as one of the jobs' places was not seen, its unknown ones stay.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import groupby

from orchestrator.domain.command import Command, Effect, Pipeline
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Step
from orchestrator.domain.quick import dataclass
from orchestrator.domain.units import show_count, show_duration
from orchestrator.engines.contract import Pin, Pins
from orchestrator.engines.zfs import commands
from orchestrator.engines.zfs.case import parent_of
from orchestrator.engines.zfs.commands import At
from orchestrator.engines.zfs.options import ZfsOptions, options_of
from orchestrator.engines.zfs.parse import Unreadable, parse_number
from orchestrator.engines.zfs.words import HOLD, Side, cursor_pool, held_name, held_pool, hold_tag

HOLDS, BOOKMARKS = "hold", "bookmark"

# Arguments: the pool. 2.1 tells no plain time of a hold, but its own clock's.
_LOOK = r"""
printf "=user %s\n=pools\n" "$(id -u)"; zpool list -Hp -o name,guid || exit
printf "=bookmarks\n"; exec 3>&1
x=$(zfs list -Hp -r -t bookmark -o name,creation "$1" 2>&1 >&3) || case $x in
*"does not exist"*) printf "=absent\n=end\n"; exit 0;;
*) printf "%s\n" "$x" >&2; exit 1;;
esac
printf "=snapshots\n"; s=$(zfs list -Hp -r -t snapshot -o userrefs,used,guid,name "$1") || exit
s=$(printf "%s\n" "$s" | grep "^[1-9]"); printf "%s\n=holds\n" "$s"
printf "%s\n" "$s" | grep . | cut -f 4- | TZ=UTC xargs -r -d "\n" sh -c 'zfs holds -Hp "$@" 2>/dev/null || zfs holds -H "$@"' sh || exit
printf "=end\n"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A hold or a bookmark of ours. `pool`: the guid of the target's; `beside`: the bookmark that goes with a hold.

    `since`: of a bookmark, when its snapshot was taken.
    """

    kind: str
    dataset: str
    name: str
    pool: int
    since: datetime | None = None
    bytes: int | None = None
    beside: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPool:
    """One pool as it was found, on behalf of a job. `pools`: all that are imported on its machine, by guid."""

    root: Location
    job: Job
    pools: Mapping[int, str]
    found: tuple[Found, ...] = ()
    sudo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPins:
    """All pools that could be looked at, and why others could not."""

    pools: tuple[SeenPool, ...]
    unseen: tuple[tuple[Location, str], ...]


def pools_of(jobs: Iterable[Job]) -> dict[Location, Job]:
    """The pools to look at, sources first, each with a job on whose behalf."""
    known = tuple(jobs)
    sides = [(job.source, job) for job in known] + [(job.target.location, job) for job in known]
    found: dict[Location, Job] = {}
    for side, job in sides:
        found.setdefault(_pool_of(side), job)
    return found


def _pool_of(location: Location) -> Location:
    return Location(path=location.path.partition("/")[0], host=location.host)


def look_command(pool: Location) -> Command:
    """Prints a pool's bookmarks, its held snapshots and their holds, and which pools there are."""
    return commands.script(_LOOK, pool.path, effect=Effect.READS, where=At(host=pool.host))


def parse_look(lines: Iterable[bytes], pool: Location, job: Job) -> SeenPool:
    """What `look_command` printed. Raises: Unreadable."""
    parts: dict[str, list[str]] = {}
    part, user = "", ""
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        if text.startswith("=user "):
            user = text.removeprefix("=user ")
        elif text.startswith("="):
            part = text
            parts.setdefault(part, [])
        elif text:
            parts.setdefault(part, []).append(text)
    if "=end" not in parts:
        raise Unreadable("the look ended before its end")
    held = {name: (parse_number(used), int(guid)) for _, used, guid, name in _rows(parts.get("=snapshots", ()), 4)}
    bookmarks = {(one.dataset, one.name): one for one in _bookmarks(parts.get("=bookmarks", ()))}
    holds = tuple(_holds(parts.get("=holds", ()), held, bookmarks))
    beside = {(one.dataset, one.beside) for one in holds}
    found = (*holds, *(one for at, one in bookmarks.items() if at not in beside))
    pools = {int(guid): name for name, guid in _rows(parts.get("=pools", ()), 2)}
    return SeenPool(
        root=pool,
        job=job,
        pools=pools,
        found=tuple(sorted(found, key=lambda one: (one.dataset, one.kind, one.name))),
        sudo=options_of(job).sudo and user != "0",
    )


def _rows(lines: Iterable[str], count: int) -> Iterator[list[str]]:
    for line in lines:
        fields = line.split("\t", count - 1)
        if len(fields) != count:
            raise Unreadable(f"not as zfs prints it: {line!r}")
        yield fields


def _bookmarks(lines: Iterable[str]) -> Iterator[Found]:
    for whole, created in _rows(lines, 2):
        dataset, _, name = whole.partition("#")
        pool = cursor_pool(name) if held_pool(name) is None else held_pool(name)
        if pool is not None:
            yield Found(kind=BOOKMARKS, dataset=dataset, name=name, pool=pool, since=_time(created))


def _holds(
    lines: Iterable[str], held: Mapping[str, tuple[int | None, int]], bookmarks: Mapping[tuple[str, str], Found]
) -> Iterator[Found]:
    for whole, tag, taken in _rows(lines, 3):
        dataset, _, name = whole.partition("@")
        pool = _tag_pool(tag)
        if pool is not None and whole in held:
            used, guid = held[whole]
            beside = held_name(pool, guid)
            yield Found(
                kind=HOLDS, dataset=dataset, name=name, pool=pool, since=_time(taken), bytes=used,
                beside=beside if (dataset, beside) in bookmarks else None,
            )  # fmt: skip


def _tag_pool(tag: str) -> int | None:
    """The pool that a hold's tag names; None: it is none of ours."""
    text = tag.removeprefix(f"{HOLD}_")
    try:
        pool = int(text, 16)
    except ValueError:
        return None
    return pool if tag == hold_tag(pool) else None


def _time(text: str) -> datetime | None:
    """Seconds since 1970, or the time of the far machine's clock, which was told to be UTC."""
    if text.isdigit():
        return datetime.fromtimestamp(int(text), UTC)
    try:
        return datetime.strptime(text.strip(), "%a %b %d %H:%M %Y").replace(tzinfo=UTC)
    except ValueError:
        return None


# Who wants what.


def judge(jobs: Iterable[Job], seen: SeenPins, now: datetime) -> Pins:
    """Each pin with who wants it, and why."""
    known = tuple(jobs)
    guids = {job.name: _target_guid(job, seen) for job in known}
    names = {guid: name for pool in seen.pools for guid, name in pool.pools.items()}
    pins: list[Pin] = []
    for pool in seen.pools:
        for one in pool.found:
            owners = tuple(job for job in known if _covers(job, one.dataset, pool.root))
            job, why = _wanted(one, owners, guids, now)
            pins.append(_pin(one, pool, names, job, why))
    return Pins(pins=tuple(pins), unseen=seen.unseen)


def _target_guid(job: Job, seen: SeenPins) -> int | None:
    """The guid of the pool that a job copies to; None: it was not seen now."""
    there = _pool_of(job.target.location)
    machine = [pool for pool in seen.pools if pool.root.host == there.host]
    return next((guid for pool in machine for guid, name in pool.pools.items() if name == there.path), None)


def _covers(job: Job, dataset: str, pool: Location) -> bool:
    """Whether a job copies the dataset."""
    options, root = options_of(job), job.source
    if root.host != pool.host or (dataset != root.path and not dataset.startswith(f"{root.path}/")):
        return False
    name = dataset[len(root.path) + 1 :]
    if not options.recursive:
        return not name
    while name:
        if any(fnmatchcase(name, pattern) for pattern in options.exclude):
            return False
        name = parent_of(name)
    return True


def _wanted(
    one: Found, owners: tuple[Job, ...], guids: Mapping[str, int | None], now: datetime
) -> tuple[str | None, str]:
    """(the job that wants it, or None; why)."""
    if not owners:
        return None, "no job copies this dataset any more"
    owner = next((job for job in owners if guids[job.name] == one.pool), None)
    if owner is None:
        away = next((job for job in owners if guids[job.name] is None), None)
        if away is None:
            return None, "no job copies it to that pool any more"
        return away.name, f"it may be for {away.target.name} ({away.target.location}), which was not seen now"
    if one.kind == BOOKMARKS:
        return owner.name, f"the next increment to {owner.target.name} may start from it"
    limit = options_of(owner).hold_for
    age = (now - one.since).total_seconds() if one.since else 0.0
    if age > limit:
        return None, f"held for {show_duration(age)}, longer than hold-for ({show_duration(limit)})"
    return owner.name, f"a transfer to {owner.target.name} was cut, and needs it to go on"


def _pin(one: Found, pool: SeenPool, names: Mapping[int, str], job: str | None, why: str) -> Pin:
    return Pin(
        kind=one.kind, at=Location(path=_whole(one), host=pool.root.host), target=names.get(one.pool, f"{one.pool:016x}"),
        since=one.since, bytes=one.bytes if one.kind == HOLDS else 0, job=job, why=why,
    )  # fmt: skip


def _whole(one: Found) -> str:
    return f"{one.dataset}{'@' if one.kind == HOLDS else '#'}{one.name}"


# Letting go.


def plan_letting_go(seen: SeenPins, pins: Pins) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
    """The steps for each pool: holds first, then bookmarks."""
    unwanted = {(str(pin.at), pin.target) for pin in pins.pins if pin.job is None}
    names = {guid: name for pool in seen.pools for guid, name in pool.pools.items()}
    planned = []
    for pool in seen.pools:
        found = [
            one
            for one in pool.found
            if (str(Location(path=_whole(one), host=pool.root.host)), names.get(one.pool, f"{one.pool:016x}"))
            in unwanted
        ]
        if found:
            planned.append((_standing_for(pool), tuple(_steps(pool, found))))
    return tuple(planned)


def _standing_for(pool: SeenPool) -> Job:
    """A job made up for a pool, so that what is done there has a place in history."""
    place = Place(name="pins", location=pool.root)
    return Job(
        name="pins", file="", engine="zfs", source=pool.root, target=place, options=ZfsOptions(sudo=pool.sudo),
        pipe=pool.job.pipe,
    )  # fmt: skip


def _steps(pool: SeenPool, found: list[Found]) -> Iterator[Step]:
    side = Side(root=pool.root, pool_guid=0, version=(), sudo=pool.sudo)
    holds = sorted((one for one in found if one.kind == HOLDS), key=lambda one: one.pool)
    for guid, ones in groupby(holds, key=lambda one: one.pool):
        names = tuple(_whole(one) for one in ones)
        for command in commands.release_commands(hold_tag(guid), names, side):
            yield _step(f"release {show_count(len(names), 'snapshot')}", command)
    marks = tuple(_whole(one) for one in found if one.kind == BOOKMARKS)
    marks += tuple(f"{one.dataset}#{one.beside}" for one in holds if one.beside)
    for command in commands.drop_commands(marks, side):
        yield _step(f"drop {show_count(len(marks), 'bookmark')} of ours", command)


def _step(does: str, command: Command) -> Step:
    return Step(
        does=does, why="nobody wants them any more", lane="main", work=Pipeline(stages=(command,)), expected=None
    )
