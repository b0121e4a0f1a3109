"""The number of rsyncs side by side where the job file says none: by what the two places are, and the processors.

Measured: tests/bench/README.md.
"""

import glob
import os
from enum import Enum

from orchestrator.domain.job import Job
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.rsync.model import SideBySide
from orchestrator.engines.rsync.options import options_of
from orchestrator.process.mounted import read_mounted

LEAST_ENTRIES = 20_000  # below, the lists of paths and a second program take what they would save
_DEVICES = "/sys/dev/block"
_SIDE_BY_SIDE = 2
_IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs"}
_FAR = {"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "fuse.sshfs", "fuse.glusterfs", "afs"}
_IN_MANIFEST = 30  # bytes that an entry takes there, at least
_DEEPEST = 8  # devices that lie on one another: a mapper on a RAID on partitions, or an image file on such


class Storage(Enum):
    """The kinds of storage, in the words of a plan; of several that make one, the last of these counts."""

    MEMORY = "memory"
    SOLID = "solid state"
    VIRTUAL = "a virtual disk"
    UNKNOWN = "of a kind that is not known"
    NETWORK = "on another machine"
    SPINNING = "a disk that may spin"


_QUICK = {Storage.MEMORY, Storage.SOLID}
_ORDER = list(Storage)


def choose_side_by_side(job: Job, entries: int) -> SideBySide:
    """Return how many rsyncs make a first copy of so many entries: as the job says, else by the two places.

    Why root: another user could not write any more into a folder to which another rsync has given its mode.
    """
    options = options_of(job)
    if options.parallel is not None:
        return SideBySide(count=options.parallel, why="")
    if not options.points or options.fake_super or entries < LEAST_ENTRIES:
        return SideBySide(count=1, why="")
    if host := job.source.host or job.target.location.host:
        way = "from" if job.source.host else "to"
        return SideBySide(count=1, why=f"one rsync, as it goes over the network {way} {host.name}")
    return _choose_by_places(job, job.source.path, job.target.location.path)


def choose_for_restore(job: Job, point: RestorePoint, tree: str, to: str) -> int:
    """Return how many rsyncs bring a folder of a point back within this machine: as the job says, else by the two places.

    How much there is tells the size of the point's manifest: to list the point would take longer than to bring a little back.
    """
    options = options_of(job)
    if options.parallel is not None:
        return options.parallel
    return _choose_by_places(job, tree, to).count if not options.fake_super and lists_many(point, LEAST_ENTRIES) else 1


def count_ahead(job: Job, source: str, target: str) -> int:
    """Return how many programs write small files before one rsync copies within this machine.

    Two where nothing says that a disk turns: rsync itself reads and writes at once. None where a filesystem is of another machine, for there
    rsync's two halves wait side by side.
    """
    kinds = storage_of(source), storage_of(target)
    if Storage.NETWORK in kinds:
        return 0
    alone = Storage.SPINNING in kinds or options_of(job).parallel is not None
    return 1 if alone or len(os.sched_getaffinity(0)) < _SIDE_BY_SIDE else _SIDE_BY_SIDE


def lists_many(point: RestorePoint, entries: int) -> bool:
    """Return whether a point's manifest, on this machine, is as large as one of so many entries is at least."""
    if point.manifest is None or point.manifest.host:
        return False
    try:
        return os.stat(point.manifest.path, follow_symlinks=False).st_size >= entries * _IN_MANIFEST
    except OSError:
        return False


def _choose_by_places(job: Job, source: str, target: str) -> SideBySide:
    if os.geteuid():
        return SideBySide(count=1, why="one rsync, as only root may let several write into one tree")
    if job.pipe.rate_limit:
        return SideBySide(count=1, why="one rsync, as `rate-limit` is for one")
    if len(os.sched_getaffinity(0)) < _SIDE_BY_SIDE:
        return SideBySide(count=1, why="one rsync, as there is one processor")
    kinds = storage_of(source), storage_of(target)
    for path, kind in zip((source, target), kinds, strict=True):
        if kind not in _QUICK:
            return SideBySide(
                count=1, why=f"one rsync, as {path} is {kind.value}; `parallel` in [rsync] tells another number"
            )
    same = kinds[0] is kinds[1]
    told = f"both places are {kinds[0].value}" if same else f"it goes from {kinds[0].value} to {kinds[1].value}"
    return SideBySide(count=_SIDE_BY_SIDE, why=f"two rsyncs, as {told}")


def storage_of(path: str) -> Storage:
    """Return what holds a path, or the nearest folder above it that is there."""
    try:
        while not os.path.exists(path):
            path = os.path.dirname(path)
        return _holds(path, _DEEPEST)
    except (OSError, ValueError):
        return Storage.UNKNOWN


def _holds(path: str, deepest: int) -> Storage:
    number = os.stat(path).st_dev
    if os.major(number):
        return _of_device(f"{_DEVICES}/{os.major(number)}:{os.minor(number)}", deepest)
    found = read_mounted(path)
    if found.kind in _IN_MEMORY:
        return Storage.MEMORY
    if found.kind in _FAR:
        return Storage.NETWORK
    if found.kind != "btrfs":  # such as a dataset or an overlay: nothing here says on which devices it lies
        return Storage.UNKNOWN
    devices = _devices_of_btrfs(os.path.basename(os.path.realpath(found.device)))
    return max((_of_device(each, deepest) for each in devices), key=_ORDER.index)


def _devices_of_btrfs(name: str) -> list[str]:
    """Return the folders of all devices of the filesystem that has this one."""
    for all_devices in glob.glob("/sys/fs/btrfs/*/devices"):
        if name in (found := os.listdir(all_devices)):
            return [f"{all_devices}/{each}" for each in found]
    return [f"/sys/class/block/{name}"]


def _of_device(device: str, deepest: int) -> Storage:
    """Return what a block device is: by those that it lies on, by the file of a loop device, or by what the kernel says of it."""
    if not deepest:
        return Storage.UNKNOWN
    found = os.path.realpath(device)
    whole = found if os.path.exists(f"{found}/queue") else os.path.dirname(found)
    if parts := [each for each in (found, whole) if os.path.isdir(f"{each}/slaves") and os.listdir(f"{each}/slaves")]:
        below = [_of_device(f"{parts[0]}/slaves/{name}", deepest - 1) for name in os.listdir(f"{parts[0]}/slaves")]
        return max(below, key=_ORDER.index)
    if os.path.exists(f"{whole}/loop/backing_file"):
        return _holds(_read(f"{whole}/loop/backing_file"), deepest - 1)
    if _is_virtual(whole):
        return Storage.VIRTUAL
    return Storage.SPINNING if _read(f"{whole}/queue/rotational") != "0" else Storage.SOLID


def _is_virtual(device: str) -> bool:
    """Return whether a hypervisor shows the disk: what it lies on is not seen, whatever it says of turning."""
    if "/virtio" in device or "/vbd-" in device:
        return True
    model = f"{device}/device/model"
    return os.path.exists(model) and any(word in _read(model).upper() for word in ("QEMU", "VIRTUAL", "VBOX", "VMWARE"))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return file.read().rstrip("\n")
