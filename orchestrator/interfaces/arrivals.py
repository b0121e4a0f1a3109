"""Since when disks of a job's rotation set are plugged in, as udev's links tell: no program is started for it.

Reads.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime

from orchestrator.domain.job import Job
from orchestrator.domain.place import Place
from orchestrator.domain.rotation import RotationSet

LINKS = "/dev/disk/by-uuid"
ON_ATTACH = "on attach"


def arrived(jobs: Iterable[Job], links: str = LINKS) -> dict[str, datetime]:
    """When the disk that came last was plugged in, of each job that runs when one is; no entry: none is here."""
    waiting = [job for job in jobs if job.schedule == ON_ATTACH and job.target.rotates]
    found = {job.name: _came(job.target, links) for job in waiting}
    return {name: came for name, came in found.items() if came is not None}


def plugged_in(rotation: RotationSet, links: str = LINKS) -> tuple[str, ...]:
    """The names of the disks of a set that are plugged in."""
    return tuple(disk.name for disk in rotation.disks if _linked(os.path.join(links, disk.identity)) is not None)


def _came(place: Place, links: str) -> datetime | None:
    identities = [disk.identity for disk in place.rotation.disks] if place.rotation else []
    instants = [instant for identity in identities if (instant := _linked(os.path.join(links, identity))) is not None]
    return max(instants, default=None)


def _linked(path: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(os.lstat(path).st_mtime, UTC)
    except OSError:
        return None
