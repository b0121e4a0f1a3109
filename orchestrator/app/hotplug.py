"""The times at which disks of a job's rotation set were plugged in, by udev's links: no program is started for this."""

import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from orchestrator.domain.job import Job
from orchestrator.domain.place import Place
from orchestrator.domain.rotation import DiskVisit, RotationSet

LINKS = "/dev/disk/by-uuid"
ON_ATTACH = "on attach"
_BLOCK = "/sys/block"


def find_arrivals(jobs: Iterable[Job], links: str = LINKS) -> dict[str, datetime]:
    """Return when the latest disk of each on-attach job was plugged in, by job; no entry: no disk is plugged in."""
    waiting = [job for job in jobs if job.schedule == ON_ATTACH and job.target.rotates]
    found = {job.name: _came(job.target, links) for job in waiting}
    return {name: came for name, came in found.items() if came is not None}


def find_plugged_in(rotation: RotationSet, links: str = LINKS) -> tuple[str, ...]:
    """Return the names of the disks of a set that are plugged in, including those that were switched off."""
    from orchestrator.disks.power import find_asleep

    return tuple(
        disk.name for disk in rotation.disks
        if _linked(os.path.join(links, disk.identity)) is not None or find_asleep(disk) is not None
    )  # fmt: skip


def left_plugged_in_lines(
    rotation: RotationSet, visits: Mapping[str, DiskVisit], links: str = LINKS
) -> tuple[str, ...]:
    """Return a line for each disk still plugged in after a successful visit. `visits`: the last one, by identity."""
    here = set(find_plugged_in(rotation, links))
    ended = [(disk, visits.get(disk.identity)) for disk in rotation.disks if disk.name in here]
    return tuple(
        f"disk {disk.called} is still plugged in, and safe to remove since {visit.released.astimezone():%Y-%m-%d %H:%M}: "
        "a disk that lies here is no protection against fire and theft"
        for disk, visit in ended if visit is not None and visit.safe and visit.released is not None
    )  # fmt: skip


def _came(place: Place, links: str) -> datetime | None:
    identities = [disk.identity for disk in place.rotation.disks] if place.rotation else []
    instants = [instant for identity in identities if (instant := _linked(os.path.join(links, identity))) is not None]
    return max(instants, default=None)


def _linked(path: str) -> datetime | None:
    """Return the time of the link. A link to a mapped device of ours whose disk was pulled out does not count."""
    try:
        name = os.path.basename(os.readlink(path))
        below = os.path.join(_BLOCK, name, "slaves")
        if name.startswith("dm-") and not any(os.path.exists(os.path.join(below, each)) for each in os.listdir(below)):
            return None
        return datetime.fromtimestamp(os.lstat(path).st_mtime, UTC)
    except OSError:
        return None
