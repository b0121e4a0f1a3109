"""Trees of many datasets in a machine of the lab, and copies of them for each tool.

A copy is made by copying the pool's disk: the same snapshots with the same guids, without hours of sending.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.lab.virtual import VirtualMachine

SOURCE = "tank"
# Makes datasets by the library that zfs itself uses, unmounted: a program and a mount for each would take minutes.
_MAKE = """
import ctypes, sys
core = ctypes.CDLL("libzfs_core.so.3")
core.lzc_create.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
assert core.libzfs_core_init() == 0
top, count = sys.argv[1], int(sys.argv[2])
for name in [top, *(f"{top}/{number:03}" for number in range(1, count))]:
    failed = core.lzc_create(name.encode(), 2, None, None, 0)
    assert not failed, (name, failed)
"""


def make_trees(machine: VirtualMachine, sizes: Iterable[int], snapshots: int) -> None:
    """A pool with a tree for each size, every dataset with so many snapshots."""
    machine.pool(SOURCE, "8G", disk=True)
    machine.write("/root/make.py", _MAKE)
    for count in sizes:
        machine.sh(["python3", "/root/make.py", tree(count), str(count)], seconds=1800)
        machine.sh("zfs mount -a", seconds=1800)  # a snapshot of what is mounted is made in half the time
        for number in range(snapshots):
            machine.sh(["zfs", "snapshot", "-r", f"{tree(count)}@{snapshot(count, number)}"], seconds=600)


def tree(count: int) -> str:
    """The root of the tree with so many datasets."""
    return f"{SOURCE}/d{count}"


def snapshot(count: int, number: int) -> str:
    """A snapshot's name, as zfs-autobackup wants it: a name of the group and a time, here an hour apart."""
    return f"d{count}-202501{1 + number // 24:02}{number % 24:02}0000"


def copy_pool(machine: VirtualMachine, names: Iterable[str]) -> None:
    """A copy of the whole pool under each name, with a guid of its own; the source alone is mounted, as in real life."""
    machine.sh(["zpool", "export", SOURCE], seconds=600)
    disk = machine.disks[SOURCE]
    machine.yank(disk)
    for name in names:
        copy = machine.disk(name, "8G")
        _copy(disk.path, copy.path)
        machine.plug(copy)
        machine.sh(
            f"udevadm settle; zpool import -N -d {copy.device}-part1 {SOURCE} {name} && zpool reguid {name}",
            seconds=600,
        )
    machine.plug(disk)
    machine.sh(f"udevadm settle; zpool import -d {disk.device}-part1 {SOURCE}", seconds=1800)


def _copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "--sparse=always", "--reflink=auto", source, target], check=True)
