"""QEMU's command line for a machine of the lab."""

import functools
import json
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.lab.common import CHECKOUT, Disk

QEMU = "qemu-system-x86_64"
MEMORY = "1024M"
NUMBERS = {"master": 1, "backup": 2}

# Why norandmaps: QEMU translates code anew at every address it is met at, so a program that always lies at the same one
# starts in a quarter of the time (100 x /bin/true: 3.2 to 0.8 s of processor; 15 x zfs list: 1.8 to 0.6 s).
_KERNEL_LINE = (
    "console=ttyS0 root=/dev/vda rw rootfstype=ext4 mitigations=off quiet loglevel=3 net.ifnames=0 panic=-1 "
    "random.trust_cpu=on tsc=reliable no_timer_check init_on_alloc=0 rcupdate.rcu_expedited=1 apparmor=0 audit=0 norandmaps "
    "systemd.show_status=0 systemd.machine_id={number:032x} lab.name={name}"
)

Node = Mapping[str, Any]


@functools.cache
def qemu_version() -> str:
    """The line by which QEMU names itself: a saved state belongs to one version."""
    return subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def root_node(image: Path, top: Path, template: Path | None) -> Node:
    """The root disk: a layer of the machine's own above the template's above the image's.

    Why no-flush: what a guest has flushed has reached the host's kernel, and only the guest's power is ever cut.
    """
    below: Node = {"driver": "raw", "file": _kept(image / "root.raw"), "read-only": True}
    if template:
        below = {"driver": "qcow2", "file": _kept(template / "root.qcow2"), "backing": below, "read-only": True}
    return {"driver": "qcow2", "node-name": "root", "backing": below, **_changing(top)}


def disk_node(disk: Disk, node: str) -> Node:
    """A raw disk under that node name."""
    below = _changing(disk.path)
    if disk.sick:
        broken = [{"event": "none", "iotype": "read", "errno": 5}]
        below = {**below, "file": {"driver": "blkdebug", "image": below["file"], "inject-error": broken}}
    return {"driver": "raw", "node-name": node, "read-only": disk.read_only, **below}


def disk_device(disk: Disk, node: str) -> dict[str, Any]:
    """Return how the disk hangs in the machine."""
    bus: dict[str, Any] = {"driver": "scsi-hd", "bus": "scsi.0"}
    if disk.bus == "usb":
        bus = {"driver": "usb-storage", "bus": "xhci.0", "removable": True}
    return {**bus, "id": node.removeprefix("n-"), "drive": node, "serial": disk.name}


def command_line(
    *, name: str, image: Path, run: Path, root: Node, clock: datetime, disks: Sequence[tuple[Node, Node]] = (),
    memory: Path | None = None, saving: bool = False, restoring: bool = False, room: str = MEMORY,
) -> list[str]:  # fmt: skip
    """The words that start it. `memory`: a file that holds its RAM, written to while `saving`, else only read; `room`: how much."""
    number = NUMBERS[name]
    return [
        QEMU, "-name", name, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-pidfile", str(run / "pid"),
        "-machine", "q35,sata=off,smbus=off,hpet=off" + (",memory-backend=ram" if memory else ""),
        # cmpxchg16b as QEMU 7.2 emulates it makes Debian 13's kernel panic; five-level pages only cost time.
        "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,-cx16,-la57", "-smp", "1", "-m", room,
        "-rtc", f"base={clock:%Y-%m-%dT%H:%M:%S},clock=host", *(_memory(memory, saving, room) if memory else ()),
        "-kernel", str(image / "vmlinux"), "-initrd", str(image / "initrd"),
        "-append", _KERNEL_LINE.format(name=name, number=number),
        "-chardev", f"file,id=serial,path={run}/serial.log", "-serial", "chardev:serial",
        "-qmp", f"unix:{run}/qmp.sock,server=on,wait=off",
        "-chardev", f"socket,id=agent,path={run}/agent.sock,server=on,wait=off",
        "-device", "virtio-serial-pci,id=ports", "-device", "virtserialport,bus=ports.0,chardev=agent,name=lab.agent",
        "-blockdev", json.dumps(root), "-device", "virtio-blk-pci,drive=root",
        "-device", "virtio-rng-pci", "-device", "virtio-scsi-pci,id=scsi", "-device", "vmgenid,guid=auto",
        "-device", "qemu-xhci,id=xhci,p2=8,p3=8", *_network(name, number, run.parent),
        "-fsdev", f"local,id=tree,path={CHECKOUT},security_model=none,multidevs=remap,readonly=on",
        "-device", "virtio-9p-pci,fsdev=tree,mount_tag=poolferry",
        *(word for node, device in disks for word in ("-blockdev", json.dumps(node), "-device", json.dumps(device))),
        *(("-incoming", "defer") if restoring else ()),
    ]  # fmt: skip


def _memory(path: Path, saving: bool, room: str) -> tuple[str, str]:
    share = "on" if saving else "off"
    return "-object", f"memory-backend-file,id=ram,size={room},mem-path={path},share={share}"


def _network(name: str, number: int, folder: Path) -> tuple[str, ...]:
    """A wire between two unix sockets: nothing else is on it. Why datagrams: the other end may come and go."""
    other = "backup" if name == "master" else "master"
    ends = f"local.type=unix,local.path={folder}/wire-{name},remote.type=unix,remote.path={folder}/wire-{other}"
    card = f"virtio-net-pci,netdev=wire,id=card,mac=52:54:00:99:00:{number:02x},romfile="
    return "-netdev", f"dgram,id=wire,{ends}", "-device", card


def _kept(path: Path) -> Node:
    return {"driver": "file", "filename": str(path), "read-only": True, "locking": "off"}


def _changing(path: Path) -> Node:
    cache = {"direct": False, "no-flush": True}
    file = {"driver": "file", "filename": str(path), "discard": "unmap", "cache": cache}
    return {"file": file, "discard": "unmap", "cache": cache}
