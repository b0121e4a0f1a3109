"""What is known of rotation sets and their disks: for the table of all, and for one disk."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.app.disk_visits import set_standing
from orchestrator.app.hotplug import left_plugged_in, plugged_in
from orchestrator.disks.detect import held
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Disk, RotationSet, Visit
from orchestrator.history.views import Views
from orchestrator.planners.identify_disk import held_alone
from orchestrator.runner.disk.state import find_known, members, of_set, readings
from orchestrator.views.disks import DiskReport, DiskRow, SetReport

_VISITS, _PLACES = 10, 10


def report_sets(sets: Sequence[RotationSet], jobs: Sequence[Job], views: Views, now: datetime) -> tuple[SetReport, ...]:
    """Return how each set and each of its disks stands."""
    last = last_visits(views)
    return tuple(
        SetReport(
            standing=set_standing(rotation, jobs, views, now=now),
            jobs=tuple(job.name for job in of_set(rotation, jobs)),
            disks=_rows(rotation, jobs, views),
            left=(*left_plugged_in(rotation, last), *held_lines(rotation)) if rotation.disks else (),
        )
        for rotation in sets
    )


def _rows(rotation: RotationSet, jobs: Sequence[Job], views: Views) -> tuple[DiskRow, ...]:
    visits, known = views.disks.last_visits(), views.disks.known()
    own = [(member, find_known(known, member.disk)) for member in members(rotation, of_set(rotation, jobs), views)]
    return tuple(DiskRow(member=one, known=it, last=visits.get(it.disk) if it else None) for one, it in own)


def last_visits(views: Views) -> dict[str, Visit]:
    """Return the last visit of each disk, by its identity."""
    last = views.disks.last_visits()
    return {known.identity: last[known.disk] for known in views.disks.known() if known.disk in last}


def held_lines(rotation: RotationSet) -> list[str]:
    """Render the messages about pools that lost their disk."""
    here, waiting = plugged_in(rotation), held(rotation.disks)
    found = (
        held_alone(disk, hangs=waiting[disk.name])
        for disk in rotation.disks
        if disk.name in waiting and disk.name not in here
    )
    return [f"{each.says}; {each.cure}" for each in found]


def report_disk(
    rotation: RotationSet, disk: Disk, jobs: Sequence[Job], views: Views, now: datetime, forecast: str
) -> DiskReport:
    """Return all that is known of one disk. `forecast`: its next copy, in words."""
    (row,) = [row for row in _rows(rotation, jobs, views) if row.member.disk == disk]
    known = row.known.disk if row.known else None
    return DiskReport(
        standing=set_standing(rotation, jobs, views, now=now),
        row=row,
        forecast=forecast,
        copies=tuple(readings(of_set(rotation, jobs), disk, views)),
        visits=views.disks.visits(known, _VISITS) if known is not None else (),
        places=views.disks.whereabouts(known, _PLACES) if known is not None else (),
        health=views.disks.last_healths().get(known) if known is not None else None,
    )
