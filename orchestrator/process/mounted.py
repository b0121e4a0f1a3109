"""The filesystem that holds a path of this machine, as the kernel tells it, and the path inside it."""

import errno
import os

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import unescape_mount_path
from orchestrator.process.background import nameless_file

# Filesystems without a block device of their own whose mounts say truly which folder of them they show; those of a host do not.
_WITH_ROOTS = {"btrfs", "tmpfs", "ramfs", "devtmpfs", "zfs", "overlay", "bcachefs"}
_KEPT_BLOCKS = (
    4096  # that ext4 keeps for itself, or a fiftieth of all. Source: fs/ext4/super.c, ext4_calculate_resv_clusters
)
Mount = tuple[str, str, str, str]  # number, device, root and mountpoint
Mounts = list[Mount]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """A mounted filesystem: type, the folder of it that is mounted, where, on which device, its number, and its own options."""

    kind: str
    root: str
    point: str
    device: str
    number: int
    options: tuple[str, ...] = ()


def read_mounted(path: str) -> Mounted:
    """Return what holds a path. Raises: OSError, ValueError where the kernel tells nothing. Source: proc(5), mountinfo.

    Why by the mount's number: by its path it could be one that lies hidden below a later mount.
    """
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{fd}", "rb") as told:
            number = next((line.split()[1] for line in told if line.startswith(b"mnt_id:")), b"")
        with open("/proc/self/mountinfo", "rb") as mounts:
            line = next((line for line in mounts if line.split(b" ", 1)[0] == number), b"")
        words, _, rest = line.partition(b" - ")
        root, point = (word.decode("ascii", "backslashreplace") for word in words.split(b" ")[3:5])
        kind, device, options = (word.decode("ascii", "backslashreplace") for word in rest.split(b" ")[:3])
        return Mounted(
            kind=kind, root=root, point=point, device=device, number=os.fstatvfs(fd).f_fsid,
            options=tuple(options.strip().split(",")),
        )  # fmt: skip
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerPath:
    """A path inside a filesystem: one folder has one, by whichever mounts it is reached.

    `device`: the kernel's number of the filesystem; `number`: that of what holds the path (st_dev), which subvolumes have of their own.
    """

    device: str
    path: str
    number: int = 0

    def lies_in(self, other: "InnerPath") -> bool:
        """Return True when it is the other one, or lies below that."""
        return self.device == other.device and f"{self.path.rstrip('/')}/".startswith(f"{other.path.rstrip('/')}/")


def find_inner_path(path: str, mounts: Mounts | None = None) -> InnerPath | None:
    """Return the path inside its filesystem, whether something is there or not; None where the kernel does not tell.

    `mounts`: as `read_mounts` has just found them; who asks of several paths reads them once.
    """
    try:
        real = there = os.path.realpath(path)
        while not os.path.lexists(there):
            there = os.path.dirname(there)
        fd = os.open(there, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with open(f"/proc/self/fdinfo/{fd}", "rb") as told:
                mount_id = next((line.split()[1].decode() for line in told if line.startswith(b"mnt_id:")), "")
            number = os.fstat(fd).st_dev
        finally:
            os.close(fd)
        return next((_inside(real, number, mount) for mount in mounts or read_mounts() if mount[0] == mount_id), None)
    except OSError:
        return None


def _takes(folder: str, needed: int) -> bool:
    """Return whether so many bytes have room in a file in the folder, which has no name and is gone at once. Raises: OSError, for another reason."""
    try:
        with nameless_file(folder) as file:
            os.posix_fallocate(file.fileno(), 0, needed)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return False
        raise
    return True


def explain_unwritable(path: str, needed: int) -> str:
    """Return why nothing can be written on the filesystem of a folder; empty: it can, or it is not known. `needed`: bytes.

    Why not by the mount alone: a service may see the folder by a mount that is read-only for it. Why by the folder's owner: who only
    looks may be another one than who writes, and root may use what a filesystem keeps for it. Why it is tried, in a file without a name:
    ext4 keeps some 16 MiB from root, too, which it counts as free.
    """
    try:
        seen = os.statvfs(path)
        roots = os.stat(path).st_uid == 0
        if seen.f_blocks and seen.f_bavail * seen.f_frsize < needed and not seen.f_flag & os.ST_RDONLY:
            kept = min(seen.f_blocks // 50, _KEPT_BLOCKS)
            left = (seen.f_bfree - kept if roots else seen.f_bavail) * seen.f_frsize
            if not (_takes(path, needed) if os.geteuid() == 0 and roots else left >= needed):
                return "its filesystem is full"
        if seen.f_flag & os.ST_RDONLY and "ro" in read_mounted(path).options:
            return "its filesystem is mounted read-only"
    except (OSError, ValueError):
        return ""
    return ""


def find_mounts_below(path: str, mounts: Mounts) -> tuple[tuple[str, InnerPath], ...]:
    """Return the path below the folder, and what is mounted there, for each mount below a folder; none where that is exchanged just now."""
    try:
        front = os.path.join(os.path.realpath(path), "")
    except OSError:  # realpath itself reads a link that is none any more
        return ()
    return tuple(
        (point.removeprefix(front), InnerPath(device=device, path=root))
        for _, device, root, point in mounts
        if point.startswith(front) and point != front
    )


def _inside(real: str, number: int, mount: Mount) -> InnerPath | None:
    """Return the path inside the mounted filesystem; None when the mount's own path leads elsewhere, as in a chroot."""
    _, device, root, point = mount
    front = os.path.join(point, "")
    if f"{real}/".startswith(front):
        path = os.path.join(root, f"{real}/".removeprefix(front)).rstrip("/") or "/"
        return InnerPath(device=device, path=path, number=number)
    return None


def read_mounts() -> Mounts:
    """Return each mount here that says which folder of its filesystem it is. Raises: OSError."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return [mount for line in file if (mount := parse_mount(line))]


def parse_mount(line: str) -> Mount | None:
    """Return number, device, root and mountpoint of a mount; None where it may show another folder than it says.

    Source: proc(5), mountinfo; fs/nfs/super.c, nfs_show_path: of every export of one server "/" on one device.
    """
    number, _, device, root, point, rest = line.split(" ", 5)
    if device.startswith("0:") and rest.partition(" - ")[2].split(" ")[0] not in _WITH_ROOTS:
        return None
    return number, device, unescape_mount_path(root), unescape_mount_path(point)
