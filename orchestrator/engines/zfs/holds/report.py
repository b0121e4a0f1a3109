"""Our holds and bookmarks: the job that needs each, the space that it uses, and the release of those not needed.

A pool that is away now may still need its pins: unknown ones stay as long as one of the jobs' places was not surveyed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import groupby

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Command, Pipeline, Step
from orchestrator.domain.units import show_count, show_duration
from orchestrator.engines.contract.holds import Pin, PinReport
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.holds.survey import BOOKMARKS, HOLDS, HoldOrBookmark, PinSurvey, PoolPins, pool_of
from orchestrator.engines.zfs.model import SideSurvey
from orchestrator.engines.zfs.options import ZfsOptions, options_of
from orchestrator.engines.zfs.plan.context import parent_dataset
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_tag,
    parse_bookmark_guid,
    parse_cursor_bookmark,
    replication_target_id,
)

# The job that needs each pin.


def judge_pins(jobs: Iterable[Job], seen: PinSurvey, now: datetime) -> PinReport:
    """Return each hold and bookmark with the job that needs it, and why."""
    known = tuple(jobs)
    guids = {job.name: _target_guid(job, seen) for job in known}
    names = {guid: name for pool in seen.pools for guid, name in pool.pools.items()}
    pins: list[Pin] = []
    for pool in seen.pools:
        own = {(one.dataset, parse_cursor_bookmark(one.name)) for one in pool.found if one.kind == BOOKMARKS}
        for one in pool.found:
            owners = tuple(job for job in known if copies_dataset(job, one.dataset, pool.root))
            job, why = _who_needs_hold(one, owners, guids, now, own)
            if job is None and one.kind == HOLDS and (back := _cut_restore(one, pool, known, now)):
                job, why = back
            if job is None and one.kind == BOOKMARKS and (chain := _continued_chain(one, pool, owners, guids, seen)):
                job, why = chain
            pins.append(_pin(one, pool, names, job, why))
    return PinReport(pins=tuple(pins), unseen=seen.unseen)


def _target_guid(job: Job, seen: PinSurvey) -> int | None:
    """Return the guid of the pool that a job copies to; None: the survey did not find it."""
    there = pool_of(job.target.location)
    machine = [pool for pool in seen.pools if pool.root.host == there.host]
    return next((guid for pool in machine for guid, name in pool.pools.items() if name == there.path), None)


def copies_dataset(job: Job, dataset: str, pool: Location) -> bool:
    """Return whether a job copies the dataset."""
    options, root = options_of(job), job.source
    if root.host != pool.host or (dataset != root.path and not dataset.startswith(f"{root.path}/")):
        return False
    name = dataset[len(root.path) + 1 :]
    if not options.recursive:
        return not name
    while name:
        if any(fnmatchcase(name, pattern) for pattern in options.exclude):
            return False
        name = parent_dataset(name)
    return True


def _who_needs_hold(
    one: HoldOrBookmark,
    owners: tuple[Job, ...],
    guids: Mapping[str, int | None],
    now: datetime,
    own: Collection[tuple[str, ReplicationTargetId | None]],
) -> tuple[str | None, str]:
    """Return (the job that needs it, or None; why). `own`: the datasets of which each copy has bookmarks."""
    if not owners:
        return None, "no job copies this dataset any more"
    fitting = tuple(job for job in owners if _fits(one, job))
    there = tuple(job for job in fitting if guids[job.name] == one.target_id.pool)
    if not there:
        away = next((job for job in fitting if guids[job.name] is None), None)
        if away is None:
            return None, "no job copies it to that place any more"
        return away.name, f"it may be for {away.target.name} ({away.target.location}), which was not seen now"
    if one.kind == BOOKMARKS:
        return _who_needs_bookmark(one, there, own)
    owner = there[0]
    limit = options_of(owner).hold_for
    age = (now - one.since).total_seconds() if one.since else 0.0
    if age > limit:
        return None, f"held for {show_duration(age)}, longer than hold-for ({show_duration(limit)})"
    return owner.name, f"a transfer to {owner.target.name} was cut, and needs it to go on"


def _cut_restore(one: HoldOrBookmark, pool: PoolPins, jobs: tuple[Job, ...], now: datetime) -> tuple[str, str] | None:
    """Return (job, why) for a hold on a copy: a restore from it was cut. None: it is on no copy, or too old."""
    for job in jobs:
        copy = job.target.location
        if copy.host == pool.root.host and f"{one.dataset}/".startswith(f"{copy.path}/"):
            age = (now - one.since).total_seconds() if one.since else 0.0
            limit = options_of(job).hold_for
            return (job.name, "a restore from this copy was cut, and needs it to go on") if age <= limit else None
    return None


def _continued_chain(
    one: HoldOrBookmark,
    pool: PoolPins,
    owners: tuple[Job, ...],
    guids: Mapping[str, int | None],
    seen: PinSurvey,
) -> tuple[str, str] | None:
    """Return (job, why) for a bookmark whose copy is there, in a pool that has another guid since (zpool reguid).

    None: no copy holds its snapshot, or a bookmark with the pool's guid of today is beside it.
    """
    guid = parse_bookmark_guid(one.name)
    for job in owners:
        today = guids[job.name]
        if today is None or not _fits(one, job):
            continue
        copy = job.target.location.path + one.dataset[len(job.source.path) :]
        beside = cursor_bookmark_name(replication_target_id(today, job.target.location), guid)
        held = any(
            guid in each.guids.get(copy, ()) for each in seen.pools if each.root.host == job.target.location.host
        )
        if held and not any(other.name == beside and other.dataset == one.dataset for other in pool.found):
            return (
                job.name,
                f"{copy} holds its snapshot, and the next increment may start from it; its pool has a new guid",
            )
    return None


def _fits(one: HoldOrBookmark, job: Job) -> bool:
    """Return whether a hold or bookmark may be for a job's copy, as far as its name shows the place."""
    target_id = one.target_id
    return target_id.place is None or target_id == replication_target_id(target_id.pool, job.target.location)


def _who_needs_bookmark(
    one: HoldOrBookmark, there: tuple[Job, ...], own: Collection[tuple[str, ReplicationTargetId | None]]
) -> tuple[str | None, str]:
    """Return (job or None, why); a bookmark without a place serves each job that has none of its own there yet."""
    if one.target_id.place is None:
        pool = one.target_id.pool
        there = tuple(
            job for job in there if (one.dataset, replication_target_id(pool, job.target.location)) not in own
        )
    if not there:
        return None, "each job that copies it to that pool has bookmarks of its own by now"
    return there[0].name, f"the next increment to {there[0].target.name} may start from it"


def _pin(one: HoldOrBookmark, pool: PoolPins, names: Mapping[int, str], job: str | None, why: str) -> Pin:
    return Pin(
        kind=one.kind, at=_at(one, pool), target=names.get(one.target_id.pool, f"{one.target_id.pool:016x}"), since=one.since,
        bytes=one.bytes if one.kind == HOLDS else 0, job=job, why=why, tag=_tag(one),
    )  # fmt: skip


def _at(one: HoldOrBookmark, pool: PoolPins) -> Location:
    return Location(path=_whole(one), host=pool.root.host)


def _tag(one: HoldOrBookmark) -> str:
    return hold_tag(one.target_id) if one.kind == HOLDS else ""


def _whole(one: HoldOrBookmark) -> str:
    return f"{one.dataset}{'@' if one.kind == HOLDS else '#'}{one.name}"


# The release.


def plan_release(seen: PinSurvey, pins: PinReport) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
    """Plan the release steps for each pool: holds first, then bookmarks."""
    unwanted = {(pin.at, pin.tag) for pin in pins.pins if pin.job is None}
    planned = []
    for pool in seen.pools:
        found = [one for one in pool.found if (_at(one, pool), _tag(one)) in unwanted]
        if found:
            planned.append((_stand_in_job(pool), tuple(_steps(pool, found))))
    return tuple(planned)


def _stand_in_job(pool: PoolPins) -> Job:
    """Build an artificial job for a pool, so that the history can record actions there."""
    place = Place(name="pins", location=pool.root)
    return Job(
        name="pins", file="", engine="zfs", source=pool.root, target=place, options=ZfsOptions(sudo=pool.sudo),
        pipe=pool.job.pipe,
    )  # fmt: skip


def _steps(pool: PoolPins, found: list[HoldOrBookmark]) -> Iterator[Step]:
    side = SideSurvey(root=pool.root, pool_guid=0, version=(), sudo=pool.sudo)
    holds = sorted((one for one in found if one.kind == HOLDS), key=_tag)
    for tag, ones in groupby(holds, key=_tag):
        names = tuple(_whole(one) for one in ones)
        for command in commands.release_commands(tag, names, side):
            yield _step(f"release {show_count(len(names), 'snapshot')}", command)
    marks = tuple(_whole(one) for one in found if one.kind == BOOKMARKS)
    marks += tuple(f"{one.dataset}#{one.beside}" for one in holds if one.beside)
    for command in commands.destroy_bookmark_commands(marks, side):
        yield _step(f"drop {show_count(len(marks), 'bookmark')} of ours", command)


def _step(action: str, command: Command) -> Step:
    return Step(
        action=action, why="no job needs them any more", worker="main", work=Pipeline(stages=(command,)), expected=None
    )
