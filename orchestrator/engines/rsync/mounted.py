"""The filesystem that holds a path of this machine, as the kernel tells it."""

import os

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """A mounted filesystem: type, the folder of it that is mounted, where, on which device, and its number."""

    kind: str
    root: str
    point: str
    device: str
    number: int


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
        kind, device = (word.decode("ascii", "backslashreplace") for word in rest.split(b" ")[:2])
        return Mounted(kind=kind, root=root, point=point, device=device, number=os.fstatvfs(fd).f_fsid)
    finally:
        os.close(fd)
