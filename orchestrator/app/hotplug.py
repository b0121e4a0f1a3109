"""The disks that are plugged in, and since when, by udev's links: no program is started for this where there are any."""

import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from orchestrator.domain.job import Job
from orchestrator.domain.place import Place
from orchestrator.domain.rotation import DiskVisit, RotationSet

LINKS = "/dev/disk/by-uuid"
ON_ATTACH = "on attach"
_BLOCK = "/sys/block"
_READ_AGAIN = 5.0  # seconds; a command asks for each set several times
UNSEEN = "which disks are plugged in cannot be seen: udev keeps no /dev/disk/by-uuid here, and only root reads disks; run the command as root, with sudo"


def find_arrivals(jobs: Iterable[Job], links: str = LINKS, *, state: str = "") -> dict[str, datetime]:
    """Return when the latest disk of each on-attach job was plugged in, by job; no entry: no disk is plugged in.

    A disk that was said to be safe to remove and has not been away since does not count: udev makes its link anew whenever a
    program has written to it.
    """
    waiting = [job for job in jobs if job.schedule == ON_ATTACH and job.target.rotates]
    found = {job.name: _came(job.target, state, links) for job in waiting}
    return {name: came for name, came in found.items() if came is not None}


def find_plugged_in(rotation: RotationSet, links: str = LINKS) -> tuple[str, ...]:
    """Return the names of the disks of a set that are plugged in, including those that were switched off. Without udev, devices are read."""
    from orchestrator.disks.power import find_asleep

    here = frozenset[str]() if not rotation.disks or links != LINKS or has_links() else _read_identities()
    return tuple(
        disk.name for disk in rotation.disks
        if _linked(os.path.join(links, disk.identity)) is not None or disk.identity in here or find_asleep(disk) is not None
    )  # fmt: skip


def has_links() -> bool:
    """Return whether udev keeps links to filesystems here."""
    return os.path.isdir(LINKS)


def sees_disks() -> bool:
    """Return whether it can be seen which disks are plugged in."""
    return has_links() or os.geteuid() == 0


class _Identities:
    """The identities of what the present devices hold, as they were last read."""

    at = 0.0
    known: frozenset[str] = frozenset()


def _read_identities() -> frozenset[str]:
    """Return the identities of what all present devices hold; none where they cannot be read."""
    from orchestrator.disks.detect import list_devices, survey_devices
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.process.executor import Reader

    if not _Identities.at or time.monotonic() - _Identities.at > _READ_AGAIN:
        found = frozenset[str]()
        with contextlib.suppress(OrchestratorError):
            opened = [each.path for each in list_devices(Reader()) if each.above and not each.kind]  # such as of LUKS
            found = frozenset(each.uuid for each in survey_devices(Reader(), opened) if each.uuid)
        _Identities.at, _Identities.known = time.monotonic(), found
    return _Identities.known


def left_plugged_in_lines(
    rotation: RotationSet, visits: Mapping[str, DiskVisit], links: str = LINKS
) -> tuple[str, ...]:
    """Return a line for each disk still plugged in after a successful visit. `visits`: the last one, by identity."""
    here = set(find_plugged_in(rotation, links))
    ended = [(disk, visits.get(disk.identity)) for disk in rotation.disks if disk.name in here]
    return tuple(
        f"disk {disk.called} is still plugged in, and safe to remove since {visit.released.astimezone():%Y-%m-%d %H:%M}: "
        f"a disk that lies here is no protection against fire and theft{_case(visit)}"
        for disk, visit in ended if visit is not None and visit.safe and visit.released is not None
    )  # fmt: skip


def _case(visit: DiskVisit) -> str:
    """Return what must be heeded as the disk is taken out; empty: nothing."""
    from orchestrator.views.visits import case_warning

    return f"; {case_warning(visit.beside)}" if visit.beside else ""


def _came(place: Place, state: str, links: str) -> datetime | None:
    from orchestrator.runner.disk.released import is_released

    rotation = place.rotation
    if rotation is None:
        return None
    came = ((disk, _linked(os.path.join(links, disk.identity))) for disk in rotation.disks)
    instants = [at for disk, at in came if at is not None and (rotation.use_again or not is_released(disk, state))]
    return max(instants, default=None)


def find_held_sets(jobs: Iterable[Job], state: str, now: datetime) -> dict[str, str]:
    """Return why the jobs of a set do not begin now, by the set's name: a visit goes on, or leases hold all disks that are here."""
    from orchestrator.runner.disk.lease import find_lease
    from orchestrator.runner.locks import is_visited

    held = dict[str, str]()
    for rotation in {job.target.name: job.target.rotation for job in jobs if job.target.rotation is not None}.values():
        visited = next((disk for disk in rotation.disks if is_visited(disk, state)), None)
        here = set(find_plugged_in(rotation)) if visited is None else set[str]()
        leases = [find_lease(disk, state, now) for disk in rotation.disks if disk.name in here]
        if visited is not None:
            held[rotation.name] = f"a visit of disk {visited.name} goes on"
        elif leases and (first := leases[0]) is not None and all(leases):
            held[rotation.name] = first.says
    return held


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
