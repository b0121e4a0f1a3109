"""Known facts about rotation sets and their disks: for the table of all, and for one disk."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.app.disk_visits import survey_set
from orchestrator.app.hotplug import UNSEEN, find_plugged_in, left_plugged_in_lines, sees_disks
from orchestrator.disks.detect import pools_without_disk, survey_devices
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Disk, DiskVisit, RotationSet
from orchestrator.history.views import HistoryReader
from orchestrator.planners.identify_disk import DeviceState, identify_devices, identify_lost_disk
from orchestrator.process.executor import Reader
from orchestrator.runner.disk.lease import find_lease
from orchestrator.runner.disk.state import find_disk_record, jobs_of_set, readings_on_disk, survey_set_members
from orchestrator.runner.locks import is_visited
from orchestrator.views.disks import DiskReport, DiskRow, SetReport

_VISITS, _PLACES = 10, 10


def report_sets(
    sets: Sequence[RotationSet], jobs: Sequence[Job], views: HistoryReader, now: datetime, *, state: str = ""
) -> tuple[SetReport, ...]:
    """Return the state of each set and of each of its disks. `state`: the state directory, with requests for disks."""
    last = last_visits(views)
    return tuple(
        SetReport(
            standing=survey_set(rotation, jobs, views, now=now),
            jobs=tuple(job.name for job in jobs_of_set(rotation, jobs)),
            disks=_rows(rotation, jobs, views, now),
            left=_left(rotation, last, state, now) if rotation.disks else (),
        )
        for rotation in sets
    )


def _left(rotation: RotationSet, last: Mapping[str, DiskVisit], state: str, now: datetime) -> tuple[str, ...]:
    """Return lines about disks that are still plugged in, that somebody uses or waits for, and that were pulled out too early."""
    leases = (find_lease(disk, state, now) for disk in rotation.disks)
    return (
        *(() if sees_disks() else (UNSEEN,)),
        *left_plugged_in_lines(rotation, last),
        *(f"{lease.says}; {lease.hint}" for lease in leases if lease),
        *lost_disk_lines(rotation),
    )


def stranger_lines(sets: Sequence[RotationSet], views: HistoryReader, reader: Reader, state: str) -> tuple[str, ...]:
    """Return a line for each plugged-in device that is no disk of ours, or one that cannot be used. Raises: OutsideError.

    A visit makes its disk read-only while it reads the marker: that is told of no disk.
    """
    disks = [disk for rotation in sets for disk in rotation.disks]
    found = identify_devices(survey_devices(reader), disks, views.disks.known())
    told = (
        each
        for each in found
        if each.state is not DeviceState.TO_VERIFY
        and not (each.disk and each.state is DeviceState.READ_ONLY and is_visited(each.disk, state))
    )
    return tuple(dict.fromkeys(f"{each.says}; {each.hint}" for each in told))


def _rows(rotation: RotationSet, jobs: Sequence[Job], views: HistoryReader, now: datetime) -> tuple[DiskRow, ...]:
    visits, known = views.disks.last_visits(), views.disks.known()
    own = [
        (member, find_disk_record(known, member.disk))
        for member in survey_set_members(rotation, jobs_of_set(rotation, jobs), views, now=now)
    ]
    return tuple(DiskRow(member=one, known=it, last=visits.get(it.disk) if it else None) for one, it in own)


def last_visits(views: HistoryReader) -> dict[str, DiskVisit]:
    """Return the last visit of each disk, by its identity."""
    last = views.disks.last_visits()
    return {known.identity: last[known.disk] for known in views.disks.known() if known.disk in last}


def lost_disk_lines(rotation: RotationSet) -> list[str]:
    """Render the messages about pools that lost their disk."""
    here, waiting = find_plugged_in(rotation), pools_without_disk(rotation.disks)
    found = (
        identify_lost_disk(disk, hangs=waiting[disk.name])
        for disk in rotation.disks
        if disk.name in waiting and disk.name not in here
    )
    return [f"{each.says}; {each.hint}" for each in found]


def report_disk(
    rotation: RotationSet, disk: Disk, jobs: Sequence[Job], views: HistoryReader, now: datetime, forecast: str
) -> DiskReport:
    """Return all that is known of one disk. `forecast`: its next copy, as text."""
    (row,) = [row for row in _rows(rotation, jobs, views, now) if row.member.disk == disk]
    known = row.known.disk if row.known else None
    return DiskReport(
        standing=survey_set(rotation, jobs, views, now=now),
        row=row,
        forecast=forecast,
        copies=tuple(readings_on_disk(jobs_of_set(rotation, jobs), disk, views)),
        visits=views.disks.visits(known, _VISITS) if known is not None else (),
        places=views.disks.whereabouts(known, _PLACES) if known is not None else (),
        health=views.disks.last_healths().get(known) if known is not None else None,
    )
