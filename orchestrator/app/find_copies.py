"""All copies of a job's source, from history and from the places themselves, and the one that a restore takes."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError, TargetUnable
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.rotation import DiskState
from orchestrator.domain.run import Outcome, RunType
from orchestrator.domain.units import Seconds, show_count
from orchestrator.history.values import PointRecord
from orchestrator.planners.choose_copy import (
    NOT_PLUGGED_IN,
    CandidatePoint,
    CopyCandidate,
    PastTransfer,
    choose_copy,
    estimate_duration,
    fetch_sentence,
)
from orchestrator.runner.disk.state import find_disk_record
from orchestrator.runner.problems import missing_parts
from orchestrator.views.copies import CopySearchResult, RestoreGoal

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.history.views import HistoryReader

_RUNS = 50


def find_copies(
    settings: "Settings", job: Job, *, at: datetime | None = None, name: str | None = None, path: bytes = b""
) -> CopySearchResult:
    """Find all copies of a job's source; read every place that can be reached now. Raises: HistoryError.

    `path`: what is to be brought back, below a point; empty: all.
    """
    known = settings.configuration()
    jobs = [each for each in known.jobs if each.copies and each.tree == job.tree]
    with settings.views() as views:
        here = _disks_here(settings, jobs, views)
        copies = tuple(copy for each in jobs for copy in _of_job(settings, each, views, here))
        choice = choose_copy(copies, at=at, name=name)
        past = [went for each in jobs for went in _went(views, each.name)]
    size = choice.point.bytes if choice.point else None
    return CopySearchResult(
        job=job, copies=copies, choice=choice, takes=estimate_duration(size, past), goals=restore_goals(job, os.fsdecode(path))
    )  # fmt: skip


def _disks_here(settings: "Settings", jobs: Sequence[Job], views: "HistoryReader") -> dict[str, str]:
    """Return why plugged-in disks cannot be read, by name; empty: they can, also where they were switched off."""
    disks = [disk for job in jobs if job.target.rotation is not None for disk in job.target.rotation.disks]
    if not disks:
        return {}
    from orchestrator.disks.detect import survey_devices
    from orchestrator.disks.power import find_asleep
    from orchestrator.planners.identify_disk import DeviceState, identify_devices

    with compose.make_reader(jobs[0], compose.make_stop_request(None), settings.log) as reader:
        found = identify_devices(survey_devices(reader), disks, views.disks.known())
    asleep = {disk.name: "" for disk in disks if find_asleep(disk) is not None}  # a restore wakes them
    return asleep | {
        each.disk.name: "" if each.state is DeviceState.TO_VERIFY else each.says for each in found if each.disk
    }


def _of_job(settings: "Settings", job: Job, views: "HistoryReader", here: dict[str, str]) -> Iterator[CopyCandidate]:
    records, memory = views.points(job.name), views.memory(job.name)
    if job.target.rotation is not None:
        for copy in _of_disks(job, records, views, here):
            yield replace(copy, points=tuple(_with_missing(point, memory, copy.place) for point in copy.points))
        return
    own = [each for each in records if each.place == job.target.name]
    try:
        there = {point.name: point for point in _look(settings, job, bool(own), memory)}
    except TargetUnable as error:
        away = f"{error.why}{'' if error.why.endswith('?') else ':'} {error.hint}"
        yield CopyCandidate(job=job.name, place=job.target.name, points=_candidate_points(own), away=away)
        return
    except OrchestratorError as error:
        yield CopyCandidate(job=job.name, place=job.target.name, points=_candidate_points(own), away=error.why)
        return
    if own and not there:
        away = "nothing is there any more: see whether its disk is mounted"
        yield CopyCandidate(job=job.name, place=job.target.name, points=_candidate_points(own), away=away)
        return
    remembered = {each.name: each for each in own}
    told = (_candidate_point(point, remembered.get(name)) for name, point in there.items())
    points = [_with_missing(point, memory, job.target.name) for point in told]
    yield CopyCandidate(job=job.name, place=job.target.name, points=tuple(sorted(points, key=_by_time)))


def _with_missing(point: CandidatePoint, memory: Mapping[str, str], place: str) -> CandidatePoint:
    return replace(point, missing=missing_parts(memory, place, point.name))


def _look(settings: "Settings", job: Job, held: bool, memory: Mapping[str, str]) -> tuple[RestorePoint, ...]:
    from orchestrator.engines.registry import load_engine
    from orchestrator.runner.last_look import look_at_place

    with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
        return look_at_place(job, load_engine(job.engine), reader, held=lambda: held, remembered=lambda: memory)


def _of_disks(
    job: Job, records: Sequence[PointRecord], views: "HistoryReader", here: dict[str, str]
) -> Iterator[CopyCandidate]:
    rotation = job.target.rotation
    if rotation is None:
        return
    known, places = views.disks.known(), views.disks.places()
    for disk in rotation.disks:
        own = find_disk_record(known, disk)
        standing = own.standing if own else DiskState.ACTIVE
        where = places.get(own.disk) if own else None
        away = here.get(disk.name, NOT_PLUGGED_IN)
        if standing is not DiskState.ACTIVE:
            away = f"it is {standing.value}"
        yield CopyCandidate(
            job=job.name, place=disk.name, disk=disk.called, away=away, where=where.place if where and disk.name not in here else "",
            points=_candidate_points([each for each in records if each.place == disk.name]),
        )  # fmt: skip


def _candidate_points(records: Sequence[PointRecord]) -> tuple[CandidatePoint, ...]:
    told = [_remembered(each) for each in records]
    return tuple(sorted(filter(None, told), key=_by_time))


def _remembered(record: PointRecord) -> CandidatePoint | None:
    taken = record.taken_at or record.made_at
    if taken is None:
        return None
    return CandidatePoint(
        name=record.name, taken=taken, at=max(taken, record.confirmed_at or taken), sound=record.sound,
        verified=record.verified_at is not None, read_at=record.whole_at, entries=record.entries, bytes=record.bytes,
    )  # fmt: skip


def _candidate_point(point: RestorePoint, record: PointRecord | None) -> CandidatePoint:
    """Return the recorded facts of a point; without a record, a manifest beside it shows that it was complete."""
    told = _remembered(record) if record else None
    if told is None or record is None:
        return CandidatePoint(
            name=point.name,
            taken=point.taken,
            at=point.taken,
            verified=point.manifest is not None,
            sound=False if point.damaged else None,
        )
    return told


def _by_time(held: CandidatePoint) -> tuple[datetime, str]:
    return held.taken, held.name


def _went(views: "HistoryReader", job: str) -> Iterator[PastTransfer]:
    for run in views.runs(job, _RUNS):
        notifications = run.kind in (RunType.RESTORE, RunType.DRILL, RunType.RUN) and run.outcome is Outcome.DONE
        if notifications and run.moved_bytes and run.took_s:
            yield PastTransfer(kind=run.kind.value, run=run.id, bytes=run.moved_bytes, took=Seconds(run.took_s))


def restore_goals(job: Job, path: str) -> tuple[RestoreGoal, ...]:
    """Return what is to be brought back, each to the place that it came from; a file of a dataset to where the person stands."""
    if not job.source.path.startswith("/"):
        return (RestoreGoal(path=path, to=f"./{path.rpartition('/')[2]}" if path else str(job.source)),)
    paths = (path,) if path else job.tree.parts or ("",)
    places = [(each, job.source / each if each else job.source) for each in paths]
    return tuple(
        RestoreGoal(path=each, to=str(place), in_the_way="" if place.host else _held_at(place.path))
        for each, place in places
    )


def _held_at(path: str) -> str:
    """Describe what exists there; empty: nothing."""
    if not os.path.lexists(path):
        return ""
    if os.path.islink(path) or not os.path.isdir(path):
        return f"{show_name(path)} is there"
    try:
        many = len(os.listdir(path))
    except OSError:
        return f"{show_name(path)} is there, and cannot be read"
    return f"{show_name(path)} holds {show_count(many, 'entry', 'entries')}" if many else ""


def find_better_copies(
    found: CopySearchResult,
    job: Job,
    say: Callable[[str, str], str],
    *,
    at: datetime | None = None,
    name: str | None = None,
) -> tuple[tuple[CopyCandidate, CandidatePoint, str], ...]:
    """Return the copies that are newer than the one that a restore of this job would take, each with its hint or command.

    `say`: makes the command of the same restore from another job's copy, at a point.
    """
    choice = found.choice
    own = [copy.newest(at, name) for copy in found.copies if copy.job == job.name and not copy.away]
    mine = max((point for point in own if point), key=lambda point: point.at, default=None)
    told = [(copy, point, fetch_sentence(copy, point, mine)) for copy, point in choice.newer]
    copy, point = choice.copy, choice.point
    if copy and point and copy.job != job.name and (mine is None or point.at > mine.at):
        told.append((copy, point, say(copy.job, point.name)))
    return tuple(told)
