"""All copies of a job's source, from history and from the places themselves, and the one that a restore takes."""

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.point import Point
from orchestrator.domain.rotation import Standing
from orchestrator.domain.run import Kind, Outcome
from orchestrator.domain.units import Seconds, show_count
from orchestrator.history.values import PointRecord
from orchestrator.planners.choose_copy import Copy, Held, Went, choose_copy, estimate, fetch_sentence
from orchestrator.runner.disk.state import find_known
from orchestrator.views.copies import Found

if TYPE_CHECKING:
    from orchestrator.app.settings import Frame
    from orchestrator.history.views import Views

_RUNS = 50


def find_copies(frame: "Frame", job: Job, *, at: datetime | None = None, name: str | None = None) -> Found:
    """Find all copies of a job's source; read every place that can be reached now. Raises: HistoryError."""
    known = frame.configuration()
    jobs = [each for each in known.jobs if each.copies and each.source == job.source]
    with frame.views() as views:
        here = _disks_here(frame, jobs, views)
        copies = tuple(copy for each in jobs for copy in _of_job(frame, each, views, here))
        choice = choose_copy(copies, at=at, name=name)
        past = [went for each in jobs for went in _went(views, each.name)]
    size = choice.point.bytes if choice.point else None
    return Found(
        job=job, copies=copies, choice=choice, takes=estimate(size, past), in_the_way=_in_the_way(job)
    )  # fmt: skip


def _disks_here(frame: "Frame", jobs: Sequence[Job], views: "Views") -> frozenset[str]:
    """Return the names of the removable disks that are plugged in, and are what they should be."""
    disks = [disk for job in jobs if job.target.rotation is not None for disk in job.target.rotation.disks]
    if not disks:
        return frozenset()
    from orchestrator.disks.detect import survey_devices
    from orchestrator.planners.identify_disk import State, recognise

    with compose.reader(jobs[0], compose.stop_for(None), frame.log) as reader:
        found = recognise(survey_devices(reader), disks, views.disks.known())
    return frozenset(each.disk.name for each in found if each.disk and each.state is State.TO_PROVE)


def _of_job(frame: "Frame", job: Job, views: "Views", here: frozenset[str]) -> Iterator[Copy]:
    records = views.points(job.name)
    if job.target.rotation is not None:
        yield from _of_disks(job, records, views, here)
        return
    own = [each for each in records if each.place == job.target.name]
    try:
        there = {point.name: point for point in _look(frame, job)}
    except OrchestratorError as error:
        yield Copy(job=job.name, place=job.target.name, points=_held(own), away=error.why)
        return
    if own and not there:
        away = "nothing is there any more: see whether its disk is mounted"
        yield Copy(job=job.name, place=job.target.name, points=_held(own), away=away)
        return
    remembered = {each.name: each for each in own}
    points = [_seen(point, remembered.get(name)) for name, point in there.items()]
    yield Copy(job=job.name, place=job.target.name, points=tuple(sorted(points, key=_by_time)))


def _look(frame: "Frame", job: Job) -> tuple[Point, ...]:
    from orchestrator.engines.registry import engine

    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return engine(job.engine).points(job, reader)


def _of_disks(job: Job, records: Sequence[PointRecord], views: "Views", here: frozenset[str]) -> Iterator[Copy]:
    rotation = job.target.rotation
    if rotation is None:
        return
    known, places = views.disks.known(), views.disks.places()
    for disk in rotation.disks:
        own = find_known(known, disk)
        standing = own.standing if own else Standing.ACTIVE
        where = places.get(own.disk) if own else None
        away = "" if disk.name in here else "it is not plugged in"
        if standing is not Standing.ACTIVE:
            away = f"it is {standing.value}"
        yield Copy(
            job=job.name, place=disk.name, disk=disk.called, away=away, where=where.place if where else "",
            points=_held([each for each in records if each.place == disk.name]),
        )  # fmt: skip


def _held(records: Sequence[PointRecord]) -> tuple[Held, ...]:
    told = [_remembered(each) for each in records]
    return tuple(sorted(filter(None, told), key=_by_time))


def _remembered(record: PointRecord) -> Held | None:
    taken = record.taken_at or record.made_at
    if taken is None:
        return None
    return Held(
        name=record.name, taken=taken, at=max(taken, record.confirmed_at or taken), sound=record.sound,
        proved=record.proved_at is not None, read_at=record.whole_at, entries=record.entries, bytes=record.bytes,
    )  # fmt: skip


def _seen(point: Point, record: PointRecord | None) -> Held:
    """Return the recorded facts of a point; without a record, a manifest beside it shows that it was complete."""
    told = _remembered(record) if record else None
    if told is None or record is None:
        return Held(
            name=point.name,
            taken=point.taken,
            at=point.taken,
            proved=point.manifest is not None,
            sound=False if point.damaged else None,
        )
    return told


def _by_time(held: Held) -> tuple[datetime, str]:
    return held.taken, held.name


def _went(views: "Views", job: str) -> Iterator[Went]:
    for run in views.runs(job, _RUNS):
        telling = run.kind in (Kind.RESTORE, Kind.DRILL, Kind.RUN) and run.outcome is Outcome.DONE
        if telling and run.moved_bytes and run.took_s:
            yield Went(kind=run.kind.value, run=run.id, bytes=run.moved_bytes, took=Seconds(run.took_s))


def _in_the_way(job: Job) -> str:
    """Describe what exists at the source's place; empty: nothing, or a place that only the restore itself checks."""
    path = job.source.path
    if job.source.host is not None or not path.startswith("/") or not os.path.lexists(path):
        return ""
    try:
        many = len(os.listdir(path))
    except OSError:
        return f"{show_name(path)} is there, and is no folder that can be read"
    return f"{show_name(path)} holds {show_count(many, 'entry', 'entries')}" if many else ""


def better(
    found: Found, job: Job, *, at: datetime | None = None, name: str | None = None
) -> tuple[tuple[Copy, Held, str], ...]:
    """Return the copies that are newer than what a restore of this job would take, each with its hint or command."""
    choice = found.choice
    own = [copy.newest(at, name) for copy in found.copies if copy.job == job.name and not copy.away]
    mine = max((point for point in own if point), key=lambda point: point.at, default=None)
    told = [(copy, point, fetch_sentence(copy, point, mine)) for copy, point in choice.newer]
    copy, point = choice.copy, choice.point
    if copy and point and copy.job != job.name and (mine is None or point.at > mine.at):
        told.append((copy, point, f"poolferry restore run {copy.job} --point {point.name}"))
    return tuple(told)
