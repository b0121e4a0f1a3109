"""The remembered facts about the disks of a set, combined for the planners; and a job as placed on one disk."""

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime

from orchestrator.domain.age import CLOCKS_DIFFER, is_over
from orchestrator.domain.answers import parse_instant
from orchestrator.domain.authentication import AuthenticationKey
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.rotation import MOUNT_ROOT, POOL_PREFIX, Disk, DiskRecord, DiskState, DiskVisit, RotationSet
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import show_duration
from orchestrator.history.views import HistoryReader
from orchestrator.planners.identify_disk import VisitOutcome
from orchestrator.planners.read_order import ReadItem
from orchestrator.planners.rotation import SetMember

_LOOKED_AT = 50
SCRUBBED = (
    "scrubbed on "  # before the name of a place: a clean scrub read all copies of a job that had come there until then
)
READING = "reading on "  # before the name of a disk and the name of a dataset: a small fact of a job


def jobs_of_set(rotation: RotationSet, jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Return the jobs whose copies go to the set."""
    return tuple(job for job in jobs if job.target.rotates and job.target.name == rotation.name)


def order_jobs(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Sort the jobs, each after those of them that it runs after; no job runs after itself, so this ends."""
    left, turn = list(jobs), list[Job]()
    while left:
        names = {job.name for job in left}
        first = next(job for job in left if not names & set(job.after))
        left.remove(first)
        turn.append(first)
    return tuple(turn)


def job_on_disk(job: Job, disk: Disk, device: str = "") -> Job:
    """Return the job with its place on one disk of its set, which must be attached."""
    path = job.target.location.path
    for space in (f"{MOUNT_ROOT}/", POOL_PREFIX):
        if path.startswith(space + disk.set):
            path = space + disk.name + path.removeprefix(space + disk.set)
            break
    rotation = job.target.rotation
    placed = Place(
        name=disk.name, location=Location(path=path, host=job.target.location.host), disk=disk.name, device=device, reach=reach_commands(disk),
        within=rotation.visit_within if rotation else job.target.within,
    )  # fmt: skip
    return replace(job, target=placed)


def reach_commands(disk: Disk) -> tuple[str, ...]:
    """Return the shell commands that bring a disk to its place, to be read, on a machine without poolferry."""
    name, lines = f"{POOL_PREFIX}{disk.name}", list[str]()
    if disk.inside is not None:
        key = f" --key-file {shlex.quote(disk.key_file)}" if disk.key_file else ""
        lines.append(f"[ -e /dev/mapper/{name} ] || cryptsetup open{key} /dev/disk/by-uuid/{disk.identity} {name}")
    if disk.content == "zfs":
        lines.append(f"zpool list {name} >/dev/null 2>&1 || zpool import -N {name}")
        if (
            disk.inside is None and disk.key_file
        ):  # the pool's own encryption: what lies in it cannot be sent without its key
            key = shlex.quote(f"file://{disk.key_file}")
            lines.append(f'[ "$(zfs get -Ho value keystatus {name})" != unavailable ] || zfs load-key -L {key} {name}')
        return tuple(lines)
    device = f"UUID={disk.inside or disk.identity}"
    folder = f"{MOUNT_ROOT}/{disk.name}"
    return (*lines, f"mkdir -p {folder}", f"mountpoint -q {folder} || mount -o ro {device} {folder}")


def find_disk_record(known: Iterable[DiskRecord], disk: Disk) -> DiskRecord | None:
    """Return what history remembers of a declared disk, by its identity."""
    return next((each for each in known if each.identity == disk.identity), None)


def was_tagged(known: DiskRecord | None, key: AuthenticationKey, views: HistoryReader) -> bool:
    """Return True when the key tagged the marker of a disk the last time that it was written, as far as history knows.

    A generation that was decided and perhaps never written says nothing: the marker may still be the one before.
    """
    if known is None or known.generation != known.written:
        return False
    visits = (visit for visit in views.disks.visits(known.disk, _LOOKED_AT) if visit.outcome != VisitOutcome.REFUSED)
    arrived = next((visit.arrived for visit in visits), known.enrolled)
    return max(known.enrolled, arrived) >= key.made


def survey_set_members(
    rotation: RotationSet, jobs: Sequence[Job], views: HistoryReader, here: Iterable[str] = (), *, now: datetime
) -> tuple[SetMember, ...]:
    """Return the disks of the set with their remembered facts. `here`: names of those that are plugged in.

    What is dated after `now`, by a wrong clock, counts only on a disk that has nothing else.
    """
    known, places, snoozes = views.disks.known(), views.disks.places(), views.disks.snoozes()
    visits, healths = views.disks.last_visits(), views.disks.last_healths()
    latest = now + CLOCKS_DIFFER
    copies = {
        job.name: {copy.place: copy.current_at for copy in views.health_facts(job.name, latest=latest).copies}
        for job in jobs
    }
    plugged = set(here)
    found = []
    for disk in rotation.disks:
        own = find_disk_record(known, disk)
        where = places.get(own.disk) if own else None
        found.append(
            SetMember(
                disk=disk, filled=_filled(disk, copies.values()), enrolled=own.enrolled if own else None,
                standing=own.standing if own else DiskState.ACTIVE, here=disk.name in plugged,
                place=where.place if where else "", snooze=snoozes.get(own.disk) if own else None,
                visited=_visited(visits.get(own.disk)) if own else None,
                ails=_ails(own, visits.get(own.disk), healths.get(own.disk)) if own else None,
            )
        )  # fmt: skip
    return tuple(found)


def is_disk_awaited(jobs: Iterable[Job], views: HistoryReader, since: datetime | None) -> bool:
    """Return True when the newest run of one of these jobs, begun after `since`, waits for a disk. None: nobody asks."""
    newest = () if since is None else (run for job in jobs for run in views.runs(job.name, 1))
    return since is not None and any(run.outcome is Outcome.WAITING and run.begun_at >= since for run in newest)


def _visited(last: DiskVisit | None) -> datetime | None:
    """Return when a disk was let go after its last visit; None: never, or not all of that visit ended well."""
    return last.released if last is not None and last.safe and last.outcome == VisitOutcome.DONE else None


def _ails(known: DiskRecord, last: DiskVisit | None, said: DiskVisit | None) -> dict[str, str] | None:
    """Return problems from `last`, the last visit, and `said`, the last one with health. A slow copy that ended is solved.

    A visit recorded as refused belongs to a disk that only looks like this one, unless it was readopted since.
    """
    slow = last.slow if last else ""
    strange = last is not None and last.outcome == VisitOutcome.REFUSED and last.arrived >= known.enrolled
    refused = last.why if last and strange else ""
    if said is None and last is None:
        return None
    told = {
        "health": said.health if said else "",
        "slow": slow if last and last.outcome != "done" else "",
        "look-alike": refused,
    }
    return {kind: sentence for kind, sentence in told.items() if sentence}


def _filled(disk: Disk, copies: Iterable[dict[str, datetime]]) -> datetime | None:
    """Return the time up to which the disk holds all jobs of its set; None: a copy is missing, or there is no job."""
    instants = [each.get(disk.name) for each in copies]
    return None if not instants or None in instants else min(filter(None, instants))


def is_paused(job: Job, views: HistoryReader, now: datetime) -> bool:
    """Return True while a person holds the job's automatic runs up."""
    pause = views.due_runs.pauses().get(job.name)
    return pause is not None and (pause.until is None or pause.until > now)


def explain_not_due(job: Job, disk: Disk, views: HistoryReader, now: datetime) -> str:
    """Return why a job of the set does not run on a disk that was plugged in; empty: it runs."""
    if is_paused(job, views, now):
        return "it is paused"
    if job.min_interval is None:
        return ""
    place = str(job_on_disk(job, disk).target.location)
    begun = next((run.begun_at for run in views.runs(job.name, _LOOKED_AT) if run.target == place), None)
    if begun is None or is_over(begun, job.min_interval, now):
        return ""
    return f"its last run on this disk began {show_duration((now - begun).total_seconds())} ago, and min-interval is {show_duration(job.min_interval)}"


def readings_on_disk(jobs: Iterable[Job], disk: Disk, views: HistoryReader) -> tuple[ReadItem, ...]:
    """Return the data of these jobs on the disk, each with the time of its last reading."""
    units = list[ReadItem]()
    for job in jobs:
        datasets = READING + disk.name + " "
        if disk.content == "zfs":
            told = views.facts_below(job.name, datasets, parse_instant)
            units += [ReadItem(name=name, read_at=at) for name, at in told.items()]
        else:
            there = (point for point in views.points(job.name) if point.place == disk.name)
            units += [
                ReadItem(name=point.name, read_at=point.whole_at, suspect=point.sound is False) for point in there
            ]
    return tuple(units)
