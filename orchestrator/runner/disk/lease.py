"""Leases: who uses a removable disk outside of a visit, or waits for it. Visits leave such a disk alone.

A lease never outlives its reason: the kernel ends that of a command with its process; that of `disks attach` ends when the
disk is let go or pulled out, or when the machine restarts; a request ends by itself after a day.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from orchestrator.domain.answers import bound_instant
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import NotNow
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import MOUNT_ROOT, POOL_PREFIX, Disk
from orchestrator.runner.locks import VISITS, lock_visit, visit_lock_folder

REQUEST_ENDS = timedelta(days=1)
_TRIES, _PAUSE = 50, 0.1  # s; somebody who only looks holds the lock of a visit for less
_POOLS, _DEVICES = "/proc/spl/kstat/zfs", "/sys/class/block"
_MOST = 1 << 16


class LeasePurpose(StrEnum):
    """Kind of a lease: a running command, `disks attach`, or a restore that waits for the disk."""

    COMMAND = "command"
    BY_HAND = "by-hand"
    REQUESTED = "requested"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskLease:
    """A lease on a disk. `purpose`: the command that has it, or asks for the disk; `pid`: its process, while it lives."""

    kind: LeasePurpose
    disk: str
    purpose: str
    since: datetime
    pid: int | None = None

    @property
    def says(self) -> str:
        """Return the sentence for people."""
        since = f"{self.since.astimezone():%Y-%m-%d %H:%M}"
        if self.kind is LeasePurpose.COMMAND:
            return f"disk {self.disk} is in use since {since} by {self.purpose} (process {self.pid}); visits wait until that ends"
        if self.kind is LeasePurpose.BY_HAND:
            return f"disk {self.disk} was attached by hand at {since}, and visits leave it as it is until it is ejected"
        return f"disk {self.disk} is wanted since {since} by {self.purpose}, and visits leave it plugged in and switched on"

    @property
    def hint(self) -> str:
        """Return the command that ends the lease, or serves it."""
        eject = f"poolferry disks eject {self.disk}"
        if self.kind is LeasePurpose.COMMAND:
            return "wait for it; `poolferry status` shows what runs"
        if self.kind is LeasePurpose.BY_HAND:
            return f"when you are done with it: {eject}"
        return f"to go on with the restore: {self.purpose}; to give it up: {eject}"


class DiskLeased(NotNow):
    """A disk that is left alone because of a lease."""

    def __init__(self, lease: DiskLease) -> None:
        super().__init__(lease.says, hint=lease.hint)
        self.lease = lease


def find_lease(
    disk: Disk, state: str, now: datetime, *, requests: bool = True, folder: str = VISITS
) -> DiskLease | None:
    """Return the strongest lease on a disk; None: there is none. No program is started. `requests`: those count, too."""
    where = visit_lock_folder(state, folder, make=False)
    return (
        _find_command(disk, where)
        or _find_by_hand(disk, where)
        or (_find_request(disk, state, now) if requests else None)
    )


def refuse_leased(disk: Disk, state: str, now: datetime, *, requests: bool, folder: str = VISITS) -> None:
    """Check that no lease forbids a visit, whose lock the caller holds. Raises: DiskLeased."""
    if lease := find_lease(disk, state, now, requests=requests, folder=folder):
        raise DiskLeased(lease)


# A command that reads from the disk.


@contextlib.contextmanager
def hold_disk(disk: Disk, purpose: str, state: str, now: datetime, *, folder: str = VISITS) -> Iterator[None]:
    """Hold an attached disk while the block runs; the lease ends with this process, however it ends.

    Raises: NotNow while a visit goes on. Why first the lease and then a look at the lock: a visit takes the lock first and then
    looks for leases, so one of the two always sees the other.
    """
    path, descriptor = _publish(disk, purpose, visit_lock_folder(state, folder), now)
    try:
        _wait_for_visit(disk, state, folder)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _publish(disk: Disk, purpose: str, folder: str, now: datetime) -> tuple[str, int]:
    text = json.dumps({"purpose": purpose, "pid": os.getpid(), "since": now.isoformat()}).encode()
    while True:
        path = f"{folder}/lease-{disk.identity}-{os.urandom(16).hex()}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.write(descriptor, text)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(
            descriptor
        ).st_nlink:  # else somebody found it before it was locked, and took it for a left-over one
            return path, descriptor
        os.close(descriptor)


def _wait_for_visit(disk: Disk, state: str, folder: str) -> None:
    for left in reversed(range(_TRIES)):
        try:
            with lock_visit(disk, state, folder):
                return
        except NotNow:
            if not left:
                raise
        time.sleep(_PAUSE)


def _find_command(disk: Disk, folder: str) -> DiskLease | None:
    """Return the lease of a living command; files of dead ones are removed."""
    front = f"lease-{disk.identity}-"
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(front))
    except OSError:
        return None
    found = (_living(disk, os.path.join(folder, name)) for name in names)
    return next((lease for lease in found if lease), None)


def _living(disk: Disk, path: str) -> DiskLease | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        told = _parse(os.pread(descriptor, _MOST, 0))
        return _lease(LeasePurpose.COMMAND, disk, told, os.fstat(descriptor))
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)
        return None
    finally:
        os.close(descriptor)


# A disk that was attached by hand.


def lease_by_hand(disk: Disk, device: BlockDevice, state: str, now: datetime, *, folder: str = VISITS) -> None:
    """Record that a person attached the disk; the caller holds the lock of its visit."""
    told = {"device": device.disk, "sequence": device_sequence(device.disk), "since": now.isoformat()}
    write_note(
        _by_hand(disk, visit_lock_folder(state, folder)), {**told, "purpose": f"poolferry disks attach {disk.name}"}
    )


def end_lease_by_hand(disk: Disk, state: str, *, folder: str = VISITS) -> None:
    """Remove the record, as the disk is let go."""
    with contextlib.suppress(OSError):
        os.unlink(_by_hand(disk, visit_lock_folder(state, folder)))


def _by_hand(disk: Disk, folder: str) -> str:
    return f"{folder}/attached-{disk.identity}"


def _find_by_hand(disk: Disk, folder: str) -> DiskLease | None:
    """Return the lease of `disks attach`, as long as that very device is plugged in and the disk attached."""
    path = _by_hand(disk, folder)
    told = read_note(path)
    if told is None:
        return None
    device, sequence = str(told.get("device", "")), str(told.get("sequence", ""))
    if "/" in device or not device or sequence != device_sequence(device) or not is_attached(disk):
        return None
    return _lease(LeasePurpose.BY_HAND, disk, told, os.stat(path))


def is_attached(disk: Disk) -> bool:
    """Return True when the disk is mounted, or its pool imported, where its copies lie. No program is started."""
    if disk.content == "zfs":
        return os.path.exists(f"{_POOLS}/{POOL_PREFIX}{disk.name}")
    return os.path.ismount(f"{MOUNT_ROOT}/{disk.name}")


def device_sequence(device: str) -> str:
    """Return the kernel's number of a plugged-in disk, which no later one gets. Source: sysfs-block, diskseq; Linux 5.15."""
    try:
        with open(f"{_DEVICES}/{device}/diskseq", encoding="ascii", newline="\n") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


# A restore that waits for the disk.


def request_disk(disk: Disk, command: str, state: str, now: datetime) -> None:
    """Record that a restore, which is said again as `command`, needs the disk: plugged in, it stays on and is not visited."""
    os.makedirs(f"{state}/notes", mode=0o700, exist_ok=True)
    write_note(_request(disk, state), {"purpose": command, "since": now.isoformat()})


def end_request(disk: Disk, state: str) -> None:
    """Remove the request, as the restore has ended or was given up."""
    with contextlib.suppress(OSError):
        os.unlink(_request(disk, state))


def _request(disk: Disk, state: str) -> str:
    return f"{state}/notes/requested-{disk.identity}"


def _find_request(disk: Disk, state: str, now: datetime) -> DiskLease | None:
    path = _request(disk, state)
    told = read_note(path)
    if told is None:
        return None
    lease = _lease(LeasePurpose.REQUESTED, disk, told, os.stat(path))
    return lease if abs(now - lease.since) < REQUEST_ENDS else None


# Small files.


def _lease(kind: LeasePurpose, disk: Disk, told: dict[str, object], stat: os.stat_result) -> DiskLease:
    try:
        since = datetime.fromisoformat(str(told.get("since")))
    except ValueError:
        since = datetime.fromtimestamp(stat.st_mtime, UTC)
    pid = told.get("pid")
    return DiskLease(
        kind=kind, disk=disk.name, purpose=str(told.get("purpose") or "another command"),
        since=bound_instant(since if since.tzinfo else since.replace(tzinfo=UTC)), pid=pid if isinstance(pid, int) else None,
    )  # fmt: skip


def write_note(path: str, told: dict[str, object]) -> None:
    """Write a small file of ours, whole or not at all. Raises: OSError."""
    new = f"{path}.{os.getpid()}.new"
    with open(new, "w", encoding="utf-8") as file:
        json.dump(told, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def read_note(path: str) -> dict[str, object] | None:
    """Return what a small file of ours says; None: there is none."""
    try:
        with open(path, "rb") as file:
            return _parse(file.read(_MOST))
    except OSError:
        return None


def _parse(text: bytes) -> dict[str, object]:
    """Return what the file says; nothing when it is cut: the lease counts all the same."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
