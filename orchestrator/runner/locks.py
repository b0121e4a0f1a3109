"""Locks, one run per job and per place: file locks that every child inherits, so a stray child keeps them."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location

if TYPE_CHECKING:
    from orchestrator.domain.device import BlockDevice
    from orchestrator.domain.rotation import Disk

_PAUSE = 0.1
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # what lies above it may be exchanged by its owner just now
VISITS = "/run/poolferry-visits"  # not below /run/poolferry, which systemd removes when the daemon ends


@contextlib.contextmanager
def lock_job(job: Job, state: str, *, wait: Callable[[float], bool], patience: float) -> Iterator[tuple[int, ...]]:
    """Hold the locks of a job's name and place; yield their descriptors. `wait` sleeps; it returns True at a stop request.

    Raises: NotNow when another run holds one for longer than `patience` seconds.
    """
    if os.path.exists(rename_record(state)):
        from orchestrator.runner.lock_holders import refuse_half_renamed

        refuse_half_renamed(rename_record(state), job.name)
    with contextlib.ExitStack() as held:
        folder = f"{state}/locks"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        ours = os.O_RDWR | os.O_CREAT
        names = [(f"{folder}/job-{job.name}", ours), (f"{folder}/place-{job.target.name}", ours)]
        root = job.target.location
        mark = f"{root.path}/.poolferry/target.json"
        busy = f"another run of {job.name}, or one into its place {job.target.name}, is going on"
        all_held = [_hold(held, name, flags, wait, patience, busy) for name, flags in names]
        if (root.host is None or root.host.here) and mark.startswith("/") and os.path.isfile(mark):
            try:  # seen also by a run with another state directory
                all_held.append(_hold(held, mark, os.O_RDONLY | os.O_NONBLOCK, wait, patience, busy))
            except OSError as error:
                if error.errno not in _NOT_THERE:
                    raise
        # A program that hangs on a disk which was pulled out keeps that disk's lock, but not the job's: the job can use other
        # disks of the set meanwhile.
        yield tuple(all_held[1:] if job.target.disk else all_held)


def rename_record(state: str) -> str:
    """Return the path of the record of a rename of a job: while it is there, the rename is not finished."""
    return f"{state}/locks/rename"  # no job has this file for a lock: theirs begin with job-


@contextlib.contextmanager
def lock_names(names: tuple[str, ...], state: str) -> Iterator[None]:
    """Hold the locks of these jobs' names, whatever their places. Raises: NotNow when a run of one goes on."""
    with contextlib.ExitStack() as held:
        os.makedirs(f"{state}/locks", mode=0o700, exist_ok=True)
        for name in names:
            path, busy = f"{state}/locks/job-{name}", f"a run of {name} is going on"
            _hold(held, path, os.O_RDWR | os.O_CREAT, lambda _: False, 0.0, busy)
        yield


@contextlib.contextmanager
def lock_destination(
    to: Location, state: str, *, wait: Callable[[float], bool], patience: float
) -> Iterator[tuple[int, ...]]:
    """Hold the lock of a restore's destination, as `lock_job` does: children of a killed restore may still write there.

    What lies above it is held for others like this one, so that no restore of all of that goes on at the same time.
    Raises: NotNow.
    """
    from hashlib import sha256

    with contextlib.ExitStack() as held:
        os.makedirs(f"{state}/locks", mode=0o700, exist_ok=True)
        above = folders_above(to.path)
        found = list[int]()
        for path in (*above, to.path):
            one, flags = replace(to, path=path), os.O_RDWR | os.O_CREAT
            name = f"{state}/locks/restore-{sha256(os.fsencode(str(one))).hexdigest()[:32]}"
            below = ", or below it," if path == to.path else ""
            busy = f"another restore to {one}{below} is going on"
            found.append(_hold(held, name, flags, wait, patience, busy, shared=path != to.path))
        yield tuple(found)


def folders_above(path: str) -> list[str]:
    """Return the folders, or datasets, above a path, the topmost first."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    front = "/" if path.startswith("/") else ""
    return [front + "/".join(parts[:deep]) for deep in range(1, len(parts))]


@contextlib.contextmanager
def lock_visit(disk: "Disk", state: str, lock_folder: str = VISITS) -> Iterator[None]:
    """Hold the lock of a disk's visit. Raises: NotNow when another one is going on, also with another state directory."""
    with _alone_with((disk.identity,), f"another visit of disk {disk.name} is going on", state, lock_folder):
        yield


@contextlib.contextmanager
def lock_device(device: "BlockDevice", state: str, lock_folder: str = VISITS) -> Iterator[None]:
    """Hold the lock of a device that becomes a disk of a set, and of the visit of the disk that it may already be.

    Raises: NotNow when another process enrolls it or visits it.
    """
    names = (device.disk, *([device.uuid] if device.uuid else ()))
    with _alone_with(names, f"{device.called} is being enrolled or visited already", state, lock_folder):
        yield


@contextlib.contextmanager
def _alone_with(names: tuple[str, ...], busy: str, state: str, lock_folder: str) -> Iterator[None]:
    """Hold the locks of these names. Raises: NotNow, with the text `busy`.

    Why below /run: two schedulers with separate histories must not attach one disk twice. A user who may not write there cannot
    attach a disk either.
    """
    with contextlib.ExitStack() as held:
        folder = visit_lock_folder(state, lock_folder)
        for name in names:
            _hold(held, f"{folder}/visit-{name}", os.O_RDWR | os.O_CREAT, lambda _: False, 0.0, busy)
        yield


def visit_lock_folder(state: str, lock_folder: str = VISITS, *, make: bool = True) -> str:
    """Return the folder of the visits' locks; for a user who may not write below /run one in the state directory."""
    if make:
        with contextlib.suppress(OSError):
            os.makedirs(lock_folder, mode=0o700, exist_ok=True)
    folder = lock_folder if os.access(lock_folder, os.W_OK) else f"{state}/locks"
    if make:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def is_visited(disk: "Disk", state: str, lock_folder: str = VISITS) -> bool:
    """Return True while a visit of the disk goes on, of any poolferry on this machine."""
    return _busy(f"{visit_lock_folder(state, lock_folder, make=False)}/visit-{disk.identity}")


def _hold(
    held: contextlib.ExitStack,
    name: str,
    flags: int,
    wait: Callable[[float], bool],
    patience: float,
    busy: str,
    *,
    shared: bool = False,
) -> int:
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    held.callback(os.close, descriptor)
    left = patience
    while True:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            if flags & os.O_RDWR:  # the owner, for processes that find it busy
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d" % os.getpid(), 0)
            return descriptor
        except BlockingIOError:
            if left <= 0 or wait(_PAUSE):
                from orchestrator.runner import lock_holders as holders

                raise holders.explain_busy_lock(name, busy) from None
            left -= _PAUSE


@contextlib.contextmanager
def lock_point(job: Job, state: str, point: str) -> Iterator[None]:
    """Mark a point as being read, so that [keep] does not remove it meanwhile."""
    os.makedirs(f"{state}/locks", mode=0o700, exist_ok=True)
    descriptor = os.open(_reading_name(job, state, point), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def points_being_read(job: Job, state: str, points: list[str]) -> tuple[str, ...]:
    """Return the points that are being read now."""
    return tuple(point for point in points if _busy(_reading_name(job, state, point)))


def _reading_name(job: Job, state: str, point: str) -> str:
    return f"{state}/locks/reading-{job.name}-{point}"


def _busy(name: str) -> bool:
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
